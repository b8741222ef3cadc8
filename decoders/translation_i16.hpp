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

/// Decodes a translation of three i16 in millimetres. Source: seed 000, Shaun White Skateboarding (kind 9).
///
/// Observed against bind positions and a renderer's bones: the layout and the unit. Assumed: the words are metres, each
/// one f32 product by f32(0.001).
namespace bitwitness::decoders::translation_i16 {

inline constexpr std::size_t packed_size = 6;
inline constexpr std::array<std::string_view, 3> word_names{"x", "y", "z"};
inline constexpr std::array<Field, 3> fields{{{"x", 0, 16}, {"y", 16, 16}, {"z", 32, 16}}};
inline constexpr std::string_view summary =
    "Translation in 6 bytes: three i16 to metres; layout and 1 mm unit observed on Shaun White Skateboarding's keys of "
    "kind 9 (seed 000), the product by f32(0.001) assumed.";

/// Decodes 6 bytes into 3 words.
constexpr void decode(std::span<const std::byte> packed, std::span<std::uint32_t> words) {
  for (std::size_t word = 0; word < 3; ++word) {
    const auto millimetres = static_cast<std::int16_t>(load_u16(packed, 2 * word));
    words[word] = std::bit_cast<std::uint32_t>(metres(millimetres));
  }
}

}  // namespace bitwitness::decoders::translation_i16
