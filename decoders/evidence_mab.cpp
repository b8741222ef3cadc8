#include "decoders/cursor.hpp"
#include "decoders/dunia_quat48.hpp"
#include "decoders/evidence_counts.hpp"

#include <bit>

namespace bitwitness::decoders::evidence_parts {
namespace {

constexpr std::size_t frames_a_group = 8;

// One track's keys of one group, in stored order, and the next group's first key where there is one.
struct Run {
  std::array<Quaternion, frames_a_group + 1> keys{};
  std::array<std::array<std::uint32_t, frames_a_group + 1>, 2> frames{};  ///< by PresenceOrder, from the group's first
  std::size_t count = 0;
  bool closed = false;  ///< the last key is the next group's
};

Quaternion decode(std::span<const std::byte> key) {
  std::array<std::uint32_t, 4> words{};
  dunia_quat48::decode(key, words);
  return std::bit_cast<Quaternion>(words);
}

std::size_t lane_of(std::span<const std::byte> key) {
  return packed_quat48::omitted_lane(load<std::uint16_t>(key, 0), load<std::uint16_t>(key, 2));
}

// Frames 1 … 7 of the keys that a presence byte announces, under both orders, behind frame 0.
void set_frames(Run& run, unsigned present) {
  std::array<std::size_t, 2> at{1, 1};
  for (std::uint32_t frame = 1; frame < frames_a_group; ++frame) {
    if ((present >> (frame - 1) & 1U) != 0) run.frames[0][at[0]++] = frame;
    if ((present >> (frames_a_group - 1 - frame) & 1U) != 0) run.frames[1][at[1]++] = frame;
  }
}

// How near a key lies to the straight line between its neighbours, both on the same side of the sphere, at a fraction
// of the way.
double nearness(const Quaternion& before, const Quaternion& key, const Quaternion& after, double fraction) {
  double between = 0;
  for (std::size_t i = 0; i < 4; ++i) between += double{before[i]} * double{after[i]};
  const double side = between < 0 ? -1 : 1;
  double dot = 0;
  double square = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const double guess = (1 - fraction) * double{before[i]} + side * fraction * double{after[i]};
    dot += guess * double{key[i]};
    square += guess * guess;
  }
  return std::abs(dot) / std::sqrt(square);
}

void count_nearer(std::uint64_t& first, std::uint64_t& second, double first_value, double second_value) {
  first += static_cast<std::uint64_t>(first_value > second_value);
  second += static_cast<std::uint64_t>(second_value > first_value);
}

void add_predictions(PresenceEvidence& presence, const Run& run) {
  for (std::size_t i = 1; i + 1 < run.count; ++i) {
    std::array<double, 2> fractions{};
    for (std::size_t order = 0; order < 2; ++order) {
      const auto& frames = run.frames[order];
      fractions[order] = double(frames[i] - frames[i - 1]) / double(frames[i + 1] - frames[i - 1]);
    }
    const double moved = absolute_dot(run.keys[i - 1], run.keys[i + 1]);
    if (fractions[0] == fractions[1] || !(moved > evidence_rules::loose_dot && moved < evidence_rules::still_dot)) {
      continue;
    }
    count_nearer(presence.nearer[0], presence.nearer[1],
                 nearness(run.keys[i - 1], run.keys[i], run.keys[i + 1], fractions[0]),
                 nearness(run.keys[i - 1], run.keys[i], run.keys[i + 1], fractions[1]));
  }
}

// Two later keys or more between two first keys: which end of them joins which.
void add_direction(PresenceEvidence& presence, const Run& run) {
  if (!run.closed || run.count < 4) return;
  const Quaternion& first = run.keys[0];
  const Quaternion& next = run.keys[run.count - 1];
  const Quaternion& early = run.keys[1];
  const Quaternion& late = run.keys[run.count - 2];
  count_nearer(presence.rising_nearer, presence.falling_nearer, absolute_dot(first, early) + absolute_dot(late, next),
               absolute_dot(first, late) + absolute_dot(early, next));
}

}  // namespace

void add_mab(RotationCounts& rotations, BitCounts& presence_bit_7, PresenceEvidence& presence, const Mab& clip) {
  ++presence.clips;
  presence.keys += clip.key_count;
  presence.keys_past_end[0] += keys_past_end(clip, PresenceOrder::low_bit_first);
  presence.keys_past_end[1] += keys_past_end(clip, PresenceOrder::high_bit_first);
  presence_bit_7.checked += std::uint64_t{clip.track_count} * clip.group_count();
  presence_bit_7.set += clip.presence_high_bits;
  for (std::size_t index = 0; index < clip.group_count(); ++index) {
    const MabGroup group = clip.group(index);
    const bool closed = index + 1 < clip.group_count();
    const std::span<const std::byte> next_keys =
        closed ? clip.group(index + 1).first_keys : std::span<const std::byte>();
    std::size_t later_at = 0;
    for (std::size_t track = 0; track < clip.track_count; ++track) {
      Run run;
      run.closed = closed;
      const auto add_key = [&](std::span<const std::byte> key) {
        const Quaternion& decoded = run.keys[run.count++] = decode(key);
        rotations.add_key(decoded, lane_of(key));
      };
      add_key(group.first_keys.subspan(Mab::key_size * track, Mab::key_size));
      const unsigned present = std::to_integer<unsigned>(group.presence[track]) & 0x7F;
      for (int left = std::popcount(present); left > 0; --left, later_at += Mab::key_size) {
        add_key(group.later_keys.subspan(later_at, Mab::key_size));
      }
      set_frames(run, present);
      if (closed) {
        for (auto& frames : run.frames) frames[run.count] = frames_a_group;
        run.keys[run.count++] = decode(next_keys.subspan(Mab::key_size * track, Mab::key_size));
      }
      add_predictions(presence, run);
      add_direction(presence, run);
    }
  }
}

}  // namespace bitwitness::decoders::evidence_parts
