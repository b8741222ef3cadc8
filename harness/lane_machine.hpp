#pragma once
#include "harness/lane.hpp"
#include "harness/lane_kind.hpp"
#include "harness/machine.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

namespace bitwitness {

/// What a machine asks of a lane.
struct LaneOrder {
  const Routine& routine;
  LaneKind kind = LaneKind::batch;
  std::uint64_t base = 0;                    ///< where its surroundings lie
  std::span<const std::uint64_t> refused{};  ///< instructions that earlier lanes met and that must not be executed
  bool thread_block = false;                 ///< whether there is something for fs or gs to lead to
};

/// What makes a machine of lanes.
struct Witness {
  std::string_view name;                   ///< "unicorn" or "host"
  std::chrono::nanoseconds stall_limit{};  ///< processor time after which a call that does not end is interrupted
  std::function<std::unique_ptr<Lane>(const LaneOrder&)> make_lane;
};

/// Creates a machine that runs batches in one lane and decides what looks odd there in another, alone. Throws Error
/// when the routine's address is not code or its signature cannot be called.
std::unique_ptr<Machine> make_lane_machine(const Image& image, const Routine& routine, const MachineOptions& options,
                                           Witness witness);

}  // namespace bitwitness
