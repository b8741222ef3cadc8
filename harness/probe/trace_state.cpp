#include "harness/probe/trace_state.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace bitwitness {
namespace {

struct NamedBit {
  std::string_view name;
  unsigned bit = 0;
};

constexpr auto status_flags =
    std::to_array<NamedBit>({{"cf", 0}, {"pf", 2}, {"af", 4}, {"zf", 6}, {"sf", 7}, {"df", 10}, {"of", 11}});
constexpr auto condition_codes = std::to_array<NamedBit>({{"c0", 8}, {"c1", 9}, {"c2", 10}, {"c3", 14}});

void compare_bits(std::vector<FlagChange>& out, std::span<const NamedBit> bits, std::uint64_t before,
                  std::uint64_t after) {
  for (const auto& [name, bit] : bits) {
    if (((before ^ after) >> bit & 1) != 0) out.push_back({name, (after >> bit & 1) != 0});
  }
}

unsigned depth_of(const CpuState& state) {
  return static_cast<unsigned>(std::ranges::count_if(state.x87, [](const auto& value) { return value.has_value(); }));
}

void compare_x87(TraceStep& step, const Operands& operands, const CpuState& before, const CpuState& after) {
  for (unsigned index = 0; index < before.x87.size(); ++index) {
    const unsigned physical = (before.top + index) % 8;
    const std::optional<Extended>& old_value = before.x87.at(physical);
    const std::optional<Extended>& new_value = after.x87.at(physical);
    const bool is_named = (operands.x87 >> index & 1) != 0 && old_value;
    if (old_value == new_value && !is_named) continue;
    X87Operand operand{std::nullopt, old_value, std::nullopt, new_value};
    if (old_value) operand.index_before = index;
    if (new_value) operand.index_after = (physical + 8 - after.top) % 8;
    step.x87.push_back(operand);
  }
  step.depth_before = depth_of(before);
  step.depth_after = depth_of(after);
}

}  // namespace

CpuState state_of(const Emulator& emulator, bool is_64_bit) {
  CpuState state;
  const CallState call = emulator.call_state();
  state.fpcw = call.fpcw;
  state.fpsw = call.fpsw;
  state.mxcsr = call.mxcsr;
  state.flags = call.flags;
  state.top = call.fpsw >> 11 & 7U;
  for (unsigned index = 0; index < 8; ++index) state.x87.at((state.top + index) % 8) = emulator.x87(index);
  for (unsigned reg = 0; reg < (is_64_bit ? 16U : 8U); ++reg) {
    state.general.at(reg) = emulator.general(reg);
    state.xmm.at(reg) = emulator.xmm(reg);
  }
  return state;
}

void describe_change(TraceStep& step, const Operands& operands, const CpuState& before, const CpuState& after) {
  for (unsigned reg = 0; reg < before.general.size(); ++reg) {
    const auto number = static_cast<std::uint8_t>(reg);
    const bool is_named = (operands.general >> reg & 1) != 0;
    if (is_named || before.general.at(reg) != after.general.at(reg)) {
      step.general.push_back({number, before.general.at(reg), after.general.at(reg)});
    }
    if ((operands.xmm >> reg & 1) != 0 || before.xmm.at(reg) != after.xmm.at(reg)) {
      step.xmm.push_back({number, before.xmm.at(reg), after.xmm.at(reg)});
    }
  }
  compare_x87(step, operands, before, after);
  compare_bits(step.flags, status_flags, before.flags, after.flags);
  compare_bits(step.flags, condition_codes, before.fpsw, after.fpsw);
  if (before.fpcw != after.fpcw) step.fpcw = {before.fpcw, after.fpcw};
  if (before.mxcsr != after.mxcsr) step.mxcsr = {before.mxcsr, after.mxcsr};
}

}  // namespace bitwitness
