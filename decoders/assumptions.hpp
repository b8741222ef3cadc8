#pragma once
#include <bit>
#include <cfloat>
#include <climits>
#include <limits>

// What the decoders take for granted of compiler and host. Elsewhere they must not build, for their bits would differ.

#if defined(__FAST_MATH__)
#error "bitwitness decoders compare floats as bits: build them without -ffast-math"
#endif

namespace bitwitness::decoders {

static_assert(CHAR_BIT == 8, "a packed value is a sequence of 8-bit bytes");
static_assert(std::endian::native == std::endian::little, "words and packed values share the byte order of x86");
static_assert(std::numeric_limits<float>::is_iec559 && std::numeric_limits<float>::digits == 24, "f32 is binary32");
static_assert(std::numeric_limits<double>::is_iec559 && std::numeric_limits<double>::digits == 53, "f64 is binary64");
static_assert(FLT_EVAL_METHOD == 0, "float and double expressions round to their own type at every operation");

}  // namespace bitwitness::decoders
