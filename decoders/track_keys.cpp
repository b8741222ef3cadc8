#include "decoders/track_keys.hpp"

#include "decoders/dunia_quat48.hpp"
#include "decoders/registry.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <string_view>

namespace bitwitness::decoders {
namespace {

constexpr std::array<std::string_view, 5> rotations{"packed_quat32", "packed_quat48", "packed_quat64", "quat_xyz",
                                                    "rotation_z15"};
constexpr std::array<std::string_view, 3> translations{"translation_f32", "translation_11_11_10", "translation_i16"};

template <class Value>
Value value_of(Decode decode, std::span<const std::byte> packed) {
  std::array<std::uint32_t, std::tuple_size_v<Value>> words{};
  decode(packed, words);
  Value value{};
  for (std::size_t word = 0; word < words.size(); ++word) value[word] = std::bit_cast<float>(words[word]);
  return value;
}

template <class Value>
std::optional<DecodedKeys<Value>> keys_of(Game game, const Track& track, std::span<const std::string_view> names) {
  const TrackKind* const kind = find_track_kind(game, track.kind);
  if (kind == nullptr || std::ranges::find(names, kind->decoder) == names.end()) return std::nullopt;
  const Decoder& decoder = *find_decoder(kind->decoder);
  DecodedKeys<Value> keys;
  keys.times.reserve(track.key_count);
  keys.values.reserve(track.key_count);
  for_each_tick(track, [&](std::uint32_t tick) { keys.times.push_back(static_cast<std::uint16_t>(tick)); });
  for (std::size_t at = 0; at + decoder.packed_size <= track.values.size(); at += decoder.packed_size) {
    keys.values.push_back(value_of<Value>(decoder.decode, track.values.subspan(at, decoder.packed_size)));
  }
  return keys;
}

}  // namespace

std::optional<DecodedKeys<Quaternion>> rotation_keys(Game game, const Track& track) {
  return keys_of<Quaternion>(game, track, rotations);
}

std::optional<DecodedKeys<Translation>> translation_keys(Game game, const Track& track) {
  return keys_of<Translation>(game, track, translations);
}

DecodedKeys<Quaternion> rotation_keys(const Mab& clip, std::uint32_t track, PresenceOrder order) {
  DecodedKeys<Quaternion> keys;
  keys.frame_rate = clip.rate;
  for_each_key(clip, order, [&](std::uint32_t of, std::uint32_t frame, std::span<const std::byte> key) {
    if (of != track || frame > std::numeric_limits<std::uint16_t>::max()) return;
    keys.times.push_back(static_cast<std::uint16_t>(frame));
    keys.values.push_back(value_of<Quaternion>(dunia_quat48::decode, key));
  });
  return keys;
}

std::optional<Quaternion> sample_rotation(Game game, const Track& track, double ticks, RotationBlend blend) {
  const auto keys = rotation_keys(game, track);
  if (!keys) return std::nullopt;
  return sample(keys->view(), ticks, blend);
}

std::optional<Quaternion> sample_rotation(const Mab& clip, std::uint32_t track, double seconds, PresenceOrder order,
                                          RotationBlend blend) {
  const DecodedKeys<Quaternion> keys = rotation_keys(clip, track, order);
  if (keys.values.empty()) return std::nullopt;
  return sample(keys.view(), keys.sample_time(seconds), blend);
}

std::optional<Translation> sample_translation(Game game, const Track& track, double ticks) {
  const auto keys = translation_keys(game, track);
  if (!keys) return std::nullopt;
  return sample(keys->view(), ticks);
}

}  // namespace bitwitness::decoders
