#include "decoders/encode.hpp"

#include "decoders/millimetres.hpp"
#include "tests/catch.hpp"
#include "tests/decoder_support.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

using namespace bitwitness::decoders;
using namespace bitwitness::testing;

namespace {

constexpr std::uint64_t seed = 30'112'026;
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

template <std::size_t Words, std::size_t Size, class Decode, class Encode>
bool comes_back(const std::array<std::byte, Size>& packed, Decode decode, Encode encode) {
  const auto words = decode_with<Words>(decode, packed);
  const auto again = encode(std::bit_cast<std::array<float, Words>>(words));
  return decode_with<Words>(decode, again) == words;
}

// Every value that has each code of one field, the other bits drawn, and then values that are drawn as a whole.
template <std::size_t Words, std::size_t Size, class Fields, class Decode, class Encode>
void sweep(const Fields& fields, Decode decode, Encode encode) {
  Draws draws(seed);
  INFO("seed " << seed);
  for (const Field& field : fields) {
    if (field.width > 20) continue;
    for (std::uint64_t code = 0; code < std::uint64_t{1} << field.width; ++code) {
      const std::uint64_t mask = ((std::uint64_t{1} << field.width) - 1) << field.offset;
      const std::uint64_t bits = (draws.next() & ~mask) | code << field.offset;
      if (!comes_back<Words>(little_endian<Size>(bits), decode, encode)) FAIL(field.name << " " << code << " " << bits);
    }
  }
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t bits = draws.next();
    if (!comes_back<Words>(little_endian<Size>(bits), decode, encode)) FAIL("drawn " << bits);
  }
}

Quaternion unit(Draws& draws) {
  while (true) {
    const std::array<double, 4> wide{draws.between(-1, 1), draws.between(-1, 1), draws.between(-1, 1),
                                     draws.between(-1, 1)};
    double square = 0;
    for (const double component : wide) square += component * component;
    if (square < 0.01 || square > 1) continue;
    Quaternion rotation{};
    for (std::size_t i = 0; i < 4; ++i) rotation.at(i) = static_cast<float>(wide.at(i) / std::sqrt(square));
    return rotation;
  }
}

Quaternion negated(const Quaternion& rotation) {
  return {-rotation[0], -rotation[1], -rotation[2], -rotation[3]};
}

// Checks that what is kept lies within half a step, that the largest component is left out, and that q and -q agree.
template <std::size_t Size, class Decode, class Encode, class Lane>
void check_nearest(double scale, Decode decode, Encode encode, Lane lane_of) {
  Draws draws(seed + 1);
  INFO("seed " << seed + 1);
  for (int i = 0; i < 20'000; ++i) {
    const Quaternion rotation = unit(draws);
    std::size_t largest = 0;
    for (std::size_t lane = 1; lane < 4; ++lane) {
      if (std::abs(rotation.at(lane)) > std::abs(rotation.at(largest))) largest = lane;
    }
    const std::array<std::byte, Size> packed = encode(rotation);
    REQUIRE(lane_of(packed) == largest);
    REQUIRE(encode(negated(rotation)) == packed);
    const Quaternion wanted = rotation.at(largest) < 0 ? negated(rotation) : rotation;
    const auto decoded = std::bit_cast<Quaternion>(decode_with<4>(decode, packed));
    for (std::size_t lane = 0; lane < 4; ++lane) {
      const double error = std::abs(double{decoded.at(lane)} - double{wanted.at(lane)});
      REQUIRE(error <= (lane == largest ? 2 * scale : scale / 2) + 1e-7);
    }
  }
}

}  // namespace

TEST_CASE("encoders give back values of the same words, over every code of each field", "[decoders]") {
  sweep<4, 4>(packed_quat32::fields, packed_quat32::decode, packed_quat32::encode);
  sweep<4, 6>(packed_quat48::fields, packed_quat48::decode, packed_quat48::encode);
  sweep<4, 6>(dunia_quat48::fields, dunia_quat48::decode, dunia_quat48::encode);
  sweep<4, 8>(packed_quat64::fields, packed_quat64::decode, packed_quat64::encode);
  sweep<4, 2>(rotation_z15::fields, rotation_z15::decode, rotation_z15::encode);
  sweep<3, 4>(translation_11_11_10::fields, translation_11_11_10::decode, translation_11_11_10::encode);
  sweep<3, 6>(translation_i16::fields, translation_i16::decode, translation_i16::encode);
}

TEST_CASE("encoders of three floats keep every bit", "[decoders]") {
  Draws draws(seed);
  for (int i = 0; i < 100'000; ++i) {
    std::array<std::byte, 12> packed{};
    for (std::byte& byte : packed) byte = static_cast<std::byte>(draws.below(256));
    REQUIRE(comes_back<4>(packed, quat_xyz::decode, quat_xyz::encode));
    const auto words = decode_with<3>(translation_f32::decode, packed);
    REQUIRE(translation_f32::encode(std::bit_cast<Translation>(words)) == packed);
    const auto rotation = std::bit_cast<Quaternion>(decode_with<4>(quat_xyz::decode, packed));
    REQUIRE(quat_xyz::encode(rotation) == packed);
  }
}

TEST_CASE("rotation encoders leave out the largest component and round the others to the nearest code", "[decoders]") {
  const auto bits_at = [](const auto& packed, std::size_t offset) {
    return std::to_integer<unsigned>(packed.at(offset / 8)) >> offset % 8;
  };
  check_nearest<4>(packed_quat32::scale, packed_quat32::decode, packed_quat32::encode,
                   [&](const auto& packed) { return bits_at(packed, 30) & 3; });
  check_nearest<6>(packed_quat48::scale, packed_quat48::decode, packed_quat48::encode,
                   [&](const auto& packed) { return (bits_at(packed, 15) & 1) | (bits_at(packed, 31) & 1) << 1; });
  check_nearest<6>(packed_quat48::scale, dunia_quat48::decode, dunia_quat48::encode,
                   [&](const auto& packed) { return (bits_at(packed, 15) & 1) | (bits_at(packed, 31) & 1) << 1; });
  check_nearest<8>(packed_quat64::scale, packed_quat64::decode, packed_quat64::encode,
                   [&](const auto& packed) { return bits_at(packed, 30) & 3; });
}

TEST_CASE("rotation encoders pick the nearest of all codes", "[decoders]") {
  Draws draws(seed);
  INFO("seed " << seed);
  for (int i = 0; i < 2'000; ++i) {
    const auto x = static_cast<float>(draws.between(-0.72, 0.72));
    const auto packed = packed_quat32::encode({x, 0, 0, 1});
    int best = 0;
    for (int code = 1; code <= packed_quat32::maximum; ++code) {
      if (std::abs(packed_quat32::component(code) - x) < std::abs(packed_quat32::component(best) - x)) best = code;
    }
    INFO("x " << x);
    REQUIRE((bitwitness::decoders::load_u32(packed, 0) >> 20 & 0x3FF) == static_cast<unsigned>(best));
  }
}

TEST_CASE("encoders meet the ends, the infinite and what is not a number", "[decoders]") {
  CHECK(packed_quat48::encode({0, 0, 0, 1}) == packed_quat48::encode({-0.0f, -0.0f, -0.0f, -1}));
  CHECK(packed_quat32::encode({0.8f, 0.9f, -0.8f, 2}) == little_endian<4>(3u << 30 | 1023u << 20 | 1023u << 10));
  CHECK(packed_quat48::encode({infinity, -infinity, not_a_number, infinity}) == little_endian<6>(0x7FFF'0000'0000));
  CHECK(rotation_z15::encode({0, 0, 0.3f, 0.9f}) == rotation_z15::encode({0, 0, -0.3f, -0.9f}));
  CHECK(rotation_z15::encode({0, 0, 1, 0}) == little_endian<2>(0x7FFF));
  CHECK(rotation_z15::encode({0, 0, -1, 0}) == little_endian<2>(0));
  CHECK(quat_xyz::encode({0.5f, -0.5f, 0.5f, -0.5f}) == quat_xyz::encode({-0.5f, 0.5f, -0.5f, 0.5f}));
  CHECK(translation_i16::encode({infinity, -infinity, not_a_number}) == little_endian<6>(0x8000'8000'7FFF));
  CHECK(translation_i16::encode({32.7676f, -32.769f, 0.0006f}) == little_endian<6>(0x0001'8000'7FFF));
  CHECK(translation_11_11_10::encode({2, -2, 0.6f}) == little_endian<4>(0x3FFu << 21 | 0x400u << 10 | 0x1FF));
  CHECK(translation_11_11_10::encode({0.073f, 0.025f, 0.007f}) == little_endian<4>(0x09206407));
}
