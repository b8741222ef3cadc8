#include "decoders/packed_quat48.hpp"

#include "tests/catch.hpp"
#include "tests/decoder_support.hpp"

#include <array>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace quat = bitwitness::decoders::packed_quat48;
namespace pair = bitwitness::decoders::packed_quat48_pair;

namespace {

using Words = std::array<std::uint32_t, 4>;

constexpr int codes = 1 << 15;

static_assert(std::bit_cast<std::uint32_t>(quat::component(0x1234)) == 0xBF018814u);
static_assert(std::bit_cast<std::uint32_t>(quat::component(0x5678)) == 0x3E7E3C18u);
static_assert(std::bit_cast<std::uint32_t>(quat::component(0x2345)) == 0xBEA2849Bu);
static_assert(std::bit_cast<std::uint64_t>(quat::scale) == 0x3F06A0CBA0000000u);
static_assert(quat::omitted_lane(0x1234, 0xD678) == 2 && quat::omitted_lane(0x9234, 0x5678) == 1);

std::array<std::byte, 6> pack(unsigned first, unsigned second, unsigned third) {
  return {std::byte(first & 0xFF), std::byte(first >> 8),   std::byte(second & 0xFF),
          std::byte(second >> 8),  std::byte(third & 0xFF), std::byte(third >> 8)};
}

Words decode(unsigned first, unsigned second, unsigned third) {
  Words words{};
  quat::decode(pack(first, second, third), words);
  return words;
}

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

// Deterministic words for the tests below: a 64-bit linear congruential generator's high bits.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  unsigned code() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<unsigned>(state_ >> 49);
  }

 private:
  std::uint64_t state_;
};

}  // namespace

TEST_CASE("packed_quat48 gives the words of the seed's four values", "[decoders]") {
  CHECK(decode(0x1234, 0x5678, 0x2345) == Words{0x3F433AF1, 0xBF018814, 0x3E7E3C18, 0xBEA2849B});
  CHECK(decode(0x9234, 0x5678, 0x2345) == Words{0xBF018814, 0x3F433AF1, 0x3E7E3C18, 0xBEA2849B});
  CHECK(decode(0x1234, 0xD678, 0x2345) == Words{0xBF018814, 0x3E7E3C18, 0x3F433AF1, 0xBEA2849B});
  CHECK(decode(0x9234, 0xD678, 0x2345) == Words{0xBF018814, 0x3E7E3C18, 0xBEA2849B, 0x3F433AF1});
}

TEST_CASE("packed_quat48 gives the words of a real key, read in memory order", "[decoders]") {
  const std::array<std::byte, 6> key{std::byte{0x15}, std::byte{0x3F}, std::byte{0x6B},
                                     std::byte{0x7F}, std::byte{0x1E}, std::byte{0x3F}};
  Words words{};
  quat::decode(key, words);
  CHECK(words == Words{0x3F369AC4, 0xBC25D240, 0x3F336255, 0xBC1F7500});
}

TEST_CASE("packed_quat48 ignores bit 15 of the third word", "[decoders]") {
  for (unsigned code = 0; code < codes; code += 7)
    REQUIRE(decode(code, 0x4000, code) == decode(code, 0x4000, code | 0x8000));
}

TEST_CASE("packed_quat48 components equal integer arithmetic for every code", "[decoders]") {
  for (int code = 0; code < codes; ++code) {
    const std::uint32_t expected = bitwitness::testing::component_by_integers(code, 0x3835065D, 38);
    INFO("code " << code);
    REQUIRE(bits_of(quat::component(code)) == expected);
    REQUIRE((expected & 0x7FFFFFFF) != 0);
  }
}

TEST_CASE("packed_quat48 components tell the rule from its near misses", "[decoders]") {
  const auto scale = static_cast<float>(quat::scale);
  int other_by_f32 = 0;
  int other_by_fma = 0;
  int other_by_exact = 0;
  for (int code = 0; code < codes; ++code) {
    const std::uint32_t bits = bits_of(quat::component(code));
    const auto wide = static_cast<float>(code);
    const float product = wide * scale;
    other_by_f32 += bits != bits_of(product - quat::bias);
    other_by_fma += bits != bits_of(std::fma(wide, scale, -quat::bias));
    other_by_exact += bits != bits_of(static_cast<float>((code / 32767.0 * 2.0 - 1.0) / std::sqrt(2.0)));
  }
  CHECK(other_by_f32 == 0);
  CHECK(other_by_fma == 16'486);
  CHECK(other_by_exact == 17'683);
}

TEST_CASE("packed_quat48 sends every component to each lane that the index leaves", "[decoders]") {
  const std::array<std::array<std::size_t, 4>, 4> sources{{{3, 0, 1, 2}, {0, 3, 1, 2}, {0, 1, 3, 2}, {0, 1, 2, 3}}};
  for (unsigned lane = 0; lane < 4; ++lane) {
    for (unsigned code = 0; code < codes; ++code) {
      const unsigned first = code;
      const unsigned second = code ^ 0x2AAA;
      const unsigned third = 0x7FFF - code;
      const std::array<std::uint32_t, 3> kept{bits_of(quat::component(static_cast<int>(first))),
                                              bits_of(quat::component(static_cast<int>(second))),
                                              bits_of(quat::component(static_cast<int>(third)))};
      const Words words = decode(first | (lane & 1) << 15, second | (lane >> 1) << 15, third);
      for (std::size_t word = 0; word < 4; ++word) {
        const std::size_t source = sources.at(lane).at(word);
        if (source == 3) {
          REQUIRE(words.at(word) <= 0x3F800000u);
        } else {
          REQUIRE(words.at(word) == kept.at(source));
        }
      }
    }
  }
}

TEST_CASE("packed_quat48 takes the root in double and clamps what exceeds unit length", "[decoders]") {
  constexpr std::uint64_t seed = 20'061'113;
  constexpr int triples = 1'000'000;
  Draws draws(seed);
  INFO("seed " << seed);
  int clamped = 0;
  int other_by_f32 = 0;
  for (int i = 0; i < triples; ++i) {
    const unsigned first = draws.code();
    const unsigned second = draws.code();
    const unsigned third = draws.code();
    const float a = quat::component(static_cast<int>(first));
    const float b = quat::component(static_cast<int>(second));
    const float c = quat::component(static_cast<int>(third));
    const std::uint32_t root = decode(first, second, third)[0];
    const long double left =
        ((1.0L - static_cast<long double>(a) * a) - static_cast<long double>(b) * b) - static_cast<long double>(c) * c;
    if (left <= 0) {
      ++clamped;
      REQUIRE(root == 0);
      continue;
    }
    if constexpr (LDBL_MANT_DIG >= 64) REQUIRE(root == bits_of(static_cast<float>(std::sqrt(left))));
    other_by_f32 += root != bits_of(std::sqrt(((1.0f - a * a) - b * b) - c * c));
  }
  CHECK(clamped > triples * 34 / 1000);
  CHECK(clamped < triples * 36 / 1000);
  CHECK(other_by_f32 > triples / 100 * 32);
  CHECK(other_by_f32 < triples / 100 * 34);
}

TEST_CASE("packed_quat48 clamps at the corners and nowhere near the centre", "[decoders]") {
  CHECK(decode(0, 0, 0) == Words{0, 0xBF3504F3, 0xBF3504F3, 0xBF3504F3});
  CHECK(decode(0x7FFF, 0x7FFF, 0x7FFF)[0] == 0);
  CHECK(decode(0x4000, 0x4000, 0x4000)[0] == 0x3F800000);
}

TEST_CASE("packed_quat48_pair decodes two keys side by side", "[decoders]") {
  std::vector<std::byte> packed;
  for (const auto& key : {pack(0x1234, 0xD678, 0x2345), pack(0x9234, 0x5678, 0x2345)}) {
    packed.insert(packed.end(), key.begin(), key.end());
  }
  std::array<std::uint32_t, 8> words{};
  pair::decode(packed, words);
  CHECK(words == std::array<std::uint32_t, 8>{0xBF018814, 0x3E7E3C18, 0x3F433AF1, 0xBEA2849B, 0xBF018814, 0x3F433AF1,
                                              0x3E7E3C18, 0xBEA2849B});
}
