// Somebody's own test of their own decoder, against vectors that were recorded from a witness.
#ifdef CONSUMER_NEEDS_MAIN
#define CATCH_CONFIG_MAIN
#endif
#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_test_macros.hpp>
#else
#include <catch2/catch.hpp>
#endif
#include <decoders/registry.hpp>
#include <harness/agreement.hpp>

TEST_CASE("the decoder agrees with what was recorded") {
  BITWITNESS_CHECK_AGREES(CONSUMER_VECTORS, bitwitness::decoders::find_decoder("packed_quat48")->decode);
}

TEST_CASE("a decoder that swaps two lanes does not", "[!shouldfail]") {
  BITWITNESS_CHECK_AGREES(CONSUMER_VECTORS, [](std::span<const std::byte> packed, std::span<std::uint32_t> words) {
    bitwitness::decoders::find_decoder("packed_quat48")->decode(packed, words);
    std::swap(words[0], words[1]);
  });
}

TEST_CASE("a file that is not there is no agreement", "[!shouldfail]") {
  BITWITNESS_CHECK_AGREES("/nowhere/vectors.bwv", bitwitness::decoders::find_decoder("packed_quat48")->decode);
}
