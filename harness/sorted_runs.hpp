#pragma once
#include "harness/spill_file.hpp"
#include "harness/value_rows.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// Sorted runs of packed values, each value once, in memory or in a file, and how they become one.

namespace bitwitness {

/// Most runs that are read from a file at a time, and the most memory that reading one takes.
inline constexpr std::size_t most_runs_at_once = 32;
inline constexpr std::size_t run_buffer = std::size_t{512} << 10;

/// Returns the bytes that rows take.
std::uint64_t bytes_of(const ValueRows& rows);

/// Fills rows from the packed values of `bytes` bytes that start at every `step`-th byte.
void load_rows(std::uint64_t* to, const std::byte* from, std::size_t rows, std::size_t bytes, std::size_t step);

/// Merges two sorted runs. Takes as much memory as both have meanwhile.
ValueRows merge(ValueRows left, ValueRows right);

/// Merges at least one run into one, the smallest first.
ValueRows merge_smallest_first(std::vector<ValueRows> runs);

/// A run's bytes in a file.
struct StoredRun {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Gives the rows of one sorted run, wherever it is. A file must outlive it.
class RunReader {
 public:
  RunReader(const SpillFile& file, StoredRun run, std::size_t packed_size);
  explicit RunReader(ValueRows rows) : rows_(std::move(rows)) {}

  /// The next row, or null at the end.
  const std::uint64_t* row() { return next_ < rows_.size() ? rows_.words().data() + next_ * rows_.stride() : nullptr; }

  void advance() {
    if (++next_ == rows_.size() && file_ != nullptr) refill();
  }

 private:
  void refill();

  const SpillFile* file_ = nullptr;
  StoredRun left_;
  std::vector<std::byte> packed_;
  ValueRows rows_;
  std::size_t next_ = 0;
};

/// Merges any number of runs and writes their values packed at an offset of a file. Returns where these end.
std::uint64_t write_merged(SpillFile& file, std::uint64_t offset, std::vector<RunReader> runs, std::size_t packed_size);

/// Merges a file's runs and others into one file that holds nothing else, most_runs_at_once at a time. The file
/// given is closed after the first pass.
SpillFile merge_in_passes(SpillFile file, std::vector<StoredRun> stored, std::vector<ValueRows> runs,
                          std::size_t packed_size);

}  // namespace bitwitness
