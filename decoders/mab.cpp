#include "decoders/mab.hpp"

#include "decoders/cursor.hpp"

#include <algorithm>
#include <cmath>

namespace bitwitness::decoders {
namespace {

constexpr std::size_t following_section = 8;

// 0 for a version whose layout is not known.
std::size_t duration_offset(std::uint8_t version) {
  if (version == 0x4C) return mab_duration_4c;
  if (version == 0x61) return mab_duration_61;
  return 0;
}

std::size_t table_end(std::uint8_t version) {
  return duration_offset(version) + 4 + 4 * std::tuple_size_v<decltype(Mab::section_offsets)>;
}

struct Counts {
  std::uint64_t keys = 0;
  std::uint64_t high_bits = 0;
};

Counts count_presence(std::span<const std::byte> presence) {
  constexpr std::uint64_t low = 0x7F7F'7F7F'7F7F'7F7F;
  Counts counts;
  std::size_t at = 0;
  const auto add = [&](std::uint64_t bytes) {
    counts.keys += static_cast<unsigned>(std::popcount(bytes & low));
    counts.high_bits += static_cast<unsigned>(std::popcount(bytes & ~low));
  };
  for (; presence.size() - at >= 8; at += 8) add(load<std::uint64_t>(presence, at));
  for (; at < presence.size(); ++at) add(std::to_integer<std::uint64_t>(presence[at]));
  return counts;
}

std::uint64_t even(std::uint64_t count) {
  return count + (count & 1U);
}

void read_sections(Cursor& in, Mab& clip, std::size_t file_size) {
  for (std::int32_t& offset : clip.section_offsets) {
    const std::size_t at = in.offset();
    offset = static_cast<std::int32_t>(in.read<std::uint32_t>());
    const bool behind_table = offset >= 0 && static_cast<std::size_t>(offset) >= table_end(clip.version);
    const bool in_file = behind_table && static_cast<std::size_t>(offset) <= file_size - clip.clip_base;
    in.require(offset == 0 || in_file, Rule::section_offset, at, static_cast<std::uint32_t>(offset));
  }
}

// Reads the section's own header and returns how many groups it has.
std::uint64_t read_rate(Cursor& in, Mab& clip, MabOptions::GroupCount rule) {
  clip.track_count = in.read<std::uint16_t>();
  clip.last_frame = in.read<std::uint16_t>();
  const std::size_t rate_at = in.offset();
  if (clip.version == 0x4C) {
    clip.rate = static_cast<float>(in.read<std::uint16_t>());
    in.expect<std::uint16_t>(0, Rule::zero_word);
  } else {
    clip.rate = in.read<float>();
  }
  constexpr float int_end = 2147483648.0F;
  const float frames = clip.rate * clip.duration;
  if (!in.require(frames >= 0.0F && frames < int_end, Rule::frame_count, rate_at)) return 0;
  const auto frame = static_cast<std::uint64_t>(frames);
  return ((rule == MabOptions::GroupCount::by_duration ? frame : clip.last_frame) >> 3) + 1;
}

// Checks group after group and leaves the section's end in `end`, relative to the section.
void read_groups(Cursor& in, std::span<const std::byte> bytes, Mab& clip, std::size_t& end) {
  const std::size_t table_at = in.offset() - clip.group_table.size();
  const std::span<const std::byte> section = bytes.subspan(clip.section_at);
  std::size_t size = section.size();
  if (clip.size_word) {
    const std::size_t size_at = in.offset();
    size = in.read<std::uint32_t>();
    const std::size_t table_end_at = in.offset() - clip.section_at;
    in.require(size >= table_end_at && size <= section.size(), Rule::section_size, size_at, size);
  }
  std::size_t at = in.offset() - clip.section_at;
  for (std::size_t index = 0; index < clip.group_count() && !in.refused(); ++index) {
    const std::size_t entry_at = table_at + 4 * index;
    const std::uint32_t start = load<std::uint32_t>(clip.group_table, 4 * index);
    // A group starts where the one before it has ended; the first one, behind the table.
    if (!in.require(start == at, index == 0 ? Rule::group_table : Rule::group_tiling, entry_at, start)) return;
    const std::uint64_t front = std::uint64_t{clip.track_count} * Mab::key_size + even(clip.track_count);
    if (!in.require(front <= size - at, Rule::group_tiling, entry_at, front)) return;
    const Counts counts =
        count_presence(section.subspan(at + std::size_t{clip.track_count} * Mab::key_size, clip.track_count));
    const std::uint64_t whole = front + counts.keys * Mab::key_size;
    if (!in.require(whole <= size - at, Rule::group_tiling, entry_at, whole)) return;
    at += static_cast<std::size_t>(whole);
    clip.key_count += clip.track_count + counts.keys;
    clip.presence_high_bits += counts.high_bits;
  }
  if (clip.size_word) in.require(at == size, Rule::section_size, table_at + clip.group_table.size(), size);
  end = at;
}

// Other sections may not begin inside this one, and nothing but zeros lies before the next.
void check_surroundings(Cursor& in, std::span<const std::byte> bytes, const Mab& clip, std::size_t table_at) {
  const std::size_t end = clip.section_at + clip.section.size();
  std::size_t next = end;
  bool has_next = false;
  for (std::size_t i = 0; i < clip.section_offsets.size(); ++i) {
    if (i == Mab::rotation_section || clip.section_offsets[i] == 0) continue;
    const std::size_t start = clip.clip_base + static_cast<std::size_t>(clip.section_offsets[i]);
    const bool apart = start < clip.section_at || start >= end;
    if (!in.require(apart, Rule::section_offset, table_at + 4 * i, start - clip.clip_base)) return;
    if (start >= end && (!has_next || start < next)) {
      next = start;
      has_next = true;
    }
  }
  const auto stray = std::ranges::find_if(bytes.subspan(end, next - end), [](std::byte b) { return b != std::byte{}; });
  const auto at = end + static_cast<std::size_t>(stray - bytes.subspan(end, next - end).begin());
  if (at < next) in.require(false, Rule::padding, at, std::to_integer<std::uint64_t>(bytes[at]));
}

}  // namespace

MabGroup Mab::group(std::size_t index) const {
  const std::size_t start = load<std::uint32_t>(group_table, 4 * index);
  const std::size_t end = index + 1 < group_count() ? load<std::uint32_t>(group_table, 4 * index + 4) : section.size();
  const std::size_t presence_at = start + key_size * track_count;
  const std::size_t padding_at = presence_at + track_count;
  const std::size_t later_at = padding_at + (track_count & 1U);
  return {.offset = section_at + start,
          .first_frame = static_cast<std::uint32_t>(8 * index),
          .first_keys = section.subspan(start, presence_at - start),
          .presence = section.subspan(presence_at, track_count),
          .padding = section.subspan(padding_at, later_at - padding_at),
          .later_keys = section.subspan(later_at, end - later_at)};
}

Reading<Mab> read_mab(std::span<const std::byte> bytes, const MabOptions& options) {
  Mab clip;
  Cursor start(bytes);
  clip.version = start.read<std::uint8_t>();
  start.require(duration_offset(clip.version) != 0, Rule::version, 0, clip.version);
  if (start.refused()) return start.refusal();
  // A base past the end leaves an empty file, whose header is truncated.
  clip.clip_base = std::min(options.clip_base, bytes.size());
  Cursor in(bytes, clip.clip_base);
  in.take(duration_offset(clip.version));
  const std::size_t duration_at = in.offset();
  clip.duration = in.read<float>();
  in.require(std::isfinite(clip.duration) && !std::signbit(clip.duration), Rule::length, duration_at);
  const std::size_t table_at = in.offset();
  read_sections(in, clip, bytes.size());
  if (in.refused()) return in.refusal();
  const std::int32_t section = clip.section_offsets[Mab::rotation_section];
  if (section == 0) {
    clip.before = bytes;
    return clip;
  }
  clip.has_rotations = true;
  clip.size_word = options.size_word;
  clip.section_at = clip.clip_base + static_cast<std::size_t>(section);
  Cursor body(bytes, clip.section_at);
  const std::uint64_t groups = read_rate(body, clip, options.group_count);
  clip.group_table = body.take(groups, 4);
  std::size_t size = 0;
  if (!body.refused()) read_groups(body, bytes, clip, size);
  if (!body.refused()) {
    clip.section = bytes.subspan(clip.section_at, size);
    clip.before = bytes.first(clip.section_at);
    clip.after = bytes.subspan(clip.section_at + size);
    check_surroundings(body, bytes, clip, table_at);
  }
  if (body.refused()) return body.refusal();
  return clip;
}

std::optional<std::size_t> following_clip(const Mab& clip) {
  const std::int32_t offset = clip.section_offsets[following_section];
  if (clip.version != 0x4C || offset == 0) return std::nullopt;
  const std::size_t file_size = clip.before.size() + clip.section.size() + clip.after.size();
  const std::size_t base = clip.clip_base + static_cast<std::size_t>(offset);
  if (file_size - base < table_end(clip.version)) return std::nullopt;
  return base;
}

std::uint64_t keys_past_end(const Mab& clip, PresenceOrder order) {
  std::uint64_t count = 0;
  for_each_key(clip, order, [&](std::uint32_t, std::uint32_t frame, std::span<const std::byte>) {
    if (frame > clip.last_frame) ++count;
  });
  return count;
}

}  // namespace bitwitness::decoders
