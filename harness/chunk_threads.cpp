#include "harness/chunk_threads.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace bitwitness {
namespace {

class Crew {
 public:
  Crew(std::uint64_t count, const std::stop_token& stop) : count_(count), stop_(stop) {}

  void work(std::unique_ptr<ChunkWorker> worker, const MakeWorker& make) {
    std::uint64_t number = std::numeric_limits<std::uint64_t>::max();  // of no chunk yet
    try {
      if (worker == nullptr) worker = make();
      while (!stop_.stop_requested()) {
        const std::uint64_t taken = next_.fetch_add(1);
        if (taken >= count_) break;
        number = taken;
        if (!worker->work(number)) break;
      }
      if (!has_failed_) worker->finish();
    } catch (...) {
      fail(number, std::current_exception());
    }
  }

  /// Lets the threads end after the chunk that each is at.
  void end() { next_ = count_; }

  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void fail(std::uint64_t number, std::exception_ptr failure) {
    end();
    has_failed_ = true;
    const std::scoped_lock lock(mutex_);
    if (failure_ && failed_ <= number) return;
    failed_ = number;
    failure_ = std::move(failure);
  }

  std::uint64_t count_;
  std::stop_token stop_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<bool> has_failed_{false};
  std::mutex mutex_;  // guards what follows
  std::exception_ptr failure_;
  std::uint64_t failed_ = 0;
};

}  // namespace

void work_on_chunks(std::uint64_t count, unsigned jobs, const std::stop_token& stop, std::unique_ptr<ChunkWorker> first,
                    const MakeWorker& make) {
  Crew crew(count, stop);
  const auto threads_wanted = std::clamp<std::uint64_t>(jobs, 1, std::max<std::uint64_t>(count, 1));
  {
    std::vector<std::jthread> threads;
    try {
      while (threads.size() + 1 < threads_wanted) threads.emplace_back([&] { crew.work(nullptr, make); });
    } catch (...) {
      crew.end();
      throw;
    }
    crew.work(std::move(first), make);
  }
  crew.rethrow();
}

}  // namespace bitwitness
