#pragma once
#include "decoders/bytes.hpp"
#include "decoders/registry.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

/// Decodes a translation of three f32. Source: seed 000, Track blocks (Riders Republic kind 9).
namespace bitwitness::decoders::translation_f32 {

inline constexpr std::size_t packed_size = 12;
inline constexpr std::array<std::string_view, 3> word_names{"x", "y", "z"};
inline constexpr std::array<Field, 3> fields{{{"x", 0, 32}, {"y", 32, 32}, {"z", 64, 32}}};
inline constexpr std::string_view summary =
    "Translation in 12 bytes: x, y, z as f32, bits kept; observed on Riders Republic's keys of kind 9 (seed 000).";

/// Decodes 12 bytes into 3 words.
constexpr void decode(std::span<const std::byte> packed, std::span<std::uint32_t> words) {
  for (std::size_t word = 0; word < 3; ++word) words[word] = load_u32(packed, 4 * word);
}

}  // namespace bitwitness::decoders::translation_f32
