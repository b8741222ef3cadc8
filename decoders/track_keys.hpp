#pragma once
#include "decoders/animation.hpp"
#include "decoders/mab.hpp"
#include "decoders/sampling.hpp"
#include "decoders/track_kinds.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace bitwitness::decoders {

/// The decoded keys of one track, in the order and at the times that they are stored with.
template <class Value>
struct DecodedKeys {
  std::vector<std::uint16_t> times;  ///< in units of 1 / frame_rate s
  std::vector<Value> values;

  /// 60 for tracks: ticks, of which a mask's frames count two each. A .mab clip's own rate for its frames.
  double frame_rate = 60.0;

  /// The keys as `sample` takes them, in the unit of `times`: with sample_time, not with ticks_of. Valid as long as
  /// this object is.
  Keys<Value> view() const { return {times, values, TimeUnit::tick}; }

  /// Converts seconds to the unit of `times`.
  double sample_time(double seconds) const { return seconds * frame_rate; }
};

/// Decodes a rotation track: kinds 4 to 6 of Shaun White Skateboarding, 3, 4, 5, 7 and 8 of Riders Republic. Nothing
/// for other kinds. The track's bytes must have been checked, as a reader's have.
std::optional<DecodedKeys<Quaternion>> rotation_keys(Game game, const Track& track);

/// Decodes a translation track: kinds 8 and 9 of Shaun White Skateboarding, 9 of Riders Republic. Nothing for others.
std::optional<DecodedKeys<Translation>> translation_keys(Game game, const Track& track);

/// Decodes the rotations of one track of a .mab clip. Times are the clip's frames, and frame_rate is the clip's; keys
/// past frame 65,535, which no clip numbers, are left out. Empty for a track that the clip has not. Time linear in the
/// clip's keys.
DecodedKeys<Quaternion> rotation_keys(const Mab& clip, std::uint32_t track,
                                      PresenceOrder order = PresenceOrder::low_bit_first);

/// Samples a rotation track at a time in ticks of 1/60 s. Nothing for a track that is no rotation. Decodes every key:
/// for many times decode once and sample the keys.
std::optional<Quaternion> sample_rotation(Game game, const Track& track, double ticks,
                                          RotationBlend blend = RotationBlend::nlerp);

/// Samples the rotations of one track of a .mab clip at a time in seconds. Nothing for a track that the clip has not.
/// Walks all the clip's keys: for many times or tracks decode once and sample the keys.
std::optional<Quaternion> sample_rotation(const Mab& clip, std::uint32_t track, double seconds,
                                          PresenceOrder order = PresenceOrder::low_bit_first,
                                          RotationBlend blend = RotationBlend::nlerp);

/// Samples a translation track at a time in ticks of 1/60 s, in metres. Nothing for a track that is no translation.
std::optional<Translation> sample_translation(Game game, const Track& track, double ticks);

}  // namespace bitwitness::decoders
