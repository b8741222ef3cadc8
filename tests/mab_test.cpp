#include "decoders/mab.hpp"

#include "tests/animation_samples.hpp"
#include "tests/catch.hpp"

#include <algorithm>
#include <optional>
#include <tuple>

namespace bitwitness::tests {
namespace {

using namespace decoders;

constexpr std::uint64_t seed = 0x5eed5a5a03;
constexpr std::size_t base = 16;
constexpr std::size_t section_at = base + 0xE0;
constexpr std::size_t table_61 = base + 0xB8;

// A file of version 0x61: 10.5 frames at 30 a second, so two groups; three tracks.
Bytes small_file() {
  Bytes bytes(section_at);
  set<std::uint8_t>(bytes, 0, 0x61);
  set<std::uint32_t>(bytes, 0xC4, 0x3EB33333);  // 0.35 s
  set<std::uint32_t>(bytes, table_61 + 12, section_at - base);
  const Bytes section = from_hex(
      "0300 0a00 0000f041"                                       // tracks, last frame, 30.0
      "14000000 3c000000 54000000"                               // groups at 20 and 60, size 84
      "000000000000 010101010101 020202020202 05 00 40 00"       // bits 0 and 2; none; bit 6
      "101010101010 111111111111 121212121212"                   // 20 + 22 + 18 = 60
      "030303030303 040404040404 050505050505 00 80 00 00 ff");  // to 82, and two spare bytes
  bytes.insert(bytes.end(), section.begin(), section.end());
  bytes.pop_back();
  set<std::uint32_t>(bytes, section_at + 16, static_cast<std::uint32_t>(bytes.size() - section_at));
  return bytes;
}

// Nothing for bytes that are accepted or refused at an offset outside them.
std::optional<Rule> rule_of(const Bytes& bytes, const MabOptions& options = {}) {
  const Reading<Mab> reading = read_mab(bytes, options);
  if (reading || reading.refusal().offset > bytes.size()) return std::nullopt;
  return reading.refusal().rule;
}

template <typename Number>
std::optional<Rule> rule_with(std::size_t at, Number number) {
  Bytes bytes = small_file();
  set(bytes, at, number);
  return rule_of(bytes);
}

using Key = std::tuple<std::uint32_t, std::uint32_t, unsigned>;

std::vector<Key> keys_of(const Mab& clip, PresenceOrder order) {
  std::vector<Key> keys;
  for_each_key(clip, order, [&](std::uint32_t track, std::uint32_t frame, std::span<const std::byte> key) {
    CHECK(key.size() == 6);
    keys.emplace_back(track, frame, std::to_integer<unsigned>(key[0]));
  });
  return keys;
}

}  // namespace

TEST_CASE("a .mab written by hand reads group by group") {
  const Bytes bytes = small_file();
  const Reading<Mab> clip = read_mab(bytes);
  INFO((clip ? std::string() : describe(clip.refusal())));
  REQUIRE(clip);
  CHECK(clip->version == 0x61);
  CHECK(clip->track_count == 3);
  CHECK(clip->last_frame == 10);
  CHECK(clip->rate == 30.0F);
  REQUIRE(clip->group_count() == 2);
  CHECK(clip->section_at == section_at);
  CHECK(clip->key_count == 9);
  CHECK(clip->presence_high_bits == 1);
  CHECK(clip->group(1).offset == section_at + 60);
  CHECK(clip->group(1).first_frame == 8);
  CHECK(clip->group(1).later_keys.empty());
  CHECK(clip->group(0).padding.size() == 1);
  CHECK(keys_of(*clip, PresenceOrder::low_bit_first) == std::vector<Key>{{0, 0, 0x00},
                                                                         {1, 0, 0x01},
                                                                         {2, 0, 0x02},
                                                                         {0, 1, 0x10},
                                                                         {0, 3, 0x11},
                                                                         {2, 7, 0x12},
                                                                         {0, 8, 0x03},
                                                                         {1, 8, 0x04},
                                                                         {2, 8, 0x05}});
  CHECK(keys_of(*clip, PresenceOrder::high_bit_first) == std::vector<Key>{{0, 0, 0x00},
                                                                          {1, 0, 0x01},
                                                                          {2, 0, 0x02},
                                                                          {0, 5, 0x10},
                                                                          {0, 7, 0x11},
                                                                          {2, 1, 0x12},
                                                                          {0, 8, 0x03},
                                                                          {1, 8, 0x04},
                                                                          {2, 8, 0x05}});
}

TEST_CASE("each broken field of a .mab is refused by its rule") {
  CHECK(rule_with<std::uint8_t>(0, 0x62) == Rule::version);
  CHECK(rule_with<std::uint32_t>(0xC4, 0x7FC00000) == Rule::length);
  CHECK(rule_with<std::uint32_t>(0xC4, 0xBF800000) == Rule::length);
  CHECK(rule_with<std::uint32_t>(0xC4, 0x41200000) == Rule::truncated);  // 10 s: more groups than bytes
  for (std::size_t i = 0; i < 9; ++i) {
    INFO("section " << i);
    CHECK(rule_with<std::uint32_t>(table_61 + 4 * i, 0xFFFFFFFF) == Rule::section_offset);
    CHECK(rule_with<std::uint32_t>(table_61 + 4 * i, 0x7FFFFFFF) == Rule::section_offset);
    CHECK(rule_with<std::uint32_t>(table_61 + 4 * i, 0xDB) == Rule::section_offset);
  }
  CHECK(rule_with<std::uint32_t>(table_61, section_at - base + 20) == Rule::section_offset);  // inside section 4
  CHECK(rule_with<std::uint16_t>(section_at, 2) == Rule::group_tiling);
  CHECK(rule_with<std::uint16_t>(section_at, 0xFFFF) == Rule::group_tiling);
  CHECK(rule_with<std::uint32_t>(section_at + 4, 0x7FC00000) == Rule::frame_count);
  CHECK(rule_with<std::uint32_t>(section_at + 4, 0xC1F00000) == Rule::frame_count);
  CHECK(rule_with<std::uint32_t>(section_at + 4, 0x7F000000) == Rule::frame_count);
  CHECK(rule_with<std::uint32_t>(section_at + 8, 21) == Rule::group_table);
  CHECK(rule_with<std::uint32_t>(section_at + 12, 59) == Rule::group_tiling);
  CHECK(rule_with<std::uint32_t>(section_at + 12, 0xFFFFFFFF) == Rule::group_tiling);
  CHECK(rule_with<std::uint32_t>(section_at + 16, 0xFFFFFFFF) == Rule::section_size);
  CHECK(rule_with<std::uint32_t>(section_at + 16, 0) == Rule::section_size);
  CHECK(rule_with<std::uint32_t>(section_at + 16, 19) == Rule::section_size);
  CHECK(rule_with<std::uint32_t>(section_at + 16, 81) == Rule::group_tiling);
  CHECK(rule_with<std::uint8_t>(section_at + 38, 0x01) == Rule::group_tiling);  // one presence bit fewer
  CHECK(rule_with<std::uint8_t>(section_at + 38, 0x07) == Rule::group_tiling);  // and one more
}

// What is left of a section smaller than its own table must not come out as a huge number.
TEST_CASE("a section smaller than its table is refused before any group is looked at") {
  Bytes bytes = small_file();
  set<std::uint16_t>(bytes, section_at, 0xFFFF);
  set<std::uint32_t>(bytes, section_at + 12, 0x7FFFFFFF);
  for (const std::uint32_t size : {0U, 19U}) {
    set<std::uint32_t>(bytes, section_at + 16, size);
    CHECK(rule_of(bytes) == Rule::section_size);
  }
}

TEST_CASE("a section larger than its groups is refused") {
  Bytes bytes = small_file();
  const auto size = static_cast<std::uint32_t>(bytes.size() - section_at);
  bytes.resize(bytes.size() + 6);
  REQUIRE(read_mab(bytes));
  set<std::uint32_t>(bytes, section_at + 16, size + 6);
  CHECK(rule_of(bytes) == Rule::section_size);
}

TEST_CASE("only zeros lie between section 4 and the next section") {
  Bytes bytes = small_file();
  const std::size_t end = bytes.size();
  bytes.resize(end + 12);
  bytes.push_back(std::byte{0xAA});
  set<std::uint32_t>(bytes, table_61 + 16, static_cast<std::uint32_t>(end + 12 - base));
  REQUIRE(read_mab(bytes));
  CHECK(read_mab(bytes)->after.size() == 13);
  for (const std::size_t at : {end, end + 5, end + 11}) {
    Bytes broken = bytes;
    broken[at] = std::byte{1};
    const Reading<Mab> reading = read_mab(broken);
    REQUIRE_FALSE(reading);
    CHECK(reading.refusal().rule == Rule::padding);
    CHECK(reading.refusal().offset == at);
  }
}

TEST_CASE("a .mab cut before the end of section 4 is refused") {
  const Bytes whole = small_file();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Reading<Mab> reading = read_mab(std::span(whole).first(size));
    INFO("cut to " << size);
    REQUIRE_FALSE(reading);
    REQUIRE(reading.refusal().offset <= size);
  }
}

TEST_CASE("without section 4 there are no groups") {
  Bytes bytes = small_file();
  set<std::uint32_t>(bytes, table_61 + 12, 0);
  const Reading<Mab> clip = read_mab(bytes);
  REQUIRE(clip);
  CHECK_FALSE(clip->has_rotations);
  CHECK(clip->group_count() == 0);
  CHECK(keys_of(*clip, PresenceOrder::low_bit_first).empty());
}

TEST_CASE("version 4C keeps its rate as a u16 and its table elsewhere") {
  Bytes bytes(base + 0xA0);
  bytes[0] = std::byte{0x4C};
  set<std::uint32_t>(bytes, 0x84, 0x3F800000);
  set<std::uint32_t>(bytes, 0x88 + 12, 0xA0);
  const Bytes section =
      from_hex("0100 0700 1e00 0000 0c000000 000000000000 41 00 111111111111 222222222222");  // one group, no size
  bytes.insert(bytes.end(), section.begin(), section.end());
  const MabOptions options{.group_count = MabOptions::GroupCount::by_last_frame, .size_word = false};
  const Reading<Mab> clip = read_mab(bytes, options);
  INFO((clip ? std::string() : describe(clip.refusal())));
  REQUIRE(clip);
  CHECK(clip->rate == 30.0F);
  CHECK(clip->key_count == 3);
  CHECK_FALSE(following_clip(*clip));
  // By the seed's formula 30 frames are four groups, and what stands behind their offsets is no size.
  CHECK(rule_of(bytes) == Rule::section_size);
  set<std::uint16_t>(bytes, base + 0xA0 + 6, 1);
  CHECK(rule_of(bytes, options) == Rule::zero_word);
}

TEST_CASE("chained clips of version 4C are found, and chains end") {
  const auto make_clip = [](std::uint32_t next) {
    Bytes clip(0xA0 + 20);
    set<std::uint32_t>(clip, 0x74, 0x3E000000);
    set<std::uint32_t>(clip, 0x78 + 12, 0xA0);
    set<std::uint32_t>(clip, 0x78 + 32, next);
    const Bytes section = from_hex("0100 0000 1e00 0000 0c000000 010203040506 00 00");
    std::ranges::copy(section, clip.begin() + 0xA0);
    return clip;
  };
  Bytes bytes(base);
  bytes[0] = std::byte{0x4C};
  for (int i = 0; i < 3; ++i) {
    const Bytes clip = make_clip(0xA0 + 20);
    bytes.insert(bytes.end(), clip.begin(), clip.end());
  }
  MabOptions options{.group_count = MabOptions::GroupCount::by_last_frame, .size_word = false};
  int clips = 0;
  for (std::optional<std::size_t> next = base; next;) {
    options.clip_base = *next;
    const Reading<Mab> clip = read_mab(bytes, options);
    INFO((clip ? std::string() : describe(clip.refusal())));
    REQUIRE(clip);
    ++clips;
    next = following_clip(*clip);
  }
  CHECK(clips == 3);
  options.clip_base = bytes.size() + 5;
  CHECK(rule_of(bytes, options) == Rule::truncated);
}

TEST_CASE("keys past the last frame tell the presence orders apart") {
  Random random(seed);
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  for (int round = 0; round < 200; ++round) {
    const MabSample made = make_mab(random);
    const Reading<Mab> clip = read_mab(made.bytes, made.options);
    REQUIRE(clip);
    low += keys_past_end(*clip, PresenceOrder::low_bit_first);
    high += keys_past_end(*clip, PresenceOrder::high_bit_first);
  }
  CHECK(low == 0);
  CHECK(high > 100);
}

TEST_CASE("random .mab files read back as written, byte for byte") {
  Random random(seed);
  for (int round = 0; round < 400; ++round) {
    INFO("seed " << seed << ", round " << round);
    const MabSample made = make_mab(random, {.most_tracks = 20, .most_keys = 60});
    const Reading<Mab> clip = read_mab(made.bytes, made.options);
    INFO((clip ? std::string() : describe(clip.refusal())));
    REQUIRE(clip);
    REQUIRE(clip->group_count() == made.groups.size());
    for (std::size_t i = 0; i < made.groups.size(); ++i) {
      CHECK(std::ranges::equal(clip->group(i).first_keys, made.groups[i].first_keys));
      CHECK(std::ranges::equal(clip->group(i).presence, made.groups[i].presence));
      CHECK(std::ranges::equal(clip->group(i).later_keys, made.groups[i].later_keys));
    }
    Bytes again;
    write_mab(again, *clip);
    CHECK(again == made.bytes);
  }
}

}  // namespace bitwitness::tests
