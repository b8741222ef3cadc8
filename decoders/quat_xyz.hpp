#pragma once
#include "decoders/packed_quat48.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

/// Decodes a unit quaternion of three f32: x, y and z as they are, w the positive root. Source: seed 000, Track blocks
/// (Riders Republic kind 8) and Shaun White Skateboarding (kind 6).
///
/// Observed on stored keys and a renderer's bones: the layout and w's sign. Assumed: the root in double, and 0 where
/// x, y, z exceed unit length or are not numbers. A sister title's 96-bit key hides the omitted component's index in
/// the lowest mantissa bits of x and y; the seed reads no such bits.
namespace bitwitness::decoders::quat_xyz {

inline constexpr std::size_t packed_size = 12;
inline constexpr std::array<std::string_view, 4> word_names = packed_quat48::word_names;
inline constexpr std::array<Field, 3> fields{{{"x", 0, 32}, {"y", 32, 32}, {"z", 64, 32}}};
inline constexpr std::string_view summary =
    "Unit quaternion in 12 bytes: x, y, z as f32 and w the positive root; observed on keys (Riders Republic kind 8, "
    "Shaun White Skateboarding kind 6) and on rendered bones (seed 000), precision of the root assumed.";

/// Decodes 12 bytes into 4 words; x, y and z keep their bits.
inline void decode(std::span<const std::byte> packed, std::span<std::uint32_t> words) {
  for (std::size_t word = 0; word < 3; ++word) words[word] = load_u32(packed, 4 * word);
  const double left = packed_quat48::radicand(std::bit_cast<float>(words[0]), std::bit_cast<float>(words[1]),
                                              std::bit_cast<float>(words[2]));
  words[3] = std::bit_cast<std::uint32_t>(packed_quat48::clamped_root(left));
}

}  // namespace bitwitness::decoders::quat_xyz
