#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace bitwitness::testing {

inline std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

/// Returns the low `Size` bytes of an integer, lowest first.
template <std::size_t Size>
std::array<std::byte, Size> little_endian(std::uint64_t bits) {
  std::array<std::byte, Size> packed{};
  for (std::size_t i = 0; i < Size; ++i) packed[i] = static_cast<std::byte>(bits >> 8 * i & 0xFF);
  return packed;
}

/// Decodes into `Words` words.
template <std::size_t Words, class Decode>
std::array<std::uint32_t, Words> decode_with(Decode decode, std::span<const std::byte> packed) {
  std::array<std::uint32_t, Words> words{};
  decode(packed, words);
  return words;
}

/// Draws numbers from a seed: splitmix64.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t mixed = state_ += 0x9E3779B97F4A7C15u;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBu;
    return mixed ^ mixed >> 31;
  }
  unsigned below(unsigned end) { return static_cast<unsigned>((next() >> 32) * end >> 32); }
  double between(double low, double high) { return low + (high - low) * static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

/// Rounds value * 2^-places to binary32 with integer arithmetic alone, ties to even.
inline std::uint32_t round_to_binary32(std::int64_t value, int places) {
  if (value == 0) return 0;
  const std::uint32_t sign = value < 0 ? 0x80000000u : 0;
  auto magnitude = static_cast<std::uint64_t>(value < 0 ? -value : value);
  int exponent = 127 - places + 23;
  const int excess = static_cast<int>(std::bit_width(magnitude)) - 24;
  if (excess > 0) {
    const std::uint64_t half = std::uint64_t{1} << (excess - 1);
    const std::uint64_t rest = magnitude & (2 * half - 1);
    magnitude >>= excess;
    if (rest > half || (rest == half && (magnitude & 1) != 0)) ++magnitude;
    exponent += excess;
  }
  while (magnitude < (1u << 23)) magnitude <<= 1, --exponent;
  if (magnitude == (1u << 24)) magnitude >>= 1, ++exponent;
  return sign | static_cast<std::uint32_t>(exponent) << 23 | (static_cast<std::uint32_t>(magnitude) & 0x7FFFFFu);
}

/// Returns a positive binary32 in units of 2^-places; its lowest bit must not lie below.
inline std::int64_t in_fixed_point(std::uint32_t bits, int places) {
  if (bits == 0) return 0;
  return std::int64_t{(bits & 0x7FFFFF) | 0x800000} << (static_cast<int>(bits >> 23) - (127 - places + 23));
}

/// Returns code * scale - bias, each rounded to binary32, by integer arithmetic. `places` is that of the scale's lowest
/// bit.
inline std::uint32_t component_by_integers(int code, std::uint32_t scale, int places) {
  const std::int64_t significand = (scale & 0x7FFFFF) | 0x800000;
  const std::uint32_t product = round_to_binary32(code * significand, places);
  return round_to_binary32(in_fixed_point(product, places) - in_fixed_point(0x3F3504F3, places), places);
}

}  // namespace bitwitness::testing
