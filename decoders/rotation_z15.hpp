#pragma once
#include "decoders/packed_quat48.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

/// Decodes a rotation about z of one u16: the low 15 bits are the quaternion's z, by packed_quat48's component rule; x
/// and y are 0 and w is the positive root. Source: seed 000, Track blocks (Riders Republic kind 7).
///
/// Observed: that the low 15 bits hold a rotation about z. The seed leaves open what they measure and what bit 15
/// means. Chosen here, and assumed: a component as in kind 4, the one 15-bit rule that the seed gives, which reaches a
/// quarter turn either way; bit 15 is ignored. Other readings that would fit the seed's words: an angle in 32767ths or
/// 32768ths of a turn; bit 15 telling which of z and w is the kept one, which would reach every angle.
namespace bitwitness::decoders::rotation_z15 {

inline constexpr std::size_t packed_size = 2;
inline constexpr std::array<std::string_view, 4> word_names = packed_quat48::word_names;
inline constexpr std::array<Field, 2> fields{{{"z", 0, 15}, {"unused", 15, 1}}};
inline constexpr std::string_view summary =
    "Rotation about z in 2 bytes; observed that its low 15 bits hold it (Riders Republic kind 7, seed 000), assumed "
    "that they are z by packed_quat48's component rule and that bit 15, whose meaning is unknown, changes nothing.";

/// Decodes 2 bytes into 4 words.
inline void decode(std::span<const std::byte> packed, std::span<std::uint32_t> words) {
  const float z = packed_quat48::component(load_u16(packed, 0) & 0x7FFF);
  words[0] = 0;
  words[1] = 0;
  words[2] = std::bit_cast<std::uint32_t>(z);
  words[3] = std::bit_cast<std::uint32_t>(packed_quat48::clamped_root(packed_quat48::radicand(z, 0, 0)));
}

}  // namespace bitwitness::decoders::rotation_z15
