#include "decoders/packed_quat48_batch.hpp"

#include "decoders/packed_quat48.hpp"
#include "tests/catch.hpp"
#include "tests/decoder_support.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace quat = bitwitness::decoders::packed_quat48;
using namespace bitwitness::testing;
using quat::BatchPath;

namespace {

std::vector<BatchPath> paths() {
  std::vector<BatchPath> all{BatchPath::scalar};
  if (quat::fastest_batch_path() == BatchPath::avx2) {
    all.push_back(BatchPath::avx2);
  } else {
    bitwitness::tests::skip("this processor has no AVX2");
  }
  return all;
}

std::vector<std::uint32_t> one_by_one(std::span<const std::byte> packed) {
  std::vector<std::uint32_t> words(packed.size() / 6 * 4);
  for (std::size_t key = 0; key < packed.size() / 6; ++key) {
    quat::decode(packed.subspan(6 * key, 6), std::span(words).subspan(4 * key, 4));
  }
  return words;
}

void append(std::vector<std::byte>& packed, std::uint64_t key) {
  for (const std::byte byte : little_endian<6>(key)) packed.push_back(byte);
}

// Where the words first differ: their count if they do not. Printing millions of words would take minutes.
std::size_t first_difference(const std::vector<std::uint32_t>& words, const std::vector<std::uint32_t>& expected) {
  const auto differing = std::mismatch(words.begin(), words.end(), expected.begin(), expected.end()).first;
  return static_cast<std::size_t>(differing - words.begin());
}

std::vector<std::byte> drawn(Draws& draws, std::size_t keys) {
  std::vector<std::byte> packed;
  for (std::size_t key = 0; key < keys; ++key) append(packed, draws.next());
  return packed;
}

template <class Action>
std::string refusal(Action action) {
  try {
    action();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("packed_quat48 batches give the seed's words at every place of a block", "[decoders]") {
  for (const BatchPath path : paths()) {
    for (std::size_t place = 0; place < 24; ++place) {
      std::vector<std::byte> packed(6 * 24);
      const auto key = little_endian<6>(0x2345'D678'1234);
      std::copy(key.begin(), key.end(), packed.begin() + static_cast<std::ptrdiff_t>(6 * place));
      std::vector<std::uint32_t> words(4 * 24);
      quat::decode_batch(packed, words, path);
      for (std::size_t other = 0; other < 24; ++other) {
        const std::vector<std::uint32_t> expected =
            other == place ? std::vector<std::uint32_t>{0xBF018814, 0x3E7E3C18, 0x3F433AF1, 0xBEA2849B}
                           : std::vector<std::uint32_t>{0, 0xBF3504F3, 0xBF3504F3, 0xBF3504F3};
        const auto begin = words.begin() + static_cast<std::ptrdiff_t>(4 * other);
        REQUIRE(std::vector<std::uint32_t>(begin, begin + 4) == expected);
      }
    }
  }
}

TEST_CASE("packed_quat48 batches equal single keys for every word in each place", "[decoders]") {
  constexpr std::uint64_t seed = 48;
  INFO("seed " << seed);
  Draws draws(seed);
  std::vector<std::byte> packed;
  for (std::uint64_t word = 0; word < 0x10000; ++word) {
    for (unsigned place = 0; place < 3; ++place) {
      for (const std::uint64_t others : {std::uint64_t{0}, draws.next(), ~std::uint64_t{0}}) {
        append(packed, (others & ~(std::uint64_t{0xFFFF} << 16 * place)) | word << 16 * place);
      }
    }
  }
  const std::vector<std::uint32_t> expected = one_by_one(packed);
  for (const BatchPath path : paths()) {
    std::vector<std::uint32_t> words(expected.size());
    quat::decode_batch(packed, words, path);
    CHECK(first_difference(words, expected) == expected.size());
  }
}

TEST_CASE("packed_quat48 batches equal single keys on drawn values", "[decoders]") {
  constexpr std::uint64_t seed = 4'812;
  INFO("seed " << seed);
  Draws draws(seed);
  const std::vector<std::byte> packed = drawn(draws, 2'000'003);
  const std::vector<std::uint32_t> expected = one_by_one(packed);
  for (const BatchPath path : paths()) {
    std::vector<std::uint32_t> words(expected.size());
    quat::decode_batch(packed, words, path);
    CHECK(first_difference(words, expected) == expected.size());
  }
}

TEST_CASE("packed_quat48 batches of every small count, at every alignment, leave their neighbours alone",
          "[decoders]") {
  Draws draws(1);
  for (const BatchPath path : paths()) {
    for (std::size_t keys = 0; keys <= 40; ++keys) {
      for (std::size_t offset = 0; offset < 8; ++offset) {
        const std::vector<std::byte> whole = drawn(draws, keys + 2);
        // An exact allocation of its own, so that a sanitizer sees a read beyond it.
        const std::vector<std::byte> packed(whole.begin() + static_cast<std::ptrdiff_t>(offset),
                                            whole.begin() + static_cast<std::ptrdiff_t>(offset + 6 * keys));
        const std::span<const std::byte> unaligned = std::span(whole).subspan(offset, 6 * keys);
        const std::vector<std::uint32_t> expected = one_by_one(packed);
        std::vector<std::uint32_t> words(4 * keys + offset + 1, 0xAAAAAAAA);
        quat::decode_batch(packed, std::span(words).subspan(offset, 4 * keys), path);
        REQUIRE(std::equal(expected.begin(), expected.end(), words.begin() + static_cast<std::ptrdiff_t>(offset)));
        for (std::size_t i = 0; i < offset; ++i) REQUIRE(words[i] == 0xAAAAAAAA);
        REQUIRE(words.back() == 0xAAAAAAAA);
        std::vector<std::uint32_t> again(4 * keys);
        quat::decode_batch(unaligned, again, path);
        REQUIRE(again == expected);
      }
    }
  }
}

TEST_CASE("packed_quat48 batches refuse what is not 4 words for every whole key", "[decoders]") {
  const std::vector<std::byte> packed(12);
  std::vector<std::uint32_t> words(9);
  const auto run = [&](std::size_t bytes, std::size_t count) {
    quat::decode_batch(std::span(packed).first(bytes), std::span(words).first(count));
  };
  CHECK(refusal([&] { run(11, 8); }).find("whole keys") != std::string::npos);
  CHECK(refusal([&] { run(12, 7); }).find("4 words") != std::string::npos);
  CHECK(refusal([&] { run(12, 9); }).find("4 words") != std::string::npos);
  CHECK(refusal([&] { run(12, 8); }) == "none");
  if (quat::fastest_batch_path() == BatchPath::scalar) {
    CHECK(refusal([&] { quat::decode_batch({}, {}, BatchPath::avx2); }).find("AVX2") != std::string::npos);
  }
}
