#include "harness/value_rows.hpp"

#include "harness/error.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include <fmt/format.h>

namespace bitwitness {
namespace {

// Moves rows of `stride` words together until only their `bytes` low bytes are left. Whole rows are written, each over
// the zeros that the one before left behind its bytes; a row never reaches the source of the next.
template <std::size_t stride>
void close_up(std::byte* to, const std::uint64_t* from, std::size_t rows, std::size_t bytes) {
  for (std::size_t row = 0; row < rows; ++row, to += bytes, from += stride) {
    std::array<std::uint64_t, stride> words;
    std::memcpy(words.data(), from, sizeof words);
    std::memcpy(to, words.data(), sizeof words);
  }
}

}  // namespace

ValueRows::ValueRows(std::size_t packed_size) : packed_size_(packed_size), stride_((packed_size + 7) / 8) {}

ValueRows ValueRows::sized(std::size_t packed_size, std::uint64_t rows) {
  ValueRows made(packed_size);
  made.allocate(rows);
  made.size_ = static_cast<std::size_t>(rows);
  return made;
}

void ValueRows::shrink() {
  if (size_ < capacity_) allocate(size_);
}

void ValueRows::resize_memory(std::size_t bytes) {
  void* const memory = std::realloc(words_.get(), std::max<std::size_t>(bytes, 1));
  if (memory == nullptr) throw std::bad_alloc();
  static_cast<void>(words_.release());
  words_.reset(static_cast<std::uint64_t*>(memory));
}

void ValueRows::reserve(std::uint64_t rows) {
  if (rows > max_listed) {
    throw Error(fmt::format("the sources list {} values; at most {} are held in memory", rows, max_listed));
  }
  if (rows > capacity_) allocate(rows);
}

void ValueRows::allocate(std::uint64_t rows) {
  resize_memory(static_cast<std::size_t>(rows) * stride_ * sizeof(std::uint64_t));
  capacity_ = static_cast<std::size_t>(rows);
}

std::span<std::uint64_t> ValueRows::append(std::uint64_t rows) {
  const std::uint64_t wanted = size_ + rows;
  if (wanted > capacity_) reserve(std::max(wanted, std::min<std::uint64_t>(max_listed, capacity_ + capacity_ / 2)));
  const std::size_t first = size_;
  size_ = static_cast<std::size_t>(wanted);
  return words().subspan(first * stride_);
}

void ValueRows::append_value(std::span<const std::byte> packed) {
  const std::span<std::uint64_t> row = append(1);
  row.back() = 0;
  std::memcpy(row.data(), packed.data(), packed.size());
}

std::unique_ptr<std::byte[], FreeMemory> ValueRows::release_packed(std::size_t begin, std::size_t end) {
  auto* const to = reinterpret_cast<std::byte*>(words_.get());
  const std::uint64_t* const from = words_.get() + begin * stride_;
  switch (stride_) {
    case 1:
      close_up<1>(to, from, end - begin, packed_size_);
      break;
    case 2:
      close_up<2>(to, from, end - begin, packed_size_);
      break;
    default:
      for (std::size_t row = 0; row < end - begin; ++row) {
        std::memmove(to + row * packed_size_, from + row * stride_, packed_size_);
      }
      break;
  }
  resize_memory((end - begin) * packed_size_);
  size_ = 0;
  capacity_ = 0;
  return std::unique_ptr<std::byte[], FreeMemory>(reinterpret_cast<std::byte*>(words_.release()));
}

}  // namespace bitwitness
