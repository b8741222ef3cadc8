#include "harness/lane_machine.hpp"
#include "harness/machine.hpp"
#include "harness/unicorn_lane.hpp"

#include <algorithm>
#include <chrono>

namespace bitwitness {
namespace {

/// CPU time after which a value of a batch is taken for a runaway and decided alone, by instructions. That costs time
/// and decides nothing: below the floor a stall is not worth a look.
std::chrono::nanoseconds stall_limit(std::uint64_t budget) {
  constexpr std::uint64_t floor = 5'000'000;
  constexpr std::uint64_t ceiling = 3'600'000'000'000;
  return std::chrono::nanoseconds(std::clamp(budget, floor, ceiling));
}

}  // namespace

std::unique_ptr<Machine> make_unicorn_machine(const Image& image, const Routine& routine,
                                              const MachineOptions& options) {
  const auto make_lane = [&image, options](const LaneOrder& order) {
    return std::make_unique<UnicornLane>(image, order.routine, order.kind, order.base, order.refused,
                                         order.thread_block, options);
  };
  return make_lane_machine(image, routine, options, {"unicorn", stall_limit(options.budget), make_lane});
}

}  // namespace bitwitness
