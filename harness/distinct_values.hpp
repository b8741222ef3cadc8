#pragma once
#include "harness/sorted_runs.hpp"
#include "harness/spill_file.hpp"
#include "harness/value_rows.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace bitwitness {

/// Memory that collections of values share while values are added. What exceeds it goes to temporary files.
///
/// The values that all feeders and collections hold stay below `bytes`: over half of it, a feeder that has its share,
/// that half divided by the number of feeders, writes what it holds to a file. One that has less goes on, so that no
/// file fills with crumbs because others hold much. Values are merged in memory only where that fits into what is left
/// when it begins; as others may fill up to their shares meanwhile, half of `bytes` can be in use on top for a moment.
///
/// Not counted: what one call adds at once, and sorting it a portion at a time (4 MiB for each thread, 8 MiB for values
/// of more than 8 bytes); 1 MiB while a thread writes to a file; most_runs_at_once × run_buffer (16 MiB) while files
/// are merged; what finish() returns where no file was needed. Files take what was spilled as packed values, and as
/// much again while they are merged.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::uint64_t bytes = default_values_memory) : bytes_(bytes) {}

  /// Counts values that are held, or held no longer.
  void take(std::uint64_t bytes) { held_ += bytes; }
  void give_back(std::uint64_t bytes) { held_ -= bytes; }

  /// Reserves memory for merging, or returns false where there is too little left.
  [[nodiscard]] bool begin_merge(std::uint64_t bytes);
  void end_merge(std::uint64_t bytes) { merging_ -= bytes; }

  /// Counts those who share the budget.
  void enter() { ++feeders_; }
  void leave() { --feeders_; }

  /// Tells whether so much is held that feeders with their share of it write files.
  [[nodiscard]] bool exceeded() const { return held_ > bytes_ / 2; }

  /// The least that one feeder writes while others may hold the rest.
  [[nodiscard]] std::uint64_t share() const { return bytes_ / 2 / std::max<std::uint64_t>(feeders_, 1); }

  /// Bytes of values held.
  [[nodiscard]] std::uint64_t held() const { return held_; }

 private:
  std::uint64_t bytes_;
  std::atomic<std::uint64_t> held_ = 0;
  std::atomic<std::uint64_t> merging_ = 0;
  std::atomic<std::uint64_t> feeders_ = 0;
};

/// Packed values side by side, in memory or in a file that is mapped.
struct PackedValues {
  std::shared_ptr<const std::byte[]> bytes;
  std::uint64_t count = 0;
};

/// Counts what lists that DistinctValues gave hold together, each value once.
std::uint64_t count_distinct(std::span<const PackedValues> lists, std::size_t packed_size);

/// Collects packed values of one size from several threads and gives each distinct one once, in order. Values are
/// sorted in portions, portions merged whenever two are of like size; over the budget a thread's values go to the
/// collection's one temporary file. What it gives does not depend on who added what, nor on the budget.
class DistinctValues {
 public:
  /// Values have `packed_size` bytes (1 to max_packed_size). The budget must outlive the collection.
  DistinctValues(std::size_t packed_size, MemoryBudget& budget);
  ~DistinctValues();
  DistinctValues(const DistinctValues&) = delete;
  DistinctValues& operator=(const DistinctValues&) = delete;

  [[nodiscard]] std::size_t packed_size() const { return packed_size_; }

  /// What one thread adds through. It must be closed before the collection is finished. `add` and `close` throw Error
  /// when a temporary file cannot be written.
  class Feeder {
   public:
    explicit Feeder(DistinctValues& values);
    Feeder(const Feeder&) = delete;
    Feeder& operator=(const Feeder&) = delete;
    ~Feeder();

    /// Adds the values that start at every `step`-th byte and end within `bytes`; a step of 0 is the packed size:
    /// values side by side.
    void add(std::span<const std::byte> bytes, std::size_t step = 0);

    /// Adds rows of the collection's packed size.
    void add(ValueRows rows);

    /// Hands everything over. Nothing may be added after it.
    void close();

   private:
    void keep_portion();
    void sort_portion();
    void spill_over_budget();
    void spill();

    DistinctValues& values_;
    ValueRows portion_;            // as added
    std::vector<ValueRows> runs_;  // sorted and distinct, mostly each less than half the size of the one before it
    std::uint64_t held_ = 0;       // bytes of both
  };

  /// Returns all distinct values, sorted as little-endian integers, and empties the collection. Every feeder must be
  /// closed. Throws Error when a temporary file cannot be used.
  PackedValues finish();

 private:
  std::size_t packed_size_;
  MemoryBudget& budget_;
  std::mutex mutex_;  // of what follows
  std::vector<ValueRows> runs_;
  std::optional<SpillFile> file_;
  std::vector<StoredRun> stored_;  // of the file: packed values, sorted and distinct
};

}  // namespace bitwitness
