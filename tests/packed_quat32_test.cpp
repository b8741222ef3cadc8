#include "decoders/packed_quat32.hpp"

#include "tests/catch.hpp"
#include "tests/decoder_support.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace quat = bitwitness::decoders::packed_quat32;
using namespace bitwitness::testing;

namespace {

using Words = std::array<std::uint32_t, 4>;

Words decode(std::uint32_t bits) {
  return decode_with<4>(quat::decode, little_endian<4>(bits));
}

}  // namespace

TEST_CASE("packed_quat32 steps by the f32 nearest sqrt(2)/1023", "[decoders]") {
  CHECK(bits_of(static_cast<float>(quat::scale)) == bits_of(static_cast<float>(std::sqrt(2.0L) / 1023)));
  CHECK(std::bit_cast<std::uint64_t>(quat::scale) == 0x3F56A64800000000);
}

TEST_CASE("packed_quat32 components by integer arithmetic, over every code", "[decoders]") {
  int other_by_1024 = 0;
  int other_by_fma = 0;
  int other_by_exact = 0;
  for (int code = 0; code <= quat::maximum; ++code) {
    INFO("code " << code);
    const std::uint32_t bits = bits_of(quat::component(code));
    REQUIRE(bits == component_by_integers(code, 0x3AB53240, 33));
    const double exact = (code / 1023.0 * 2.0 - 1.0) / std::sqrt(2.0);
    REQUIRE(std::abs(double{quat::component(code)} - exact) < 0x1p-23);
    const auto wide = static_cast<float>(code);
    const float by_1024 = std::bit_cast<float>(0x3AB504F3u);
    other_by_1024 += bits != bits_of(wide * by_1024 - 0.70710677f);
    other_by_fma += bits != bits_of(std::fma(wide, static_cast<float>(quat::scale), -0.70710677f));
    other_by_exact += bits != bits_of(static_cast<float>(exact));
  }
  CHECK(other_by_1024 == 1023);
  CHECK(other_by_fma == 468);
  CHECK(other_by_exact == 698);
}

TEST_CASE("packed_quat32 takes its components from bits 20, 10 and 0 and the lane from bit 30", "[decoders]") {
  const std::array<std::array<std::size_t, 4>, 4> sources{{{3, 0, 1, 2}, {0, 3, 1, 2}, {0, 1, 3, 2}, {0, 1, 2, 3}}};
  for (std::uint32_t lane = 0; lane < 4; ++lane) {
    for (std::uint32_t code = 0; code < 1024; ++code) {
      const std::array<std::uint32_t, 3> codes{code, code ^ 0x155, 1023 - code};
      const Words words = decode(lane << 30 | codes[0] << 20 | codes[1] << 10 | codes[2]);
      std::array<double, 3> kept{};
      for (std::size_t i = 0; i < 3; ++i) kept.at(i) = double{quat::component(static_cast<int>(codes.at(i)))};
      const double left = ((1.0 - kept[0] * kept[0]) - kept[1] * kept[1]) - kept[2] * kept[2];
      INFO("lane " << lane << " code " << code);
      for (std::size_t word = 0; word < 4; ++word) {
        const std::size_t source = sources.at(lane).at(word);
        const double value = source == 3 ? std::sqrt(left < 0 ? 0.0 : left) : kept.at(source);
        REQUIRE(words.at(word) == bits_of(static_cast<float>(value)));
      }
    }
  }
}

TEST_CASE("packed_quat32 clamps at the corners and nowhere near the centre", "[decoders]") {
  CHECK(decode(0) == Words{0, 0xBF3504F3, 0xBF3504F3, 0xBF3504F3});
  CHECK(decode(0xFFFFFFFF)[3] == 0);
  CHECK(decode(0xE0080200)[3] == 0x3F7FFFF4);
}
