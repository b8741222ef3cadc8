#include "harness/watchdog.hpp"

#include <utility>

#if defined(__linux__)
#include <pthread.h>
#include <time.h>
#endif

namespace bitwitness {
namespace {

constexpr std::chrono::milliseconds patrol_interval{2};

}  // namespace

Watchdog::Watchdog(std::chrono::nanoseconds limit, std::stop_token give_up)
    : limit_(limit), give_up_(std::move(give_up)), thread_([this](const std::stop_token& stop) { patrol(stop); }) {}

Watchdog::~Watchdog() {
  thread_.request_stop();
  changed_.notify_all();
}

void Watchdog::arm(Watched& watched, [[maybe_unused]] std::optional<clockid_t> clock) {
  const std::scoped_lock lock(mutex_);
  watched_ = &watched;
  ++arming_;
#if defined(__linux__)
  if (clock) {
    clock_ = *clock;
  } else {
    pthread_getcpuclockid(pthread_self(), &clock_);
  }
#endif
  changed_.notify_all();
}

void Watchdog::disarm() {
  const std::scoped_lock lock(mutex_);
  watched_ = nullptr;
}

std::chrono::nanoseconds Watchdog::now() const {
#if defined(__linux__)
  timespec time{};
  clock_gettime(clock_, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
#else
  return std::chrono::steady_clock::now().time_since_epoch();
#endif
}

void Watchdog::patrol(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  std::uint64_t seen_arming = 0;
  std::uint64_t seen_progress = 0;
  std::chrono::nanoseconds since{};
  while (!stop.stop_requested()) {
    if (watched_ == nullptr) {
      changed_.wait(lock, stop, [this] { return watched_ != nullptr; });
      continue;
    }
    if (give_up_.stop_requested()) watched_->interrupt();
    const std::uint64_t progress = watched_->progress();
    if (arming_ != seen_arming || progress != seen_progress) {
      seen_arming = arming_;
      seen_progress = progress;
      since = now();
    } else if (now() - since >= limit_) {
      watched_->interrupt();  // asks again at the next round if that came too early to be heard
    }
    lock.unlock();
    std::this_thread::sleep_for(patrol_interval);
    lock.lock();
  }
}

}  // namespace bitwitness
