#include "tests/evidence_samples.hpp"

#include "decoders/encode.hpp"
#include "tests/catch.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace bitwitness::tests {

using namespace decoders;

namespace {

constexpr std::array<std::array<unsigned, 3>, 3> split_widths{{{11, 11, 10}, {10, 11, 11}, {11, 10, 11}}};

// Nearly all of an axis' range, for a split with fewer bits to be seen.
int code_of(float component, TranslationSplit split, std::size_t axis) {
  const unsigned width = split_widths[static_cast<std::size_t>(split)][axis];
  return static_cast<int>(static_cast<float>(1U << (width - 1)) * 0.98F * component);
}

std::uint64_t number(std::span<const std::byte> bytes) {
  std::uint64_t bits = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) bits = bits << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return bits;
}

std::uint64_t quat48_bits(const Quaternion& rotation, IndexOrder order) {
  const std::uint64_t bits = number(packed_quat48::encode(rotation));
  if (order == IndexOrder::word_0_low) return bits;
  const std::uint64_t both = std::uint64_t{1} << 15 | std::uint64_t{1} << 31;
  return (bits & ~both) | (bits >> 31 & 1) << 15 | (bits >> 15 & 1) << 31;
}

std::uint64_t quat64_bits(const Quaternion& rotation, Quat64Layout layout) {
  const std::uint64_t bits = number(packed_quat64::encode(rotation));
  const std::uint64_t a = bits >> 8 & 0xFFFFF;
  const std::uint64_t b = (bits & 0xFF) << 12 | bits >> 52;
  const std::uint64_t c = bits >> 32 & 0xFFFFF;
  const std::uint64_t lane = bits >> 30 & 3;
  if (layout == Quat64Layout::low_to_high) return a | b << 20 | c << 40 | lane << 60;
  if (layout == Quat64Layout::high_to_low) return c | b << 20 | a << 40 | lane << 62;
  return bits;
}

std::uint64_t split_bits(std::array<int, 3> axes, TranslationSplit split) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const unsigned width = split_widths[static_cast<std::size_t>(split)][i];
    bits = bits << width | (static_cast<unsigned>(axes[i]) & ((1U << width) - 1));
  }
  return bits;
}

}  // namespace

Curve::Curve(Random& random) {
  for (Wave& wave : waves_) wave = {0.03 + 0.01 * double(random.below(4)), double(random.below(628)) / 100};
}

Quaternion Curve::at(double frame) const {
  std::array<double, 4> value{};
  double square = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value[i] = std::cos(waves_[i].rate * frame + waves_[i].start) + (i == 0 ? 1e-3 : 0);
    square += value[i] * value[i];
  }
  Quaternion rotation{};
  for (std::size_t i = 0; i < 4; ++i) rotation[i] = static_cast<float>(value[i] / std::sqrt(square));
  return rotation;
}

void append(Bytes& values, std::uint64_t bits, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) values.push_back(std::byte(static_cast<std::uint8_t>(bits >> (8 * i))));
}

Bytes values_of(Random& random, Game game, unsigned kind, std::size_t keys, const Reading& reading) {
  const Curve curve(random);
  const auto encoded = [](Bytes& values, const auto& key) { values.insert(values.end(), key.begin(), key.end()); };
  Bytes values;
  for (std::size_t i = 0; i < keys; ++i) {
    const Quaternion rotation = curve.at(static_cast<double>(i));
    if (kind == 3) encoded(values, packed_quat32::encode(rotation));
    if (kind == 4) append(values, quat48_bits(rotation, reading.order), 6);
    if (kind == 5) append(values, quat64_bits(rotation, reading.layout), 8);
    if (kind == 6 || (kind == 8 && game == Game::rr)) encoded(values, quat_xyz::encode(rotation));
    if (kind == 7) encoded(values, rotation_z15::encode(rotation));
    if (kind == 8 && game == Game::sws) {
      std::array<int, 3> axes{};
      for (std::size_t axis = 0; axis < 3; ++axis) axes[axis] = code_of(rotation[axis], reading.split, axis);
      append(values, split_bits(axes, reading.split), 4);
    }
  }
  return values;
}

Track track_of(Store& store, unsigned kind, unsigned width, Bytes values) {
  Track track;
  track.kind = static_cast<std::uint8_t>(kind);
  track.width = static_cast<std::uint8_t>(width);
  track.key_count = static_cast<std::uint32_t>(values.size() / width);
  Bytes times;
  for (std::uint32_t i = 1; i < track.key_count; ++i) times.push_back(std::byte(static_cast<std::uint8_t>(i)));
  track.times = store.keep(std::move(times));
  track.values = store.keep(std::move(values));
  return track;
}

void add_sws(Evidence& evidence, const SwsAnimation& head, std::vector<Track> tracks) {
  std::vector<SwsMapping> mappings(tracks.size());
  for (Track& track : tracks) {
    track.tag = sws_tag(track.kind, track.time_form, false);
    track.size_word = static_cast<std::uint32_t>(sws_size_word(track.kind, track.time_form, false, track.key_count));
  }
  Bytes bytes;
  write_sws_animation(bytes, head, mappings, tracks);
  const auto clip = read_sws_animation(bytes);
  INFO((clip ? std::string() : describe(clip.refusal())));
  REQUIRE(clip);
  evidence.add(*clip);
}

void add_rr(Evidence& evidence, const RrAnimation& head, std::vector<Track> tracks, std::uint32_t size_distance) {
  std::vector<RrMapping> mappings(tracks.size());
  for (Track& track : tracks) {
    track.tag = rr_tag(track.kind, track.time_form);
    track.size_word = static_cast<std::uint32_t>(track.payload_size()) + size_distance;
  }
  Bytes bytes;
  write_rr_animation(bytes, head, mappings, tracks);
  const auto clip = read_rr_animation(bytes);
  INFO((clip ? std::string() : describe(clip.refusal())));
  REQUIRE(clip);
  evidence.add(*clip);
}

SwsAnimation sws_head(std::size_t keys) {
  SwsAnimation head;
  head.length = static_cast<float>(keys - 1) / 60.0F;
  return head;
}

RrAnimation rr_head(std::size_t keys) {
  RrAnimation head;
  head.length = static_cast<float>(keys - 1) / 60.0F;
  return head;
}

void add_clip(Evidence& evidence, Random& random, Game game, const Reading& reading, std::size_t tracks,
              std::size_t keys) {
  const bool sws = game == Game::sws;
  Store store;
  std::vector<Track> made;
  for (const unsigned kind : sws ? std::vector<unsigned>{4, 5, 6, 8} : std::vector<unsigned>{3, 4, 5, 7, 8}) {
    const unsigned width = sws ? sws_kind(kind).width : rr_kind_width(kind);
    for (std::size_t i = 0; i < tracks; ++i) {
      made.push_back(track_of(store, kind, width, values_of(random, game, kind, keys, reading)));
    }
  }
  if (sws) {
    add_sws(evidence, sws_head(keys), made);
  } else {
    add_rr(evidence, rr_head(keys), made);
  }
}

void add_groups(Evidence& evidence, MabSample& made) {
  Mab& clip = made.clip;
  clip.version = 0x61;
  clip.clip_base = made.options.clip_base;
  clip.has_rotations = true;
  clip.rate = 30.0F;
  clip.duration = (static_cast<float>(clip.last_frame) + 0.5F) / clip.rate;
  clip.before = made.store.keep(Bytes(clip.clip_base + 0xDC));
  clip.section_offsets[Mab::rotation_section] = 0xDC;
  write_mab(made.bytes, clip, made.groups);
  const auto read = read_mab(made.bytes);
  INFO((read ? std::string() : describe(read.refusal())));
  REQUIRE(read);
  evidence.add(*read);
}

void add_mab(Evidence& evidence, Random& random, const MabReading& reading, std::size_t tracks, std::size_t groups) {
  MabSample made;
  made.clip.track_count = static_cast<std::uint16_t>(tracks);
  made.clip.last_frame = static_cast<std::uint16_t>(8 * groups - (reading.whole_group ? 1 : 5));
  std::vector<Curve> curves;
  for (std::size_t i = 0; i < tracks; ++i) curves.emplace_back(random);
  for (std::size_t index = 0; index < groups; ++index) {
    Bytes first;
    Bytes presence;
    Bytes later;
    const auto put = [&](Bytes& bytes, std::size_t track, std::size_t frame) {
      const auto key = dunia_quat48::encode(curves[track].at(static_cast<double>(frame)));
      bytes.insert(bytes.end(), key.begin(), key.end());
    };
    for (std::size_t track = 0; track < tracks; ++track) {
      put(first, track, 8 * index);
      std::vector<std::size_t> frames;
      unsigned byte = 0;
      for (std::size_t frame = 1; frame < 8; ++frame) {
        if (8 * index + frame > made.clip.last_frame || random.one_in(2)) continue;
        byte |= 1U << (reading.order == PresenceOrder::low_bit_first ? frame - 1 : 7 - frame);
        frames.push_back(frame);
      }
      if (reading.falling) std::ranges::reverse(frames);
      for (const std::size_t frame : frames) put(later, track, 8 * index + frame);
      presence.push_back(std::byte(static_cast<std::uint8_t>(byte)));
    }
    MabGroup group;
    group.first_frame = static_cast<std::uint32_t>(8 * index);
    group.first_keys = made.store.keep(std::move(first));
    group.presence = made.store.keep(std::move(presence));
    group.padding = made.store.keep(Bytes(tracks & 1U));
    group.later_keys = made.store.keep(std::move(later));
    made.groups.push_back(group);
  }
  add_groups(evidence, made);
}

const RotationEvidence& row_of(const EvidenceResult& result, Game game, unsigned kind) {
  const auto found = std::ranges::find_if(
      result.rotations, [&](const RotationEvidence& row) { return row.game == game && row.kind == kind; });
  REQUIRE(found != result.rotations.end());
  return *found;
}

const BitsEvidence& bits_of(const EvidenceResult& result, std::string_view name) {
  const auto found = std::ranges::find_if(result.bits, [&](const BitsEvidence& row) { return row.name == name; });
  REQUIRE(found != result.bits.end());
  return *found;
}

}  // namespace bitwitness::tests
