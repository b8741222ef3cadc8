#pragma once
#include "harness/values.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

namespace bitwitness {

/// Returns memory to the C library, whose realloc grows and shrinks large buffers without copying them.
struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

/// Compares rows of `stride` words as integers: below 0, 0 or above 0 as the first is less, equal or greater.
inline int compare_rows(const std::uint64_t* left, const std::uint64_t* right, std::size_t stride) {
  for (std::size_t word = stride; word-- > 0;) {
    if (left[word] != right[word]) return left[word] < right[word] ? -1 : 1;
  }
  return 0;
}

/// Packed values while a set is built: rows of 64-bit words, low word first, with zeros beyond the packed size. Every
/// size up to max_packed_size is generated and sorted in this one form.
class ValueRows {
 public:
  /// Makes an empty list for values of that many bytes.
  explicit ValueRows(std::size_t packed_size);

  /// Makes a list of so many uninitialised rows, also of more than max_listed: for what is merged, and has its bound
  /// elsewhere.
  static ValueRows sized(std::size_t packed_size, std::uint64_t rows);

  [[nodiscard]] std::size_t packed_size() const { return packed_size_; }  ///< bytes
  [[nodiscard]] std::size_t stride() const { return stride_; }            ///< words of one row
  [[nodiscard]] std::size_t size() const { return size_; }                ///< rows

  [[nodiscard]] std::span<std::uint64_t> words() { return {words_.get(), size_ * stride_}; }

  /// Makes room for so many rows in all. Throws Error above max_listed.
  void reserve(std::uint64_t rows);

  /// Adds rows and returns their words, uninitialised. Throws Error when the list would exceed max_listed.
  std::span<std::uint64_t> append(std::uint64_t rows);

  /// Adds one value, given as its packed_size bytes.
  void append_value(std::span<const std::byte> packed);

  /// Keeps the first rows only.
  void truncate(std::size_t rows) { size_ = rows; }

  /// Gives memory beyond the rows there are back.
  void shrink();

  /// Empties the list and returns a half-open range of its rows as packed bytes, one value after the other.
  std::unique_ptr<std::byte[], FreeMemory> release_packed(std::size_t begin, std::size_t end);

 private:
  void resize_memory(std::size_t bytes);
  void allocate(std::uint64_t rows);

  std::size_t packed_size_;
  std::size_t stride_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
  std::unique_ptr<std::uint64_t[], FreeMemory> words_;
};

}  // namespace bitwitness
