#pragma once
#include "harness/disassembly.hpp"
#include "harness/image.hpp"

#include <string_view>

namespace bitwitness {

/// Says why an emulator must not be trusted with an instruction of the image ("is VEX-encoded, …"). Empty when it may
/// execute it.
std::string_view why_refused(const Image& image, const Instruction& instruction);

}  // namespace bitwitness
