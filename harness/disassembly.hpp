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

/// Bits [low, low + width) of a register, as an operand names it.
struct RegisterPart {
  enum class File : std::uint8_t { none, general, xmm, ymm, x87, segment, instruction_pointer, other };
  File file = File::none;
  std::uint8_t number = 0;  ///< general ones as in signature.hpp; segments es cs ss ds fs gs
  std::uint8_t low = 0;
  std::uint16_t width = 0;
};

/// What an instruction works on. x87 instructions leave operands out, and which differs between versions of the
/// disassembler: only their memory operand and their bytes can be relied on.
struct Operand {
  enum class Kind : std::uint8_t { register_part, immediate, memory };
  Kind kind = Kind::register_part;
  std::uint8_t size = 0;        ///< bytes
  RegisterPart part;            ///< register_part
  std::uint64_t immediate = 0;  ///< sign-extended to 64 bits
  RegisterPart base;            ///< memory; without one, File::none
  RegisterPart index;
  std::uint8_t scale = 1;
  std::int64_t displacement = 0;
  RegisterPart segment;  ///< as named by a prefix
};

/// An instruction taken apart.
struct DetailedInstruction {
  Instruction instruction;
  std::string mnemonic;  ///< without prefixes: "movsd" of "rep movsd …"
  std::string prefix;    ///< "rep", "repe", "repne", "lock" or empty
  std::vector<std::byte> bytes;
  std::vector<Operand> operands;
};

/// Decodes one instruction from bytes that stand at `address`. Nothing when they are not one.
std::optional<DetailedInstruction> take_apart(std::span<const std::byte> bytes, std::uint64_t address, bool is_64_bit);

/// Version of the disassembler, e.g. "4.0.2".
std::string capstone_version();

}  // namespace bitwitness
