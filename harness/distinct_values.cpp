#include "harness/distinct_values.hpp"

#include "harness/value_sorting.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace bitwitness {
namespace {

// Rows that a feeder sorts at a time: together with what sorting takes they fit a second-level cache several times
// over, but few enough portions are left to merge.
constexpr std::size_t portion_rows = std::size_t{1} << 19;

constexpr std::size_t file_buffer = std::size_t{1} << 20;

std::uint64_t bytes_of(const ValueRows& rows) {
  return std::uint64_t{rows.size()} * rows.stride() * sizeof(std::uint64_t);
}

template <typename Number>
std::uint64_t load(const std::byte* from) {
  Number number;
  std::memcpy(&number, from, sizeof number);
  return number;
}

// Reads up to eight bytes as one number, without touching a byte beyond them.
std::uint64_t load_word(const std::byte* from, std::size_t bytes) {
  if (bytes == 8) return load<std::uint64_t>(from);
  if (bytes >= 4) return load<std::uint32_t>(from) | load<std::uint32_t>(from + bytes - 4) << 8 * (bytes - 4);
  std::uint64_t word = 0;
  std::memcpy(&word, from, bytes);
  return word;
}

void load_rows(std::uint64_t* to, const std::byte* from, std::size_t rows, std::size_t bytes, std::size_t step) {
  if (bytes <= 8) {
    for (std::size_t row = 0; row < rows; ++row, from += step) to[row] = load_word(from, bytes);
    return;
  }
  for (std::size_t row = 0; row < rows; ++row, from += step) {
    for (std::size_t at = 0; at < bytes; at += 8) *to++ = load_word(from + at, std::min<std::size_t>(8, bytes - at));
  }
}

// -1, 0 or 1 as the first row is less than, equal to or greater than the second.
int order(const std::uint64_t* left, const std::uint64_t* right, std::size_t stride) {
  for (std::size_t word = stride; word-- > 0;) {
    if (left[word] != right[word]) return left[word] < right[word] ? -1 : 1;
  }
  return 0;
}

// Hands each row of either sorted list to `emit` once, in order.
template <typename Emit>
void merge_rows(ValueRows& left, ValueRows& right, Emit&& emit) {
  const std::size_t stride = left.stride();
  const std::uint64_t* a = left.words().data();
  const std::uint64_t* const a_end = a + left.words().size();
  const std::uint64_t* b = right.words().data();
  const std::uint64_t* const b_end = b + right.words().size();
  if (stride == 1) {
    // Sums instead of branches: which list is next follows no pattern.
    while (a != a_end && b != b_end) {
      const std::uint64_t from_a = *a;
      const std::uint64_t from_b = *b;
      const std::uint64_t least = std::min(from_a, from_b);
      emit(&least);
      a += static_cast<std::size_t>(from_a <= from_b);
      b += static_cast<std::size_t>(from_b <= from_a);
    }
  } else {
    while (a != a_end && b != b_end) {
      const int which = order(a, b, stride);
      emit(which <= 0 ? a : b);
      if (which <= 0) a += stride;
      if (which >= 0) b += stride;
    }
  }
  for (; a != a_end; a += stride) emit(a);
  for (; b != b_end; b += stride) emit(b);
}

ValueRows merge(ValueRows left, ValueRows right) {
  const std::size_t stride = left.stride();
  ValueRows merged(left.packed_size());
  std::uint64_t* const begin = merged.append(left.size() + right.size()).data();
  std::uint64_t* to = begin;
  merge_rows(left, right, [&](const std::uint64_t* row) {
    for (std::size_t word = 0; word < stride; ++word) *to++ = row[word];
  });
  merged.truncate(static_cast<std::size_t>(to - begin) / stride);
  return merged;
}

ValueRows merge_smallest_first(std::vector<ValueRows> runs, std::size_t down_to) {
  const auto larger = [](const ValueRows& left, const ValueRows& right) { return left.size() > right.size(); };
  while (runs.size() > down_to) {
    std::ranges::sort(runs, larger);
    ValueRows last = std::move(runs.back());
    runs.pop_back();
    ValueRows before = std::move(runs.back());
    runs.pop_back();
    runs.push_back(merge(std::move(before), std::move(last)));
  }
  return std::move(runs.front());
}

// Writes packed values to a file through a buffer.
class PackedWriter {
 public:
  PackedWriter(SpillFile& file, std::size_t packed_size) : file_(file), packed_size_(packed_size) {
    buffer_.reserve(file_buffer + packed_size);
  }

  void add(const std::uint64_t* row) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(row);
    buffer_.insert(buffer_.end(), bytes, bytes + packed_size_);
    if (buffer_.size() >= file_buffer) flush();
  }

  void flush() {
    file_.append(buffer_);
    buffer_.clear();
  }

 private:
  SpillFile& file_;
  std::size_t packed_size_;
  std::vector<std::byte> buffer_;
};

// Gives the rows of one sorted run, wherever it is.
class RunReader {
 public:
  RunReader(const SpillFile& file, std::size_t packed_size) : file_(&file), rows_(packed_size) { refill(); }
  explicit RunReader(ValueRows rows) : rows_(std::move(rows)) {}

  // Null at the end.
  const std::uint64_t* row() { return next_ < rows_.size() ? rows_.words().data() + next_ * rows_.stride() : nullptr; }

  void advance() {
    if (++next_ == rows_.size() && file_ != nullptr) refill();
  }

 private:
  void refill() {
    const std::size_t bytes = rows_.packed_size();
    const std::uint64_t left = (file_->size() - at_) / bytes;
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left, file_buffer / bytes));
    packed_.resize(count * bytes);
    file_->read(at_, packed_);
    at_ += packed_.size();
    rows_.truncate(0);
    next_ = 0;
    load_rows(rows_.append(count).data(), packed_.data(), count, bytes, bytes);
  }

  const SpillFile* file_ = nullptr;
  std::uint64_t at_ = 0;
  std::vector<std::byte> packed_;
  ValueRows rows_;
  std::size_t next_ = 0;
};

}  // namespace

DistinctValues::DistinctValues(std::size_t packed_size, MemoryBudget& budget)
    : packed_size_(packed_size), budget_(budget) {}

DistinctValues::~DistinctValues() {
  for (const ValueRows& run : runs_) budget_.give_back(bytes_of(run));
}

DistinctValues::Feeder::Feeder(DistinctValues& values) : values_(values), portion_(values.packed_size_) {}

DistinctValues::Feeder::~Feeder() {
  for (const ValueRows& run : runs_) values_.budget_.give_back(bytes_of(run));
}

void DistinctValues::Feeder::add(std::span<const std::byte> bytes, std::size_t step) {
  const std::size_t size = values_.packed_size_;
  if (step == 0) step = size;
  std::size_t left = bytes.size() < size ? 0 : (bytes.size() - size) / step + 1;
  const std::byte* from = bytes.data();
  while (left != 0) {
    const std::size_t rows = std::min(left, portion_rows - portion_.size());
    load_rows(portion_.append(rows).data(), from, rows, size, step);
    left -= rows;
    from += rows * step;
    if (portion_.size() == portion_rows) {
      keep_portion(std::exchange(portion_, ValueRows(size)));
    }
  }
}

void DistinctValues::Feeder::add(ValueRows rows) {
  keep_portion(std::move(rows));
}

void DistinctValues::Feeder::keep_portion(ValueRows rows) {
  sort_distinct(rows);
  values_.budget_.take(bytes_of(rows));
  runs_.push_back(std::move(rows));
  while (runs_.size() > 1 && runs_[runs_.size() - 2].size() < 2 * runs_.back().size()) {
    ValueRows last = std::move(runs_.back());
    runs_.pop_back();
    const std::uint64_t before = bytes_of(last) + bytes_of(runs_.back());
    runs_.back() = merge(std::move(runs_.back()), std::move(last));
    values_.budget_.give_back(before - bytes_of(runs_.back()));
  }
  if (values_.budget_.exceeded()) spill();
}

ValueRows DistinctValues::Feeder::merge_all() {
  std::uint64_t held = 0;
  for (const ValueRows& run : runs_) held += bytes_of(run);
  ValueRows all = merge_smallest_first(std::exchange(runs_, {}), 1);
  values_.budget_.give_back(held - bytes_of(all));
  return all;
}

void DistinctValues::Feeder::spill() {
  ValueRows all = merge_all();
  values_.budget_.give_back(bytes_of(all));
  SpillFile file;
  PackedWriter writer(file, values_.packed_size_);
  const std::span<const std::uint64_t> words = all.words();
  for (std::size_t at = 0; at < words.size(); at += all.stride()) writer.add(words.data() + at);
  writer.flush();
  const std::scoped_lock lock(values_.mutex_);
  values_.files_.push_back(std::move(file));
}

void DistinctValues::Feeder::close() {
  if (portion_.size() != 0) keep_portion(std::exchange(portion_, ValueRows(values_.packed_size_)));
  if (runs_.empty()) return;
  ValueRows all = merge_all();
  const std::scoped_lock lock(values_.mutex_);
  values_.runs_.push_back(std::move(all));
}

PackedValues DistinctValues::finish() {
  if (!files_.empty()) return finish_in_file();
  PackedValues packed;
  if (!runs_.empty()) {
    for (const ValueRows& run : runs_) budget_.give_back(bytes_of(run));
    ValueRows all = merge_smallest_first(std::exchange(runs_, {}), 1);
    packed.count = all.size();
    packed.bytes = all.release_packed(0, all.size());
  }
  return packed;
}

PackedValues DistinctValues::finish_in_file() {
  std::vector<RunReader> readers;
  for (const SpillFile& file : files_) readers.emplace_back(file, packed_size_);
  for (ValueRows& run : runs_) {
    budget_.give_back(bytes_of(run));
    readers.emplace_back(std::move(run));
  }
  runs_.clear();
  const std::size_t stride = ValueRows(packed_size_).stride();
  const auto later = [&](std::size_t left, std::size_t right) {
    return order(readers[left].row(), readers[right].row(), stride) > 0;
  };
  std::vector<std::size_t> heap;  // of readers that are not at their end, the least row on top
  for (std::size_t i = 0; i < readers.size(); ++i) {
    if (readers[i].row() != nullptr) heap.push_back(i);
  }
  std::ranges::make_heap(heap, later);
  SpillFile merged;
  PackedWriter writer(merged, packed_size_);
  std::vector<std::uint64_t> last;
  while (!heap.empty()) {
    std::ranges::pop_heap(heap, later);
    RunReader& reader = readers[heap.back()];
    const std::uint64_t* const row = reader.row();
    if (last.empty() || order(row, last.data(), stride) != 0) {
      writer.add(row);
      last.assign(row, row + stride);
    }
    reader.advance();
    if (reader.row() == nullptr) {
      heap.pop_back();
    } else {
      std::ranges::push_heap(heap, later);
    }
  }
  writer.flush();
  files_.clear();
  return {merged.map(), merged.size() / packed_size_};
}

}  // namespace bitwitness
