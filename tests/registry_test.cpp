#include "decoders/registry.hpp"

#include "tests/catch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

using namespace bitwitness::decoders;

TEST_CASE("registry lists the decoders by name and finds each", "[decoders]") {
  std::vector<std::string_view> names;
  for (const Decoder& decoder : registry()) {
    names.push_back(decoder.name);
    CHECK(find_decoder(decoder.name) == &decoder);
  }
  CHECK(std::ranges::is_sorted(names));
  CHECK(std::set<std::string_view>(names.begin(), names.end()).size() == names.size());
  for (const char* name : {"dunia_quat48", "half", "packed_quat48", "packed_quat48_pair"}) {
    CHECK(find_decoder(name) != nullptr);
  }
  CHECK(find_decoder("packed_quat4") == nullptr);
  CHECK(find_decoder("") == nullptr);
}

TEST_CASE("registry rows state the sizes of their formats", "[decoders]") {
  const auto sizes = [](std::string_view name) {
    const Decoder* decoder = find_decoder(name);
    REQUIRE(decoder != nullptr);
    return std::vector<std::size_t>{decoder->packed_size, decoder->word_names.size()};
  };
  CHECK(sizes("half") == std::vector<std::size_t>{2, 1});
  CHECK(sizes("packed_quat48") == std::vector<std::size_t>{6, 4});
  CHECK(sizes("packed_quat48_pair") == std::vector<std::size_t>{12, 8});
  CHECK(sizes("dunia_quat48") == std::vector<std::size_t>{6, 4});
  CHECK(sizes("packed_quat32") == std::vector<std::size_t>{4, 4});
  CHECK(sizes("packed_quat64") == std::vector<std::size_t>{8, 4});
  CHECK(sizes("quat_xyz") == std::vector<std::size_t>{12, 4});
  CHECK(sizes("rotation_z15") == std::vector<std::size_t>{2, 4});
  CHECK(sizes("translation_11_11_10") == std::vector<std::size_t>{4, 3});
  CHECK(sizes("translation_f32") == std::vector<std::size_t>{12, 3});
  CHECK(sizes("translation_i16") == std::vector<std::size_t>{6, 3});
}

TEST_CASE("registry rows name every bit once and every word", "[decoders]") {
  for (const Decoder& decoder : registry()) {
    INFO(decoder.name);
    std::vector<int> owners(8 * decoder.packed_size, 0);
    std::set<std::string_view> field_names;
    unsigned previous = 0;
    for (const Field& field : decoder.fields) {
      CHECK_FALSE(field.name.empty());
      CHECK(field_names.insert(field.name).second);
      CHECK(field.offset >= previous);
      previous = field.offset;
      REQUIRE(field.offset + field.width <= owners.size());
      for (unsigned bit = 0; bit < field.width; ++bit) ++owners[field.offset + bit];
    }
    CHECK(std::ranges::all_of(owners, [](int count) { return count == 1; }));
    const std::set<std::string_view> word_names(decoder.word_names.begin(), decoder.word_names.end());
    CHECK(word_names.size() == decoder.word_names.size());
    CHECK(word_names.count("") == 0);
    CHECK_FALSE(decoder.summary.empty());
    CHECK(decoder.summary.back() == '.');
  }
}

TEST_CASE("decoders write every word and nothing else, whatever the bytes", "[decoders]") {
  constexpr std::uint64_t seed = 7;
  INFO("seed " << seed);
  std::uint64_t state = seed;
  for (const Decoder& decoder : registry()) {
    INFO(decoder.name);
    const std::size_t word_count = decoder.word_names.size();
    std::vector<std::byte> packed(decoder.packed_size);
    for (int round = 0; round < 20'000; ++round) {
      for (std::byte& byte : packed) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        byte = static_cast<std::byte>(state >> 56);
      }
      // Two different fillers: a word left unwritten would keep both.
      std::vector<std::uint32_t> one(word_count + 1, 0xAAAAAAAAu);
      std::vector<std::uint32_t> other(word_count + 1, 0x55555555u);
      decoder.decode(packed, std::span(one).first(word_count));
      decoder.decode(packed, std::span(other).first(word_count));
      REQUIRE(std::equal(one.begin(), one.end() - 1, other.begin()));
      REQUIRE(one.back() == 0xAAAAAAAAu);
      REQUIRE(other.back() == 0x55555555u);
    }
  }
}

TEST_CASE("every field of a decoder but an unused one matters to some word", "[decoders]") {
  for (const Decoder& decoder : registry()) {
    for (const Field& field : decoder.fields) {
      INFO(decoder.name << " " << field.name);
      bool matters = false;
      for (unsigned pattern = 0; pattern < 256 && !matters; ++pattern) {
        std::vector<std::byte> packed(decoder.packed_size, static_cast<std::byte>(pattern));
        std::vector<std::uint32_t> before(decoder.word_names.size());
        std::vector<std::uint32_t> after(decoder.word_names.size());
        decoder.decode(packed, before);
        packed[field.offset / 8] ^= static_cast<std::byte>(1u << field.offset % 8);
        decoder.decode(packed, after);
        matters = before != after;
      }
      CHECK(matters == (field.name.find("unused") == std::string_view::npos));
    }
  }
}
