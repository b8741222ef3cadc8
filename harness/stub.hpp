#pragma once
#include "harness/call_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bitwitness {

/// How the stub hands over to the host between two calls.
struct Handover {
  std::uint8_t port = 0;  ///< it writes `token` to this port; the host takes the result and prepares the next call
  std::uint32_t token = 0;
};

/// Machine code that calls one routine over and over. Between calls it does not store to memory: under the emulator a
/// store costs as much as some twenty other instructions, so everything that changes is written by the host.
struct Stub {
  std::vector<std::byte> code;
  std::uint64_t enter = 0;    ///< address to start at once the host has prepared a call
  std::uint64_t landing = 0;  ///< return address of the routine
};

/// Generates the stub for a plan, to stand at plan.layout.code. Each round: store st0, or copy eax to ecx, if it is the
/// result; hand over; halt if the control page says stop; reset the x87 unit and load both control words; set every
/// register and flag; jump to the routine, whose return address the host has put on the stack.
Stub make_stub(const CallPlan& plan, std::uint64_t routine, const Handover& handover);

}  // namespace bitwitness
