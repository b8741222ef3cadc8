#pragma once
#include "harness/disassembly.hpp"
#include "harness/image.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bitwitness {

/// Entries of a table that are followed at most.
inline constexpr std::size_t max_table_entries = 512;

/// Returns where a jump through a table of addresses may lead: "jmp dword ptr [eax*4 + 0x1234]" of 32-bit code, as
/// compilers write for a switch. The table ends where an entry is no code, so what lies behind it may be taken for more
/// of it. Empty for any other instruction, and for tables in memory that programs may write.
std::vector<std::uint64_t> jump_table_targets(const Image& image, const Instruction& jump);

}  // namespace bitwitness
