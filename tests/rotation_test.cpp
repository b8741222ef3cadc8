#include "decoders/packed_quat48.hpp"
#include "decoders/quat_xyz.hpp"
#include "decoders/rotation_z15.hpp"
#include "tests/catch.hpp"
#include "tests/decoder_support.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace xyz = bitwitness::decoders::quat_xyz;
namespace z15 = bitwitness::decoders::rotation_z15;
using namespace bitwitness::testing;

namespace {

using Words = std::array<std::uint32_t, 4>;

Words decode_xyz(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  std::array<std::byte, 12> packed{};
  for (std::size_t i = 0; i < 12; ++i) {
    packed.at(i) = static_cast<std::byte>(std::array{x, y, z}.at(i / 4) >> 8 * (i % 4) & 0xFF);
  }
  return decode_with<4>(xyz::decode, packed);
}

Words decode_z15(unsigned bits) {
  return decode_with<4>(z15::decode, little_endian<2>(bits));
}

}  // namespace

TEST_CASE("quat_xyz keeps x, y and z and adds the positive root", "[decoders]") {
  CHECK(decode_xyz(0, 0, 0) == Words{0, 0, 0, 0x3F800000});
  CHECK(decode_xyz(bits_of(-0.5f), bits_of(0.5f), bits_of(-0.5f)) ==
        Words{0xBF000000, 0x3F000000, 0xBF000000, 0x3F000000});
  CHECK(decode_xyz(0x80000000, 1, 0x80000001) == Words{0x80000000, 1, 0x80000001, 0x3F800000});
  // 0.28² + 0.48² + 0.64² leaves 0.2816.
  CHECK(decode_xyz(bits_of(0.28f), bits_of(0.48f), bits_of(0.64f))[3] == bits_of(0.53065997f));
}

TEST_CASE("quat_xyz takes the root in double", "[decoders]") {
  constexpr std::uint64_t seed = 12;
  INFO("seed " << seed);
  Draws draws(seed);
  int other_by_f32 = 0;
  constexpr int keys = 200'000;
  for (int i = 0; i < keys; ++i) {
    const auto x = static_cast<float>(draws.between(-0.57, 0.57));
    const auto y = static_cast<float>(draws.between(-0.57, 0.57));
    const auto z = static_cast<float>(draws.between(-0.57, 0.57));
    const Words words = decode_xyz(bits_of(x), bits_of(y), bits_of(z));
    const double left = ((1.0 - double{x} * double{x}) - double{y} * double{y}) - double{z} * double{z};
    REQUIRE(words == Words{bits_of(x), bits_of(y), bits_of(z), bits_of(static_cast<float>(std::sqrt(left)))});
    other_by_f32 += words[3] != bits_of(std::sqrt(((1.0f - x * x) - y * y) - z * z));
  }
  CHECK(other_by_f32 > keys / 10);
}

TEST_CASE("quat_xyz gives w 0 where x, y and z leave nothing, and keeps what is not a number", "[decoders]") {
  const std::uint32_t one = 0x3F800000;
  const std::uint32_t above_one = 0x3F800001;
  const std::uint32_t infinity = 0x7F800000;
  const std::uint32_t signalling = 0xFFA12345;
  CHECK(decode_xyz(one, 0, 0) == Words{one, 0, 0, 0});
  CHECK(decode_xyz(0, above_one, 0) == Words{0, above_one, 0, 0});
  CHECK(decode_xyz(0, 0, infinity) == Words{0, 0, infinity, 0});
  CHECK(decode_xyz(infinity, infinity, infinity)[3] == 0);
  CHECK(decode_xyz(0x7F7FFFFF, 0xFF7FFFFF, 0)[3] == 0);
  CHECK(decode_xyz(signalling, 0, 0) == Words{signalling, 0, 0, 0});
  CHECK(decode_xyz(0, 0, signalling) == Words{0, 0, signalling, 0});
}

TEST_CASE("rotation_z15 decodes every value: a component, its root, and bit 15 ignored", "[decoders]") {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const std::uint32_t z = component_by_integers(static_cast<int>(bits & 0x7FFF), 0x3835065D, 38);
    const double wide = double{std::bit_cast<float>(z)};
    INFO("bits " << bits);
    REQUIRE(decode_z15(bits) == Words{0, 0, z, bits_of(static_cast<float>(std::sqrt(1.0 - wide * wide)))});
  }
  CHECK(decode_z15(0)[3] == 0x3F3504F3);
  CHECK(decode_z15(0x4000)[3] == 0x3F800000);
  CHECK(decode_z15(0x7FFF) == decode_z15(0xFFFF));
}
