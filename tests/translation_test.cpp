#include "decoders/millimetres.hpp"
#include "decoders/translation_11_11_10.hpp"
#include "decoders/translation_f32.hpp"
#include "decoders/translation_i16.hpp"
#include "tests/catch.hpp"
#include "tests/decoder_support.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace f32 = bitwitness::decoders::translation_f32;
namespace packed = bitwitness::decoders::translation_11_11_10;
namespace i16 = bitwitness::decoders::translation_i16;
using namespace bitwitness::testing;
using bitwitness::decoders::metres;

namespace {

using Words = std::array<std::uint32_t, 3>;

Words words_of(int x, int y, int z) {
  return {bits_of(metres(x)), bits_of(metres(y)), bits_of(metres(z))};
}

Words decode_packed(std::uint32_t bits) {
  return decode_with<3>(packed::decode, little_endian<4>(bits));
}

Words decode_i16(unsigned x, unsigned y, unsigned z) {
  return decode_with<3>(i16::decode, little_endian<6>(x | y << 16 | std::uint64_t{z} << 32));
}

}  // namespace

TEST_CASE("metres are one product by f32(0.001), over every millimetre of 16 bits", "[decoders]") {
  int other_by_division = 0;
  for (int code = -32'768; code < 32'768; ++code) {
    INFO("code " << code);
    REQUIRE(bits_of(metres(code)) == round_to_binary32(std::int64_t{code} * 0x83126F, 33));
    REQUIRE(std::abs(double{metres(code)} - code / 1000.0) < 3.5e-6);
    other_by_division += bits_of(metres(code)) != bits_of(static_cast<float>(code) / 1000.0f);
  }
  CHECK(other_by_division == 38'838);
}

TEST_CASE("translation_11_11_10 decodes a real key", "[decoders]") {
  const std::array key{std::byte{0x07}, std::byte{0x64}, std::byte{0x20}, std::byte{0x09}};
  const Words words = decode_with<3>(packed::decode, key);
  CHECK(words == words_of(73, 25, 7));
  CHECK(words == Words{0x3D958107, 0x3CCCCCCD, 0x3BE56042});
}

TEST_CASE("translation_11_11_10 decodes every code of each field, the others at their ends", "[decoders]") {
  for (int code = -1024; code < 1024; ++code) {
    INFO("code " << code);
    const std::uint32_t bits = static_cast<std::uint32_t>(code) & 0x7FF;
    REQUIRE(decode_packed(bits << 21) == words_of(code, 0, 0));
    REQUIRE(decode_packed(bits << 10) == words_of(0, code, 0));
    REQUIRE(decode_packed(bits << 21 | 0x1FFFFF) == words_of(code, -1, -1));
    REQUIRE(decode_packed(bits << 10 | 0xFFE003FF) == words_of(-1, code, -1));
    if (code < -512 || code >= 512) continue;
    REQUIRE(decode_packed(bits & 0x3FF) == words_of(0, 0, code));
    REQUIRE(decode_packed((bits & 0x3FF) | 0xFFFFFC00) == words_of(-1, -1, code));
  }
}

TEST_CASE("translation_i16 decodes every code of each component", "[decoders]") {
  for (int code = -32'768; code < 32'768; ++code) {
    INFO("code " << code);
    const auto bits = static_cast<unsigned>(code) & 0xFFFF;
    REQUIRE(decode_i16(bits, 0, 0xFFFF) == words_of(code, 0, -1));
    REQUIRE(decode_i16(0xFFFF, bits, 0) == words_of(-1, code, 0));
    REQUIRE(decode_i16(0, 0xFFFF, bits) == words_of(0, -1, code));
  }
}

TEST_CASE("translation_f32 keeps every bit", "[decoders]") {
  std::array<std::byte, 12> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes.at(i) = static_cast<std::byte>(0x81 + i);
  CHECK(decode_with<3>(f32::decode, bytes) == Words{0x84838281, 0x88878685, 0x8C8B8A89});
  bytes.fill(std::byte{0xFF});
  CHECK(decode_with<3>(f32::decode, bytes) == Words{0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF});
}
