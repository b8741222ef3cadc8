#include "decoders/sws_animation.hpp"

#include "decoders/cursor.hpp"
#include "tests/animation_samples.hpp"
#include "tests/catch.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

namespace bitwitness::tests {
namespace {

using namespace decoders;

constexpr std::uint64_t seed = 0x5eed5a5a01;

// One Animation of one table row, one event, two tracks, written out by hand after seed 000's table.
constexpr std::string_view small =
    "020000 01000000 112233440000050001000000"             // 0 table
    "01 78563412 7f06a30f 0000003f aabbccdd 01020304"      // 19 managed, id, class, 0.5 s, layout word, unknown
    "0506 7b563412 01000000"                               // 40 two unknowns, one event
    "e1e2e3e4e5e6e7e8e9"                                   // 50 the event
    "0708090a 00 00000000 e8ef8101 aabbccdd 02000000"      // 59 unknown, tag, id, class, layout word, two mappings
    "00000000 76aa3c65 00000000"                           // 80
    "00000000 76aa3c65 a1a2a3a4"                           // 92
    "0b0c 02000000"                                        // 104 unknown, two tracks
    "20 10000000 03000000 0a1e b0b1b2b3b4b5b6b7b8b9babb"   // 110 kind 8, u8 times 10 and 30
    "13 12000000 02000000 1e00 c0c1c2c3c4c5c6c7c8c9cacb";  // 133 kind 4, u16 time 30, flag

constexpr std::size_t events_at = 50;
constexpr std::size_t tag_at = 63;
constexpr std::size_t second_track_at = 133;

// Nothing for bytes that are accepted or refused at an offset outside them.
std::optional<Rule> rule_of(const Bytes& bytes) {
  const Reading<SwsAnimation> reading = read_sws_animation(bytes);
  if (reading || reading.refusal().offset > bytes.size()) return std::nullopt;
  return reading.refusal().rule;
}

template <typename Number>
std::optional<Rule> rule_with(std::size_t at, Number number) {
  Bytes bytes = from_hex(small);
  set(bytes, at, number);
  return rule_of(bytes);
}

std::vector<std::uint32_t> ticks_of(const Track& track) {
  std::vector<std::uint32_t> ticks;
  for_each_tick(track, [&](std::uint32_t tick) { ticks.push_back(tick); });
  return ticks;
}

}  // namespace

TEST_CASE("an Animation written by hand reads field by field") {
  const Bytes bytes = from_hex(small);
  const Reading<SwsAnimation> clip = read_sws_animation(bytes);
  REQUIRE(clip);
  CHECK(clip->size == bytes.size());
  CHECK(std::ranges::equal(clip->table_rows, std::span(bytes).subspan(7, 12)));
  CHECK(clip->id == 0x12345678);
  CHECK(clip->length == 0.5F);
  CHECK(clip->layout_word == 0xDDCCBBAA);
  CHECK(clip->unknown_24 == 0x04030201);
  CHECK(clip->unknown_28 == 0x0605);
  CHECK(clip->unknown_30 == 0x1234567B);
  CHECK(clip->event_count == 1);
  CHECK(std::ranges::equal(clip->events, std::span(bytes).subspan(events_at, 9)));
  CHECK(clip->unknown_after_events == 0x0A090807);
  CHECK(clip->track_data_id == 0);
  CHECK(clip->track_data_layout_word == clip->layout_word);
  CHECK(clip->unknown_after_mappings == 0x0C0B);
  REQUIRE(clip->mapping_count() == 2);
  CHECK(clip->mapping(0).bone_crc == 0);
  CHECK(clip->mapping(1).bone_crc == 0xA4A3A2A1);
  CHECK(clip->key_count == 5);
  CHECK(clip->stray_last_keys == 0);

  auto track = clip->tracks.begin();
  CHECK(track->kind == 8);
  CHECK(track->time_form == TimeForm::u8_ticks);
  CHECK_FALSE(track->flag);
  CHECK(ticks_of(*track) == std::vector<std::uint32_t>{0, 10, 30});
  CHECK(last_tick(*track) == 30);
  CHECK(track->values.size() == 12);
  CHECK(track->values.front() == std::byte{0xB0});
  ++track;
  CHECK(track->offset == second_track_at);
  CHECK(track->kind == 4);
  CHECK(track->time_form == TimeForm::u16_ticks);
  CHECK(track->flag);
  CHECK(track->size_word == 18);
  CHECK(ticks_of(*track) == std::vector<std::uint32_t>{0, 30});
  CHECK(track->values.back() == std::byte{0xCB});
  ++track;
  CHECK(track == clip->tracks.end());
}

TEST_CASE("each broken field of an Animation is refused by its rule") {
  for (std::size_t at = 0; at < 3; ++at) CHECK(rule_with<std::uint8_t>(at, 7) == Rule::table_bytes);
  CHECK(rule_with<std::uint32_t>(3, 0) == Rule::managed_byte);
  CHECK(rule_with<std::uint32_t>(3, 0xFFFFFFFF) == Rule::truncated);
  CHECK(rule_with<std::uint8_t>(19, 0) == Rule::managed_byte);
  CHECK(rule_with<std::uint32_t>(24, 0x0FA3067E) == Rule::class_id);
  CHECK(rule_with<std::uint32_t>(28, 0x7FC00000) == Rule::length);
  CHECK(rule_with<std::uint32_t>(28, 0x7F800000) == Rule::length);
  CHECK(rule_with<std::uint32_t>(28, 0xBF000000) == Rule::length);
  CHECK(rule_with<std::uint32_t>(46, 0) == Rule::events);
  CHECK(rule_with<std::uint32_t>(46, 10) == Rule::events);
  CHECK(rule_with<std::uint32_t>(46, 0xFFFFFFFF) == Rule::events);
  CHECK(rule_with<std::uint8_t>(tag_at, 1) == Rule::object_tag);
  CHECK(rule_with<std::uint32_t>(tag_at + 5, 0x0181EFE9) == Rule::anchor);
  CHECK(rule_with<std::uint32_t>(tag_at + 13, 1) == Rule::track_count);
  CHECK(rule_with<std::uint32_t>(tag_at + 13, 0xFFFFFFFF) == Rule::truncated);
  CHECK(rule_with<std::uint32_t>(84, 0x653CAA77) == Rule::class_id);
  CHECK(rule_with<std::uint32_t>(96, 0) == Rule::class_id);
  CHECK(rule_with<std::uint32_t>(106, 3) == Rule::track_count);
  CHECK(rule_with<std::uint8_t>(110, 12 << 2) == Rule::kind);
  CHECK(rule_with<std::uint32_t>(111, 17) == Rule::size_word);
  CHECK(rule_with<std::uint32_t>(115, 0) == Rule::key_count);
  CHECK(rule_with<std::uint32_t>(115, 257) == Rule::key_count);
  CHECK(rule_with<std::uint32_t>(115, 0xFFFFFFFF) == Rule::key_count);
  CHECK(rule_with<std::uint32_t>(115, 4) == Rule::size_word);
  CHECK(rule_with<std::uint32_t>(115, 200) == Rule::truncated);
  CHECK(rule_with<std::uint8_t>(119, 0) == Rule::times_rise);
  CHECK(rule_with<std::uint8_t>(119, 30) == Rule::times_rise);
  CHECK(rule_with<std::uint8_t>(120, 9) == Rule::times_rise);
  CHECK(rule_with<std::uint16_t>(second_track_at + 9, 0) == Rule::times_rise);
  CHECK(rule_with<std::uint32_t>(second_track_at + 5, 0x10001) == Rule::key_count);
  Bytes longer = from_hex(small);
  longer.push_back(std::byte{0});
  CHECK(rule_of(longer) == Rule::trailing_bytes);
}

TEST_CASE("a refusal points at the field and carries what it holds") {
  Bytes bytes = from_hex(small);
  set<std::uint32_t>(bytes, second_track_at + 1, 0x1234);
  const Reading<SwsAnimation> reading = read_sws_animation(bytes);
  REQUIRE_FALSE(reading);
  CHECK(describe(reading.refusal()) ==
        "offset 0x86: size word: the size word is the block's size in memory (found 0x1234)");
}

// A flipped byte is noticed unless the seed gives it no rule: then it is carried over unchanged.
TEST_CASE("bytes whose flip is accepted are exactly the opaque ones") {
  const Bytes bytes = from_hex(small);
  std::vector<bool> opaque(bytes.size());
  const auto mark = [&](std::size_t from, std::size_t count) {
    std::fill_n(opaque.begin() + static_cast<std::ptrdiff_t>(from), count, true);
  };
  mark(7, 12);          // table rows
  mark(20, 4);          // id
  mark(28, 3);          // length, its sign byte aside
  mark(32, 14);         // layout word and unknowns
  mark(events_at, 9);   // the event
  mark(59, 4);          // unknown
  mark(tag_at + 1, 4);  // AnimTrackData's id
  mark(tag_at + 9, 4);  // its layout word
  for (const std::size_t mapping : {80U, 92U}) {
    mark(mapping, 4);
    mark(mapping + 8, 4);
  }
  mark(104, 2);                    // unknown
  mark(120, 1);                    // the last of the first track's times, which may be any that is later
  mark(121, 12);                   // values
  mark(second_track_at + 9, 2);    // the only time
  mark(second_track_at + 11, 12);  // values
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    Bytes flipped = bytes;
    flipped[at] ^= std::byte{0xFF};
    INFO("byte " << at);
    CHECK(bool(read_sws_animation(flipped)) == opaque[at]);
  }
}

TEST_CASE("an Animation cut anywhere is refused") {
  Random random(seed);
  for (const Bytes& whole : {from_hex(small), make_sws(random).bytes, make_sws(random).bytes}) {
    REQUIRE(read_sws_animation(whole));
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      const Reading<SwsAnimation> reading = read_sws_animation(cut);
      INFO("cut to " << size);
      REQUIRE_FALSE(reading);
      REQUIRE(reading.refusal().offset <= size);
    }
  }
}

TEST_CASE("size words follow the rule for every kind, form and flag") {
  struct Row {
    unsigned kind, width, alignment;
  };
  const Row rows[] = {{4, 6, 2}, {5, 8, 4},  {6, 12, 4}, {7, 12, 4}, {8, 4, 4},
                      {9, 6, 2}, {10, 4, 4}, {11, 1, 1}, {17, 1, 1}};
  std::size_t known = 0;
  for (unsigned kind = 0; kind < 64; ++kind) known += sws_kind(kind).width != 0;
  CHECK(known == std::size(rows));
  for (const Row& row : rows) {
    CHECK(sws_kind(row.kind).width == row.width);
    CHECK(sws_kind(row.kind).alignment == row.alignment);
    for (std::uint32_t keys = 1; keys < 20; ++keys) {
      for (const unsigned flag : {0U, 1U}) {
        for (const unsigned bytes_a_time : {1U, 2U}) {
          std::uint64_t front = 2 + (keys - 1) * bytes_a_time + 2 * flag;
          while (front % row.alignment != 0) ++front;
          const TimeForm form = bytes_a_time == 1 ? TimeForm::u8_ticks : TimeForm::u16_ticks;
          CHECK(sws_size_word(row.kind, form, flag != 0, keys) == front + keys * row.width);
        }
      }
    }
  }
}

TEST_CASE("the anchor is the first place that reads as AnimTrackData, and the only one") {
  const Bytes bytes = from_hex(small);
  const auto with_events = [&](const Bytes& events) {
    Bytes made(bytes.begin(), bytes.begin() + events_at);
    made.insert(made.end(), events.begin(), events.end());
    made.insert(made.end(), bytes.begin() + events_at + 9, bytes.end());
    return made;
  };
  SECTION("a class id in the events that does not read is passed over") {
    for (const std::string_view decoy :
         {"00 00000000 e8ef8101 00000000 05000000 ffff", "ee 00000000 e8ef8101 00000000 00000000 0000 00000000",
          "e8ef8101", "00 00000000 e8ef8101 00000000 ffffffff"}) {
      const Bytes events = from_hex(decoy);
      const Bytes made = with_events(events);
      const Reading<SwsAnimation> reading = read_sws_animation(made);
      REQUIRE(reading);
      CHECK(reading->events.size() == events.size());
      CHECK(reading->mapping_count() == 2);
    }
  }
  SECTION("a second place that reads is refused, in front or behind") {
    const Bytes empty_data = from_hex("00000000 00 00000000 e8ef8101 00000000 00000000 0000 00000000");
    CHECK_FALSE(read_sws_animation(with_events(empty_data)));
    Bytes behind = bytes;
    const Bytes decoy = from_hex("00 00000000 e8ef8101 00000000 00000000 0000 00000000");
    // A track of kind 17 whose values are the decoy, in the place of the second.
    Bytes track = from_hex("44 00000000 00000000");
    const auto keys = static_cast<std::uint32_t>(decoy.size());
    set(track, 5, keys);
    set(track, 1, static_cast<std::uint32_t>(sws_size_word(17, TimeForm::u8_ticks, false, keys)));
    for (std::uint32_t i = 1; i < keys; ++i) track.push_back(std::byte(i));
    track.insert(track.end(), decoy.begin(), decoy.end());
    behind.resize(second_track_at);
    behind.insert(behind.end(), track.begin(), track.end());
    CHECK(rule_of(behind) == Rule::anchor_unique);
    behind[behind.size() - decoy.size() + 5] ^= std::byte{1};
    CHECK(read_sws_animation(behind));
  }
}

TEST_CASE("last keys off the clip's length are counted, not refused") {
  Bytes bytes = from_hex(small);
  set(bytes, 28, std::bit_cast<std::uint32_t>(0.6F));
  const Reading<SwsAnimation> clip = read_sws_animation(bytes);
  REQUIRE(clip);
  CHECK(clip->stray_last_keys == 2);
  bytes[120] = std::byte{36};
  REQUIRE(read_sws_animation(bytes));
  CHECK(read_sws_animation(bytes)->stray_last_keys == 1);
}

TEST_CASE("random Animations read back as written, byte for byte") {
  Random random(seed);
  for (int round = 0; round < 400; ++round) {
    INFO("seed " << seed << ", round " << round);
    const SampleSize size{.most_tracks = 6, .most_keys = round % 10 == 0 ? 256U : 40U};
    const SwsSample made = make_sws(random, size);
    const Reading<SwsAnimation> clip = read_sws_animation(made.bytes);
    INFO((clip ? std::string() : describe(clip.refusal())));
    REQUIRE(clip);
    CHECK(clip->id == made.clip.id);
    CHECK(clip->events.size() == made.clip.events.size());
    REQUIRE(clip->mapping_count() == made.mappings.size());
    std::size_t index = 0;
    for (const Track& track : clip->tracks) {
      const Track& wanted = made.tracks.at(index);
      CHECK(clip->mapping(index).bone_crc == made.mappings[index].bone_crc);
      CHECK(clip->mapping(index).id == made.mappings[index].id);
      CHECK(track.kind == wanted.kind);
      CHECK(track.time_form == wanted.time_form);
      CHECK(track.flag == wanted.flag);
      CHECK(std::ranges::equal(track.times, wanted.times));
      CHECK(std::ranges::equal(track.values, wanted.values));
      ++index;
    }
    CHECK(index == made.tracks.size());
    Bytes again;
    write_sws_animation(again, *clip);
    CHECK(again == made.bytes);
  }
}

TEST_CASE("the most keys a time form can number are read") {
  for (const TimeForm form : {TimeForm::u8_ticks, TimeForm::u16_ticks}) {
    Track track;
    Bytes times;
    const std::uint32_t keys = form == TimeForm::u8_ticks ? 0x100 : 0x10000;
    for (std::uint32_t tick = 1; tick < keys; ++tick) {
      times.push_back(std::byte(tick & 0xFF));
      if (form == TimeForm::u16_ticks) times.push_back(std::byte(tick >> 8));
    }
    const Bytes values(keys);
    track.tag = sws_tag(11, form, false);
    track.key_count = keys;
    track.size_word = static_cast<std::uint32_t>(sws_size_word(11, form, false, keys));
    track.times = times;
    track.values = values;
    const SwsMapping mapping;
    SwsAnimation clip;
    clip.length = static_cast<float>(keys - 1) / 60.0F;
    Bytes bytes;
    write_sws_animation(bytes, clip, {&mapping, 1}, {&track, 1});
    const Reading<SwsAnimation> reading = read_sws_animation(bytes);
    REQUIRE(reading);
    CHECK(reading->key_count == keys);
    CHECK(reading->stray_last_keys == 0);
    // Two equal times anywhere are found, vector loop or not.
    const std::size_t width = form == TimeForm::u8_ticks ? 1 : 2;
    for (std::size_t key = 1; key + 1 < keys; key += 1 + keys / 50) {
      Bytes broken = bytes;
      const std::size_t at = bytes.size() - values.size() - times.size() + key * width;
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at - width), width,
                  broken.begin() + static_cast<std::ptrdiff_t>(at));
      CHECK(rule_of(broken) == Rule::times_rise);
    }
  }
}

TEST_CASE("AnimSets and AnimPairs are read to their exact end") {
  const Bytes set_bytes = from_hex(
      "01 11223344 554f9831 00000000 02000000"
      "a0a1a2a3 87a9e99d 01000000 02000000"
      "b0b1b2b3 87a9e99d 03000000 04000000 01");
  const Reading<SwsAnimSet> anim_set = read_sws_anim_set(set_bytes);
  REQUIRE(anim_set);
  CHECK(anim_set->id == 0x44332211);
  REQUIRE(anim_set->pair_count() == 2);
  CHECK(anim_set->pair(1).id == 0xB3B2B1B0);
  CHECK(anim_set->pair(1).first == 3);
  CHECK(anim_set->pair(1).second == 4);
  CHECK(anim_set->final_byte == 1);
  const auto rule = [&](std::size_t at, std::uint8_t value) -> std::optional<Rule> {
    Bytes broken = set_bytes;
    broken.at(at) = std::byte{value};
    const Reading<SwsAnimSet> reading = read_sws_anim_set(broken);
    if (reading) return std::nullopt;
    return reading.refusal().rule;
  };
  CHECK(rule(0, 0) == Rule::managed_byte);
  CHECK(rule(5, 0) == Rule::class_id);
  CHECK(rule(9, 1) == Rule::zero_word);
  CHECK(rule(13, 1) == Rule::final_byte);
  CHECK(rule(13, 3) == Rule::truncated);
  CHECK(rule(16, 0xFF) == Rule::truncated);
  CHECK(rule(21, 0) == Rule::class_id);
  CHECK(rule(37, 0) == Rule::class_id);
  CHECK(rule(set_bytes.size() - 1, 2) == Rule::final_byte);
  for (std::size_t size = 0; size < set_bytes.size(); ++size) {
    const Reading<SwsAnimSet> cut = read_sws_anim_set(std::span(set_bytes).first(size));
    REQUIRE_FALSE(cut);
    CHECK(cut.refusal().offset <= size);
  }
  Bytes longer = set_bytes;
  longer.push_back(std::byte{});
  CHECK(read_sws_anim_set(longer).refusal().rule == Rule::trailing_bytes);

  const std::span<const std::byte> pair = std::span(set_bytes).subspan(17, SwsAnimPair::size);
  REQUIRE(read_sws_anim_pair(pair));
  CHECK(read_sws_anim_pair(pair)->first == 1);
  for (std::size_t size = 0; size < pair.size(); ++size) CHECK_FALSE(read_sws_anim_pair(pair.first(size)));
  CHECK(read_sws_anim_pair(std::span(set_bytes).subspan(17, 17)).refusal().rule == Rule::trailing_bytes);
  CHECK(read_sws_anim_pair(std::span(set_bytes).subspan(16, 16)).refusal().rule == Rule::class_id);
}

TEST_CASE("a cursor keeps its first refusal and never leaves its bytes") {
  const Bytes bytes = from_hex("0102030405");
  Cursor in(bytes);
  CHECK(in.read<std::uint16_t>() == 0x0201);
  CHECK(in.take(0xFFFFFFFFFFFFFFFF, 12).empty());
  CHECK(in.refused());
  CHECK(in.refusal().offset == 2);
  CHECK(in.refusal().rule == Rule::truncated);
  CHECK(in.read<std::uint8_t>() == 0);
  CHECK(in.offset() == 2);
  in.require(false, Rule::kind, 4);
  CHECK(in.refusal().rule == Rule::truncated);
  CHECK(Cursor(bytes, 99).offset() == 5);
}

}  // namespace bitwitness::tests
