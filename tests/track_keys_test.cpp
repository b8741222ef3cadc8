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
