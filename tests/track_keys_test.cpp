#include "decoders/track_keys.hpp"

#include "decoders/animation_writer.hpp"
#include "decoders/encode.hpp"
#include "decoders/registry.hpp"
#include "tests/animation_samples.hpp"
#include "tests/catch.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

using namespace bitwitness::decoders;
using bitwitness::tests::Bytes;

namespace {

template <std::size_t size>
void append(Bytes& bytes, const std::array<std::byte, size>& value) {
  bytes.insert(bytes.end(), value.begin(), value.end());
}

Bytes bytes_of(std::initializer_list<unsigned> values) {
  Bytes bytes;
  for (const unsigned value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

const Quaternion start{0, 0, 0, 1};
const Quaternion quarter{0, 0, std::bit_cast<float>(0x3F3504F3u), std::bit_cast<float>(0x3F3504F3u)};

Track track_of(unsigned kind, TimeForm form, const Bytes& times, const Bytes& values, std::uint32_t keys) {
  Track track;
  track.kind = static_cast<std::uint8_t>(kind);
  track.time_form = form;
  track.times = times;
  track.values = values;
  track.key_count = keys;
  return track;
}

}  // namespace

TEST_CASE("a rotation track gives its keys at its times, and what lies between") {
  Bytes values;
  append(values, packed_quat48::encode(start));
  append(values, packed_quat48::encode(quarter));
  const Bytes times = bytes_of({0x2C, 0x01});  // tick 300
  const Track track = track_of(4, TimeForm::u16_ticks, times, values, 2);
  for (const Game game : {Game::sws, Game::rr}) {
    const auto keys = rotation_keys(game, track);
    REQUIRE(keys);
    CHECK(keys->times == std::vector<std::uint16_t>{0, 300});
    CHECK(sample(keys->view(), keys->sample_time(2.5)) == *sample_rotation(game, track, 150));
    std::array<std::uint32_t, 4> words{};
    find_decoder("packed_quat48")->decode(values, words);
    CHECK(std::bit_cast<std::array<std::uint32_t, 4>>(keys->values[0]) == words);
    CHECK(sample_rotation(game, track, 0) == keys->values[0]);
    CHECK(sample_rotation(game, track, 301) == keys->values[1]);
    const Quaternion half = *sample_rotation(game, track, 150);
    CHECK(std::abs(half[2] - 0.3826834f) < 1e-4f);
    CHECK(std::abs(half[3] - 0.9238795f) < 1e-4f);
    CHECK_FALSE(translation_keys(game, track));
    CHECK_FALSE(sample_translation(game, track, 0));
  }
}

TEST_CASE("a mask's keys lie two ticks a frame") {
  Bytes values;
  for (const float x : {0.0f, 1.0f, 4.0f}) append(values, translation_f32::encode({x, 0, 0}));
  const Bytes mask = bytes_of({0x09, 0x02});  // frames 0, 3 and 9
  const Track track = track_of(9, TimeForm::mask, mask, values, 3);
  const auto keys = translation_keys(Game::rr, track);
  REQUIRE(keys);
  CHECK(keys->times == std::vector<std::uint16_t>{0, 6, 18});
  CHECK(sample_translation(Game::rr, track, 12) == Translation{2.5f, 0, 0});
  CHECK_FALSE(rotation_keys(Game::rr, track));
}

TEST_CASE("every kind of every game is a rotation, a translation or neither") {
  const auto sizes = [](const TrackKind& kind) { return find_decoder(kind.decoder)->packed_size; };
  std::set<std::string> rotations;
  std::set<std::string> translations;
  for (const TrackKind& kind : track_kinds()) {
    if (kind.game == Game::mab) continue;
    const Bytes times = bytes_of({7});
    const Bytes values(2 * sizes(kind));
    const Track track = track_of(kind.kind, TimeForm::u8_ticks, times, values, 2);
    const std::string name = std::string(bitwitness::decoders::name(kind.game)) + std::to_string(kind.kind);
    if (const auto keys = rotation_keys(kind.game, track)) {
      rotations.insert(name);
      CHECK(keys->values.size() == 2);
      CHECK(keys->times == std::vector<std::uint16_t>{0, 7});
    }
    if (const auto keys = translation_keys(kind.game, track)) {
      translations.insert(name);
      CHECK(keys->values.size() == 2);
    }
  }
  CHECK(rotations == std::set<std::string>{"rr3", "rr4", "rr5", "rr7", "rr8", "sws4", "sws5", "sws6"});
  CHECK(translations == std::set<std::string>{"rr9", "sws8", "sws9"});
  CHECK_FALSE(rotation_keys(Game::sws, track_of(12, TimeForm::u8_ticks, {}, {}, 1)));
}

TEST_CASE("every kind that a reader accepts has a row, and every row's values have the width that is read") {
  std::size_t accepted = 0;
  const auto check = [&](Game game, unsigned kind, unsigned width) {
    INFO(name(game) << " kind " << kind);
    const TrackKind* const row = find_track_kind(game, kind);
    CHECK((row != nullptr) == (width != 0));
    if (row == nullptr) return;
    const Decoder* const decoder = find_decoder(row->decoder);
    REQUIRE(decoder != nullptr);
    CHECK(decoder->packed_size == width);
    ++accepted;
  };
  for (unsigned kind = 0; kind < 256; ++kind) {
    check(Game::sws, kind, sws_kind(kind).width);
    check(Game::rr, kind, rr_kind_width(kind));
    check(Game::mab, kind, kind == 0 ? Mab::key_size : 0);
  }
  CHECK(accepted == track_kinds().size());
}

TEST_CASE("a .mab is sampled in seconds at its own rate") {
  Bytes first_keys;
  append(first_keys, dunia_quat48::encode(start));
  Bytes later_keys;
  append(later_keys, dunia_quat48::encode(quarter));
  const Bytes presence = bytes_of({0x04});  // the group's fourth frame, lowest bit first
  const MabGroup group{.first_keys = first_keys, .presence = presence, .padding = presence, .later_keys = later_keys};
  Mab made;
  made.version = 0x4C;
  made.clip_base = MabOptions{}.clip_base;
  made.track_count = 1;
  made.last_frame = 4;
  made.rate = 24.0F;
  made.duration = 0.2F;
  const Bytes before(made.clip_base + mab_duration_4c + 4 + 4 * made.section_offsets.size());
  made.before = before;
  made.has_rotations = true;
  made.section_offsets[Mab::rotation_section] = static_cast<std::int32_t>(before.size() - made.clip_base);
  Bytes bytes;
  write_mab(bytes, made, {&group, 1});
  const auto clip = read_mab(bytes);
  REQUIRE(clip);

  const DecodedKeys<Quaternion> keys = rotation_keys(*clip, 0);
  CHECK(keys.times == std::vector<std::uint16_t>{0, 3});
  CHECK(keys.frame_rate == 24.0);
  CHECK(sample_rotation(*clip, 0, 0.0) == keys.values[0]);
  CHECK(sample_rotation(*clip, 0, 3.0 / 24.0) == keys.values[1]);
  CHECK(sample_rotation(*clip, 0, 100.0) == keys.values[1]);
  CHECK_FALSE(sample_rotation(*clip, 1, 0.0));
  const std::optional<Quaternion> half = sample_rotation(*clip, 0, 1.5 / 24.0);
  REQUIRE(half);
  const auto between = [](const Quaternion& a, const Quaternion& b) {
    return std::abs(double{a[0]} * b[0] + double{a[1]} * b[1] + double{a[2]} * b[2] + double{a[3]} * b[3]);
  };
  CHECK(std::abs(between(*half, keys.values[0]) - between(*half, keys.values[1])) < 1e-6);
  CHECK(between(*half, keys.values[0]) < 0.9999);
  // The other order of presence bits puts the same key on another frame.
  CHECK(rotation_keys(*clip, 0, PresenceOrder::high_bit_first).times == std::vector<std::uint16_t>{0, 5});
}

TEST_CASE("a .mab track's keys come at their frames") {
  bitwitness::tests::Random random(5);
  for (int round = 0; round < 20; ++round) {
    const auto sample = bitwitness::tests::make_mab(random);
    const auto clip = read_mab(sample.bytes, sample.options);
    REQUIRE(clip);
    std::uint64_t keys = 0;
    for (std::uint32_t track = 0; track < clip->track_count; ++track) {
      const DecodedKeys<Quaternion> decoded = rotation_keys(*clip, track);
      REQUIRE(decoded.times.size() == decoded.values.size());
      std::size_t index = 0;
      bool same = true;
      for_each_key(*clip, PresenceOrder::low_bit_first,
                   [&](std::uint32_t of, std::uint32_t frame, std::span<const std::byte> key) {
                     if (of != track) return;
                     std::array<std::uint32_t, 4> words{};
                     dunia_quat48::decode(key, words);
                     same = same && decoded.times[index] == frame &&
                            std::bit_cast<std::array<std::uint32_t, 4>>(decoded.values[index]) == words;
                     ++index;
                   });
      CHECK(same);
      keys += index;
    }
    CHECK(keys == clip->key_count);
    CHECK(rotation_keys(*clip, clip->track_count).values.empty());
  }
}
