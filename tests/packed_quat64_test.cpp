#include "decoders/packed_quat64.hpp"

#include "tests/catch.hpp"
#include "tests/decoder_support.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace quat = bitwitness::decoders::packed_quat64;
using namespace bitwitness::testing;

namespace {

using Words = std::array<std::uint32_t, 4>;

Words decode(std::uint64_t bits) {
  return decode_with<4>(quat::decode, little_endian<8>(bits));
}

}  // namespace

TEST_CASE("packed_quat64 steps by the f32 nearest sqrt(2)/1048575", "[decoders]") {
  CHECK(bits_of(static_cast<float>(quat::scale)) == bits_of(static_cast<float>(std::sqrt(2.0L) / 1048575)));
  CHECK(std::bit_cast<std::uint64_t>(quat::scale) == 0x3EB6A09FE0000000);
}

TEST_CASE("packed_quat64 components by integer arithmetic, over every code", "[decoders]") {
  int other_by_f32 = 0;
  int other_by_2_to_20 = 0;
  int other_by_fma = 0;
  int other_by_exact = 0;
  for (int code = 0; code <= quat::maximum; ++code) {
    const std::uint32_t bits = bits_of(quat::component(code));
    const double exact = (code / 1048575.0 * 2.0 - 1.0) / std::sqrt(2.0);
    if (bits != component_by_integers(code, 0x35B504FF, 43) ||
        std::abs(double{quat::component(code)} - exact) >= 0x1.8p-23) {
      FAIL("code " << code);
    }
    const auto wide = static_cast<float>(code);
    const auto scale = static_cast<float>(quat::scale);
    const float product = wide * scale;
    other_by_f32 += bits != bits_of(product - 0.70710677f);
    other_by_2_to_20 += bits != bits_of(wide * std::bit_cast<float>(0x35B504F3u) - 0.70710677f);
    other_by_fma += bits != bits_of(std::fma(wide, scale, -0.70710677f));
    other_by_exact += bits != bits_of(static_cast<float>(exact));
  }
  CHECK(other_by_f32 == 0);
  CHECK(other_by_2_to_20 == 1'026'602);
  CHECK(other_by_fma == 528'293);
  CHECK(other_by_exact == 854'375);
}

TEST_CASE("packed_quat64 takes its components from the ring of bits and the lane from bit 30", "[decoders]") {
  const std::array<std::array<std::size_t, 4>, 4> sources{{{3, 0, 1, 2}, {0, 3, 1, 2}, {0, 1, 3, 2}, {0, 1, 2, 3}}};
  for (unsigned bit = 0; bit < 20; ++bit) {
    const std::uint64_t code = 1u << bit;
    // The ring: its 64 bits turned so that bit 52 comes first hold the second component, the first and, after the
    // unused bits and the lane, the third.
    for (unsigned place = 0; place < 3; ++place) {
      for (std::uint64_t lane = 0; lane < 4; ++lane) {
        const unsigned from = std::array{20u, 0u, 44u}.at(place);
        const std::uint64_t turned = lane << 42 | code << from;
        const Words words = decode(std::rotl(turned, 52));
        std::array<int, 3> codes{};
        codes.at(place) = static_cast<int>(code);
        double left = 1.0;
        for (const int kept : codes) left -= double{quat::component(kept)} * double{quat::component(kept)};
        INFO("bit " << bit << " place " << place << " lane " << lane);
        for (std::size_t word = 0; word < 4; ++word) {
          const std::size_t source = sources.at(lane).at(word);
          if (source == 3) {
            REQUIRE(words.at(word) == bits_of(static_cast<float>(std::sqrt(left < 0 ? 0.0 : left))));
          } else {
            REQUIRE(words.at(word) == bits_of(quat::component(codes.at(source))));
          }
        }
      }
    }
  }
}

TEST_CASE("packed_quat64 decodes every code in each place", "[decoders]") {
  for (std::uint64_t code = 0; code < 1u << 20; ++code) {
    const std::uint32_t kept = bits_of(quat::component(static_cast<int>(code)));
    const Words first = decode(code << 8 | 3u << 30);
    const Words second = decode(code << 52 | code >> 12 | 3u << 30);
    const Words third = decode(code << 32 | 3u << 30);
    if (first[0] != kept || second[1] != kept || third[2] != kept) FAIL("code " << code);
  }
}

TEST_CASE("packed_quat64 ignores bits 28 and 29", "[decoders]") {
  Draws draws(5);
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t bits = draws.next() & ~(std::uint64_t{3} << 28);
    for (std::uint64_t high = 1; high < 4; ++high) REQUIRE(decode(bits) == decode(bits | high << 28));
  }
}

TEST_CASE("packed_quat64 clamps at the corners and nowhere near the centre", "[decoders]") {
  CHECK(decode(0) == Words{0, 0xBF3504F3, 0xBF3504F3, 0xBF3504F3});
  CHECK(decode(~std::uint64_t{0})[3] == 0);
  CHECK(decode(std::uint64_t{0x80000} << 8 | std::uint64_t{0x80} | std::uint64_t{0x80000} << 32)[0] == 0x3F800000);
}
