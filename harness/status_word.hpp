#pragma once
#include "harness/disassembly.hpp"

namespace bitwitness {

/// Tells whether of an x87 status word that an instruction stores only the condition codes are used, which comparisons
/// leave there, and not the sticky exception flags: "fnstsw ax" before "sahf" or "test ah, …" with some of C0, C2 and
/// C3. `next` is the instruction behind it, if there is one.
bool uses_condition_codes_only(const Instruction& store, const Instruction* next);

}  // namespace bitwitness
