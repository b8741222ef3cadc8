#include "decoders/cursor.hpp"
#include "decoders/evidence_counts.hpp"
#include "decoders/packed_quat32.hpp"
#include "decoders/packed_quat48.hpp"
#include "decoders/packed_quat64.hpp"
#include "decoders/quat_xyz.hpp"
#include "decoders/rotation_z15.hpp"

#include <bit>

namespace bitwitness::decoders::evidence_parts {
namespace {

using Words = std::array<std::uint32_t, 4>;

// Of a squared norm within unit_tolerance of 1.
constexpr double least_unit_square = (1 - evidence_rules::unit_tolerance) * (1 - evidence_rules::unit_tolerance);
constexpr double greatest_unit_square = (1 + evidence_rules::unit_tolerance) * (1 + evidence_rules::unit_tolerance);

// A reading: a key's size, its decode, and which component was omitted.

struct Quat32 {
  static constexpr std::size_t size = packed_quat32::packed_size;
  static void decode(std::span<const std::byte> key, Words& words) { packed_quat32::decode(key, words); }
  static std::size_t lane(std::span<const std::byte> key) { return load<std::uint32_t>(key, 0) >> 30; }
};

struct Quat48 {
  static constexpr std::size_t size = packed_quat48::packed_size;
  static void decode(std::span<const std::byte> key, Words& words) { packed_quat48::decode(key, words); }
  static std::size_t lane(std::span<const std::byte> key) {
    return packed_quat48::omitted_lane(load<std::uint16_t>(key, 0), load<std::uint16_t>(key, 2));
  }
};

struct Quat64 {
  static constexpr std::size_t size = packed_quat64::packed_size;
  static void decode(std::span<const std::byte> key, Words& words) { packed_quat64::decode(key, words); }
  static std::size_t lane(std::span<const std::byte> key) { return load<std::uint64_t>(key, 0) >> 30 & 3; }
};

// Components of 20 bits side by side, `First`, `Second` and `Third` being their lowest bits.
template <unsigned First, unsigned Second, unsigned Third, unsigned Index>
struct Contiguous64 {
  static constexpr std::size_t size = packed_quat64::packed_size;

  static float component(std::uint64_t bits) {
    return packed_quat64::component(static_cast<int>(bits & std::uint64_t{packed_quat64::maximum}));
  }
  static void decode(std::span<const std::byte> key, Words& words) {
    const auto bits = load<std::uint64_t>(key, 0);
    const float a = component(bits >> First);
    const float b = component(bits >> Second);
    const float c = component(bits >> Third);
    const float omitted = packed_quat48::clamped_root(packed_quat48::radicand(a, b, c));
    packed_quat48::place(words, static_cast<unsigned>(lane(key)), std::bit_cast<std::uint32_t>(omitted), a, b, c);
  }
  static std::size_t lane(std::span<const std::byte> key) { return load<std::uint64_t>(key, 0) >> Index & 3; }
};

using LowToHigh64 = Contiguous64<0, 20, 40, 60>;
using HighToLow64 = Contiguous64<40, 20, 0, 62>;

struct QuatXyz {
  static constexpr std::size_t size = quat_xyz::packed_size;
  static void decode(std::span<const std::byte> key, Words& words) { quat_xyz::decode(key, words); }
  static std::size_t lane(std::span<const std::byte>) { return 3; }
};

struct RotationZ15 {
  static constexpr std::size_t size = rotation_z15::packed_size;
  static void decode(std::span<const std::byte> key, Words& words) { rotation_z15::decode(key, words); }
  static std::size_t lane(std::span<const std::byte>) { return 3; }
};

struct Decoded {
  Words words{};
  std::size_t lane = 0;

  Quaternion rotation() const { return std::bit_cast<Quaternion>(words); }
};

// Keys decoded before the first of them is looked at: a quaternion's words are stored one by one, and a CPU waits where
// all four are read right behind.
constexpr std::size_t batch_size = 64;

// Counts a track under one reading and hands on each key's bytes and each pair of consecutive keys.
template <typename Reading, typename OnKey, typename OnPair>
void add_track(RotationCounts& counts, std::span<const std::byte> values, OnKey&& on_key, OnPair&& on_pair) {
  const std::size_t count = values.size() / Reading::size;
  std::array<Decoded, batch_size + 1> batch{};  // the first one is the last of the batch before
  double smallest = std::numeric_limits<double>::infinity();
  ++counts.tracks;
  for (std::size_t first = 0; first < count; first += batch_size) {
    const std::size_t filled = std::min(batch_size, count - first);
    for (std::size_t i = 0; i < filled; ++i) {
      const std::span<const std::byte> key = values.subspan((first + i) * Reading::size, Reading::size);
      Reading::decode(key, batch[i + 1].words);
      batch[i + 1].lane = Reading::lane(key);
      on_key(key);
    }
    for (std::size_t i = 1; i <= filled; ++i) {
      counts.add_key(batch[i].rotation(), batch[i].lane);
      if (first + i == 1) continue;
      const double dot = absolute_dot(batch[i - 1].rotation(), batch[i].rotation());
      smallest = std::min(smallest, dot);
      on_pair(batch[i - 1], batch[i], dot);
    }
    batch[0] = batch[filled];
  }
  if (count > 1) counts.add_smallest(smallest);
}

constexpr auto no_key = [](std::span<const std::byte>) {};
constexpr auto no_pair = [](const Decoded&, const Decoded&, double) {};

template <typename Reading>
void add_track(RotationCounts& counts, std::span<const std::byte> values) {
  add_track<Reading>(counts, values, no_key, no_pair);
}

}  // namespace

void add_quat32_track(RotationCounts& rotations, std::span<const std::byte> values) {
  add_track<Quat32>(rotations, values);
}

void add_quat_xyz_track(RotationCounts& rotations, std::span<const std::byte> values) {
  add_track<QuatXyz>(rotations, values);
}

void add_quat48_track(RotationCounts& rotations, GameCounts& game, std::span<const std::byte> values) {
  add_track<Quat48>(
      rotations, values,
      [&](std::span<const std::byte> key) { game.word_two_bit_15.add(load<std::uint16_t>(key, 4) >> 15); },
      [&](const Decoded& before, const Decoded& after, double dot) {
        game.index.add(before.rotation(), before.lane, after.rotation(), after.lane, dot);
      });
}

void add_quat64_track(RotationCounts& rotations, GameCounts& game, std::span<const std::byte> values) {
  add_track<Quat64>(
      rotations, values,
      [&](std::span<const std::byte> key) { game.bits_28_29.add(load<std::uint64_t>(key, 0) >> 28 & 3); }, no_pair);
  add_track<LowToHigh64>(game.other_layouts[0], values);
  add_track<HighToLow64>(game.other_layouts[1], values);
}

void add_rotation_z15_track(RotationCounts& rotations, BitCounts& top_bit, std::span<const std::byte> values) {
  add_track<RotationZ15>(
      rotations, values, [&](std::span<const std::byte> key) { top_bit.add(load<std::uint16_t>(key, 0) >> 15); },
      no_pair);
}

void RotationCounts::add_key(const Quaternion& key, std::size_t lane) {
  ++keys;
  const double omitted = key[lane];
  double kept = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const double square = double{key[i]} * double{key[i]};
    kept += i == lane ? 0 : square;
  }
  // The omitted component is 0, or not a number, only where the kept ones leave nothing for it.
  const bool none_left = !(omitted > 0);
  const double square = none_left ? kept : kept + omitted * omitted;
  if (!std::isfinite(kept)) {
    ++not_finite;
    return;
  }
  over_unit += static_cast<std::uint64_t>(none_left && kept > 1);
  off_unit += static_cast<std::uint64_t>(square < least_unit_square || square > greatest_unit_square);
  least_square = std::min(least_square, square);
  greatest_square = std::max(greatest_square, square);
}

void RotationCounts::merge(const RotationCounts& other) {
  tracks += other.tracks;
  keys += other.keys;
  over_unit += other.over_unit;
  off_unit += other.off_unit;
  not_finite += other.not_finite;
  least_square = std::min(least_square, other.least_square);
  greatest_square = std::max(greatest_square, other.greatest_square);
  smallest_dots.merge(other.smallest_dots);
}

double RotationCounts::largest_deviation() const {
  return std::max(1 - std::sqrt(least_square), std::sqrt(greatest_square) - 1);
}

void IndexCounts::add(const Quaternion& before, std::size_t from, const Quaternion& after, std::size_t to, double dot) {
  std::array<double, 2> dots{dot, dot};
  if (tells_index_order(from, to)) {
    // Reading 1 for 2 moves the omitted component from y to z and the second kept one from z to y.
    const auto swapped = [](const Quaternion& key, std::size_t lane) {
      return lane == 1 || lane == 2 ? Quaternion{key[0], key[2], key[1], key[3]} : key;
    };
    dots[1] = absolute_dot(swapped(before, from), swapped(after, to));
  }
  IndexPairs& row = changes[from][to];
  ++row.pairs;
  for (std::size_t order = 0; order < 2; ++order) {
    row.near[order] += static_cast<std::uint64_t>(dots[order] > evidence_rules::near_dot);
    row.loose[order] += static_cast<std::uint64_t>(dots[order] > evidence_rules::loose_dot);
  }
}

void IndexCounts::merge(const IndexCounts& other) {
  for (std::size_t from = 0; from < 4; ++from) {
    for (std::size_t to = 0; to < 4; ++to) changes[from][to].add(other.changes[from][to]);
  }
}

}  // namespace bitwitness::decoders::evidence_parts
