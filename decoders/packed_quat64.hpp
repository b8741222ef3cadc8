#pragma once
#include "decoders/packed_quat48.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

/// Decodes a unit quaternion of one little-endian u64 read as a ring of bits: bits 8–27 are the first kept component,
/// bits 52–63 continued by bits 0–7 the second, bits 32–51 the third, in component order; bits 30–31 are the omitted
/// one's index. Source: seed 000, Track blocks (kind 5).
///
/// Observed on stored keys and a renderer's bones: the layout, (v / 1048575 × 2 − 1) / √2, and bits 28–29 zero (ignored
/// here). Assumed: the order of operations, taken from packed_quat48, whose engine code the seed ran.
namespace bitwitness::decoders::packed_quat64 {

inline constexpr std::size_t packed_size = 8;
inline constexpr std::array<std::string_view, 4> word_names = packed_quat48::word_names;
inline constexpr std::array<Field, 6> fields{
    {{"b_high", 0, 8}, {"a", 8, 20}, {"unused", 28, 2}, {"lane", 30, 2}, {"c", 32, 20}, {"b_low", 52, 12}}};
inline constexpr std::string_view summary =
    "Unit quaternion in 8 bytes: three 20-bit components on a ring of bits and the omitted one's index; layout and "
    "maximum observed on keys of kind 5 and on rendered bones (seed 000), order of operations assumed as in "
    "packed_quat48.";

/// The highest code of a component.
inline constexpr int maximum = 1'048'575;

/// Step of a component: the f32 nearest sqrt(2)/1048575, widened to double.
inline constexpr double scale = std::bit_cast<float>(0x35B504FFu);

/// Turns a code of 0 … 1048575 into a component: product in double, rounded to f32, packed_quat48's bias subtracted in
/// f32.
constexpr float component(int code) {
  return static_cast<float>(code * scale) - packed_quat48::bias;
}

/// Decodes 8 bytes into 4 words.
inline void decode(std::span<const std::byte> packed, std::span<std::uint32_t> words) {
  const std::uint64_t bits = load_u64(packed, 0);
  const float a = component(static_cast<int>(bits >> 8 & 0xFFFFF));
  const float b = component(static_cast<int>((bits & 0xFF) << 12 | bits >> 52));
  const float c = component(static_cast<int>(bits >> 32 & 0xFFFFF));
  const float omitted = packed_quat48::clamped_root(packed_quat48::radicand(a, b, c));
  packed_quat48::place(words, static_cast<unsigned>(bits >> 30 & 3), std::bit_cast<std::uint32_t>(omitted), a, b, c);
}

}  // namespace bitwitness::decoders::packed_quat64
