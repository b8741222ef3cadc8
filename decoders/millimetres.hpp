#pragma once
#include "decoders/assumptions.hpp"

#include <bit>

namespace bitwitness::decoders {

/// The unit of packed translations in metres: the f32 nearest 0.001.
inline constexpr float millimetre = std::bit_cast<float>(0x3A83126Fu);

/// Turns packed millimetres of -32768 … 32767 into metres: one f32 product. The product of 16 and 24 bits is exact in
/// double, so that x87 code of any precision gives these bits as well; a division by 1000
/// differs in 38,838 of the 65,536 codes, 73 among them.
constexpr float metres(int millimetres) {
  return static_cast<float>(millimetres) * millimetre;
}

}  // namespace bitwitness::decoders
