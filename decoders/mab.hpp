#pragma once
#include "decoders/animation.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

// The rotation keys of Dunia's .mab files. Source: seed 004 for the offsets' formula, the section's size and the keys'
// packing; version byte, file header, section table and groups are stated by public readers of the format.

namespace bitwitness::decoders {

/// Where a clip of version 0x4C and one of 0x61 keep their duration, from the clip's base. The nine offsets follow it.
inline constexpr std::size_t mab_duration_4c = 0x74;
inline constexpr std::size_t mab_duration_61 = 0xB4;

/// What is not settled about section 4, to be tried on data.
struct MabOptions {
  /// How many groups of eight frames there are: rate × duration shifted right by 3, plus 1 (seed 004), or the last
  /// frame's number shifted right by 3, plus 1 (public, for version 0x4C). They differ where frames end on a group.
  enum class GroupCount : std::uint8_t { by_duration, by_last_frame };

  GroupCount group_count = GroupCount::by_duration;
  bool size_word = true;       ///< the section's size follows the last offset (seed 004)
  std::size_t clip_base = 16;  ///< bytes from the file's start; offsets of the clip are relative to it
};

/// Eight frames of every track.
struct MabGroup {
  std::size_t offset = 0;  ///< in the file
  std::uint32_t first_frame = 0;
  std::span<const std::byte> first_keys;  ///< 6 bytes a track: the group's first frame
  std::span<const std::byte> presence;    ///< 1 byte a track: which of the other seven frames have keys
  std::span<const std::byte> padding;     ///< 1 byte where the tracks are odd in number
  std::span<const std::byte> later_keys;  ///< 6 bytes a key, track after track, in rising time
};

/// A clip's rotation keys, left where they are in the file.
struct Mab {
  std::uint8_t version = 0;
  std::size_t clip_base = 0;
  float duration = 0;                             ///< seconds
  std::array<std::int32_t, 9> section_offsets{};  ///< relative to clip_base; 0 is absent; not in rising order
  bool has_rotations = false;                     ///< all that follows is empty without
  std::uint16_t track_count = 0;
  std::uint16_t last_frame = 0;
  float rate = 0;  ///< frames a second; stored as a u16 in version 0x4C
  bool size_word = true;
  std::span<const std::byte> group_table;  ///< one i32 a group, relative to the section
  std::span<const std::byte> section;      ///< section 4, without padding
  std::size_t section_at = 0;              ///< in the file
  std::span<const std::byte> before;       ///< the file up to section 4
  std::span<const std::byte> after;        ///< the file behind it, padding first
  std::uint64_t key_count = 0;
  std::uint64_t presence_high_bits = 0;  ///< presence bytes whose bit 7 is set; its meaning is unknown

  std::size_t group_count() const { return group_table.size() / 4; }

  /// Returns the group with that index.
  MabGroup group(std::size_t index) const;

  static constexpr std::size_t key_size = 6;
  static constexpr std::size_t rotation_section = 3;  ///< the fourth section's index in the table
};

/// Reads the rotation keys of a .mab file of version 0x4C or 0x61. Refuses groups that do not tile section 4 to its
/// size, sections that overlap it, and bytes other than zero between it and the next section. Linear in the size;
/// allocates nothing. Assumed: the first group follows the table at once, offsets other than 0 lie in the file.
Reading<Mab> read_mab(std::span<const std::byte> bytes, const MabOptions& options = {});

/// Returns the base of the clip chained to one of version 0x4C: where section 9 points, when a clip's header fits
/// there. Public, not in the seed. Bases rise strictly, so that a chain ends.
std::optional<std::size_t> following_clip(const Mab& clip);

/// What a presence byte's low seven bits mean: bit 0 the group's second frame and bit 6 its eighth, or the reverse.
/// Public readers disagree; keys_past_end tells which one the data supports.
enum class PresenceOrder : std::uint8_t { low_bit_first, high_bit_first };

/// Calls visit(track, frame, key) for each key of six bytes, group after group in stored order.
template <typename Visit>
void for_each_key(const Mab& clip, PresenceOrder order, Visit&& visit) {
  for (std::size_t index = 0; index < clip.group_count(); ++index) {
    const MabGroup group = clip.group(index);
    for (std::uint32_t track = 0; track < clip.track_count; ++track) {
      visit(track, group.first_frame, group.first_keys.subspan(Mab::key_size * track, Mab::key_size));
    }
    std::size_t at = 0;
    for (std::uint32_t track = 0; track < clip.track_count; ++track) {
      const auto present = std::to_integer<unsigned>(group.presence[track]);
      for (std::uint32_t sub_frame = 1; sub_frame < 8; ++sub_frame) {
        const unsigned bit = order == PresenceOrder::low_bit_first ? sub_frame - 1 : 7 - sub_frame;
        if ((present >> bit & 1U) == 0) continue;
        visit(track, group.first_frame + sub_frame, group.later_keys.subspan(at, Mab::key_size));
        at += Mab::key_size;
      }
    }
  }
}

/// Counts keys that would lie past the last frame: evidence against an order, for both store the same bytes.
std::uint64_t keys_past_end(const Mab& clip, PresenceOrder order);

}  // namespace bitwitness::decoders
