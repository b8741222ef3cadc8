#pragma once
#include "decoders/packed_quat48.hpp"
#include "decoders/registry.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

/// Decodes the rotation keys of Dunia's .mab files: packed_quat48's components and lanes, but the third word is signed
/// and unmasked, and nothing keeps the root's argument from being negative. Source: seed 004, The rotation data itself.
///
/// Observed in decompiled code: masks, signedness, lanes, order of the subtractions. Assumed: the constants are those
/// of packed_quat48 (seven printed digits fit two values of the bias), and the root is taken in double, whose words x87
/// code at 53-bit precision gives as well; a chain of f32 operations would differ in about a third of random keys.
namespace bitwitness::decoders::dunia_quat48 {

inline constexpr std::size_t packed_size = 6;
inline constexpr std::array<std::string_view, 4> word_names = packed_quat48::word_names;
inline constexpr std::array<Field, 5> fields{
    {{"a", 0, 15}, {"lane_low", 15, 1}, {"b", 16, 15}, {"lane_high", 31, 1}, {"c", 32, 16}}};
inline constexpr std::string_view summary =
    "As packed_quat48, but the third word signed and unmasked and a NaN where the kept components exceed unit length; "
    "masks and lanes observed in decompiled code (seed 004), exact constants and double precision assumed.";

/// What an x86 CPU gives for the root of a negative number, narrowed to f32: the default NaN.
inline constexpr std::uint32_t default_nan = 0xFFC00000u;

/// Decodes 6 bytes into 4 words.
inline void decode(std::span<const std::byte> packed, std::span<std::uint32_t> words) {
  const std::uint16_t first = load_u16(packed, 0);
  const std::uint16_t second = load_u16(packed, 2);
  const float a = packed_quat48::component(first & 0x7FFF);
  const float b = packed_quat48::component(second & 0x7FFF);
  const float c = packed_quat48::component(static_cast<std::int16_t>(load_u16(packed, 4)));
  const double left = packed_quat48::radicand(a, b, c);
  const auto root = std::bit_cast<std::uint32_t>(packed_quat48::clamped_root(left));
  // The root of a negative radicand is clamped to +0, whose bits are 0: the NaN is added without a branch.
  const std::uint32_t omitted = root | default_nan * static_cast<std::uint32_t>(left < 0.0);
  packed_quat48::place(words, packed_quat48::omitted_lane(first, second), omitted, a, b, c);
}

}  // namespace bitwitness::decoders::dunia_quat48
