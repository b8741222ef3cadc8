#pragma once
// Runs single instructions on both witnesses, with values of every kind, and counts where their bits differ.
#include "harness/image.hpp"
#include "harness/machine.hpp"
#include "harness/value_generators.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bitwitness::tests {

/// How the bytes of a number are to be read.
enum class Format { bits, f32, f64, f80 };

/// What an instruction works on. The vector shapes have xmm0 and mm0 from the first 16 bytes, xmm1, mm1 and edx from
/// the second; those of the x87 unit have st(0) from the first and st(1) or memory, at esi + 16, from the second.
enum class Shape {
  bits,
  general,
  f32,
  f32_scalar,
  f64,
  f64_scalar,
  bits_to_f32,
  bits_to_f64,
  f32_to_bits,
  f32_to_bits_scalar,
  f64_to_bits,
  f64_to_bits_scalar,
  f32_to_f64,
  f32_to_f64_scalar,
  f64_to_f32,
  f64_to_f32_scalar,
  x87,
  x87_m32,
  x87_m64,
  x87_int,
  x87_store,
  query,   ///< asks the processor or the clock
  refused  ///< must not come back from the emulator
};

/// One way to write an instruction, and what stands around it.
struct Trial {
  Shape shape = Shape::bits;
  std::vector<std::byte> before;
  std::vector<std::byte> code;  ///< of the instruction
  std::vector<std::byte> after;
  bool is_64_bit = false;
  unsigned left = 0;  ///< values on the x87 stack after it
  std::string text;   ///< as the disassembler prints it

  [[nodiscard]] std::string mnemonic() const { return text.substr(0, text.find(' ')); }
};

/// Bytes of a value that an instruction is tried with.
inline constexpr std::size_t trial_value_size = 32;

/// Whether a shape is one of the x87 unit.
bool is_x87(Shape shape);

/// Control words under which a shape is tried.
std::vector<Environment> environments_of(Shape shape);

/// Draws values of every kind, one behind the other.
std::vector<std::byte> draw_values(const Trial& trial, RandomWords& random, std::size_t count);

/// Every instruction that is tried, in every form that is.
std::vector<Trial> all_trials();

/// How often both witnesses were asked and did not say the same.
struct Measured {
  std::uint64_t values = 0;
  std::uint64_t not_returned = 0;  ///< on the emulator
  std::uint64_t differed = 0;
  std::uint64_t differed_plain = 0;  ///< of those, with nothing but numbers in and out
  std::string example;               ///< the first plain difference, else the first
};

/// Runs one instruction under all its control words. Throws Error when the processor cannot be asked.
Measured measure(const Trial& trial);

}  // namespace bitwitness::tests
