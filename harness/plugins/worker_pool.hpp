#pragma once
#include "harness/plugins/spawner.hpp"
#include "harness/plugins/worker.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

// Inside of harness/plugins/ only.

namespace bitwitness::plugins {

/// Starts one process. Returns null when a stop was requested. Throws Failure.
using StartWorker = std::function<std::unique_ptr<Worker>(Spawner&, const std::stop_token&)>;

/// The processes of one decoder: as many as are used at once. Turns what they do wrong into Error, which names the
/// decoder and, where one is to blame, the value. Used from several threads.
class WorkerPool {
 public:
  /// Takes the decoder's name, and the time without progress after which its processes hang.
  WorkerPool(std::string name, Sizes sizes, std::chrono::milliseconds timeout, StartWorker start);

  /// Starts the first process and returns what it says of itself. Throws Error, also when a stop was requested.
  std::string start_first(const std::stop_token& stop);

  /// Decodes any number of whole values. Returns false when a stop was requested: the words are then unspecified.
  bool decode(std::span<const std::byte> packed, std::span<std::uint32_t> words, const std::stop_token& stop);

  /// Ends every process that is idle.
  void finish();

 private:
  bool decode_piece(std::span<const std::byte> packed, std::span<std::uint32_t> words, const std::stop_token& stop);
  bool blame(const Failure& failure, std::span<const std::byte> packed, const std::stop_token& stop);
  std::unique_ptr<Worker> take(const std::stop_token& stop);
  [[noreturn]] void fail(const std::string& what) const;

  std::string name_;
  Sizes sizes_;
  std::chrono::milliseconds timeout_;
  StartWorker start_;
  Spawner spawner_;
  std::size_t most_values_ = 0;
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Worker>> idle_;
};

}  // namespace bitwitness::plugins
