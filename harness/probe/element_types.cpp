#include "harness/probe/element_types.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>

namespace bitwitness {
namespace {

constexpr unsigned vector_width = 16;

/// Bytes of the elements that a store is made of.
unsigned element_width(const StoreSeen& store) {
  switch (store.kind) {
    case StoreKind::single:
      return 4;
    case StoreKind::wide:
      return 8;
    case StoreKind::vector:
      return vector_width;
    case StoreKind::integer:
      break;
  }
  return store.size;
}

bool covers(const StoreSeen& store, std::int32_t offset) {
  return store.offset <= offset && offset < store.offset + static_cast<std::int32_t>(store.size);
}

/// Tells whether every four bytes were stored as a float or always looked like one.
bool holds_floats(const PointerUse& pointer, const Extent& written) {
  bool any = false;
  for (std::int32_t at = written.first; at + 4 <= written.end; at += 4) {
    const bool stored = std::ranges::any_of(
        pointer.stores, [at](const StoreSeen& store) { return store.kind == StoreKind::single && covers(store, at); });
    const auto index = static_cast<std::size_t>(at + static_cast<std::int32_t>(window_front));
    if (!stored && pointer.is_odd[index]) return false;
    any |= stored || pointer.is_nonzero[index];
  }
  return any;
}

/// Ranges as elements and what is passed over between them.
Type of(Scalar scalar, std::span<const Extent> parts) {
  Type type{scalar, 0, false};
  std::int32_t end = 0;
  for (const Extent& part : parts) {
    if (part.first != end) type.skips.push_back({type.count, static_cast<std::uint32_t>(part.first - end)});
    type.count += static_cast<std::uint32_t>(static_cast<std::size_t>(part.size()) / size_of(scalar));
    end = part.end;
  }
  type.is_array = type.count != 1 || !type.skips.empty();
  return type;
}

}  // namespace

Extent extent_of(const PointerUse& pointer, bool ByteUse::*flag) {
  Extent extent;
  bool any = false;
  for (std::size_t at = 0; at < pointer.bytes.size(); ++at) {
    if (!(pointer.bytes[at].*flag)) continue;
    const std::int32_t offset = static_cast<std::int32_t>(at) - static_cast<std::int32_t>(window_front);
    if (!any) extent.first = offset;
    if (any && offset != extent.end) extent.has_gaps = true;
    extent.end = offset + 1;
    any = true;
  }
  return extent;
}

std::vector<Extent> parts_of(const PointerUse& pointer, bool ByteUse::*flag) {
  std::vector<Extent> parts;
  for (std::size_t at = 0; at < pointer.bytes.size(); ++at) {
    if (!(pointer.bytes[at].*flag)) continue;
    const std::int32_t offset = static_cast<std::int32_t>(at) - static_cast<std::int32_t>(window_front);
    if (parts.empty() || parts.back().end != offset) parts.push_back({offset, offset, false});
    parts.back().end = offset + 1;
  }
  return parts;
}

Type stored_type(const PointerUse& pointer) {
  const std::vector<Extent> parts = parts_of(pointer, &ByteUse::written);
  const Extent written = extent_of(pointer, &ByteUse::written);
  unsigned width = vector_width;
  bool any_wide = false;
  bool only_wide = true;
  bool any_vector = false;
  for (const StoreSeen& store : pointer.stores) {
    width = std::min(width, element_width(store));
    any_wide |= store.kind == StoreKind::wide;
    any_vector |= store.kind == StoreKind::vector;
    only_wide &= store.kind == StoreKind::wide || element_width(store) == vector_width;
  }
  for (const StoreSeen& store : pointer.stores) {
    width = std::gcd(width, static_cast<unsigned>(store.offset - written.first));
  }
  for (const Extent& part : parts) {
    width = std::gcd(width, static_cast<unsigned>(part.first - written.first));
    width = std::gcd(width, static_cast<unsigned>(part.size()));
  }
  if (width == 1) return of(Scalar::u8, parts);
  if (width == 2) return of(Scalar::u16, parts);
  if (width >= 8 && any_wide && only_wide) return of(Scalar::f64, parts);
  if (holds_floats(pointer, written)) return of(Scalar::f32, parts);
  if (width == 8 && !any_vector) return of(Scalar::u64, parts);
  return of(Scalar::u32, parts);
}

Type read_type(const PointerUse& pointer, std::int32_t end) {
  std::vector<Extent> parts = parts_of(pointer, &ByteUse::read);
  std::erase_if(parts, [end](const Extent& part) { return part.first < 0 || part.first >= end; });
  if (parts.empty()) return bytes_type(static_cast<std::size_t>(end));
  parts.back().end = std::min(parts.back().end, end);
  return of(Scalar::u8, parts);
}

Type bytes_type(std::size_t size) {
  return {Scalar::u8, static_cast<std::uint32_t>(size), size != 1};
}

Type value_type(std::uint64_t bits, bool is_float, bool may_be_array) {
  const auto bytes = static_cast<std::size_t>((std::bit_width(bits) + 7) / 8);
  if (is_float) return {bytes > 4 ? Scalar::f64 : Scalar::f32, 1, false};
  if (bytes <= 1) return {Scalar::u8, 1, false};
  if (bytes == 2) return {Scalar::u16, 1, false};
  if (bytes == 3 && may_be_array) return {Scalar::u8, 3, true};
  return {bytes <= 4 ? Scalar::u32 : Scalar::u64, 1, false};
}

}  // namespace bitwitness
