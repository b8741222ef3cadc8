#pragma once
#include "decoders/packed_quat48.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

/// Decodes a unit quaternion of one little-endian u32: bits 30–31 are the omitted component's index, bits 20–29, 10–19
/// and 0–9 the kept components in component order. Source: seed 000, Track blocks (kind 3).
///
/// Observed on stored keys: the layout and (v / 1023 × 2 − 1) / √2. Assumed: the order of operations, taken from
/// packed_quat48, whose engine code the seed ran. A sister title steps by √2/1024 (0x3AB504F3), which moves a component
/// by 0.0014 at most: keys alone hardly tell the two apart, executing the routine does.
namespace bitwitness::decoders::packed_quat32 {

inline constexpr std::size_t packed_size = 4;
inline constexpr std::array<std::string_view, 4> word_names = packed_quat48::word_names;
inline constexpr std::array<Field, 4> fields{{{"c", 0, 10}, {"b", 10, 10}, {"a", 20, 10}, {"lane", 30, 2}}};
inline constexpr std::string_view summary =
    "Unit quaternion in 4 bytes: three 10-bit components and the omitted one's index; layout and maximum 1023 observed "
    "on Riders Republic's keys of kind 3 (seed 000), order of operations assumed as in packed_quat48.";

/// The highest code of a component.
inline constexpr int maximum = 1023;

/// Step of a component: the f32 nearest sqrt(2)/1023, widened to double.
inline constexpr double scale = std::bit_cast<float>(0x3AB53240u);

/// Turns a code of 0 … 1023 into a component: product in double, rounded to f32, packed_quat48's bias subtracted in
/// f32.
constexpr float component(int code) {
  return static_cast<float>(code * scale) - packed_quat48::bias;
}

/// Decodes 4 bytes into 4 words.
inline void decode(std::span<const std::byte> packed, std::span<std::uint32_t> words) {
  const std::uint32_t bits = load_u32(packed, 0);
  const float a = component(static_cast<int>(bits >> 20 & 0x3FF));
  const float b = component(static_cast<int>(bits >> 10 & 0x3FF));
  const float c = component(static_cast<int>(bits & 0x3FF));
  const float omitted = packed_quat48::clamped_root(packed_quat48::radicand(a, b, c));
  packed_quat48::place(words, bits >> 30, std::bit_cast<std::uint32_t>(omitted), a, b, c);
}

}  // namespace bitwitness::decoders::packed_quat32
