#include "decoders/dunia_quat48.hpp"

#include "decoders/packed_quat48.hpp"
#include "tests/catch.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace dunia = bitwitness::decoders::dunia_quat48;
namespace quat = bitwitness::decoders::packed_quat48;

namespace {

using Words = std::array<std::uint32_t, 4>;

std::array<std::byte, 6> pack(unsigned first, unsigned second, unsigned third) {
  return {std::byte(first & 0xFF), std::byte(first >> 8),   std::byte(second & 0xFF),
          std::byte(second >> 8),  std::byte(third & 0xFF), std::byte(third >> 8)};
}

Words decode(unsigned first, unsigned second, unsigned third) {
  Words words{};
  dunia::decode(pack(first, second, third), words);
  return words;
}

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

// The seed's branches on bit 15 of the first two words, taken one by one. Returns which of f1 … f4 each lane gets.
std::array<int, 4> lanes_by_branches(unsigned first, unsigned second) {
  if ((first & 0x8000) == 0) {
    if ((second & 0x8000) != 0) return {1, 2, 4, 3};
  } else if ((second & 0x8000) != 0) {
    return {1, 2, 3, 4};
  }
  if ((first & 0x8000) != 0) return {1, 4, 2, 3};
  return {4, 1, 2, 3};
}

}  // namespace

TEST_CASE("dunia_quat48 equals packed_quat48 where the third word is not negative and no root is", "[decoders]") {
  CHECK(decode(0x1234, 0x5678, 0x2345) == Words{0x3F433AF1, 0xBF018814, 0x3E7E3C18, 0xBEA2849B});
  CHECK(decode(0x9234, 0xD678, 0x2345) == Words{0xBF018814, 0x3E7E3C18, 0xBEA2849B, 0x3F433AF1});
}

TEST_CASE("dunia_quat48 reads the third word signed and unmasked", "[decoders]") {
  // One code below zero: -4.3e-05 - 0.70710677.
  CHECK(decode(0x4000, 0x4000, 0xFFFF)[3] == bits_of(-1.0f * 4.31596906e-05f - quat::bias));
  CHECK(decode(0x4000, 0x4000, 0xFFFF)[3] == 0xBF3507C7);
  const auto scale = static_cast<float>(quat::scale);
  for (int code = -32'768; code < 32'768; ++code) {
    const float product = static_cast<float>(code) * scale;
    INFO("code " << code);
    REQUIRE(decode(0x4000, 0x4000, static_cast<std::uint16_t>(code))[3] == bits_of(product - quat::bias));
  }
}

TEST_CASE("dunia_quat48 gives the default NaN for a root below zero, at the omitted lane only", "[decoders]") {
  CHECK(decode(0, 0, 0) == Words{0xFFC00000, 0xBF3504F3, 0xBF3504F3, 0xBF3504F3});
  CHECK(decode(0xC000, 0xC000, 0x8000)[3] == 0xFFC00000);
  CHECK(decode(0x4000, 0x4000, 0x4000)[0] == 0x3F800000);
}

TEST_CASE("dunia_quat48 follows the seed's branches and formula over a grid of keys", "[decoders]") {
  int negative = 0;
  int positive = 0;
  for (unsigned first = 0; first < 0x10000; first += 1009) {
    for (unsigned second = 0; second < 0x10000; second += 1013) {
      for (unsigned third = 0; third < 0x10000; third += 1019) {
        const std::array<float, 3> kept{quat::component(static_cast<int>(first & 0x7FFF)),
                                        quat::component(static_cast<int>(second & 0x7FFF)),
                                        quat::component(static_cast<std::int16_t>(third))};
        const double left = ((1.0 - double{kept[0]} * kept[0]) - double{kept[1]} * kept[1]) - double{kept[2]} * kept[2];
        ++(left < 0 ? negative : positive);
        const std::array<std::uint32_t, 4> components{
            bits_of(kept[0]), bits_of(kept[1]), bits_of(kept[2]),
            left < 0 ? 0xFFC00000u : bits_of(static_cast<float>(std::sqrt(left)))};
        const std::array<int, 4> lanes = lanes_by_branches(first, second);
        const Words words = decode(first, second, third);
        for (std::size_t word = 0; word < 4; ++word) {
          REQUIRE(words.at(word) == components.at(static_cast<std::size_t>(lanes.at(word) - 1)));
        }
      }
    }
  }
  CHECK(negative > 100'000);
  CHECK(positive > 100'000);
}
