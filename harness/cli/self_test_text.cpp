#include "harness/cli/self_test_text.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace bitwitness::cli {
namespace {

/// Hex digits of a number, the highest first.
std::string digits_of(const Bits128& bits, std::size_t digits) {
  return fmt::format("{:016x}{:016x}", bits.high, bits.low).substr(32 - digits);
}

std::size_t operand_digits(const SelfTestVector& vector) {
  return is_x87(vector.shape) ? 20 : 32;
}

std::size_t result_digits(const SelfTestVector& vector) {
  return vector.shape == SelfTestShape::sse_edx ? 8 : operand_digits(vector);
}

std::string hardware_text(const SelfTestVector& vector) {
  const std::string digits = digits_of(vector.answer, result_digits(vector));
  switch (vector.kind) {
    case SelfTestAnswer::exact:
      return digits;
    case SelfTestAnswer::beside:
      return digits + " or a few units beside it";
    case SelfTestAnswer::other:
      return "anything but " + digits;
    case SelfTestAnswer::fault:
      break;
  }
  return "an exception";
}

std::string difference_text(const SelfTestVector& vector, const SelfTestDifference& difference) {
  return fmt::format("    {} {}, {} {:04x}, a {}, b {}: hardware {}, emulator {}\n", difference.number,
                     vector.instruction, is_x87(vector.shape) ? "fpcw" : "mxcsr", vector.control,
                     digits_of(vector.a, operand_digits(vector)), digits_of(vector.b, operand_digits(vector)),
                     hardware_text(vector),
                     difference.has_result ? digits_of(difference.given, result_digits(vector)) : "no result");
}

std::string_view state_of(const SelfTestGroup& group, std::size_t differing) {
  if (group.is_quirk) return differing > 0 ? "quirk" : "QUIRK NOT FOUND";
  return differing > 0 ? "UNKNOWN DIFFERENCE" : "as hardware";
}

}  // namespace

std::string self_test_text(std::span<const SelfTestGroup> groups, const SelfTest& test, const std::string& version) {
  std::string text;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const SelfTestGroup& group = groups[i];
    const auto is_here = [i](const SelfTestDifference& difference) { return difference.group == i; };
    const auto differing = static_cast<std::size_t>(std::ranges::count_if(test.differences, is_here));
    text += fmt::format("{}: {}, {} of {} as hardware: {}\n", group.name, state_of(group, differing),
                        group.vectors.size() - differing, group.vectors.size(), group.what);
    for (const SelfTestDifference& difference : test.differences) {
      if (is_here(difference)) text += difference_text(group.vectors[difference.number - 1], difference);
    }
  }
  return text + fmt::format(
                    "unicorn {}: {} of {} self-test vectors as on hardware; known quirks found {}, not found {}; "
                    "unknown differences {}\n",
                    version, test.as_hardware, test.vectors, test.found.size(), test.missing.size(),
                    test.unknown.size());
}

}  // namespace bitwitness::cli
