#include "harness/value_sorting.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace bitwitness {
namespace {

void copy_row(std::uint64_t* to, const std::uint64_t* from, std::size_t stride) {
  for (std::size_t word = 0; word < stride; ++word) to[word] = from[word];
}

// Sorts rows by their four highest bytes with counting passes, then each group of rows that agree in these by the bytes
// below. Values spread at random are in order after four passes; groups are rare, small, or already in order.
template <std::size_t stride>
class GroupSort {
 public:
  GroupSort(std::uint64_t* rows, std::uint64_t* scratch) : rows_(rows), scratch_(scratch) {}

  // Sorts a half-open range of rows that agree from byte `top` upwards.
  void sort(std::size_t begin, std::size_t end, std::size_t top) {
    if (end - begin <= few) return insert(begin, end);
    if (is_sorted(begin, end)) return;
    const Group group(top);
    pass(begin, end, group);
    if (group.low == 0) return;
    std::size_t first = begin;
    std::uint32_t key = group.of(row(first));
    for (std::size_t next = begin + 1; next <= end; ++next) {
      const std::uint32_t next_key = next < end ? group.of(row(next)) : ~key;
      if (next_key == key) continue;
      if (next - first > 1) sort(first, next, group.low);
      first = next;
      key = next_key;
    }
  }

 private:
  static constexpr std::size_t group_bytes = 4;
  static constexpr std::size_t few = 16;

  // The up to four bytes below `top`.
  struct Group {
    explicit Group(std::size_t top) : low(top - std::min(top, group_bytes)), bytes(top - low) {}

    [[nodiscard]] std::uint32_t of(const std::uint64_t* row) const {
      const std::size_t shift = 8 * (low % 8);
      std::uint64_t bits = row[low / 8] >> shift;
      if (shift > 32 && low / 8 + 1 < stride) bits |= row[low / 8 + 1] << (64 - shift);
      return static_cast<std::uint32_t>(bits) & (0xFFFFFFFFu >> (32 - 8 * bytes));
    }

    std::size_t low;
    std::size_t bytes;
  };

  [[nodiscard]] std::uint64_t* row(std::size_t index) const { return rows_ + index * stride; }

  [[nodiscard]] bool is_sorted(std::size_t begin, std::size_t end) const {
    for (std::size_t next = begin + 1; next < end; ++next) {
      if (compare_rows(row(next), row(next - 1), stride) < 0) return false;
    }
    return true;
  }

  void insert(std::size_t begin, std::size_t end) {
    std::array<std::uint64_t, stride> held;
    for (std::size_t next = begin + 1; next < end; ++next) {
      copy_row(held.data(), row(next), stride);
      std::size_t to = next;
      for (; to > begin && compare_rows(held.data(), row(to - 1), stride) < 0; --to)
        copy_row(row(to), row(to - 1), stride);
      copy_row(row(to), held.data(), stride);
    }
  }

  void pass(std::size_t begin, std::size_t end, const Group& group) {
    const std::size_t count = end - begin;
    std::array<std::array<std::uint32_t, 256>, group_bytes> counters{};
    for (std::size_t index = begin; index < end; ++index) {
      const std::uint32_t key = group.of(row(index));
      for (std::size_t byte = 0; byte < group_bytes; ++byte) ++counters[byte][key >> 8 * byte & 0xFF];
    }
    std::uint64_t* from = row(begin);
    std::uint64_t* to = scratch_ + begin * stride;
    for (std::size_t byte = 0; byte < group.bytes; ++byte) {
      auto& places = counters[byte];
      if (std::ranges::find(places, count) != places.end()) continue;
      std::uint32_t next = 0;
      for (std::uint32_t& place : places) next += std::exchange(place, next);
      const std::size_t word = (group.low + byte) / 8;
      const std::size_t shift = 8 * ((group.low + byte) % 8);
      const std::uint64_t* source = from;
      for (std::size_t index = 0; index < count; ++index, source += stride) {
        copy_row(to + places[source[word] >> shift & 0xFF]++ * stride, source, stride);
      }
      std::swap(from, to);
    }
    if (from != row(begin)) std::copy_n(from, count * stride, to);
  }

  std::uint64_t* rows_;
  std::uint64_t* scratch_;
};

template <std::size_t stride>
void sort_in_scratch(ValueRows& rows) {
  const auto scratch = std::make_unique_for_overwrite<std::uint64_t[]>(rows.size() * stride);
  GroupSort<stride>(rows.words().data(), scratch.get()).sort(0, rows.size(), rows.packed_size());
}

// Sorts indices by the top word, looking at the rows only where top words are equal, then moves the rows in place.
void sort_by_index(ValueRows& rows) {
  struct Entry {
    std::uint64_t top;
    std::uint32_t row;
  };
  const std::size_t stride = rows.stride();
  std::uint64_t* const words = rows.words().data();
  std::vector<Entry> order(rows.size());
  for (std::size_t row = 0; row < order.size(); ++row) {
    order[row] = {words[row * stride + stride - 1], static_cast<std::uint32_t>(row)};
  }
  std::ranges::sort(order, [&](const Entry& left, const Entry& right) {
    if (left.top != right.top) return left.top < right.top;
    return compare_rows(words + left.row * stride, words + right.row * stride, stride) < 0;
  });
  std::vector<std::uint64_t> held(stride);
  for (std::size_t start = 0; start < order.size(); ++start) {
    if (order[start].row == start) continue;
    copy_row(held.data(), words + start * stride, stride);
    std::size_t to = start;
    for (std::size_t from = order[to].row; from != start; from = order[to].row) {
      copy_row(words + to * stride, words + from * stride, stride);
      order[to].row = static_cast<std::uint32_t>(to);
      to = from;
    }
    copy_row(words + to * stride, held.data(), stride);
    order[to].row = static_cast<std::uint32_t>(to);
  }
}

// Returns how many rows are left.
std::size_t drop_repeated(std::span<std::uint64_t> words, std::size_t stride) {
  std::uint64_t* to = words.data();
  for (std::uint64_t* from = words.data(); from != words.data() + words.size(); from += stride) {
    if (to != words.data() && compare_rows(to - stride, from, stride) >= 0) continue;
    copy_row(to, from, stride);
    to += stride;
  }
  return static_cast<std::size_t>(to - words.data()) / stride;
}

}  // namespace

void sort_distinct(ValueRows& rows) {
  std::size_t left = 0;
  switch (rows.stride()) {
    case 1:
      sort_in_scratch<1>(rows);
      left = drop_repeated(rows.words(), 1);
      break;
    case 2:
      sort_in_scratch<2>(rows);
      left = drop_repeated(rows.words(), 2);
      break;
    default:
      sort_by_index(rows);
      left = drop_repeated(rows.words(), rows.stride());
      break;
  }
  rows.truncate(left);
}

}  // namespace bitwitness
