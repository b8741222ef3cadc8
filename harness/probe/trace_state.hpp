#pragma once
#include "harness/operands.hpp"
#include "harness/probe/trace.hpp"

#include <array>
#include <cstdint>
#include <optional>

namespace bitwitness {

/// What a program can see of the CPU between two instructions.
struct CpuState {
  std::array<std::uint64_t, 16> general{};
  std::array<std::optional<Extended>, 8> x87;  ///< by physical number: what a push or a pop does not change
  unsigned top = 0;                            ///< physical number of st(0)
  std::array<std::array<std::uint32_t, 4>, 16> xmm{};
  std::uint16_t fpcw = 0;
  std::uint16_t fpsw = 0;
  std::uint32_t mxcsr = 0;
  std::uint64_t flags = 0;
};

/// Reads the state of a CPU that stands between two instructions.
CpuState state_of(const Emulator& emulator, bool is_64_bit);

/// Fills in what an instruction's operands held and what it changed.
void describe_change(TraceStep& step, const Operands& operands, const CpuState& before, const CpuState& after);

}  // namespace bitwitness
