#pragma once
#include "harness/image.hpp"
#include "harness/probe/register_flow.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

// Code that no call has reached, and what it could do.

namespace bitwitness {

/// A conditional jump that was executed and always went the same way.
struct HalfSeenJump {
  std::uint64_t address = 0;
  std::uint64_t unseen = 0;  ///< where it never went
  /// Bytes from the first argument word to where esp and ebp (rsp and rbp) point: negative ones lie in its own frame.
  std::optional<std::int64_t> stack;
  std::optional<std::int64_t> frame;
};

/// A jump whose targets the code does not name.
struct TableJump {
  std::uint64_t address = 0;
  std::size_t targets = 0;  ///< to which it went
};

/// What the side of a jump that was never taken could do.
struct UnseenSide {
  enum class Kind : std::uint8_t {
    ends,      ///< it never comes back to the caller
    harmless,  ///< it changes floating-point numbers and its own frame alone and goes on with code that was executed
    open       ///< it may read or write what the calls did not show
  } kind = Kind::open;
  RegisterSet reads;  ///< before it writes them, when it is harmless
};

/// Reads the code from where a jump never went up to code that `was_executed` or that ends.
UnseenSide look_at(const Image& image, const HalfSeenJump& jump,
                   const std::function<bool(std::uint64_t)>& was_executed);

}  // namespace bitwitness
