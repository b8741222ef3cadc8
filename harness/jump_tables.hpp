#pragma once
#include "harness/disassembly.hpp"
#include "harness/image.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bitwitness {

/// Entries of a table that are followed at most.
inline constexpr std::size_t max_table_entries = 512;

/// Where a jump through a table of addresses may lead.
struct JumpTable {
  std::vector<std::uint64_t> targets;  ///< in the table's order
  bool is_whole = false;  ///< false for no table, one that is cut, and one before which there seems to be more of it
};

/// Reads the table of a jump: "jmp dword ptr [eax*4 + 0x1234]" of 32-bit code, as compilers write for a switch. The
/// table ends where an entry is no code, so what lies behind it may be taken for more of it. Nothing for any other
/// instruction, and for tables in memory that programs may write.
JumpTable jump_table_of(const Image& image, const Instruction& jump);

}  // namespace bitwitness
