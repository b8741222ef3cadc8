#pragma once
#include "harness/image.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace bitwitness {

/// What a caller was seen to put into a register or a stack word for a call.
struct PassedWord {
  enum class Kind : std::uint8_t {
    unknown,    ///< written, by something that is not followed
    immediate,  ///< the same number whenever this code runs
    local,      ///< the address of something on the caller's own stack
    address,    ///< another address, by lea
    memory,     ///< loaded from memory
    register_,  ///< a register that was written before the part that is read
  };
  Kind kind = Kind::unknown;
  std::uint64_t number = 0;  ///< immediate: cut to the width of a word
  bool is_pushed = false;    ///< stack words: by push, not by a store into room that was there
};

/// How the code behind a call uses what the call left in registers.
struct ResultUse {
  bool eax = false;   ///< read before it is written
  bool xmm0 = false;  ///< read before it is written
  unsigned st0 = 0;   ///< 0 not used; 4 or 8 stored as f32 or f64; 1 used otherwise
};

/// A direct call and the straight-line code around it.
struct DirectCall {
  std::uint64_t address = 0;  ///< of the call instruction
  /// What was given on the stack, word by word without a gap: from the lowest word on in 32-bit code, from [rsp + 20h]
  /// on in 64-bit code. There may be more that was put there earlier, and the last ones may be something else's.
  std::vector<PassedWord> stack;
  std::array<std::optional<PassedWord>, 16> general;  ///< registers written since the last call or jump, by number
  std::uint16_t unread = 0;                           ///< bits of those that nothing has read before the call
  std::uint16_t xmm = 0;                              ///< bits of the XMM registers written
  std::uint16_t read_behind = 0;  ///< bits of those that the code behind reads before it writes them
  /// Bytes of stack that the code behind the call gives back; negative when it takes them again, as callers do whose
  /// callee has removed its arguments from room that is kept for all calls.
  std::int64_t given_back = 0;
  bool returns_soon = false;  ///< the caller's own end follows, so that `given_back` may be its frame
  ResultUse result;

  /// Returns how many of the stack words, from the lowest on, were pushed.
  [[nodiscard]] std::size_t pushed() const;
};

/// What the direct calls of a routine tell. Indirect calls are not looked for.
struct DirectCalls {
  std::size_t found = 0;          ///< calls of it, also through a jump that stands alone
  std::vector<DirectCall> sites;  ///< those that were read, by rising address, at most most_call_sites
};

/// Most calls of one routine that are read.
inline constexpr std::size_t most_call_sites = 32;

/// Finds the direct calls of a routine by one pass over the image's code and reads what stands around each. Bytes that
/// look like a call and are none are kept out as far as what is before them tells.
DirectCalls find_call_sites(const Image& image, std::uint64_t routine);

}  // namespace bitwitness
