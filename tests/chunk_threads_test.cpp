#include "harness/chunk_threads.hpp"

#include "harness/error.hpp"
#include "tests/catch.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

using namespace bitwitness;

namespace {

class CallingWorker final : public ChunkWorker {
 public:
  CallingWorker(std::function<bool(std::uint64_t)> work, std::function<void()> finish)
      : work_(std::move(work)), finish_(std::move(finish)) {}
  bool work(std::uint64_t number) override { return work_(number); }
  void finish() override { finish_(); }

 private:
  std::function<bool(std::uint64_t)> work_;
  std::function<void()> finish_;
};

void run_chunks(
    std::uint64_t count, unsigned jobs, const std::stop_token& stop, const std::function<bool(std::uint64_t)>& work,
    const std::function<void()>& finish = [] {}) {
  const auto make = [&] { return std::make_unique<CallingWorker>(work, finish); };
  work_on_chunks(count, jobs, stop, make(), make);
}

}  // namespace

TEST_CASE("every chunk is taken once, and every worker finishes") {
  for (const unsigned jobs : {1U, 2U, 7U}) {
    std::mutex mutex;
    std::multiset<std::uint64_t> taken;
    std::atomic<unsigned> finished = 0;
    run_chunks(
        100, jobs, {},
        [&](std::uint64_t number) {
          const std::scoped_lock lock(mutex);
          taken.insert(number);
          return true;
        },
        [&] { ++finished; });
    CHECK(taken.size() == 100);
    CHECK(std::set<std::uint64_t>(taken.begin(), taken.end()).size() == 100);
    CHECK(*taken.rbegin() == 99);
    CHECK(finished == jobs);
  }
}

TEST_CASE("what the lowest chunk throws is told, though a higher one throws before") {
  std::atomic<bool> has_thrown = false;
  std::atomic<unsigned> finished = 0;
  const auto work = [&](std::uint64_t number) -> bool {
    if (number == 1) {
      has_thrown = true;
      throw Error("chunk 1");
    }
    while (!has_thrown) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (number == 2) return true;
    throw Error("chunk " + std::to_string(number));
  };
  CHECK_THROWS_WITH(run_chunks(1000, 3, {}, work, [&] { ++finished; }), "chunk 0");
  CHECK(finished == 0);
}

TEST_CASE("a stop and a worker that wants no more end the work") {
  std::stop_source stop;
  std::atomic<int> taken = 0;
  run_chunks(1000, 1, stop.get_token(), [&](std::uint64_t number) {
    ++taken;
    if (number == 4) stop.request_stop();
    return true;
  });
  CHECK(taken == 5);
  taken = 0;
  run_chunks(1000, 1, {}, [&](std::uint64_t number) {
    ++taken;
    return number < 2;
  });
  CHECK(taken == 3);
}
