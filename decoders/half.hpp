#pragma once
#include "decoders/bytes.hpp"
#include "decoders/registry.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

/// Widens IEEE 754 binary16 to binary32. Source: IEEE 754, interchange formats and conversions.
namespace bitwitness::decoders::half {

inline constexpr std::size_t packed_size = 2;
inline constexpr std::array<std::string_view, 1> word_names{"value"};
inline constexpr std::array<Field, 3> fields{{{"fraction", 0, 10}, {"exponent", 10, 5}, {"sign", 15, 1}}};
inline constexpr std::string_view summary =
    "IEEE binary16 to binary32, exact; a NaN keeps its sign and payload and becomes quiet, as x86 conversions make it.";

/// Returns the binary32 bit pattern equal to a binary16 one.
constexpr std::uint32_t widen(std::uint16_t bits) {
  constexpr unsigned bias_difference = 127 - 15;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1Fu;
  const std::uint32_t fraction = bits & 0x3FFu;
  if (exponent == 0x1F) {
    const std::uint32_t quiet = fraction != 0 ? 0x0040'0000u : 0;
    return sign | 0x7F80'0000u | quiet | fraction << 13;
  }
  if (exponent != 0) return sign | (exponent + bias_difference) << 23 | fraction << 13;
  if (fraction == 0) return sign;
  // A subnormal is normal in binary32: its leading 1 becomes the implicit bit.
  const unsigned shift = static_cast<unsigned>(std::countl_zero(fraction)) - 21;
  return sign | (bias_difference + 1 - shift) << 23 | ((fraction << shift) & 0x3FFu) << 13;
}

/// Decodes 2 bytes into 1 word.
constexpr void decode(std::span<const std::byte> packed, std::span<std::uint32_t> words) {
  words[0] = widen(load_u16(packed, 0));
}

}  // namespace bitwitness::decoders::half
