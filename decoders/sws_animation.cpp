#include "decoders/sws_animation.hpp"

#include "decoders/anchor.hpp"
#include "decoders/cursor.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace bitwitness::decoders {
namespace {

constexpr std::array<SwsKind, 64> kinds = [] {
  std::array<SwsKind, 64> table{};
  table[4] = {6, 2};
  table[5] = {8, 4};
  table[6] = {12, 4};
  table[7] = {12, 4};
  table[8] = {4, 4};
  table[9] = {6, 2};
  table[10] = {4, 4};
  table[11] = {1, 1};
  table[17] = {1, 1};
  return table;
}();

std::uint64_t times_size(TimeForm time_form, std::uint32_t key_count) {
  return (std::uint64_t{key_count} - 1) * (time_form == TimeForm::u16_ticks ? 2 : 1);
}

std::uint64_t memory_size(SwsKind kind, bool flag, std::uint64_t times, std::uint32_t key_count) {
  const std::uint64_t front = 2 + times + (flag ? 2 : 0);
  const std::uint64_t mask = std::uint64_t{kind.alignment} - 1;
  return ((front + mask) & ~mask) + std::uint64_t{key_count} * kind.width;
}

bool locate_track(std::span<const std::byte> bytes, std::size_t offset, Track& track, Refusal& refusal) {
  if (offset > bytes.size() || bytes.size() - offset < Track::header_size) {
    refusal = {std::min(offset, bytes.size()), Rule::truncated, Track::header_size};
    return false;
  }
  track.offset = offset;
  track.tag = load<std::uint8_t>(bytes, offset);
  track.kind = static_cast<std::uint8_t>(track.tag >> 2);
  track.time_form = (track.tag & 1U) != 0 ? TimeForm::u16_ticks : TimeForm::u8_ticks;
  track.flag = (track.tag & 2U) != 0;
  track.size_word = load<std::uint32_t>(bytes, offset + 1);
  track.key_count = load<std::uint32_t>(bytes, offset + 5);
  const SwsKind kind = kinds[track.kind];
  track.width = kind.width;
  if (kind.width == 0) {
    refusal = {offset, Rule::kind, track.kind};
    return false;
  }
  // The first key is at 0 and times rise, so that there are no more keys than a time has values.
  const std::uint32_t most_keys = track.time_form == TimeForm::u16_ticks ? 0x10000 : 0x100;
  if (track.key_count == 0 || track.key_count > most_keys) {
    refusal = {offset + 5, Rule::key_count, track.key_count};
    return false;
  }
  const auto times = static_cast<std::size_t>(times_size(track.time_form, track.key_count));
  const std::size_t values = std::size_t{track.key_count} * kind.width;
  const std::size_t left = bytes.size() - offset - Track::header_size;
  if (left < times + values) {
    refusal = {offset + Track::header_size, Rule::truncated, times + values};
    return false;
  }
  track.times = bytes.subspan(offset + Track::header_size, times);
  track.values = bytes.subspan(offset + Track::header_size + times, values);
  return true;
}

constexpr std::size_t tag_to_class = 5;
constexpr std::size_t class_to_count = 8;

// Nothing where AnimTrackData reads at a place that holds its class; else what is broken there.
std::optional<Refusal> try_anchor(std::span<const std::byte> bytes, std::size_t class_at, WorkBudget& budget) {
  const std::size_t tag_at = class_at - tag_to_class;
  const auto tag = load<std::uint8_t>(bytes, tag_at);
  if (tag != 0) return Refusal{tag_at, Rule::object_tag, tag};
  Cursor in(bytes, class_at + class_to_count);
  const auto count = in.read<std::uint32_t>();
  const std::size_t mappings_at = in.offset();
  const std::span<const std::byte> mappings = in.take(count, SwsAnimation::mapping_size);
  in.take(2);
  // The count that closes the mappings is compared first: it costs nothing and is wrong nearly everywhere.
  in.expect<std::uint32_t>(count, Rule::track_count);
  if (in.refused()) return in.refusal();
  if (!budget.spend(mappings.size())) return Refusal{class_at, Rule::work, count};
  for (std::size_t at = 0; at < mappings.size(); at += SwsAnimation::mapping_size) {
    const auto found = load<std::uint32_t>(mappings, at + 4);
    if (found != class_ids::mapping) return Refusal{mappings_at + at + 4, Rule::class_id, found};
  }
  return std::nullopt;
}

void read_header(Cursor& in, SwsAnimation& clip) {
  for (const unsigned byte : {2U, 0U, 0U}) in.expect(static_cast<std::uint8_t>(byte), Rule::table_bytes);
  const auto rows = in.read<std::uint32_t>();
  clip.table_rows = in.take(rows, SwsAnimation::row_size);
  in.expect<std::uint8_t>(1, Rule::managed_byte);
  clip.id = in.read<std::uint32_t>();
  in.expect(class_ids::animation, Rule::class_id);
  const std::size_t length_at = in.offset();
  clip.length = in.read<float>();
  in.require(std::isfinite(clip.length) && !std::signbit(clip.length), Rule::length, length_at);
  clip.layout_word = in.read<std::uint32_t>();
  clip.unknown_24 = in.read<std::uint32_t>();
  clip.unknown_28 = in.read<std::uint16_t>();
  clip.unknown_30 = in.read<std::uint32_t>();
  clip.event_count = in.read<std::uint32_t>();
}

bool read_tracks(std::span<const std::byte> bytes, std::size_t offset, SwsAnimation& clip, WorkBudget& budget,
                 Refusal& refusal) {
  const auto count = static_cast<std::uint32_t>(clip.mapping_count());
  clip.tracks = Tracks(locate_track, bytes, offset, count);
  const double end = static_cast<double>(clip.length) * 60.0;
  Track track;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!locate_track(bytes, offset, track, refusal)) return false;
    const std::uint64_t wanted = memory_size(kinds[track.kind], track.flag, track.times.size(), track.key_count);
    if (track.size_word != wanted) {
      refusal = {offset + 1, Rule::size_word, track.size_word};
      return false;
    }
    if (!budget.spend(Track::header_size + track.times.size())) {
      refusal = {offset, Rule::work, i};
      return false;
    }
    if (!times_rise(track)) {
      refusal = {offset + Track::header_size, Rule::times_rise, track.key_count};
      return false;
    }
    clip.key_count += track.key_count;
    if (track.key_count > 1 && !(std::abs(last_tick(track) - end) <= 0.5)) ++clip.stray_last_keys;
    offset += track.size();
  }
  clip.size = offset;
  return true;
}

Reading<SwsAnimation> read_any(std::span<const std::byte> bytes, std::size_t anchor_limit, WorkBudget& budget,
                               Extent extent) {
  SwsAnimation clip;
  Cursor header(bytes);
  read_header(header, clip);
  if (header.refused()) return header.refusal();
  const std::size_t events_at = header.offset();
  // Between events and class stand an unknown word, the tag and the id.
  const auto try_at = [&](std::size_t at) { return try_anchor(bytes, at, budget); };
  const Reading<std::size_t> anchor = find_anchor(bytes, events_at + 9, anchor_limit, try_at);
  if (!anchor) return anchor.refusal();
  clip.events = bytes.subspan(events_at, *anchor - 9 - events_at);
  if (clip.event_count > clip.events.size() || (clip.event_count == 0 && !clip.events.empty())) {
    return Refusal{events_at - 4, Rule::events, clip.event_count};
  }
  Cursor in(bytes, *anchor - 9);
  clip.unknown_after_events = in.read<std::uint32_t>();
  in.take(1);
  clip.track_data_id = in.read<std::uint32_t>();
  in.take(4);
  clip.track_data_layout_word = in.read<std::uint32_t>();
  clip.mapping_bytes = in.take(in.read<std::uint32_t>(), SwsAnimation::mapping_size);
  clip.unknown_after_mappings = in.read<std::uint16_t>();
  in.take(4);
  Refusal refusal;
  // Where the end is known this goes first: it brings the bytes into the cache in the order memory likes best.
  if (extent == Extent::whole && !anchor_is_only(bytes, *anchor, tag_to_class, budget, refusal, try_at)) return refusal;
  if (!read_tracks(bytes, in.offset(), clip, budget, refusal)) return refusal;
  const auto try_within = [&](std::size_t at) { return try_anchor(bytes.first(clip.size), at, budget); };
  if (extent == Extent::leading &&
      !anchor_is_only(bytes.first(clip.size), *anchor, tag_to_class, budget, refusal, try_within)) {
    return refusal;
  }
  return clip;
}

}  // namespace

SwsKind sws_kind(unsigned kind) {
  return kind < kinds.size() ? kinds[kind] : SwsKind{};
}

std::uint64_t sws_size_word(unsigned kind, TimeForm time_form, bool flag, std::uint32_t key_count) {
  return memory_size(sws_kind(kind), flag, times_size(time_form, key_count), key_count);
}

SwsMapping SwsAnimation::mapping(std::size_t index) const {
  const std::size_t at = index * mapping_size;
  return {load<std::uint32_t>(mapping_bytes, at), load<std::uint32_t>(mapping_bytes, at + 8)};
}

Reading<SwsAnimation> read_leading_sws_animation(std::span<const std::byte> bytes, std::size_t anchor_limit,
                                                 WorkBudget& budget) {
  return read_any(bytes, anchor_limit, budget, Extent::leading);
}

Reading<SwsAnimation> read_sws_animation(std::span<const std::byte> bytes) {
  WorkBudget budget = WorkBudget::of(bytes.size());
  const Reading<SwsAnimation> clip = read_any(bytes, bytes.size(), budget, Extent::whole);
  if (clip && clip->size != bytes.size()) {
    return Refusal{clip->size, Rule::trailing_bytes, bytes.size() - clip->size};
  }
  return clip;
}

bool opens_sws_animation(std::span<const std::byte> bytes) {
  SwsAnimation clip;
  Cursor in(bytes);
  read_header(in, clip);
  return !in.refused();
}

Reading<SwsAnimPair> read_sws_anim_pair(std::span<const std::byte> bytes) {
  Cursor in(bytes);
  SwsAnimPair pair;
  pair.id = in.read<std::uint32_t>();
  in.expect(class_ids::anim_pair, Rule::class_id);
  pair.first = in.read<std::uint32_t>();
  pair.second = in.read<std::uint32_t>();
  in.require(in.remaining() == 0, Rule::trailing_bytes, in.offset(), in.remaining());
  if (in.refused()) return in.refusal();
  return pair;
}

SwsAnimPair SwsAnimSet::pair(std::size_t index) const {
  const std::size_t at = index * SwsAnimPair::size;
  return {load<std::uint32_t>(pair_bytes, at), load<std::uint32_t>(pair_bytes, at + 8),
          load<std::uint32_t>(pair_bytes, at + 12)};
}

Reading<SwsAnimSet> read_leading_sws_anim_set(std::span<const std::byte> bytes, WorkBudget& budget) {
  Cursor in(bytes);
  SwsAnimSet set;
  in.expect<std::uint8_t>(1, Rule::managed_byte);
  set.id = in.read<std::uint32_t>();
  in.expect(class_ids::anim_set, Rule::class_id);
  in.expect<std::uint32_t>(0, Rule::zero_word);
  const auto count = in.read<std::uint32_t>();
  const std::size_t pairs_at = in.offset();
  set.pair_bytes = in.take(count, SwsAnimPair::size);
  const std::size_t final_at = in.offset();
  set.final_byte = in.read<std::uint8_t>();
  in.require(set.final_byte <= 1, Rule::final_byte, final_at, set.final_byte);
  if (in.refused()) return in.refusal();
  if (!budget.spend(set.pair_bytes.size())) return Refusal{pairs_at, Rule::work, count};
  for (std::size_t at = 0; at < set.pair_bytes.size(); at += SwsAnimPair::size) {
    const auto found = load<std::uint32_t>(set.pair_bytes, at + 4);
    if (found != class_ids::anim_pair) return Refusal{pairs_at + at + 4, Rule::class_id, found};
  }
  set.size = in.offset();
  return set;
}

Reading<SwsAnimSet> read_sws_anim_set(std::span<const std::byte> bytes) {
  WorkBudget budget;
  const Reading<SwsAnimSet> set = read_leading_sws_anim_set(bytes, budget);
  if (set && set->size != bytes.size()) return Refusal{set->size, Rule::trailing_bytes, bytes.size() - set->size};
  return set;
}

}  // namespace bitwitness::decoders
