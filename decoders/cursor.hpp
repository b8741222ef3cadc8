#pragma once
#include "decoders/animation.hpp"
#include "decoders/assumptions.hpp"

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace bitwitness::decoders {

/// Reads a little-endian number, or the bits of a float, at a byte offset. The span must reach that far.
template <typename Number>
requires std::unsigned_integral<Number> || std::floating_point<Number> Number load(std::span<const std::byte> bytes,
                                                                                   std::size_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

/// Reads fields one after another and keeps the first rule broken. After that every read gives zeros or nothing and
/// moves no further, so that a caller may read a whole header and ask once. Never reads outside its bytes.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes, std::size_t offset = 0)
      : bytes_(bytes), offset_(std::min(offset, bytes.size())) {}

  /// Takes one number; Rule::truncated at its offset where the bytes end before it does.
  template <typename Number>
  Number read() {
    const std::span<const std::byte> field = take(sizeof(Number));
    return field.empty() ? Number{} : load<Number>(field, 0);
  }

  /// Takes `count` elements of `width` bytes. Any count may be given: it is compared with what is left, not multiplied.
  std::span<const std::byte> take(std::uint64_t count, std::size_t width = 1) {
    if (!require(count <= remaining() / width, Rule::truncated, offset_, count)) return {};
    const std::size_t size = static_cast<std::size_t>(count) * width;
    const std::span<const std::byte> taken = bytes_.subspan(offset_, size);
    offset_ += size;
    return taken;
  }

  /// Refuses unless `holds`, for a field at `at` that holds `found`; returns whether nothing has been refused so far.
  bool require(bool holds, Rule rule, std::size_t at, std::uint64_t found = 0) {
    if (!refused_ && !holds) {
      refused_ = true;
      refusal_ = {.offset = at, .rule = rule, .found = found};
    }
    return !refused_;
  }

  /// Takes one number that must equal `wanted`.
  template <typename Number>
  void expect(Number wanted, Rule rule) {
    const std::size_t at = offset_;
    const Number found = read<Number>();
    require(found == wanted, rule, at, found);
  }

  std::size_t offset() const { return offset_; }
  std::size_t remaining() const { return bytes_.size() - offset_; }
  bool refused() const { return refused_; }

  /// The first rule broken; only meaningful once refused() is true.
  const Refusal& refusal() const { return refusal_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t offset_;
  bool refused_ = false;
  Refusal refusal_;
};

}  // namespace bitwitness::decoders
