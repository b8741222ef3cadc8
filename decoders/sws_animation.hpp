#pragma once
#include "decoders/animation.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

// Shaun White Skateboarding's Animation, AnimSet and AnimPair. Source: seed 000, Shaun White Skateboarding.

namespace bitwitness::decoders {

/// Width and alignment of a kind's values, in bytes; width 0 for a kind the seed does not list.
struct SwsKind {
  std::uint8_t width = 0;
  std::uint8_t alignment = 0;
};

/// Looks a kind up: 4 to 11 and 17 are known. Proven: the block grammar reads every track of the install with them.
SwsKind sws_kind(unsigned kind);

/// Returns the size word of a block: 2 + T, plus 2 with the flag, rounded up to the kind's alignment, plus K × width.
/// Proven on every track of the install. T is the stored times' size. The kind must be known.
std::uint64_t sws_size_word(unsigned kind, TimeForm time_form, bool flag, std::uint32_t key_count);

/// Binds a track to a bone.
struct SwsMapping {
  std::uint32_t id = 0;        ///< 0 in the games' files
  std::uint32_t bone_crc = 0;  ///< CRC-32 of the bone's name; 0 is the root's motion
};

/// An Animation (class 0x0FA3067F). Proven: framing, length, counts, classes, mappings and tracks. Observed: both
/// layout words and the id of AnimTrackData. Unknown: the table's rows, the events' insides, and every field named
/// unknown_.
struct SwsAnimation {
  std::span<const std::byte> table_rows;  ///< 12 bytes a row
  std::uint32_t id = 0;
  float length = 0;  ///< seconds
  std::uint32_t layout_word = 0;
  std::uint32_t unknown_24 = 0;  ///< the seed's offset, without the table's rows
  std::uint16_t unknown_28 = 0;
  std::uint32_t unknown_30 = 0;
  std::uint32_t event_count = 0;
  std::span<const std::byte> events;
  std::uint32_t unknown_after_events = 0;
  std::uint32_t track_data_id = 0;
  std::uint32_t track_data_layout_word = 0;  ///< equals layout_word on 80,367 of the install's 80,466 objects
  std::span<const std::byte> mapping_bytes;  ///< 12 bytes a mapping, its class checked
  std::uint16_t unknown_after_mappings = 0;
  Tracks tracks;
  std::uint64_t key_count = 0;        ///< of all tracks
  std::uint32_t stray_last_keys = 0;  ///< tracks of several keys whose last is not within half a tick of length × 60
  std::size_t size = 0;               ///< bytes, from the table to the last track

  std::size_t mapping_count() const { return mapping_bytes.size() / mapping_size; }

  /// Returns the mapping of the track with that index.
  SwsMapping mapping(std::size_t index) const;

  static constexpr std::size_t row_size = 12;
  static constexpr std::size_t mapping_size = 12;
};

/// Reads bytes that are one Animation and nothing else, its table first. The events are opaque: AnimTrackData is the
/// first place after them that reads as it (tag 0, id, class, layout word, n, n mappings of their class, u16, n once
/// more), and the only one to the object's end. Refuses times that do not rise strictly, size words against the rule,
/// and kinds of unknown width. Linear in the size; allocates nothing.
Reading<SwsAnimation> read_sws_animation(std::span<const std::byte> bytes);

/// Reads an Animation that `bytes` start with, whatever follows it. AnimTrackData's class must stand before
/// `anchor_limit`. What is looked at is taken from `budget`.
Reading<SwsAnimation> read_leading_sws_animation(std::span<const std::byte> bytes, std::size_t anchor_limit,
                                                 WorkBudget& budget);

/// Tells whether an Animation's table and fixed fields stand at the start of `bytes`.
bool opens_sws_animation(std::span<const std::byte> bytes);

/// Two clips, one of which replaces the other; which is which is unknown. Proven: its four words.
struct SwsAnimPair {
  std::uint32_t id = 0;
  std::uint32_t first = 0;   ///< id of an Animation
  std::uint32_t second = 0;  ///< id of an Animation

  static constexpr std::size_t size = 16;
};

/// Reads bytes that are one AnimPair: id, class 0x9DE9A987, two Animation ids.
Reading<SwsAnimPair> read_sws_anim_pair(std::span<const std::byte> bytes);

/// An AnimSet (class 0x31984F55). Proven: every one of the install reads so to its end.
struct SwsAnimSet {
  std::uint32_t id = 0;
  std::span<const std::byte> pair_bytes;  ///< 16 bytes a pair, its class checked
  std::uint8_t final_byte = 0;            ///< 0, or 1 on a few sets; meaning unknown
  std::size_t size = 0;                   ///< bytes, from the managed byte to the final one

  std::size_t pair_count() const { return pair_bytes.size() / SwsAnimPair::size; }

  /// Returns the pair with that index.
  SwsAnimPair pair(std::size_t index) const;
};

/// Reads bytes that are one AnimSet and nothing else: 1, id, class, 0, count, pairs, final byte.
Reading<SwsAnimSet> read_sws_anim_set(std::span<const std::byte> bytes);

/// Reads an AnimSet that `bytes` start with, whatever follows it.
Reading<SwsAnimSet> read_leading_sws_anim_set(std::span<const std::byte> bytes, WorkBudget& budget);

}  // namespace bitwitness::decoders
