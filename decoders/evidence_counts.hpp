#pragma once
#include "decoders/evidence.hpp"
#include "decoders/pose.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

// What Evidence counts while it walks keys. For evidence*.cpp only.

namespace bitwitness::decoders::evidence_parts {

/// How often each integer below a size came.
class Histogram {
 public:
  explicit Histogram(std::size_t size) : counts_(size) {}

  /// Counts a value; one past the end as the last.
  void add(std::size_t value) { ++counts_[std::min(value, counts_.size() - 1)]; }
  void merge(const Histogram& other);
  std::uint64_t total() const;

  /// Returns the median, the lower one of two; 0 without values.
  std::size_t median() const;

 private:
  std::vector<std::uint64_t> counts_;
};

/// Returns |a · b|, summed in double from x to w; 0 where it is not a number.
inline double absolute_dot(const Quaternion& a, const Quaternion& b) {
  double sum = 0;
  for (std::size_t i = 0; i < 4; ++i) sum += double{a[i]} * double{b[i]};
  const double size = std::abs(sum);
  return size >= 0 ? size : 0;
}

/// Unit length and smoothness of the keys of one kind under one reading.
struct RotationCounts {
  static constexpr std::size_t dot_steps = 4096;

  std::uint64_t tracks = 0;
  std::uint64_t keys = 0;
  std::uint64_t over_unit = 0;
  std::uint64_t off_unit = 0;
  std::uint64_t not_finite = 0;
  double least_square = 1;  ///< of a squared norm; from there a norm's deviation follows, for roots keep the order
  double greatest_square = 1;
  Histogram smallest_dots{dot_steps + 1};

  /// Counts a key whose component `lane` was omitted.
  void add_key(const Quaternion& key, std::size_t lane);

  /// Counts a track's smallest |dot|.
  void add_smallest(double dot) {
    smallest_dots.add(static_cast<std::size_t>(std::min(dot, 1.0) * static_cast<double>(dot_steps)));
  }

  void merge(const RotationCounts& other);
  double largest_deviation() const;
  double median_smallest_dot() const {
    return static_cast<double>(smallest_dots.median()) / static_cast<double>(dot_steps);
  }
};

/// Bits that should be zero.
struct BitCounts {
  std::uint64_t checked = 0;
  std::uint64_t set = 0;

  void add(std::uint64_t bits) {
    ++checked;
    set += static_cast<std::uint64_t>(bits != 0);
  }
  void merge(const BitCounts& other) {
    checked += other.checked;
    set += other.set;
  }
};

/// Pairs by index before and after, as word_0_low reads them.
struct IndexCounts {
  std::array<std::array<IndexPairs, 4>, 4> changes{};

  /// Counts a pair of keys decoded with word_0_low, whose |dot| is `dot`.
  void add(const Quaternion& before, std::size_t from, const Quaternion& after, std::size_t to, double dot);
  void merge(const IndexCounts& other);
};

/// What one game's kinds 4 and 5 are asked.
struct GameCounts {
  IndexCounts index;
  BitCounts word_two_bit_15;
  BitCounts bits_28_29;
  std::array<RotationCounts, 2> other_layouts;  ///< low_to_high, high_to_low

  void merge(const GameCounts& other);
};

/// Largest steps of kind 8's tracks, by split.
struct SplitCounts {
  static constexpr std::size_t steps = 2048;  ///< of eleven bits

  std::array<Histogram, 3> largest{Histogram(steps), Histogram(steps), Histogram(steps)};

  /// Counts a track of 4 bytes a key.
  void add_track(std::span<const std::byte> values);
  void merge(const SplitCounts& other);
};

/// Counts a track of kind 3, 6 of Shaun White Skateboarding or 8 of Riders Republic, and the like: rotations of which
/// nothing but length and smoothness is asked.
void add_quat32_track(RotationCounts& rotations, std::span<const std::byte> values);
void add_quat_xyz_track(RotationCounts& rotations, std::span<const std::byte> values);

/// Counts a track of kind 4 of either game.
void add_quat48_track(RotationCounts& rotations, GameCounts& game, std::span<const std::byte> values);

/// Counts a track of kind 5 of either game, under all layouts.
void add_quat64_track(RotationCounts& rotations, GameCounts& game, std::span<const std::byte> values);

/// Counts a track of Riders Republic's kind 7.
void add_rotation_z15_track(RotationCounts& rotations, BitCounts& top_bit, std::span<const std::byte> values);

/// Counts a .mab's keys, presence bits, and what its frames predict.
void add_mab(RotationCounts& rotations, BitCounts& presence_bit_7, PresenceEvidence& presence, const Mab& clip);

/// Decides each question from its counts, by evidence_rules.
std::optional<IndexOrder> supported_order(const IndexOrderEvidence& evidence);
std::optional<TranslationSplit> supported_split(const SplitEvidence& evidence);
std::optional<Quat64Layout> supported_layout(const LayoutEvidence& evidence);
Verdict unit_length_verdict(const RotationEvidence& evidence);
Verdict zero_verdict(const BitsEvidence& evidence);
void decide(TimesEvidence& times);
void decide(PresenceEvidence& presence);

}  // namespace bitwitness::decoders::evidence_parts
