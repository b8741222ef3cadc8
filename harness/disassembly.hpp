#pragma once
#include "harness/image.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bitwitness {

enum class Flow : std::uint8_t { next, jump, conditional_jump, call, indirect_jump, indirect_call, return_, stop };

struct Instruction {
  std::uint64_t address = 0;
  std::uint32_t size = 0;
  std::string text;  ///< "fld dword ptr [eax + 4]"
  Flow flow = Flow::next;
  std::optional<std::uint64_t> target;           ///< of a direct jump or call
  std::vector<std::uint64_t> memory_references;  ///< absolute addresses its operands name
  std::vector<std::uint64_t> immediates;         ///< immediate operands, zero-extended from their width
};

/// Decodes one instruction at an address of the image. Nothing when the bytes are not one or are not there.
std::optional<Instruction> disassemble_one(const Image& image, std::uint64_t address);

/// Decodes one instruction from bytes that stand at `address`.
std::optional<Instruction> disassemble_one(std::span<const std::byte> bytes, std::uint64_t address, bool is_64_bit);

/// The instructions that direct control flow reaches from an address, by rising address.
struct Listing {
  std::vector<Instruction> instructions;
  std::vector<std::uint64_t> undecodable;  ///< addresses that flow reaches and that are not code
  bool complete = true;                    ///< false when the limit ended it or an indirect jump was met
};

/// Follows direct jumps (and direct calls, when asked) from an address, up to `limit` instructions. With
/// `follow_tables` also jumps through tables of addresses (see jump_tables.hpp).
Listing disassemble_routine(const Image& image, std::uint64_t address, std::size_t limit = 4096,
                            bool follow_calls = false, bool follow_tables = false);

/// Returns the SHA-256 of the listing's instruction bytes in address order, in lowercase hex: the identity of a
/// routine.
std::string routine_sha256(const Image& image, const Listing& listing);

/// Version of the disassembler, e.g. "4.0.2".
std::string capstone_version();

}  // namespace bitwitness
