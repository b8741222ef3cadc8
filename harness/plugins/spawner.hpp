#pragma once
#include "harness/plugins/child_process.hpp"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <future>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

// Inside of harness/plugins/ only.

namespace bitwitness::plugins {

/// The program that loads libraries, executes commands and watches both, built from host.cpp.
std::span<const std::byte> embedded_host();

struct ChildSetup {
  std::vector<std::string> arguments;  ///< of the host, from its name on (host_protocol.hpp)
  std::vector<int> descriptors;        ///< become 0, 1, 2, …, then comes the control; every other one is closed
};

/// Starts hosts from a thread of its own: the kernel tells them when that thread ends, so no decoder outlives this
/// program even when it is killed. Must live as long as what it started.
class Spawner {
 public:
  Spawner();
  ~Spawner();
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  /// Starts a decoder in a process group of its own, with default signal handling and no core file. Throws Failure when
  /// it cannot be executed.
  ChildProcess spawn(const ChildSetup& setup);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<ChildProcess()>> tasks_;
  bool is_over_ = false;
  std::thread thread_;
};

}  // namespace bitwitness::plugins
