#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

namespace bitwitness {

/// Something that makes progress in one thread and can be told from another to give up what it is at.
class Watched {
 public:
  virtual ~Watched() = default;
  [[nodiscard]] virtual std::uint64_t progress() const = 0;
  virtual void interrupt() = 0;
};

/// Interrupts what makes no progress for a while of CPU time, so that a busy machine is not mistaken
/// for a runaway.
class Watchdog {
 public:
  /// When `give_up` is requested, whatever is watched is interrupted at once.
  Watchdog(std::chrono::nanoseconds limit, std::stop_token give_up);
  ~Watchdog();

  /// Begins to watch something that the calling thread is about to do, by the clock of its processor time unless
  /// another is given.
  void arm(Watched& watched, std::optional<clockid_t> clock = {});
  void disarm();

 private:
  void patrol(const std::stop_token& stop);

  std::chrono::nanoseconds limit_;
  std::stop_token give_up_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  Watched* watched_ = nullptr;
  std::uint64_t arming_ = 0;
#if defined(__linux__)
  clockid_t clock_{};
#endif
  std::jthread thread_;  // last: it uses the others

  [[nodiscard]] std::chrono::nanoseconds now() const;
};

}  // namespace bitwitness
