#include "harness/environment_names.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace bitwitness {
namespace {

/// Precision control (bits 8 and 9) with all exceptions masked. Direct3D 9 sets single precision when it makes a device
/// without D3DCREATE_FPU_PRESERVE; 037f is what FNINIT sets.
struct Precision {
  std::uint16_t fpcw;
  unsigned bits;
  std::string_view name;
};
constexpr std::array<Precision, 3> precisions = {{
    {0x027f, 53, "Win32 default"},
    {0x007f, 24, "Direct3D 9's"},
    {0x037f, 64, "x87 default, 64-bit"},
}};

/// Rounding control, bits 10 and 11.
struct Rounding {
  std::uint16_t bits;
  std::string_view name;
};
constexpr Rounding to_nearest = {0x0000, ""};
constexpr std::array<Rounding, 3> other_roundings = {
    {{0x0400, "rounds down"}, {0x0800, "rounds up"}, {0x0c00, "rounds toward zero"}}};

struct SseControl {
  std::uint32_t mxcsr;
  std::string_view name;
};
constexpr std::array<SseControl, 4> sse_controls = {
    {{0x1f80, ""}, {0x9f80, "FTZ"}, {0x1fc0, "DAZ"}, {0x9fc0, "FTZ and DAZ"}}};

std::uint16_t word_of(const Precision& precision, const Rounding& rounding) {
  return static_cast<std::uint16_t>(precision.fpcw | rounding.bits);
}

std::string fpcw_name(std::uint16_t fpcw) {
  for (const Precision& precision : precisions) {
    if (fpcw == word_of(precision, to_nearest)) return std::string(precision.name);
    for (const Rounding& rounding : other_roundings) {
      if (fpcw == word_of(precision, rounding)) return fmt::format("{}-bit, {}", precision.bits, rounding.name);
    }
  }
  return {};
}

}  // namespace

std::vector<std::uint16_t> swept_fpcw(bool all_roundings) {
  std::vector<std::uint16_t> words;
  for (const Precision& precision : precisions) words.push_back(word_of(precision, to_nearest));
  if (!all_roundings) return words;
  for (const Rounding& rounding : other_roundings) {
    for (const Precision& precision : precisions) words.push_back(word_of(precision, rounding));
  }
  return words;
}

std::vector<std::uint32_t> swept_mxcsr() {
  std::vector<std::uint32_t> words;
  for (const SseControl& control : sse_controls) words.push_back(control.mxcsr);
  return words;
}

std::string environment_name(const Environment& environment) {
  std::string name = fpcw_name(environment.fpcw);
  const auto sse = std::ranges::find(sse_controls, environment.mxcsr, &SseControl::mxcsr);
  if (sse == sse_controls.end()) return {};  // the first half alone would be another environment's name
  if (!name.empty() && !sse->name.empty()) name += ", ";
  return name.append(sse->name);
}

}  // namespace bitwitness
