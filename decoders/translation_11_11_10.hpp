#pragma once
#include "decoders/bytes.hpp"
#include "decoders/millimetres.hpp"
#include "decoders/registry.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

/// Decodes a translation of one little-endian u32: x in bits 21–31, y in bits 10–20, z in bits 0–9, two's complement
/// millimetres. Source: seed 000, Shaun White Skateboarding (kind 8).
///
/// Observed on stored keys and a renderer's bones: the split and the unit. Assumed: the words are metres, each one f32
/// product by f32(0.001).
namespace bitwitness::decoders::translation_11_11_10 {

inline constexpr std::size_t packed_size = 4;
inline constexpr std::array<std::string_view, 3> word_names{"x", "y", "z"};
inline constexpr std::array<Field, 3> fields{{{"z", 0, 10}, {"y", 10, 11}, {"x", 21, 11}}};
inline constexpr std::string_view summary =
    "Translation in 4 bytes: x and y of 11 bits, z of 10, signed, to metres; split and 1 mm unit observed on Shaun "
    "White Skateboarding's keys of kind 8 (seed 000), the product by f32(0.001) assumed.";

/// Decodes 4 bytes into 3 words.
constexpr void decode(std::span<const std::byte> packed, std::span<std::uint32_t> words) {
  const auto bits = static_cast<std::int32_t>(load_u32(packed, 0));
  // Each field is moved to the top, so that the shift down copies its sign.
  words[0] = std::bit_cast<std::uint32_t>(metres(bits >> 21));
  words[1] = std::bit_cast<std::uint32_t>(metres(bits << 11 >> 21));
  words[2] = std::bit_cast<std::uint32_t>(metres(bits << 22 >> 22));
}

}  // namespace bitwitness::decoders::translation_11_11_10
