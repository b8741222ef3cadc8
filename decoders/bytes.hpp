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

}  // namespace bitwitness::decoders
