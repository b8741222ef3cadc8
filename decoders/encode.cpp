#include "decoders/encode.hpp"

#include "decoders/millimetres.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace bitwitness::decoders {
namespace {

using Codes = std::array<int, 3>;

template <std::size_t Size>
std::array<std::byte, Size> little_endian(std::uint64_t bits) {
  static_assert(Size <= sizeof bits);
  std::array<std::byte, Size> packed{};
  for (std::size_t i = 0; i < Size; ++i) packed[i] = static_cast<std::byte>(bits >> 8 * i & 0xFF);
  return packed;
}

std::array<std::byte, 12> little_endian(float x, float y, float z) {
  std::array<std::byte, 12> packed{};
  std::size_t at = 0;
  for (const float value : {x, y, z}) {
    for (const std::byte byte : little_endian<4>(std::bit_cast<std::uint32_t>(value))) packed[at++] = byte;
  }
  return packed;
}

// The code of lowest … highest whose value is nearest. `estimate` is off by less than 1 where it is within the range,
// since no decoder's step is as small as the rounding of its values.
template <class Value>
int nearest_code(Value value_of, double estimate, float value, int lowest, int highest) {
  if (!(estimate > lowest)) return lowest;
  if (estimate >= highest) return highest;
  const int middle = static_cast<int>(std::lround(estimate));
  int best = std::max(middle - 1, lowest);
  for (int code = best + 1; code <= std::min(middle + 1, highest); ++code) {
    const double error = std::abs(double{value_of(code)} - double{value});
    if (error < std::abs(double{value_of(best)} - double{value})) best = code;
  }
  return best;
}

std::uint32_t millimetre_code(float value, int bits) {
  const int end = 1 << (bits - 1);
  const int code = nearest_code(metres, double{value} / double{millimetre}, value, -end, end - 1);
  return static_cast<std::uint32_t>(code) & ((std::uint32_t{1} << bits) - 1);
}

struct Quat32 {
  static constexpr std::size_t packed_size = packed_quat32::packed_size;
  static constexpr double scale = packed_quat32::scale;
  static constexpr Codes lowest{0, 0, 0};
  static constexpr int highest = packed_quat32::maximum;
  static float component(int code) { return packed_quat32::component(code); }
  static std::uint64_t pack(std::uint64_t lane, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    return lane << 30 | a << 20 | b << 10 | c;
  }
  static constexpr Decode decode = packed_quat32::decode;
};

struct Quat48 {
  static constexpr std::size_t packed_size = packed_quat48::packed_size;
  static constexpr double scale = packed_quat48::scale;
  static constexpr Codes lowest{0, 0, 0};
  static constexpr int highest = 0x7FFF;
  static float component(int code) { return packed_quat48::component(code); }
  static std::uint64_t pack(std::uint64_t lane, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    return a | (lane & 1) << 15 | b << 16 | (lane >> 1) << 31 | (c & 0xFFFF) << 32;
  }
  static constexpr Decode decode = packed_quat48::decode;
};

struct Dunia48 : Quat48 {
  static constexpr Codes lowest{0, 0, -0x8000};
  static constexpr Decode decode = dunia_quat48::decode;
};

struct Quat64 {
  static constexpr std::size_t packed_size = packed_quat64::packed_size;
  static constexpr double scale = packed_quat64::scale;
  static constexpr Codes lowest{0, 0, 0};
  static constexpr int highest = packed_quat64::maximum;
  static float component(int code) { return packed_quat64::component(code); }
  static std::uint64_t pack(std::uint64_t lane, std::uint64_t a, std::uint64_t b, std::uint64_t c) {
    return b >> 12 | a << 8 | lane << 30 | c << 32 | (b & 0xFFF) << 52;
  }
  static constexpr Decode decode = packed_quat64::decode;
};

template <class Format>
int nearest_component(float value, int lowest) {
  const double estimate = (double{value} + double{packed_quat48::bias}) / Format::scale;
  return nearest_code(Format::component, estimate, value, lowest, Format::highest);
}

template <class Format>
std::array<std::byte, Format::packed_size> leave_out(std::size_t lane, const Quaternion& rotation) {
  std::array<std::uint64_t, 3> codes{};
  std::size_t kept = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    if (i == lane) continue;
    codes[kept] = static_cast<std::uint64_t>(nearest_component<Format>(rotation[i], Format::lowest[kept]));
    ++kept;
  }
  return little_endian<Format::packed_size>(Format::pack(lane, codes[0], codes[1], codes[2]));
}

Quaternion negated(const Quaternion& rotation) {
  return {-rotation[0], -rotation[1], -rotation[2], -rotation[3]};
}

template <class Format>
std::array<std::byte, Format::packed_size> smallest_three(const Quaternion& rotation) {
  const auto wanted = std::bit_cast<std::array<std::uint32_t, 4>>(rotation);
  for (std::size_t lane = 0; lane < 4; ++lane) {
    const auto packed = leave_out<Format>(lane, rotation);
    std::array<std::uint32_t, 4> words{};
    Format::decode(packed, words);
    if (words == wanted) return packed;
  }
  const auto size = [](float component) { return std::abs(component); };
  const auto largest = static_cast<std::size_t>(std::ranges::max_element(rotation, {}, size) - rotation.begin());
  return leave_out<Format>(largest, rotation[largest] < 0 ? negated(rotation) : rotation);
}

}  // namespace

std::array<std::byte, 4> packed_quat32::encode(const Quaternion& rotation) {
  return smallest_three<Quat32>(rotation);
}

std::array<std::byte, 6> packed_quat48::encode(const Quaternion& rotation) {
  return smallest_three<Quat48>(rotation);
}

std::array<std::byte, 6> dunia_quat48::encode(const Quaternion& rotation) {
  return smallest_three<Dunia48>(rotation);
}

std::array<std::byte, 8> packed_quat64::encode(const Quaternion& rotation) {
  return smallest_three<Quat64>(rotation);
}

std::array<std::byte, 12> quat_xyz::encode(const Quaternion& rotation) {
  const Quaternion kept = rotation[3] < 0 ? negated(rotation) : rotation;
  return little_endian(kept[0], kept[1], kept[2]);
}

std::array<std::byte, 2> rotation_z15::encode(const Quaternion& rotation) {
  const float z = rotation[3] < 0 ? -rotation[2] : rotation[2];
  return little_endian<2>(static_cast<std::uint64_t>(nearest_component<Quat48>(z, 0)));
}

std::array<std::byte, 12> translation_f32::encode(const Translation& translation) {
  return little_endian(translation[0], translation[1], translation[2]);
}

std::array<std::byte, 4> translation_11_11_10::encode(const Translation& translation) {
  return little_endian<4>(millimetre_code(translation[0], 11) << 21 | millimetre_code(translation[1], 11) << 10 |
                          millimetre_code(translation[2], 10));
}

std::array<std::byte, 6> translation_i16::encode(const Translation& translation) {
  return little_endian<6>(std::uint64_t{millimetre_code(translation[0], 16)} |
                          std::uint64_t{millimetre_code(translation[1], 16)} << 16 |
                          std::uint64_t{millimetre_code(translation[2], 16)} << 32);
}

}  // namespace bitwitness::decoders
