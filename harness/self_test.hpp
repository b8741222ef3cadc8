#pragma once
#include "harness/report.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bitwitness {

/// 128 bits as memory holds them, the lower half first.
struct Bits128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  bool operator==(const Bits128&) const = default;
};

/// What stands around the instructions of a vector, all of it 32-bit code. The operands a and b are at esi + 16 and
/// esi + 32 and in xmm0 and xmm1; the result goes to edi, where 16 zero bytes are, and nowhere else. eax, ecx and edx
/// are free.
enum class SelfTestShape : std::uint8_t {
  x87_two,    ///< st(0) is a, st(1) is b, the result is st(0)
  x87_one,    ///< st(0) is a, the result is st(0)
  x87_load,   ///< the stack is empty, the result is st(0)
  x87_out,    ///< st(0) is a, st(1) is b; stores the result itself
  x87_plain,  ///< the stack is empty; stores the result itself
  sse,        ///< the result is xmm0
  sse_edx,    ///< the result is edx
  sse_plain   ///< stores the result itself
};

/// Whether a shape's `control` is the x87 control word; else it is MXCSR.
[[nodiscard]] constexpr bool is_x87(SelfTestShape shape) {
  return shape <= SelfTestShape::x87_plain;
}

/// How a processor's answer is told, which for some instructions depends on whose processor it is.
enum class SelfTestAnswer : std::uint8_t {
  exact,   ///< these bits
  beside,  ///< these bits, or up to four units of the last place of an 80-bit number from them
  other,   ///< any other bits than these, which are the exact result rounded
  fault    ///< no result: the processor raises an exception
};

/// One instruction with operands and what a processor answers. Plain data: tests/self_test_test.cpp holds every row
/// against the processor it runs on, and prints what to write where it differs.
struct SelfTestVector {
  SelfTestShape shape = SelfTestShape::sse;
  std::string_view instruction;
  std::string_view code;      ///< hex, without blanks
  std::uint32_t control = 0;  ///< x87 control word or MXCSR, by shape; the other one is as programs start with it
  Bits128 a;
  Bits128 b;
  Bits128 answer;
  SelfTestAnswer kind = SelfTestAnswer::exact;
};

/// Vectors that show one thing.
struct SelfTestGroup {
  std::string_view name;  ///< lower case and hyphens
  std::string_view what;  ///< a clause; of a quirk with the emulator as its subject
  /// Whether Unicorn 2.0.1 is known to answer otherwise than a processor, on each of these vectors.
  bool is_quirk = false;
  std::span<const SelfTestVector> vectors;
};

/// Returns all groups, those without a quirk first.
std::span<const SelfTestGroup> self_test_groups();

/// The code of a vector's shape and instructions, without a return. May leave values on the x87 stack.
std::vector<std::byte> self_test_code(const SelfTestVector& vector);

/// Tells whether bits are what a vector says a processor answers. No bits are where a fault is the answer.
bool is_as_hardware(const SelfTestVector& vector, const Bits128& given);

/// A vector that the emulator answered otherwise.
struct SelfTestDifference {
  std::size_t group = 0;   ///< index among the groups that were run
  std::size_t number = 0;  ///< of the vector in its group, from 1
  bool has_result = true;  ///< whether the emulator gave a result at all
  Bits128 given;
};

/// What came of all vectors.
struct SelfTest {
  std::size_t vectors = 0;
  std::size_t as_hardware = 0;
  std::vector<std::string> found;    ///< names of the quirks that were seen, sorted
  std::vector<std::string> missing;  ///< names of the quirks of Unicorn 2.0.1 that no vector showed, sorted
  std::vector<std::string> unknown;  ///< names of vectors that differ and are in no quirk: "x87-add 3 fadd"; sorted
  std::vector<SelfTestDifference> differences;  ///< in the order of the groups
};

/// Stands before the name of a vector among the quirks of a report.
inline constexpr std::string_view unknown_quirk_prefix = "unknown: ";

/// Returns what reports keep.
SelfTestSummary summary_of(const SelfTest& test);

/// Returns the names of the quirks of Unicorn 2.0.1 that are not in a report's sorted list, sorted.
std::vector<std::string> quirks_not_in(const std::vector<std::string>& quirks);

/// Runs vectors in one emulator, some milliseconds for all of them. Equal emulators give equal results. Throws Error
/// when the emulator cannot be used.
SelfTest run_self_test(std::span<const SelfTestGroup> groups = self_test_groups());

}  // namespace bitwitness
