#pragma once
#include <array>

namespace bitwitness::decoders {

/// A rotation: x, y, z, w, the order of the decoders' words.
using Quaternion = std::array<float, 4>;

/// A translation: x, y, z, in metres.
using Translation = std::array<float, 3>;

}  // namespace bitwitness::decoders
