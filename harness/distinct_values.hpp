#pragma once
#include "harness/spill_file.hpp"
#include "harness/value_rows.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace bitwitness {

/// Memory that collections of values share. What exceeds it goes to temporary files.
class MemoryBudget {
 public:
  static constexpr std::uint64_t default_bytes = std::uint64_t{1} << 30;

  /// `bytes` bounds what values take while they are collected, merging included.
  explicit MemoryBudget(std::uint64_t bytes = default_bytes) : bytes_(bytes) {}

  void take(std::uint64_t bytes) { held_ += bytes; }
  void give_back(std::uint64_t bytes) { held_ -= bytes; }

  /// Tells whether so much is held that merging it would exceed the budget.
  [[nodiscard]] bool exceeded() const { return held_ > bytes_ / 2; }

 private:
  std::uint64_t bytes_;
  std::atomic<std::uint64_t> held_ = 0;
};

/// Packed values side by side, in memory or in a file that is mapped.
struct PackedValues {
  std::shared_ptr<const std::byte[]> bytes;
  std::uint64_t count = 0;
};

/// Collects packed values of one size from several threads and gives each distinct one once, in order. Values are
/// sorted in portions, portions merged whenever two are of like size; over the budget a thread's values go to a file.
/// What it gives does not depend on who added what, nor on the budget.
class DistinctValues {
 public:
  /// Values have `packed_size` bytes (1 to max_packed_size). The budget must outlive the collection.
  DistinctValues(std::size_t packed_size, MemoryBudget& budget);
  ~DistinctValues();
  DistinctValues(const DistinctValues&) = delete;
  DistinctValues& operator=(const DistinctValues&) = delete;

  [[nodiscard]] std::size_t packed_size() const { return packed_size_; }

  /// What one thread adds through. It must be closed before the collection is finished.
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

    /// Hands everything over. Nothing may be added after it. Throws Error when a temporary file cannot be written.
    void close();

   private:
    void keep_portion(ValueRows rows);
    void spill();
    ValueRows merge_all();

    DistinctValues& values_;
    ValueRows portion_;
    std::vector<ValueRows> runs_;  // sorted and distinct, each less than half the size of the one before it
    bool closed_ = false;
  };

  /// Returns all distinct values, sorted as little-endian integers, and empties the collection. Every feeder must be
  /// closed. Throws Error when a temporary file cannot be used.
  PackedValues finish();

 private:
  PackedValues finish_in_file();

  std::size_t packed_size_;
  MemoryBudget& budget_;
  std::mutex mutex_;  // of what follows
  std::vector<ValueRows> runs_;
  std::vector<SpillFile> files_;  // packed values, sorted and distinct
};

}  // namespace bitwitness
