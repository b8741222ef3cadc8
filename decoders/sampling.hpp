#pragma once
#include "decoders/assumptions.hpp"
#include "decoders/pose.hpp"

#include <bit>
#include <cstdint>
#include <span>

namespace bitwitness::decoders {

/// The unit of a track's key times: ticks of 1/60 s, or mask frames of 1/30 s, which are two ticks each.
enum class TimeUnit : std::uint8_t { tick, mask_frame };

/// How a rotation goes from one key to the next; both take the shorter of the two arcs that q and -q span.
enum class RotationBlend : std::uint8_t {
  nlerp,           ///< linear, normalised: observed to give rendered bones (seed 000, Shaun White Skateboarding)
  nlerp_or_slerp,  ///< as nlerp where |dot| is at least `nlerp_dot`, else spherical: a sister title's rule, not tested
};

/// Above this |dot| of two keys nlerp_or_slerp stays linear: 0.98935574, 8.4 degrees between quaternions.
inline constexpr float nlerp_dot = std::bit_cast<float>(0x3F7D466Bu);

/// Decoded keys of one track: equally many times and values, at least one, times strictly rising. A view, owns nothing.
template <class Value>
struct Keys {
  std::span<const std::uint16_t> times;
  std::span<const Value> values;
  TimeUnit unit = TimeUnit::tick;
};

using RotationKeys = Keys<Quaternion>;
using TranslationKeys = Keys<Translation>;

/// Returns the rotation at a time in ticks of 1/60 s: the key's own words on a key's time, the first or last key's
/// beyond the ends (and for a NaN the first's), between keys a unit quaternion near the earlier key. Computed in double
/// and rounded once; the bits of an engine's sampler are not claimed. Throws std::invalid_argument for no keys or
/// unequal counts.
Quaternion sample(const RotationKeys& keys, double ticks, RotationBlend blend = RotationBlend::nlerp);

/// Returns the translation at a time in ticks of 1/60 s, linear between keys; ends, rounding and errors as for
/// rotations.
Translation sample(const TranslationKeys& keys, double ticks);

/// Converts seconds to ticks.
constexpr double ticks_of(double seconds) {
  return seconds * 60.0;
}

/// Returns the tick that a sister title takes for a time of 0 seconds or more: (int)(seconds × 60 + 0.5), in f32. At
/// most 2^31 - 1.
std::int32_t nearest_tick(float seconds);

}  // namespace bitwitness::decoders
