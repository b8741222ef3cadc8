#include "harness/error.hpp"
#include "harness/host/host_lane.hpp"
#include "harness/lane_machine.hpp"
#include "harness/machine.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>

namespace bitwitness {
namespace {

/// Nothing counts instructions here: a call may take this much processor time for each that it may execute.
constexpr std::uint64_t nanoseconds_per_instruction = 20;

std::chrono::nanoseconds stall_limit(std::uint64_t budget) {
  constexpr std::uint64_t floor = 20'000'000;
  constexpr std::uint64_t ceiling = 3'600'000'000'000;
  const std::uint64_t limited = std::min(budget, ceiling / nanoseconds_per_instruction);
  return std::chrono::nanoseconds(std::max(limited * nanoseconds_per_instruction, floor));
}

}  // namespace

std::unique_ptr<Machine> make_host_machine(const Image& image, const Routine& routine, const MachineOptions& options) {
  const std::chrono::nanoseconds limit = stall_limit(options.budget);
  const auto make_lane = [&image, options, limit](const LaneOrder& order) {
    return std::make_unique<host::HostLane>(image, order, options, limit);
  };
  try {
    return make_lane_machine(image, routine, options, {"host", limit, make_lane});
  } catch (const std::system_error& error) {  // threads are among what may be limited
    throw Error(std::string("--witness host: a thread cannot be started: ") + error.what());
  }
}

}  // namespace bitwitness
