#include "decoders/evidence_counts.hpp"

#include "decoders/cursor.hpp"

#include <numeric>

namespace bitwitness::decoders {

void IndexPairs::add(const IndexPairs& other) {
  pairs += other.pairs;
  for (std::size_t order = 0; order < 2; ++order) {
    near[order] += other.near[order];
    loose[order] += other.loose[order];
  }
}

namespace evidence_parts {
namespace {

using Axes = std::array<std::int32_t, 3>;

// Two's complement axes of X, Y and Z bits, x at the top.
template <int X, int Y, int Z>
Axes split(std::uint32_t bits) {
  static_assert(X + Y + Z == 32);
  // Each field is moved to the top, so that the shift down copies its sign.
  return {static_cast<std::int32_t>(bits) >> (32 - X), static_cast<std::int32_t>(bits << X) >> (32 - Y),
          static_cast<std::int32_t>(bits << (X + Y)) >> (32 - Z)};
}

std::int32_t largest_step(const Axes& before, const Axes& after) {
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < 3; ++i) largest = std::max(largest, std::abs(after[i] - before[i]));
  return largest;
}

}  // namespace

void Histogram::merge(const Histogram& other) {
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
}

std::uint64_t Histogram::total() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

std::size_t Histogram::median() const {
  const std::uint64_t all = total();
  std::uint64_t below = 0;
  for (std::size_t value = 0; value < counts_.size(); ++value) {
    below += counts_[value];
    if (2 * below >= all) return all == 0 ? 0 : value;
  }
  return 0;
}

void GameCounts::merge(const GameCounts& other) {
  index.merge(other.index);
  word_two_bit_15.merge(other.word_two_bit_15);
  bits_28_29.merge(other.bits_28_29);
  for (std::size_t i = 0; i < other_layouts.size(); ++i) other_layouts[i].merge(other.other_layouts[i]);
}

void SplitCounts::add_track(std::span<const std::byte> values) {
  constexpr std::size_t size = 4;
  if (values.size() < 2 * size) return;
  std::array<std::int32_t, 3> steps_of{};
  auto before = load<std::uint32_t>(values, 0);
  for (std::size_t at = size; values.size() - at >= size; at += size) {
    const auto after = load<std::uint32_t>(values, at);
    steps_of[0] = std::max(steps_of[0], largest_step(split<11, 11, 10>(before), split<11, 11, 10>(after)));
    steps_of[1] = std::max(steps_of[1], largest_step(split<10, 11, 11>(before), split<10, 11, 11>(after)));
    steps_of[2] = std::max(steps_of[2], largest_step(split<11, 10, 11>(before), split<11, 10, 11>(after)));
    before = after;
  }
  for (std::size_t i = 0; i < largest.size(); ++i) largest[i].add(static_cast<std::size_t>(steps_of[i]));
}

void SplitCounts::merge(const SplitCounts& other) {
  for (std::size_t i = 0; i < largest.size(); ++i) largest[i].merge(other.largest[i]);
}

}  // namespace evidence_parts
}  // namespace bitwitness::decoders
