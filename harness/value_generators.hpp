#pragma once
#include "harness/subject.hpp"
#include "harness/value_rows.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace bitwitness {

/// Generates 64-bit words: SplitMix64, so that a seed means the same values on every platform.
class RandomWords {
 public:
  explicit RandomWords(std::uint64_t seed) : state_(seed) {}

  /// Returns the next word.
  std::uint64_t next() {
    std::uint64_t word = state_ += 0x9E3779B97F4A7C15u;
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9u;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBu;
    return word ^ (word >> 31);
  }

  /// Returns a number below `bound`, which is below 2^32. Its bias is bound / 2^32, which test values can bear.
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>((next() >> 32) * bound >> 32); }

 private:
  std::uint64_t state_;
};

/// Most values that `special` gives: seven boundaries of seven fields crossed fit.
inline constexpr std::uint64_t max_special = std::uint64_t{1} << 20;

/// Widest field that `fields` sweeps code by code.
inline constexpr unsigned max_swept_bits = 20;

/// Most values that `fields` gives before it sweeps with fewer codes: three fields of 20 bits fit.
inline constexpr std::uint64_t max_swept = std::uint64_t{1} << 24;

/// One draw in so many of `random` is weighted instead of uniform.
inline constexpr std::uint64_t weighted_share = 8;

/// Returns fields fit for the functions below: those given, or the whole value as one field when there are none; fields
/// wider than 64 bits are split. Throws Error unless they lie side by side and cover every bit.
std::vector<BitField> checked_fields(std::size_t packed_size, std::span<const BitField> fields);

/// Returns the boundary codes of a field, rising and distinct. `detail` 3: 0, 1, middle - 1, middle, middle + 1,
/// maximum - 1, maximum; 2: 0, 1, middle - 1, middle, maximum; 1: 0, middle, maximum; 0: 0, maximum. The middle is
/// 2^(width - 1).
std::vector<std::uint64_t> boundary_codes(unsigned width, unsigned detail);

/// Returns the codes with which `fields` sweeps a field, rising and distinct: all of them up to `swept_bits` bits;
/// beyond, 2^swept_bits evenly spaced ones with both ends, and every power of two with its neighbours.
std::vector<std::uint64_t> sweep_codes(unsigned width, unsigned swept_bits);

/// What `special` gives: planned before anything is made, so that memory is taken once.
struct SpecialPlan {
  std::vector<BitField> fields;
  unsigned detail = 0;   ///< of boundary_codes: the highest with which the crossed boundaries stay within max_special
  bool grouped = false;  ///< two codes a field are still too many: field i takes the end that field i mod 20 takes
  std::uint64_t count = 0;  ///< values
};

/// What `fields` gives.
struct SweepPlan {
  std::vector<BitField> fields;
  unsigned swept_bits = 0;    ///< of sweep_codes: the highest up to max_swept_bits that stays within max_swept
  std::uint64_t at_most = 0;  ///< values, repeated ones counted
};

/// Plans the boundaries of all fields, crossed.
SpecialPlan plan_special(std::vector<BitField> fields);

/// Plans the sweep of each field with all others at 0, then all at their middle, then all at their maximum.
SweepPlan plan_sweeps(std::vector<BitField> fields);

/// Adds the values of a plan.
void append_special(ValueRows& rows, const SpecialPlan& plan);
void append_sweeps(ValueRows& rows, const SweepPlan& plan);

/// Adds `count` draws, of which every eighth is weighted: in turn, each field at a boundary or anywhere, and
/// runs of equal bits. The draws of a smaller count begin those of a larger one.
void append_random(ValueRows& rows, std::span<const BitField> fields, std::uint64_t count, std::uint64_t seed);

}  // namespace bitwitness
