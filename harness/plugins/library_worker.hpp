#pragma once
#include "harness/plugins/spawner.hpp"
#include "harness/plugins/worker.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

// Inside of harness/plugins/ only.

namespace bitwitness::plugins {

struct LibrarySetup {
  std::string path;  ///< absolute
  std::string symbol;
  Sizes sizes;
  std::chrono::milliseconds timeout{};
  std::chrono::milliseconds start_timeout{};
  std::uint64_t memory = 0;  ///< bytes of address space that it may add
};

/// Loads a library in a process of its own. Returns null when a stop was requested. Throws Failure.
std::unique_ptr<Worker> start_library(Spawner& spawner, const LibrarySetup& setup, const std::stop_token& stop);

}  // namespace bitwitness::plugins
