#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace bitwitness {

/// A general register or a part of one, by its name.
struct GeneralPart {
  std::uint8_t number = 0;  ///< as in signature.hpp
  std::uint8_t low = 0;     ///< 8 for ah, ch, dh, bh
  std::uint16_t width = 0;
};

/// Reads a name such as "eax", "ah", "sil" or "r8d"; nothing when it is none.
std::optional<GeneralPart> general_part(std::string_view name);

/// Reads the number behind a prefix, below `end`: 12 of "xmm12".
std::optional<unsigned> register_number(std::string_view name, std::string_view prefix, unsigned end);

/// Splits what a disassembler gives as a mnemonic into "rep", "repe", "repne", "lock" or nothing, and the rest.
/// Prefixes without a meaning (of a jump or return) are dropped.
std::pair<std::string, std::string> split_mnemonic(std::string_view text);

/// How the bytes of an access are to be read, as far as its instruction tells.
enum class Reading : std::uint8_t {
  bits,     ///< an unsigned integer, or what is to be copied
  integer,  ///< a signed integer that is converted from or to a floating-point number
  f32,      ///< one or more of them
  f64,      ///< one or more of them
  f80
};

/// What an instruction works on, as its text says. The disassembler leaves out st(0) where it is implied.
struct Operands {
  std::uint16_t general = 0;  ///< bit n: register n is named, whole or in part
  std::uint16_t xmm = 0;
  std::uint8_t x87 = 0;            ///< bit n: st(n) is named or implied
  bool is_floating_point = false;  ///< x87 or SSE: what it accesses piece by piece is one access
};

/// Reads the operands of an instruction's text, as disassemble_one gives it.
Operands operands_of(std::string_view text);

/// How an SSE instruction reads XMM registers and what it leaves there. They differ where it converts.
struct Lanes {
  Reading source = Reading::bits;
  Reading destination = Reading::bits;
  bool is_scalar = false;  ///< it computes in the lowest lane alone
};

/// Reads an SSE instruction's lanes off its text.
Lanes lanes_of(std::string_view text);

/// Says how `size` bytes that an instruction loads or stores are to be read.
Reading reading_of(std::string_view text, std::size_t size);

}  // namespace bitwitness
