#pragma once
#include "harness/emulator.hpp"

#include <cstddef>
#include <string_view>

namespace bitwitness {

/// How an instruction first accesses memory, and how many bytes of it.
struct MemoryAccess {
  Access access = Access::any;
  unsigned size = 0;  ///< 0 when it is not told
};

/// Reads off an instruction's text, as disassemble_one gives it, what it does where nothing is mapped, or with
/// `is_store` where it may only read. Says nothing certain of instructions that do several things.
MemoryAccess memory_access_of(std::string_view text, bool is_64_bit, bool is_store);

}  // namespace bitwitness
