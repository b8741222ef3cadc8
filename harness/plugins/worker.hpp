#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>

// Inside of harness/plugins/ only.

namespace bitwitness::plugins {

/// How often a wait looks for a request to stop.
inline constexpr std::chrono::milliseconds wait_slice{20};

/// How long a process whose channels are closed may take to end before it counts as alive.
inline constexpr std::chrono::milliseconds end_grace{1000};

/// What a decoder's process did wrong: a clause such as "exited with status 3", and the value where it is known.
struct Failure {
  std::string what;
  std::optional<std::size_t> index{};  ///< of the value in the batch
  bool hangs = false;                  ///< nothing moved for the timeout
};

/// Bytes of a value and words of a result.
struct Sizes {
  std::size_t packed = 0;
  std::size_t words = 0;
};

/// One process that decodes. Used by one thread at a time; what fails is not used again.
class Worker {
 public:
  virtual ~Worker() = default;

  /// Sets after which time without progress it is said to hang.
  virtual void set_timeout(std::chrono::milliseconds timeout) = 0;

  /// Decodes up to `most_values` whole values. Returns false when a stop was requested. Throws Failure.
  virtual bool decode(std::span<const std::byte> packed, std::span<std::uint32_t> words,
                      const std::stop_token& stop) = 0;

  /// Ends it. Throws Failure when it does not end as it should.
  virtual void finish() = 0;

  [[nodiscard]] virtual std::size_t most_values() const = 0;

  /// What it said of itself; empty when nothing.
  [[nodiscard]] virtual const std::string& description() const = 0;
};

}  // namespace bitwitness::plugins
