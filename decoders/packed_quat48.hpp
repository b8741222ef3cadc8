#pragma once
#include "decoders/assumptions.hpp"
#include "decoders/bytes.hpp"
#include "decoders/registry.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

/// Decodes a unit quaternion of three u16: the low 15 bits of each are the kept components in component order, bit 15
/// of the first two the omitted one's index. Source: seed 000, Shaun White Skateboarding (kind 4, executed unpack).
namespace bitwitness::decoders::packed_quat48 {

inline constexpr std::size_t packed_size = 6;
inline constexpr std::array<std::string_view, 4> word_names{"x", "y", "z", "w"};
inline constexpr std::array<Field, 6> fields{
    {{"a", 0, 15}, {"lane_low", 15, 1}, {"b", 16, 15}, {"lane_high", 31, 1}, {"c", 32, 15}, {"unused", 47, 1}}};
inline constexpr std::string_view summary =
    "Unit quaternion in 6 bytes: three 15-bit components and the omitted one's index; proven on every kind 4 value of "
    "Shaun White Skateboarding (seed 000).";

/// Step of a component: the f32 nearest sqrt(2)/32767, widened to double as the engine does.
inline constexpr double scale = std::bit_cast<float>(0x3835065Du);

/// Half the range of a component: f32(1/sqrt(2)). As bits, for the literal 0.7071068f is the f32 above it.
inline constexpr float bias = std::bit_cast<float>(0x3F3504F3u);

/// Turns a code of -32768 … 32767 into a component: product in double, rounded to f32, bias subtracted in f32.
constexpr float component(int code) {
  return static_cast<float>(code * scale) - bias;
}

/// Returns the omitted component's index: 0 x, 1 y, 2 z, 3 w.
constexpr unsigned omitted_lane(std::uint16_t first, std::uint16_t second) {
  return static_cast<unsigned>(first >> 15) | static_cast<unsigned>(second >> 15) << 1;
}

/// Returns 1 - a² - b² - c² in double. Squares of f32 are exact there, so contraction to FMA changes nothing.
constexpr double radicand(float a, float b, float c) {
  const double wide_a = a;
  const double wide_b = b;
  const double wide_c = c;
  return ((1.0 - wide_a * wide_a) - wide_b * wide_b) - wide_c * wide_c;
}

/// Returns the square root in double, rounded to f32; 0 for a negative radicand.
inline float clamped_root(double radicand) {
  return static_cast<float>(std::sqrt(radicand > 0.0 ? radicand : 0.0));
}

/// Writes the words x y z w: `omitted` at its lane, the kept components in order at the others. Their places are
/// counted from the lane's bits and not chosen, for lanes follow no pattern that a branch predictor could learn.
constexpr void place(std::span<std::uint32_t> words, unsigned lane, std::uint32_t omitted, float a, float b, float c) {
  const unsigned low = lane & 1;
  const unsigned high = lane >> 1;
  words[1 - (low | high)] = std::bit_cast<std::uint32_t>(a);
  words[2 - high] = std::bit_cast<std::uint32_t>(b);
  words[3 - (low & high)] = std::bit_cast<std::uint32_t>(c);
  words[lane] = omitted;
}

/// Decodes 6 bytes into 4 words. The omitted component is never negative, and 0 where the kept ones exceed unit length.
inline void decode(std::span<const std::byte> packed, std::span<std::uint32_t> words) {
  const std::uint16_t first = load_u16(packed, 0);
  const std::uint16_t second = load_u16(packed, 2);
  const float a = component(first & 0x7FFF);
  const float b = component(second & 0x7FFF);
  const float c = component(load_u16(packed, 4) & 0x7FFF);
  const float omitted = clamped_root(radicand(a, b, c));
  place(words, omitted_lane(first, second), std::bit_cast<std::uint32_t>(omitted), a, b, c);
}

}  // namespace bitwitness::decoders::packed_quat48

/// Decodes two consecutive keys, as the engine's two-key form does. Source: seed 000, Shaun White Skateboarding.
namespace bitwitness::decoders::packed_quat48_pair {

inline constexpr std::size_t packed_size = 2 * packed_quat48::packed_size;
inline constexpr std::array<std::string_view, 8> word_names{"0.x", "0.y", "0.z", "0.w", "1.x", "1.y", "1.z", "1.w"};
inline constexpr std::array<Field, 12> fields{{{"0.a", 0, 15},
                                               {"0.lane_low", 15, 1},
                                               {"0.b", 16, 15},
                                               {"0.lane_high", 31, 1},
                                               {"0.c", 32, 15},
                                               {"0.unused", 47, 1},
                                               {"1.a", 48, 15},
                                               {"1.lane_low", 63, 1},
                                               {"1.b", 64, 15},
                                               {"1.lane_high", 79, 1},
                                               {"1.c", 80, 15},
                                               {"1.unused", 95, 1}}};
inline constexpr std::string_view summary =
    "Two consecutive packed_quat48 keys in 12 bytes; the two-key form's rule is proven, that its keys lie side by side "
    "is assumed (seed 000, Shaun White Skateboarding).";

/// Decodes 12 bytes into 8 words: the first key's x y z w, then the second's.
inline void decode(std::span<const std::byte> packed, std::span<std::uint32_t> words) {
  packed_quat48::decode(packed.first(packed_quat48::packed_size), words.first(4));
  packed_quat48::decode(packed.subspan(packed_quat48::packed_size), words.subspan(4));
}

}  // namespace bitwitness::decoders::packed_quat48_pair
