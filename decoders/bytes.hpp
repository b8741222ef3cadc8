#pragma once
#include "decoders/assumptions.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace bitwitness::decoders {

/// Reads the little-endian u16 at a byte offset. The span must reach that far.
constexpr std::uint16_t load_u16(std::span<const std::byte> bytes, std::size_t offset) {
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes[offset]) |
                                    std::to_integer<unsigned>(bytes[offset + 1]) << 8);
}

/// Reads the little-endian u32 at a byte offset. The span must reach that far.
constexpr std::uint32_t load_u32(std::span<const std::byte> bytes, std::size_t offset) {
  return load_u16(bytes, offset) | std::uint32_t{load_u16(bytes, offset + 2)} << 16;
}

/// Reads the little-endian u64 at a byte offset. The span must reach that far.
constexpr std::uint64_t load_u64(std::span<const std::byte> bytes, std::size_t offset) {
  return load_u32(bytes, offset) | std::uint64_t{load_u32(bytes, offset + 4)} << 32;
}

}  // namespace bitwitness::decoders
