#pragma once
#include "harness/proof/expression.hpp"

/// Floating-point operations by this computer's own instructions: SSE for f32 and f64, x87 for x80, with the control
/// words that a mode asks for and every exception masked. All throw Error on processors other than x86-64.
namespace bitwitness::proof {

/// float_add, _subtract, _multiply, _divide, _sqrt (of a), _min, _max or, of x80, _round (of a).
Bits processor_arithmetic(Kind kind, const FloatMode& mode, Bits a, Bits b);

/// From a format to that of the mode.
Bits processor_convert(Format source, const FloatMode& mode, Bits a);

/// From f32 or f64 to x80 as an operand in memory is: sNaN is not made quiet.
Bits processor_widen(Format source, Bits a);

/// From a signed integer of 16, 32 or 64 bits to the mode's format.
Bits processor_from_integer(const FloatMode& mode, unsigned width, Bits a);

/// To a signed integer of 32, 64 or, of x80, 16 bits.
Bits processor_to_integer(const FloatMode& mode, unsigned width, Bits a);

/// float_unordered, _less or _equal.
bool processor_compare(Kind kind, const FloatMode& mode, Bits a, Bits b);

}  // namespace bitwitness::proof
