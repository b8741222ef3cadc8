#include "harness/distinct_values.hpp"

#include "harness/value_sorting.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace bitwitness {
namespace {

// Rows that a feeder sorts at a time: together with what sorting takes they fit a second-level cache several times
// over, but few enough portions are left to merge.
constexpr std::size_t portion_rows = std::size_t{1} << 19;

}  // namespace

bool MemoryBudget::begin_merge(std::uint64_t bytes) {
  if ((merging_ += bytes) + held_ <= bytes_) return true;
  merging_ -= bytes;
  return false;
}

DistinctValues::DistinctValues(std::size_t packed_size, MemoryBudget& budget)
    : packed_size_(packed_size), budget_(budget) {}

DistinctValues::~DistinctValues() {
  for (const ValueRows& run : runs_) budget_.give_back(bytes_of(run));
}

DistinctValues::Feeder::Feeder(DistinctValues& values) : values_(values), portion_(values.packed_size_) {
  values_.budget_.enter();
}

DistinctValues::Feeder::~Feeder() {
  values_.budget_.give_back(held_);
  values_.budget_.leave();
}

void DistinctValues::Feeder::add(std::span<const std::byte> bytes, std::size_t step) {
  const std::size_t size = values_.packed_size_;
  if (step == 0) step = size;
  std::size_t left = bytes.size() < size ? 0 : (bytes.size() - size) / step + 1;
  const std::byte* from = bytes.data();
  while (left != 0) {
    const std::size_t rows = std::min(left, portion_rows - portion_.size());
    const std::span<std::uint64_t> added = portion_.append(rows);
    load_rows(added.data(), from, rows, size, step);
    values_.budget_.take(added.size_bytes());
    held_ += added.size_bytes();
    left -= rows;
    from += rows * step;
    if (portion_.size() == portion_rows) keep_portion();
    spill_over_budget();
  }
}

void DistinctValues::Feeder::add(ValueRows rows) {
  keep_portion();
  values_.budget_.take(bytes_of(rows));
  held_ += bytes_of(rows);
  portion_ = std::move(rows);
  keep_portion();
  spill_over_budget();
}

void DistinctValues::Feeder::sort_portion() {
  ValueRows rows = std::exchange(portion_, ValueRows(values_.packed_size_));
  if (rows.size() == 0) return;
  const std::uint64_t before = bytes_of(rows);
  sort_distinct(rows);
  rows.shrink();
  values_.budget_.give_back(before - bytes_of(rows));
  held_ -= before - bytes_of(rows);
  runs_.push_back(std::move(rows));
}

void DistinctValues::Feeder::keep_portion() {
  sort_portion();
  while (runs_.size() > 1 && runs_[runs_.size() - 2].size() < 2 * runs_.back().size()) {
    const std::uint64_t before = bytes_of(runs_.back()) + bytes_of(runs_[runs_.size() - 2]);
    if (!values_.budget_.begin_merge(before)) return;
    ValueRows last = std::move(runs_.back());
    runs_.pop_back();
    runs_.back() = merge(std::move(runs_.back()), std::move(last));
    values_.budget_.end_merge(before);
    values_.budget_.give_back(before - bytes_of(runs_.back()));
    held_ -= before - bytes_of(runs_.back());
  }
}

void DistinctValues::Feeder::spill_over_budget() {
  if (values_.budget_.exceeded() && held_ >= values_.budget_.share()) spill();
}

void DistinctValues::Feeder::spill() {
  sort_portion();
  std::uint64_t most = 0;  // before values of two runs are found to be one
  std::vector<RunReader> readers;
  for (ValueRows& run : std::exchange(runs_, {})) {
    most += std::uint64_t{run.size()} * values_.packed_size_;
    readers.emplace_back(std::move(run));
  }
  StoredRun run;
  {
    const std::scoped_lock lock(values_.mutex_);
    if (!values_.file_) values_.file_.emplace();
    run.begin = values_.file_->claim(most);
  }
  run.end = write_merged(*values_.file_, run.begin, std::move(readers), values_.packed_size_);
  values_.budget_.give_back(std::exchange(held_, 0));
  const std::scoped_lock lock(values_.mutex_);
  values_.stored_.push_back(run);
}

void DistinctValues::Feeder::close() {
  keep_portion();
  if (runs_.empty()) return;
  if (values_.budget_.exceeded()) {
    spill();
    return;
  }
  if (values_.budget_.begin_merge(held_)) {
    ValueRows all = merge_smallest_first(std::exchange(runs_, {}));
    values_.budget_.end_merge(held_);
    values_.budget_.give_back(held_ - bytes_of(all));
    runs_.push_back(std::move(all));
  }
  held_ = 0;  // the collection's from here on
  const std::scoped_lock lock(values_.mutex_);
  std::ranges::move(runs_, std::back_inserter(values_.runs_));
  runs_.clear();
}

PackedValues DistinctValues::finish() {
  for (const ValueRows& run : runs_) budget_.give_back(bytes_of(run));
  std::vector<ValueRows> runs = std::exchange(runs_, {});
  if (file_) {
    SpillFile file = *std::exchange(file_, std::nullopt);
    const SpillFile merged =
        merge_in_passes(std::move(file), std::exchange(stored_, {}), std::move(runs), packed_size_);
    return {merged.map(), merged.size() / packed_size_};
  }
  PackedValues packed;
  if (!runs.empty()) {
    ValueRows all = merge_smallest_first(std::move(runs));
    packed.count = all.size();
    packed.bytes = all.release_packed(0, all.size());
  }
  return packed;
}

std::uint64_t count_distinct(std::span<const PackedValues> lists, std::size_t packed_size) {
  if (lists.size() == 1) return lists[0].count;
  const auto value = [packed_size](const PackedValues& list, std::uint64_t index) {
    return std::span(list.bytes.get() + static_cast<std::size_t>(index) * packed_size, packed_size);
  };
  std::vector<std::uint64_t> next(lists.size());
  std::uint64_t count = 0;
  while (true) {
    std::optional<std::span<const std::byte>> least;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      if (next[i] == lists[i].count) continue;
      const std::span<const std::byte> first = value(lists[i], next[i]);
      if (!least || is_less(first, *least)) least = first;
    }
    if (!least) return count;
    ++count;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      if (next[i] != lists[i].count && std::ranges::equal(value(lists[i], next[i]), *least)) ++next[i];
    }
  }
}

}  // namespace bitwitness
