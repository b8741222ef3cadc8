#include "decoders/rr_animation.hpp"

#include "tests/animation_samples.hpp"
#include "tests/catch.hpp"

#include <algorithm>
#include <optional>

namespace bitwitness::tests {
namespace {

using namespace decoders;

constexpr std::uint64_t seed = 0x5eed5a5a02;

// One body with every part present and a track of each time form, written out by hand after seed 000's tables.
constexpr std::string_view small =
    "01 0000003f a1a2a3a4 00000000"                             // 0 managed, 0.5 s, two words
    "01000000 b1b2 02000000 c1c2c3c4"                           // 13 two arrays
    "00 01 00 01 01000000 e1e2e3"                               // 27 booleans, one event
    "00 0102030405060708 e8ef8101 d1d2d3d4 03000000"            // 38 tag, id, class, hash, three mappings
    "0000000000000000 76aa3c65 00000000"                        // 59
    "0000000000000000 76aa3c65 11121314"                        // 75
    "1112131415161718 76aa3c65 21222324 3132"                   // 91 and the unknown u16
    "00 4142434445464748 572a69ac"                              // 109 tag, id, class
    "01000000 51 01000000 61626364 02000000 71727374 00000000"  // 122 byte, u32, u16 and byte arrays
    "03000000 818283 91929394 03000000"                         // 147 buffer, u32, three tracks
    "0c 12000000 02000000 1e a0a1a2a3a4a5a6a7a8a9aaab"          // 162 kind 4, u8 time 30
    "16 0a000000 03000000 0a001e00 b0b1b2b3b4b5"                // 184 kind 7, u16 times 10 and 30
    "38 06000000 03000000 82 0980 c0c1c2";                      // 203 kind 18, mask of frames 0, 3 and 15

constexpr std::size_t data_at = 38;
constexpr std::size_t ecl_at = 109;
constexpr std::size_t tracks_at = 162;
constexpr std::size_t mask_track_at = 203;

// Nothing for bytes that are accepted or refused at an offset outside them.
std::optional<Rule> rule_of(const Bytes& bytes) {
  const Reading<RrAnimation> reading = read_rr_animation(bytes);
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

TEST_CASE("a body written by hand reads field by field") {
  const Bytes bytes = from_hex(small);
  const Reading<RrAnimation> clip = read_rr_animation(bytes);
  INFO((clip ? std::string() : describe(clip.refusal())));
  REQUIRE(clip);
  CHECK(clip->size == bytes.size());
  CHECK(clip->length == 0.5F);
  CHECK(clip->word_f4f597ff == 0xA4A3A2A1);
  CHECK(clip->word_322b96b8 == 0);
  CHECK(clip->halves_556e9166.size() == 2);
  CHECK(clip->halves_251905d9.size() == 4);
  CHECK(clip->booleans == std::array<std::uint8_t, 4>{0, 1, 0, 1});
  CHECK(clip->event_count == 1);
  CHECK(clip->events.size() == 3);
  CHECK(clip->track_data_id == 0x0807060504030201);
  CHECK(clip->track_data_hash == 0xD4D3D2D1);
  REQUIRE(clip->mapping_count() == 3);
  CHECK(clip->mapping(0).bone_crc == 0);
  CHECK(clip->mapping(2).id == 0x1817161514131211);
  CHECK(clip->mapping(2).bone_crc == 0x24232221);
  CHECK(clip->unknown_after_mappings == 0x3231);
  CHECK(clip->ecl.present);
  CHECK(clip->ecl.id == 0x4847464544434241);
  CHECK(clip->ecl.first_bytes.size() == 1);
  CHECK(clip->ecl.words.size() == 4);
  CHECK(clip->ecl.halves.size() == 4);
  CHECK(clip->ecl.last_bytes.empty());
  CHECK(clip->buffer_b832d26f.size() == 3);
  CHECK(clip->word_cb4e5f18 == 0x94939291);
  CHECK(clip->key_count == 8);
  CHECK(clip->late_last_keys == 0);
  // Size words 18, 10 and 6 against payloads of 13, 10 and 6 bytes.
  CHECK(clip->least_size_word_distance == 0);
  CHECK(clip->greatest_size_word_distance == 5);
  CHECK(clip->far_size_words == 0);
  CHECK(clip->mask_marker_tracks == std::array<std::uint32_t, 4>{0, 0, 1, 0});

  auto track = clip->tracks.begin();
  CHECK(track->kind == 4);
  CHECK(track->values.size() == 12);
  CHECK(ticks_of(*track) == std::vector<std::uint32_t>{0, 30});
  ++track;
  CHECK(track->kind == 7);
  CHECK(track->time_form == TimeForm::u16_ticks);
  CHECK(ticks_of(*track) == std::vector<std::uint32_t>{0, 10, 30});
  ++track;
  CHECK(track->offset == mask_track_at);
  CHECK(track->kind == 18);
  CHECK(track->time_form == TimeForm::mask);
  CHECK(track->mask_marker == 0x82);
  CHECK(ticks_of(*track) == std::vector<std::uint32_t>{0, 6, 30});
  CHECK(last_tick(*track) == 30);
  CHECK(track->values.back() == std::byte{0xC2});
  ++track;
  CHECK(track == clip->tracks.end());
}

TEST_CASE("each broken field of a body is refused by its rule") {
  CHECK(rule_with<std::uint8_t>(0, 0) == Rule::managed_byte);
  CHECK(rule_with<std::uint32_t>(1, 0xFF800000) == Rule::length);
  CHECK(rule_with<std::uint32_t>(1, 0x80000000) == Rule::length);
  CHECK(rule_with<std::uint32_t>(13, 0xFFFFFFFF) == Rule::truncated);
  CHECK(rule_with<std::uint32_t>(19, 0xFFFFFFFF) == Rule::truncated);
  for (std::size_t at = 27; at < 31; ++at) CHECK(rule_with<std::uint8_t>(at, 2) == Rule::boolean);
  CHECK(rule_with<std::uint32_t>(31, 0) == Rule::events);
  CHECK(rule_with<std::uint32_t>(31, 4) == Rule::events);
  CHECK(rule_with<std::uint8_t>(data_at, 3) == Rule::object_tag);
  CHECK(rule_with<std::uint32_t>(data_at + 9, 0) == Rule::anchor);
  CHECK(rule_with<std::uint32_t>(data_at + 17, 0xFFFFFFFF) == Rule::truncated);
  CHECK(rule_with<std::uint32_t>(data_at + 17, 4) == Rule::class_id);
  CHECK(rule_with<std::uint32_t>(67, 0) == Rule::class_id);
  CHECK(rule_with<std::uint32_t>(99, 0) == Rule::class_id);
  CHECK(rule_with<std::uint8_t>(ecl_at, 1) == Rule::object_tag);
  CHECK(rule_with<std::uint32_t>(ecl_at + 9, 0) == Rule::class_id);
  for (const std::size_t count_at : {122U, 127U, 135U, 143U}) {
    INFO("count at " << count_at);
    CHECK(rule_with<std::uint32_t>(count_at, 0xFFFFFFFF) == Rule::truncated);
  }
  CHECK(rule_with<std::uint32_t>(147, 0xFFFFFFFF) == Rule::truncated);
  CHECK(rule_with<std::uint32_t>(158, 2) == Rule::track_count);
  CHECK(rule_with<std::uint32_t>(158, 0xFFFFFFFF) == Rule::track_count);
}

TEST_CASE("each broken field of a track is refused by its rule") {
  CHECK(rule_with<std::uint8_t>(tracks_at, 3 * 6) == Rule::kind);
  CHECK(rule_with<std::uint8_t>(tracks_at, 255) == Rule::kind);
  CHECK(rule_with<std::uint32_t>(tracks_at + 5, 0) == Rule::key_count);
  CHECK(rule_with<std::uint32_t>(tracks_at + 5, 0xFFFFFFFF) == Rule::key_count);
  CHECK(rule_with<std::uint32_t>(tracks_at + 5, 200) == Rule::truncated);
  CHECK(rule_with<std::uint8_t>(tracks_at + 9, 0) == Rule::times_rise);
  CHECK(rule_with<std::uint16_t>(tracks_at + 22 + 9, 30) == Rule::times_rise);
  CHECK(rule_with<std::uint8_t>(mask_track_at + 9, 0x80) == Rule::mask_size);
  CHECK(rule_with<std::uint8_t>(mask_track_at + 9, 0x89) == Rule::mask_size);
  CHECK(rule_with<std::uint8_t>(mask_track_at + 9, 0xBF) == Rule::mask_size);
  CHECK(rule_with<std::uint8_t>(mask_track_at + 10, 0x08) == Rule::mask_keys);
  CHECK(rule_with<std::uint8_t>(mask_track_at + 10, 0x0D) == Rule::mask_keys);
  CHECK(rule_with<std::uint32_t>(mask_track_at + 5, 65) == Rule::key_count);
  Bytes longer = from_hex(small);
  longer.push_back(std::byte{0});
  CHECK(rule_of(longer) == Rule::trailing_bytes);
}

TEST_CASE("what the seed leaves open is counted, not refused") {
  Bytes bytes = from_hex(small);
  SECTION("size words") {
    set<std::uint32_t>(bytes, tracks_at + 1, 22);
    REQUIRE(read_rr_animation(bytes));
    CHECK(read_rr_animation(bytes)->greatest_size_word_distance == 9);
    CHECK(read_rr_animation(bytes)->far_size_words == 1);
    set<std::uint32_t>(bytes, tracks_at + 1, 0);
    CHECK(read_rr_animation(bytes)->least_size_word_distance == -13);
  }
  SECTION("marker bits") {
    bytes[mask_track_at + 9] = std::byte{0xC2};
    CHECK(read_rr_animation(bytes)->mask_marker_tracks == std::array<std::uint32_t, 4>{0, 0, 0, 1});
    bytes[mask_track_at + 9] = std::byte{0x02};
    CHECK(read_rr_animation(bytes)->mask_marker_tracks == std::array<std::uint32_t, 4>{1, 0, 0, 0});
  }
  SECTION("last keys: 1/30 s past the length is allowed") {
    bytes[tracks_at + 9] = std::byte{32};
    CHECK(read_rr_animation(bytes)->late_last_keys == 0);
    bytes[tracks_at + 9] = std::byte{33};
    CHECK(read_rr_animation(bytes)->late_last_keys == 1);
  }
}

TEST_CASE("a body cut anywhere is refused") {
  Random random(seed);
  for (const Bytes& whole : {from_hex(small), make_rr(random).bytes, make_rr(random).bytes}) {
    REQUIRE(read_rr_animation(whole));
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
      const Reading<RrAnimation> reading = read_rr_animation(cut);
      INFO("cut to " << size);
      REQUIRE_FALSE(reading);
      REQUIRE(reading.refusal().offset <= size);
    }
  }
}

TEST_CASE("a second AnimTrackData in the body is refused") {
  Bytes bytes = from_hex(small);
  // The decoy is the buffer: tag, id, class, hash, no mappings, u16.
  const Bytes decoy = from_hex("00 0000000000000000 e8ef8101 00000000 00000000 0000");
  bytes.erase(bytes.begin() + 151, bytes.begin() + 154);
  bytes.insert(bytes.begin() + 151, decoy.begin(), decoy.end());
  set(bytes, 147, static_cast<std::uint32_t>(decoy.size()));
  CHECK(rule_of(bytes) == Rule::anchor_unique);
  bytes[151] = std::byte{1};
  const Reading<RrAnimation> reading = read_rr_animation(bytes);
  REQUIRE(reading);
  CHECK(reading->buffer_b832d26f.size() == decoy.size());
}

TEST_CASE("kinds have the widths of the seed's table") {
  const std::array<std::pair<unsigned, unsigned>, 12> rows{
      {{3, 4}, {4, 6}, {5, 8}, {7, 2}, {8, 12}, {9, 12}, {16, 1}, {17, 2}, {18, 1}, {21, 4}, {22, 4}, {25, 8}}};
  std::size_t known = 0;
  for (unsigned kind = 0; kind < 300; ++kind) known += rr_kind_width(kind) != 0;
  CHECK(known == rows.size());
  for (const auto& [kind, width] : rows) CHECK(rr_kind_width(kind) == width);
}

TEST_CASE("random bodies read back as written, byte for byte") {
  Random random(seed);
  std::array<int, 3> forms{};
  for (int round = 0; round < 400; ++round) {
    INFO("seed " << seed << ", round " << round);
    const SampleSize size{.most_tracks = 6, .most_keys = round % 10 == 0 ? 256U : 40U};
    const RrSample made = make_rr(random, size);
    const Reading<RrAnimation> clip = read_rr_animation(made.bytes);
    INFO((clip ? std::string() : describe(clip.refusal())));
    REQUIRE(clip);
    CHECK(clip->ecl.present == made.clip.ecl.present);
    CHECK(std::ranges::equal(clip->events, made.clip.events));
    CHECK(std::ranges::equal(clip->ecl.halves, made.clip.ecl.halves));
    CHECK(clip->greatest_size_word_distance <= 8);
    CHECK(clip->late_last_keys == 0);
    std::size_t index = 0;
    for (const Track& track : clip->tracks) {
      const Track& wanted = made.tracks.at(index);
      CHECK(clip->mapping(index).bone_crc == made.mappings[index].bone_crc);
      CHECK(track.kind == wanted.kind);
      CHECK(track.time_form == wanted.time_form);
      CHECK(track.mask_marker == wanted.mask_marker);
      CHECK(std::ranges::equal(track.times, wanted.times));
      CHECK(std::ranges::equal(track.values, wanted.values));
      ++forms[static_cast<std::size_t>(track.time_form)];
      ++index;
    }
    CHECK(index == made.tracks.size());
    Bytes again;
    write_rr_animation(again, *clip);
    CHECK(again == made.bytes);
  }
  CHECK(std::ranges::all_of(forms, [](int count) { return count > 100; }));
}

TEST_CASE("an AnimComponent gives its references") {
  const Bytes bytes = from_hex("01020304 02000000 a0a1a2a3a4a5a6a7a8a9 b0b1b2b3b4b5b6b7b8b9 ffee");
  const Reading<RrAnimComponent> component = read_rr_anim_component(bytes);
  REQUIRE(component);
  CHECK(component->base.size() == 4);
  REQUIRE(component->reference_count() == 2);
  CHECK(component->reference(1).front() == std::byte{0xB0});
  CHECK(component->reference(1).back() == std::byte{0xB9});
  CHECK(component->tail.size() == 2);
  for (std::size_t size = 0; size < 28; ++size) {
    const Reading<RrAnimComponent> cut = read_rr_anim_component(std::span(bytes).first(size));
    REQUIRE_FALSE(cut);
    CHECK(cut.refusal().offset <= size);
  }
  Bytes hostile = bytes;
  set<std::uint32_t>(hostile, 4, 0xFFFFFFFF);
  CHECK(read_rr_anim_component(hostile).refusal().rule == Rule::truncated);
}

}  // namespace bitwitness::tests
