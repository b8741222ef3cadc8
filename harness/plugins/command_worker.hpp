#pragma once
#include "harness/plugins/spawner.hpp"
#include "harness/plugins/worker.hpp"

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

// Inside of harness/plugins/ only.

namespace bitwitness::plugins {

struct CommandSetup {
  std::vector<std::string> arguments;  ///< the program and what it is given
  Sizes sizes;
  std::chrono::milliseconds timeout{};
  std::chrono::milliseconds start_timeout{};
};

/// Starts a command that decodes on its standard input and output, as harness/plugins/README.md has it. Returns null
/// when a stop was requested. Throws Failure.
std::unique_ptr<Worker> start_command(Spawner& spawner, const CommandSetup& setup, const std::stop_token& stop);

}  // namespace bitwitness::plugins
