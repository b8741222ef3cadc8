#pragma once
#include "harness/probe/usage.hpp"
#include "harness/signature.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace bitwitness {

/// Offsets from a pointer: [first, end).
struct Extent {
  std::int32_t first = 0;
  std::int32_t end = 0;
  bool has_gaps = false;

  [[nodiscard]] bool empty() const { return first == end; }
  [[nodiscard]] std::int32_t size() const { return end - first; }
};

/// The bytes for which a flag of ByteUse is set.
Extent extent_of(const PointerUse& pointer, bool ByteUse::*flag);

/// The same as ranges without gaps, in order.
std::vector<Extent> parts_of(const PointerUse& pointer, bool ByteUse::*flag);

/// The type of what was stored behind a pointer, by the widths and kinds of the stores and, where these leave it open,
/// by what the numbers looked like. Bytes that were not stored are passed over.
Type stored_type(const PointerUse& pointer);

/// Packed bytes: u8 or u8[n].
Type bytes_type(std::size_t size);

/// Packed bytes behind a pointer, those below offset `end` that were read.
Type read_type(const PointerUse& pointer, std::int32_t end);

/// The type of a word that is passed by value, of which `bits` matter.
Type value_type(std::uint64_t bits, bool is_float, bool may_be_array);

}  // namespace bitwitness
