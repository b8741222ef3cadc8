#pragma once
#include "harness/machine.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace bitwitness {

/// Returns the x87 control words that a sweep goes through, with every exception masked: the precisions of 53 bits
/// (Win32's default, which others are compared with), 24 and 64 bits, rounding to nearest. With `all_roundings` then
/// also rounding down, up and toward zero in each precision.
std::vector<std::uint16_t> swept_fpcw(bool all_roundings);

/// Returns the SSE control words that a sweep goes through: default, FTZ (tiny results become zero), DAZ (denormal
/// operands are taken as zero), both.
std::vector<std::uint32_t> swept_mxcsr();

/// Returns what an environment is known as, e.g. "Win32 default" or "Direct3D 9's, FTZ"; empty when it has no name.
std::string environment_name(const Environment& environment);

}  // namespace bitwitness
