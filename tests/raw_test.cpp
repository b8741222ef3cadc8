#include "decoders/raw.hpp"

#include "decoders/registry.hpp"
#include "tests/catch.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace bitwitness::decoders;

TEST_CASE("raw passes exist for every kind of unknown meaning, with its width", "[decoders]") {
  const std::map<std::string_view, std::size_t> widths{
      {"raw_rr_16", 1}, {"raw_rr_17", 2},  {"raw_rr_18", 1},  {"raw_rr_21", 4},  {"raw_rr_22", 4},
      {"raw_rr_25", 8}, {"raw_sws_10", 4}, {"raw_sws_11", 1}, {"raw_sws_17", 1}, {"raw_sws_7", 12}};
  CHECK(raw::rows.size() == widths.size());
  for (const auto& [name, width] : widths) {
    INFO(name);
    const Decoder* decoder = find_decoder(name);
    REQUIRE(decoder != nullptr);
    CHECK(decoder->packed_size == width);
    CHECK(decoder->word_names.size() == (width + 3) / 4);
    CHECK(decoder->summary.find("not decoded") != std::string_view::npos);
    const std::string game =
        name.find("rr") != std::string_view::npos ? "Riders Republic" : "Shaun White Skateboarding";
    const std::string kind(name.substr(name.rfind('_') + 1));
    CHECK(decoder->summary.find(game + " kind " + kind + ",") == 0);
    const bool is_f32 = name == "raw_sws_7" || name == "raw_sws_10";
    CHECK(decoder->word == (is_f32 ? Word::f32 : Word::u32));
  }
}

TEST_CASE("raw passes keep every byte", "[decoders]") {
  for (const Decoder& decoder : raw::rows) {
    for (unsigned start = 0; start < 256; ++start) {
      std::vector<std::byte> packed(decoder.packed_size);
      std::vector<std::uint32_t> expected(decoder.word_names.size());
      for (std::size_t i = 0; i < packed.size(); ++i) {
        const std::uint32_t byte = (start + 37 * static_cast<unsigned>(i)) & 0xFF;
        packed[i] = static_cast<std::byte>(byte);
        expected[i / 4] |= byte << 8 * (i % 4);
      }
      std::vector<std::uint32_t> words(expected.size(), 0xAAAAAAAA);
      decoder.decode(packed, words);
      INFO(decoder.name << " " << start);
      REQUIRE(words == expected);
    }
  }
}
