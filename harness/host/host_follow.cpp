// How a host lane shows a call, an instruction at a time.
#include "harness/host/host_lane.hpp"

#include <csignal>
#include <cstring>

namespace bitwitness::host {

FollowedState HostLane::state_of(const Stop& stop) const {
  const user_regs_struct& from = stop.registers;
  FollowedState state;
  state.pc = from.rip;
  state.general = {from.rax, from.rcx, from.rdx, from.rbx, from.rsp, from.rbp, from.rsi, from.rdi,
                   from.r8,  from.r9,  from.r10, from.r11, from.r12, from.r13, from.r14, from.r15};
  if (!plan_.is_64_bit) {
    for (std::size_t reg = 0; reg < state.general.size(); ++reg) {
      state.general[reg] = reg < 8 ? state.general[reg] & 0xffffffff : 0;
    }
  }
  const user_fpregs_struct floating = process_->floating_point();
  const std::size_t count = plan_.is_64_bit ? 16 : 8;
  for (std::size_t reg = 0; reg < count; ++reg) {
    std::memcpy(state.xmm[reg].data(), &floating.xmm_space[4 * reg], sizeof state.xmm[reg]);
  }
  const unsigned top = floating.swd >> 11 & 7U;
  for (unsigned i = 0; i < state.x87.size(); ++i) {
    if ((floating.ftw >> ((top + i) & 7U) & 1U) == 0) continue;
    state.x87[i].emplace();
    std::memcpy(state.x87[i]->data(), &floating.st_space[4 * i], state.x87[i]->size());
  }
  for (const Region& region : followed_memory(plan_)) {
    const std::byte* const bytes = memory_.at(region.address);
    state.memory.insert(state.memory.end(), bytes, bytes + region.size);
  }
  return state;
}

void HostLane::follow(std::span<const std::byte> packed, const Environment& environment, const Follower& follower) {
  start();
  set_environment(environment);
  set_poison(poison_of(kind_));
  prepare_alone(packed);
  begin(0, 1);
  Stop stop;
  stop.registers = entry_;
  while (true) {
    stop = process_->step(stop.registers);
    stop.registers.orig_rax = ~0ULL;
    if (stop.signal != SIGTRAP) {
      if (stop.code > 0 || options_.stop.stop_requested() || asked_.load() == progress()) return;
      continue;  // somebody sent it, and nothing was executed
    }
    const bool is_caller = layout_.code.contains(stop.registers.rip);
    if (is_caller && stop.registers.rip != code_.landing) continue;
    if (!follower(state_of(stop)) || is_caller) return;
  }
}

}  // namespace bitwitness::host
