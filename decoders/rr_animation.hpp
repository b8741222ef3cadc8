#pragma once
#include "decoders/animation.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

// Riders Republic's Animation body and AnimComponent. Source: seed 000, Body order, Track blocks and Entity use.

namespace bitwitness::decoders {

/// Returns the bytes a value of that kind takes, or 0 for a kind the seed does not list. Observed: the block grammar
/// reads every track of five archives with them.
std::uint8_t rr_kind_width(unsigned kind);

/// Binds a track to a bone.
struct RrMapping {
  std::uint64_t id = 0;
  std::uint32_t bone_crc = 0;  ///< CRC-32 of the bone's name; 0 is the root's motion
};

/// The object that may follow AnimTrackData. That its counts are u32, as all others of the body, is assumed.
struct RrEclAnimation {
  bool present = false;
  std::uint64_t id = 0;
  std::span<const std::byte> first_bytes;
  std::span<const std::byte> words;   ///< 4 bytes an element
  std::span<const std::byte> halves;  ///< 2 bytes an element
  std::span<const std::byte> last_bytes;
};

/// An Animation (class 0x0FA3067F) without the header of its resource: what the seed's table calls the structure.
/// Observed: length, events' place, AnimTrackData, mappings, order of the fields, tracks. Unknown: what the fields
/// named by their hashes mean, the events' insides, the size word, and the high bits of a mask's marker.
struct RrAnimation {
  float length = 0;  ///< seconds
  std::uint32_t word_f4f597ff = 0;
  std::uint32_t word_322b96b8 = 0;             ///< 0 throughout the seed's census
  std::span<const std::byte> halves_556e9166;  ///< 2 bytes an element; empty throughout the seed's census
  std::span<const std::byte> halves_251905d9;  ///< 2 bytes an element; empty throughout the seed's census
  std::array<std::uint8_t, 4> booleans{};      ///< 1F4DA15F, 93847F6A, ABC2D4B8, 0D7D1D50
  std::uint32_t event_count = 0;
  std::span<const std::byte> events;
  std::uint64_t track_data_id = 0;
  std::uint32_t track_data_hash = 0;
  std::span<const std::byte> mapping_bytes;  ///< 16 bytes a mapping, its class checked
  std::uint16_t unknown_after_mappings = 0;
  RrEclAnimation ecl;
  std::span<const std::byte> buffer_b832d26f;
  std::uint32_t word_cb4e5f18 = 0;
  Tracks tracks;
  std::uint64_t key_count = 0;                ///< of all tracks
  std::uint32_t late_last_keys = 0;           ///< tracks whose last key lies past length + 1/30 s; none in the seed
  std::int64_t least_size_word_distance = 0;  ///< of size word minus payload over all tracks; 0 without tracks
  std::int64_t greatest_size_word_distance = 0;
  std::uint32_t far_size_words = 0;  ///< tracks whose distance is more than eight bytes; none in the seed
  std::array<std::uint32_t, 4> mask_marker_tracks{};  ///< mask tracks by the marker's two high bits; the seed has no 0
  std::size_t size = 0;                               ///< bytes, from the managed byte to the last track

  std::size_t mapping_count() const { return mapping_bytes.size() / mapping_size; }

  /// Returns the mapping of the track with that index.
  RrMapping mapping(std::size_t index) const;

  static constexpr std::size_t mapping_size = 16;
};

/// Returns how far a track's size word lies from its payload's stored size. Observed: within eight bytes.
inline std::int64_t rr_size_word_distance(const Track& track) {
  return std::int64_t{track.size_word} - static_cast<std::int64_t>(track.payload_size());
}

/// Reads bytes that are one Animation body and nothing else. The events are opaque: AnimTrackData is the first place
/// after them that reads as it (00, id, class, hash, n, n mappings of their class), and the only one to the body's end.
/// Refuses times that do not rise strictly, masks whose bits are not as many as the keys, and kinds of unknown width.
/// Linear in the size; allocates nothing. Assumed: booleans are 0 or 1, and no track is without keys.
Reading<RrAnimation> read_rr_animation(std::span<const std::byte> bytes);

/// Reads an Animation body that `bytes` start with, whatever follows it. AnimTrackData's class must stand before
/// `anchor_limit`. What is looked at is taken from `budget`.
Reading<RrAnimation> read_leading_rr_animation(std::span<const std::byte> bytes, std::size_t anchor_limit,
                                               WorkBudget& budget);

/// Tells whether an Animation body's fields up to its events stand at the start of `bytes`.
bool opens_rr_animation(std::span<const std::byte> bytes);

/// Where AnimTrackData's class stands in a body with empty arrays and no events.
inline constexpr std::size_t rr_class_without_events = 38;

/// An AnimComponent (class 0x8C8AA19D), read from behind its class. Observed: four base bytes, count, references of ten
/// bytes, a tail. What the base bytes, the insides of a reference and the tail are is unknown.
struct RrAnimComponent {
  std::span<const std::byte> base;
  std::span<const std::byte> reference_bytes;  ///< 10 bytes a reference
  std::span<const std::byte> tail;

  std::size_t reference_count() const { return reference_bytes.size() / reference_size; }

  /// Returns the ten bytes of the reference with that index.
  std::span<const std::byte> reference(std::size_t index) const {
    return reference_bytes.subspan(index * reference_size, reference_size);
  }

  static constexpr std::size_t reference_size = 10;
};

/// Reads an AnimComponent that starts with its base bytes and ends with the bytes. Only a count that does not fit is
/// refused, so that it proves nothing by itself: the caller must know that the class stands before.
Reading<RrAnimComponent> read_rr_anim_component(std::span<const std::byte> bytes);

}  // namespace bitwitness::decoders
