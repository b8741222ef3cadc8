#pragma once
#include "decoders/animation.hpp"
#include "decoders/mab.hpp"
#include "decoders/rr_animation.hpp"
#include "decoders/sws_animation.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// Writes what the readers read, for corpora and tests. Each function appends to `out`. Counts come from the spans
// given; tags, size words, times and every other field are written as they stand, so that broken objects can be made as
// well: the readers are who judges. A clip that was read is written back byte for byte.

namespace bitwitness::decoders {

/// Makes the tag of a Shaun White Skateboarding track; there is no mask form.
constexpr std::uint8_t sws_tag(unsigned kind, TimeForm time_form, bool flag) {
  return static_cast<std::uint8_t>(kind << 2 | (flag ? 2U : 0U) | (time_form == TimeForm::u16_ticks ? 1U : 0U));
}

/// Makes the tag of a Riders Republic track.
constexpr std::uint8_t rr_tag(unsigned kind, TimeForm time_form) {
  return static_cast<std::uint8_t>(3 * kind + static_cast<unsigned>(time_form));
}

/// Writes one track block: tag, size word, key count, marker where the form is a mask, times, values.
void write_track(std::vector<std::byte>& out, const Track& track);

/// Writes an Animation with these mappings and tracks; those of `clip` are not looked at.
void write_sws_animation(std::vector<std::byte>& out, const SwsAnimation& clip, std::span<const SwsMapping> mappings,
                         std::span<const Track> tracks);

/// Writes an Animation with the mappings and tracks it was read with.
void write_sws_animation(std::vector<std::byte>& out, const SwsAnimation& clip);

/// Writes an AnimPair.
void write_sws_anim_pair(std::vector<std::byte>& out, const SwsAnimPair& pair);

/// Writes an AnimSet of these pairs.
void write_sws_anim_set(std::vector<std::byte>& out, std::uint32_t id, std::span<const SwsAnimPair> pairs,
                        std::uint8_t final_byte = 0);

/// Writes an Animation body with these mappings and tracks; those of `clip` are not looked at.
void write_rr_animation(std::vector<std::byte>& out, const RrAnimation& clip, std::span<const RrMapping> mappings,
                        std::span<const Track> tracks);

/// Writes an Animation body with the mappings and tracks it was read with.
void write_rr_animation(std::vector<std::byte>& out, const RrAnimation& clip);

/// Writes an AnimComponent from its base bytes on.
void write_rr_anim_component(std::vector<std::byte>& out, const RrAnimComponent& component);

/// Writes a .mab file: the bytes before section 4 with version, duration and section table set from the fields, where
/// those bytes reach that far; section 4 of these groups, their offsets and the section's size worked out anew; the
/// bytes after it. The table's own offset for section 4 must be before.size() - clip_base for the file to read back.
void write_mab(std::vector<std::byte>& out, const Mab& clip, std::span<const MabGroup> groups);

/// Writes a .mab file with the groups it was read with.
void write_mab(std::vector<std::byte>& out, const Mab& clip);

}  // namespace bitwitness::decoders
