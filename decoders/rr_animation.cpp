#include "decoders/rr_animation.hpp"

#include "decoders/anchor.hpp"
#include "decoders/cursor.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace bitwitness::decoders {
namespace {

constexpr std::array<std::uint8_t, 86> widths = [] {
  std::array<std::uint8_t, 86> table{};
  table[3] = 4;
  table[4] = 6;
  table[5] = 8;
  table[7] = 2;
  table[8] = 12;
  table[9] = 12;
  table[16] = 1;
  table[17] = 2;
  table[18] = 1;
  table[21] = 4;
  table[22] = 4;
  table[25] = 8;
  return table;
}();

// Splits a tag into kind and time form without a division.
struct TagParts {
  std::uint8_t kind;
  std::uint8_t width;
  TimeForm time_form;
};

constexpr std::array<TagParts, 256> tags = [] {
  std::array<TagParts, 256> table{};
  for (unsigned tag = 0; tag < table.size(); ++tag) {
    table[tag] = {static_cast<std::uint8_t>(tag / 3), widths[tag / 3], static_cast<TimeForm>(tag % 3)};
  }
  return table;
}();

constexpr unsigned mask_size_bits = 0x3F;
constexpr unsigned largest_mask = 8;

bool locate_track(std::span<const std::byte> bytes, std::size_t offset, Track& track, Refusal& refusal) {
  const auto refuse = [&](std::size_t at, Rule rule, std::uint64_t found) {
    refusal = {at, rule, found};
    return false;
  };
  if (offset > bytes.size() || bytes.size() - offset < Track::header_size) {
    return refuse(std::min(offset, bytes.size()), Rule::truncated, Track::header_size);
  }
  track.offset = offset;
  track.tag = load<std::uint8_t>(bytes, offset);
  const TagParts parts = tags[track.tag];
  track.kind = parts.kind;
  track.time_form = parts.time_form;
  track.width = parts.width;
  track.size_word = load<std::uint32_t>(bytes, offset + 1);
  track.key_count = load<std::uint32_t>(bytes, offset + 5);
  if (parts.width == 0) return refuse(offset, Rule::kind, parts.kind);
  // By time form: the first key is at 0 and times rise, or a mask has at most 64 bits.
  constexpr std::array<std::uint32_t, 3> most_keys{0x100, 0x10000, 8 * largest_mask};
  if (track.key_count == 0 || track.key_count > most_keys[static_cast<std::size_t>(parts.time_form)]) {
    return refuse(offset + 5, Rule::key_count, track.key_count);
  }
  std::size_t at = offset + Track::header_size;
  std::size_t times = (std::size_t{track.key_count} - 1) << (parts.time_form == TimeForm::u16_ticks ? 1U : 0U);
  track.mask_marker = 0;
  if (parts.time_form == TimeForm::mask) {
    if (at == bytes.size()) return refuse(at, Rule::truncated, 1);
    track.mask_marker = load<std::uint8_t>(bytes, at);
    times = track.mask_marker & mask_size_bits;
    if (times == 0 || times > largest_mask) return refuse(at, Rule::mask_size, track.mask_marker);
    ++at;
  }
  const std::size_t values = std::size_t{track.key_count} * parts.width;
  if (bytes.size() - at < times + values) return refuse(at, Rule::truncated, times + values);
  track.times = bytes.subspan(at, times);
  track.values = bytes.subspan(at + times, values);
  return true;
}

constexpr std::size_t tag_to_class = 9;

// Nothing where AnimTrackData reads at a place that holds its class; else what is broken there.
std::optional<Refusal> try_anchor(std::span<const std::byte> bytes, std::size_t class_at, WorkBudget& budget) {
  Cursor in(bytes, class_at - tag_to_class);
  in.expect<std::uint8_t>(0, Rule::object_tag);
  in.take(8 + 4 + 4);
  const auto count = in.read<std::uint32_t>();
  const std::size_t mappings_at = in.offset();
  const std::span<const std::byte> mappings = in.take(count, RrAnimation::mapping_size);
  in.take(2);
  in.require(in.refused() || budget.spend(mappings.size()), Rule::work, class_at, count);
  for (std::size_t next = 0; !in.refused() && next < mappings.size(); next += RrAnimation::mapping_size) {
    const auto found = load<std::uint32_t>(mappings, next + 8);
    in.require(found == class_ids::mapping, Rule::class_id, mappings_at + next + 8, found);
  }
  return in.refused() ? std::optional(in.refusal()) : std::nullopt;
}

void read_header(Cursor& in, RrAnimation& clip) {
  in.expect<std::uint8_t>(1, Rule::managed_byte);
  const std::size_t length_at = in.offset();
  clip.length = in.read<float>();
  in.require(std::isfinite(clip.length) && !std::signbit(clip.length), Rule::length, length_at);
  clip.word_f4f597ff = in.read<std::uint32_t>();
  clip.word_322b96b8 = in.read<std::uint32_t>();
  clip.halves_556e9166 = in.take(in.read<std::uint32_t>(), 2);
  clip.halves_251905d9 = in.take(in.read<std::uint32_t>(), 2);
  for (std::uint8_t& boolean : clip.booleans) {
    const std::size_t at = in.offset();
    boolean = in.read<std::uint8_t>();
    in.require(boolean <= 1, Rule::boolean, at, boolean);
  }
  clip.event_count = in.read<std::uint32_t>();
}

void read_ecl(Cursor& in, RrEclAnimation& ecl) {
  constexpr unsigned null_tag = 3;
  const std::size_t tag_at = in.offset();
  const auto tag = in.read<std::uint8_t>();
  if (tag == null_tag || !in.require(tag == 0, Rule::object_tag, tag_at, tag)) return;
  ecl.present = true;
  ecl.id = in.read<std::uint64_t>();
  in.expect(class_ids::ecl_animation, Rule::class_id);
  ecl.first_bytes = in.take(in.read<std::uint32_t>());
  ecl.words = in.take(in.read<std::uint32_t>(), 4);
  ecl.halves = in.take(in.read<std::uint32_t>(), 2);
  ecl.last_bytes = in.take(in.read<std::uint32_t>());
}

void count_track(const Track& track, double last_allowed, RrAnimation& clip) {
  clip.key_count += track.key_count;
  if (last_tick(track) > last_allowed) ++clip.late_last_keys;
  const std::int64_t distance = rr_size_word_distance(track);
  clip.least_size_word_distance = std::min(clip.least_size_word_distance, distance);
  clip.greatest_size_word_distance = std::max(clip.greatest_size_word_distance, distance);
  if (distance < -8 || distance > 8) ++clip.far_size_words;
  if (track.time_form == TimeForm::mask) ++clip.mask_marker_tracks[track.mask_marker >> 6];
}

bool read_tracks(std::span<const std::byte> bytes, std::size_t offset, std::uint32_t count, RrAnimation& clip,
                 WorkBudget& budget, Refusal& refusal) {
  const auto refuse = [&](std::size_t at, Rule rule, std::uint64_t found) {
    refusal = {at, rule, found};
    return false;
  };
  clip.tracks = Tracks(locate_track, bytes, offset, count);
  if (count != 0) {
    clip.least_size_word_distance = std::numeric_limits<std::int64_t>::max();
    clip.greatest_size_word_distance = std::numeric_limits<std::int64_t>::min();
  }
  // 1/30 s past the length, and a little for its rounding to f32.
  const double last_allowed = static_cast<double>(clip.length) * 60.0 + 2.001;
  Track track;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!locate_track(bytes, offset, track, refusal)) return false;
    if (!budget.spend(Track::header_size + track.times.size())) return refuse(offset, Rule::work, i);
    if (track.time_form == TimeForm::mask) {
      const auto keys = static_cast<std::uint32_t>(std::popcount(mask_bits(track)));
      if (keys != track.key_count) return refuse(offset + Track::header_size + 1, Rule::mask_keys, keys);
    } else if (!times_rise(track)) {
      return refuse(offset + Track::header_size, Rule::times_rise, track.key_count);
    }
    count_track(track, last_allowed, clip);
    offset += track.size();
  }
  clip.size = offset;
  return true;
}

Reading<RrAnimation> read_any(std::span<const std::byte> bytes, std::size_t anchor_limit, WorkBudget& budget,
                              Extent extent) {
  RrAnimation clip;
  Cursor header(bytes);
  read_header(header, clip);
  if (header.refused()) return header.refusal();
  const std::size_t events_at = header.offset();
  const auto try_at = [&](std::size_t at) { return try_anchor(bytes, at, budget); };
  const Reading<std::size_t> anchor = find_anchor(bytes, events_at + 9, anchor_limit, try_at);
  if (!anchor) return anchor.refusal();
  clip.events = bytes.subspan(events_at, *anchor - 9 - events_at);
  if (clip.event_count > clip.events.size() || (clip.event_count == 0 && !clip.events.empty())) {
    return Refusal{events_at - 4, Rule::events, clip.event_count};
  }
  Cursor in(bytes, *anchor - 8);
  clip.track_data_id = in.read<std::uint64_t>();
  in.take(4);
  clip.track_data_hash = in.read<std::uint32_t>();
  clip.mapping_bytes = in.take(in.read<std::uint32_t>(), RrAnimation::mapping_size);
  clip.unknown_after_mappings = in.read<std::uint16_t>();
  read_ecl(in, clip.ecl);
  clip.buffer_b832d26f = in.take(in.read<std::uint32_t>());
  clip.word_cb4e5f18 = in.read<std::uint32_t>();
  in.expect(static_cast<std::uint32_t>(clip.mapping_count()), Rule::track_count);
  if (in.refused()) return in.refusal();
  Refusal refusal;
  // Where the end is known this goes first: it brings the bytes into the cache in the order memory likes best.
  if (extent == Extent::whole && !anchor_is_only(bytes, *anchor, tag_to_class, budget, refusal, try_at)) return refusal;
  const auto count = static_cast<std::uint32_t>(clip.mapping_count());
  if (!read_tracks(bytes, in.offset(), count, clip, budget, refusal)) return refusal;
  const auto try_within = [&](std::size_t at) { return try_anchor(bytes.first(clip.size), at, budget); };
  if (extent == Extent::leading &&
      !anchor_is_only(bytes.first(clip.size), *anchor, tag_to_class, budget, refusal, try_within)) {
    return refusal;
  }
  return clip;
}

}  // namespace

std::uint8_t rr_kind_width(unsigned kind) {
  return kind < widths.size() ? widths[kind] : std::uint8_t{0};
}

RrMapping RrAnimation::mapping(std::size_t index) const {
  const std::size_t at = index * mapping_size;
  return {load<std::uint64_t>(mapping_bytes, at), load<std::uint32_t>(mapping_bytes, at + 12)};
}

Reading<RrAnimation> read_leading_rr_animation(std::span<const std::byte> bytes, std::size_t anchor_limit,
                                               WorkBudget& budget) {
  return read_any(bytes, anchor_limit, budget, Extent::leading);
}

Reading<RrAnimation> read_rr_animation(std::span<const std::byte> bytes) {
  WorkBudget budget = WorkBudget::of(bytes.size());
  const Reading<RrAnimation> clip = read_any(bytes, bytes.size(), budget, Extent::whole);
  if (clip && clip->size != bytes.size()) {
    return Refusal{clip->size, Rule::trailing_bytes, bytes.size() - clip->size};
  }
  return clip;
}

bool opens_rr_animation(std::span<const std::byte> bytes) {
  RrAnimation clip;
  Cursor in(bytes);
  read_header(in, clip);
  return !in.refused();
}

Reading<RrAnimComponent> read_rr_anim_component(std::span<const std::byte> bytes) {
  Cursor in(bytes);
  RrAnimComponent component;
  component.base = in.take(4);
  component.reference_bytes = in.take(in.read<std::uint32_t>(), RrAnimComponent::reference_size);
  component.tail = in.take(in.remaining());
  if (in.refused()) return in.refusal();
  return component;
}

}  // namespace bitwitness::decoders
