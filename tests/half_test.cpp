#include "decoders/half.hpp"

#include "tests/catch.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace half = bitwitness::decoders::half;

static_assert(half::widen(0x3C00) == 0x3F800000u);
static_assert(half::widen(0x0001) == 0x33800000u);
static_assert(half::widen(0xFC00) == 0xFF800000u);
static_assert(half::widen(0x7C01) == 0x7FC02000u);

TEST_CASE("half widens the values that IEEE 754 names", "[decoders]") {
  CHECK(half::widen(0x0000) == 0x00000000);
  CHECK(half::widen(0x8000) == 0x80000000);
  CHECK(half::widen(0x03FF) == 0x387FC000);
  CHECK(half::widen(0x0400) == 0x38800000);
  CHECK(half::widen(0x7BFF) == 0x477FE000);
  CHECK(half::widen(0x7C00) == 0x7F800000);
  CHECK(half::widen(0x7E00) == 0x7FC00000);
  CHECK(half::widen(0xFE00) == 0xFFC00000);
  CHECK(half::widen(0xFDFF) == 0xFFFFE000);
}

TEST_CASE("half equals significand times a power of two for all 65,536 patterns", "[decoders]") {
  int numbers = 0;
  int not_numbers = 0;
  for (unsigned pattern = 0; pattern < 0x10000; ++pattern) {
    const std::uint32_t widened = half::widen(static_cast<std::uint16_t>(pattern));
    const int exponent = static_cast<int>(pattern >> 10 & 0x1F);
    const int fraction = static_cast<int>(pattern & 0x3FF);
    const bool negative = pattern >= 0x8000;
    INFO("pattern " << pattern);
    if (exponent == 31 && fraction != 0) {
      ++not_numbers;
      REQUIRE((widened >> 31) == (negative ? 1u : 0u));
      REQUIRE((widened & 0x7FFFFFFF) == (0x7FC00000u | static_cast<unsigned>(fraction) << 13));
      continue;
    }
    ++numbers;
    const int significand = exponent == 0 ? fraction : fraction + 1024;
    const double magnitude =
        exponent == 31 ? static_cast<double>(INFINITY) : std::ldexp(significand, (exponent == 0 ? 1 : exponent) - 25);
    const auto expected = static_cast<float>(std::copysign(magnitude, negative ? -1.0 : 1.0));
    REQUIRE(widened == std::bit_cast<std::uint32_t>(expected));
  }
  CHECK(numbers == 0x10000 - 2 * 1023);
  CHECK(not_numbers == 2 * 1023);
}

TEST_CASE("half reads its two bytes low first", "[decoders]") {
  const std::array<std::byte, 2> packed{std::byte{0x01}, std::byte{0x3C}};
  std::array<std::uint32_t, 1> words{};
  half::decode(packed, words);
  CHECK(words[0] == 0x3F802000);
}
