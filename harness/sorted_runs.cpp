#include "harness/sorted_runs.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace bitwitness {
namespace {

constexpr std::size_t write_buffer = std::size_t{1} << 20;

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
      const int which = compare_rows(a, b, stride);
      emit(which <= 0 ? a : b);
      if (which <= 0) a += stride;
      if (which >= 0) b += stride;
    }
  }
  for (; a != a_end; a += stride) emit(a);
  for (; b != b_end; b += stride) emit(b);
}

// Writes packed values to a file through a buffer.
class PackedWriter {
 public:
  PackedWriter(SpillFile& file, std::uint64_t offset, std::size_t packed_size)
      : file_(file), offset_(offset), packed_size_(packed_size) {
    buffer_.reserve(write_buffer + packed_size);
  }

  void add(const std::uint64_t* row) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(row);
    buffer_.insert(buffer_.end(), bytes, bytes + packed_size_);
    if (buffer_.size() >= write_buffer) flush();
  }

  // Returns where the bytes written so far end.
  std::uint64_t flush() {
    file_.write(offset_, buffer_);
    offset_ += buffer_.size();
    buffer_.clear();
    return offset_;
  }

 private:
  SpillFile& file_;
  std::uint64_t offset_;
  std::size_t packed_size_;
  std::vector<std::byte> buffer_;
};

}  // namespace

std::uint64_t bytes_of(const ValueRows& rows) {
  return std::uint64_t{rows.size()} * rows.stride() * sizeof(std::uint64_t);
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

ValueRows merge(ValueRows left, ValueRows right) {
  const std::size_t stride = left.stride();
  ValueRows merged = ValueRows::sized(left.packed_size(), std::uint64_t{left.size()} + right.size());
  std::uint64_t* const begin = merged.words().data();
  std::uint64_t* to = begin;
  merge_rows(left, right, [&](const std::uint64_t* row) {
    for (std::size_t word = 0; word < stride; ++word) *to++ = row[word];
  });
  merged.truncate(static_cast<std::size_t>(to - begin) / stride);
  merged.shrink();
  return merged;
}

ValueRows merge_smallest_first(std::vector<ValueRows> runs) {
  const auto larger = [](const ValueRows& left, const ValueRows& right) { return left.size() > right.size(); };
  while (runs.size() > 1) {
    std::ranges::sort(runs, larger);
    ValueRows last = std::move(runs.back());
    runs.pop_back();
    ValueRows before = std::move(runs.back());
    runs.pop_back();
    runs.push_back(merge(std::move(before), std::move(last)));
  }
  return std::move(runs.front());
}

RunReader::RunReader(const SpillFile& file, StoredRun run, std::size_t packed_size)
    : file_(&file), left_(run), rows_(packed_size) {
  refill();
}

void RunReader::refill() {
  const std::size_t bytes = rows_.packed_size();
  // Rows and the packed values that they come from take at most as much again.
  const std::size_t most = std::max<std::size_t>(run_buffer / (2 * rows_.stride() * sizeof(std::uint64_t)), 1);
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>((left_.end - left_.begin) / bytes, most));
  packed_.resize(count * bytes);
  file_->read(left_.begin, packed_);
  left_.begin += packed_.size();
  rows_.truncate(0);
  next_ = 0;
  load_rows(rows_.append(count).data(), packed_.data(), count, bytes, bytes);
}

std::uint64_t write_merged(SpillFile& file, std::uint64_t offset, std::vector<RunReader> runs,
                           std::size_t packed_size) {
  const std::size_t stride = ValueRows(packed_size).stride();
  const auto later = [&](std::size_t left, std::size_t right) {
    return compare_rows(runs[left].row(), runs[right].row(), stride) > 0;
  };
  std::vector<std::size_t> heap;  // of runs that are not at their end, the least row on top
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].row() != nullptr) heap.push_back(i);
  }
  std::ranges::make_heap(heap, later);
  PackedWriter writer(file, offset, packed_size);
  std::vector<std::uint64_t> last;
  while (!heap.empty()) {
    std::ranges::pop_heap(heap, later);
    RunReader& run = runs[heap.back()];
    const std::uint64_t* const row = run.row();
    if (last.empty() || compare_rows(row, last.data(), stride) != 0) {
      writer.add(row);
      last.assign(row, row + stride);
    }
    run.advance();
    if (run.row() == nullptr) {
      heap.pop_back();
    } else {
      std::ranges::push_heap(heap, later);
    }
  }
  return writer.flush();
}

SpillFile merge_in_passes(SpillFile file, std::vector<StoredRun> stored, std::vector<ValueRows> runs,
                          std::size_t packed_size) {
  while (true) {
    SpillFile merged;
    std::vector<StoredRun> merged_runs;
    std::size_t next = 0;
    while (next < stored.size() || !runs.empty()) {
      std::vector<RunReader> readers;
      for (; next < stored.size() && readers.size() < most_runs_at_once; ++next) {
        readers.emplace_back(file, stored[next], packed_size);
      }
      for (; !runs.empty() && readers.size() < most_runs_at_once; runs.pop_back()) {
        readers.emplace_back(std::move(runs.back()));
      }
      const std::uint64_t begin = merged.size();
      const std::uint64_t end = write_merged(merged, begin, std::move(readers), packed_size);
      merged.claim(end - begin);
      merged_runs.push_back({begin, end});
    }
    if (merged_runs.size() <= 1) return merged;
    file = std::move(merged);
    stored = std::move(merged_runs);
  }
}

}  // namespace bitwitness
