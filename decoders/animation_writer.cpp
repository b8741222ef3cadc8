#include "decoders/animation_writer.hpp"

#include <cstring>

namespace bitwitness::decoders {
namespace {

template <typename Number>
void put(std::vector<std::byte>& out, Number number) {
  const std::size_t at = out.size();
  out.resize(at + sizeof number);
  std::memcpy(out.data() + at, &number, sizeof number);
}

void put_bytes(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

// An array's count in elements, then the elements.
void put_array(std::vector<std::byte>& out, std::span<const std::byte> bytes, std::size_t width = 1) {
  put(out, static_cast<std::uint32_t>(bytes.size() / width));
  put_bytes(out, bytes);
}

// Clips of either game as read, in the shape of the spans that are given for new ones.
template <typename Mapping, typename Clip, typename Write>
void with_own_parts(const Clip& clip, Write&& write) {
  std::vector<Mapping> mappings;
  for (std::size_t i = 0; i < clip.mapping_count(); ++i) mappings.push_back(clip.mapping(i));
  std::vector<Track> tracks;
  for (const Track& track : clip.tracks) tracks.push_back(track);
  write(mappings, tracks);
}

template <typename Number>
void patch(std::span<std::byte> file, std::size_t at, Number number) {
  if (at <= file.size() && file.size() - at >= sizeof number) std::memcpy(file.data() + at, &number, sizeof number);
}

}  // namespace

void write_track(std::vector<std::byte>& out, const Track& track) {
  put(out, track.tag);
  put(out, track.size_word);
  put(out, track.key_count);
  if (track.time_form == TimeForm::mask) put(out, track.mask_marker);
  put_bytes(out, track.times);
  put_bytes(out, track.values);
}

void write_sws_animation(std::vector<std::byte>& out, const SwsAnimation& clip, std::span<const SwsMapping> mappings,
                         std::span<const Track> tracks) {
  put<std::uint8_t>(out, 2);
  put<std::uint16_t>(out, 0);
  put_array(out, clip.table_rows, SwsAnimation::row_size);
  put<std::uint8_t>(out, 1);
  put(out, clip.id);
  put(out, class_ids::animation);
  put(out, clip.length);
  put(out, clip.layout_word);
  put(out, clip.unknown_24);
  put(out, clip.unknown_28);
  put(out, clip.unknown_30);
  put(out, clip.event_count);
  put_bytes(out, clip.events);
  put(out, clip.unknown_after_events);
  put<std::uint8_t>(out, 0);
  put(out, clip.track_data_id);
  put(out, class_ids::anim_track_data);
  put(out, clip.track_data_layout_word);
  put(out, static_cast<std::uint32_t>(mappings.size()));
  for (const SwsMapping& mapping : mappings) {
    put(out, mapping.id);
    put(out, class_ids::mapping);
    put(out, mapping.bone_crc);
  }
  put(out, clip.unknown_after_mappings);
  put(out, static_cast<std::uint32_t>(tracks.size()));
  for (const Track& track : tracks) write_track(out, track);
}

void write_sws_animation(std::vector<std::byte>& out, const SwsAnimation& clip) {
  with_own_parts<SwsMapping>(
      clip, [&](const auto& mappings, const auto& tracks) { write_sws_animation(out, clip, mappings, tracks); });
}

void write_sws_anim_pair(std::vector<std::byte>& out, const SwsAnimPair& pair) {
  put(out, pair.id);
  put(out, class_ids::anim_pair);
  put(out, pair.first);
  put(out, pair.second);
}

void write_sws_anim_set(std::vector<std::byte>& out, std::uint32_t id, std::span<const SwsAnimPair> pairs,
                        std::uint8_t final_byte) {
  put<std::uint8_t>(out, 1);
  put(out, id);
  put(out, class_ids::anim_set);
  put<std::uint32_t>(out, 0);
  put(out, static_cast<std::uint32_t>(pairs.size()));
  for (const SwsAnimPair& pair : pairs) write_sws_anim_pair(out, pair);
  put(out, final_byte);
}

void write_rr_animation(std::vector<std::byte>& out, const RrAnimation& clip, std::span<const RrMapping> mappings,
                        std::span<const Track> tracks) {
  put<std::uint8_t>(out, 1);
  put(out, clip.length);
  put(out, clip.word_f4f597ff);
  put(out, clip.word_322b96b8);
  put_array(out, clip.halves_556e9166, 2);
  put_array(out, clip.halves_251905d9, 2);
  for (const std::uint8_t boolean : clip.booleans) put(out, boolean);
  put(out, clip.event_count);
  put_bytes(out, clip.events);
  put<std::uint8_t>(out, 0);
  put(out, clip.track_data_id);
  put(out, class_ids::anim_track_data);
  put(out, clip.track_data_hash);
  put(out, static_cast<std::uint32_t>(mappings.size()));
  for (const RrMapping& mapping : mappings) {
    put(out, mapping.id);
    put(out, class_ids::mapping);
    put(out, mapping.bone_crc);
  }
  put(out, clip.unknown_after_mappings);
  put<std::uint8_t>(out, clip.ecl.present ? 0 : 3);
  if (clip.ecl.present) {
    put(out, clip.ecl.id);
    put(out, class_ids::ecl_animation);
    put_array(out, clip.ecl.first_bytes);
    put_array(out, clip.ecl.words, 4);
    put_array(out, clip.ecl.halves, 2);
    put_array(out, clip.ecl.last_bytes);
  }
  put_array(out, clip.buffer_b832d26f);
  put(out, clip.word_cb4e5f18);
  put(out, static_cast<std::uint32_t>(tracks.size()));
  for (const Track& track : tracks) write_track(out, track);
}

void write_rr_animation(std::vector<std::byte>& out, const RrAnimation& clip) {
  with_own_parts<RrMapping>(
      clip, [&](const auto& mappings, const auto& tracks) { write_rr_animation(out, clip, mappings, tracks); });
}

void write_rr_anim_component(std::vector<std::byte>& out, const RrAnimComponent& component) {
  put_bytes(out, component.base);
  put_array(out, component.reference_bytes, RrAnimComponent::reference_size);
  put_bytes(out, component.tail);
}

void write_mab(std::vector<std::byte>& out, const Mab& clip, std::span<const MabGroup> groups) {
  const std::size_t file_at = out.size();
  put_bytes(out, clip.before);
  if (clip.has_rotations) {
    const std::size_t section_at = out.size();
    put(out, clip.track_count);
    put(out, clip.last_frame);
    if (clip.version == 0x4C) {
      put(out, static_cast<std::uint32_t>(clip.rate));
    } else {
      put(out, clip.rate);
    }
    const std::size_t table_at = out.size();
    out.resize(table_at + 4 * groups.size() + (clip.size_word ? 4 : 0));
    std::size_t entry_at = table_at;
    for (const MabGroup& group : groups) {
      patch(out, entry_at, static_cast<std::uint32_t>(out.size() - section_at));
      entry_at += 4;
      put_bytes(out, group.first_keys);
      put_bytes(out, group.presence);
      put_bytes(out, group.padding);
      put_bytes(out, group.later_keys);
    }
    if (clip.size_word) patch(out, entry_at, static_cast<std::uint32_t>(out.size() - section_at));
  }
  put_bytes(out, clip.after);
  const std::span<std::byte> file = std::span(out).subspan(file_at, clip.before.size());
  patch(file, 0, clip.version);
  std::size_t at = clip.clip_base + (clip.version == 0x4C ? mab_duration_4c : mab_duration_61);
  patch(file, at, clip.duration);
  for (const std::int32_t offset : clip.section_offsets) patch(file, at += 4, offset);
}

void write_mab(std::vector<std::byte>& out, const Mab& clip) {
  std::vector<MabGroup> groups;
  for (std::size_t i = 0; i < clip.group_count(); ++i) groups.push_back(clip.group(i));
  write_mab(out, clip, groups);
}

}  // namespace bitwitness::decoders
