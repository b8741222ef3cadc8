#include "harness/plugins/worker_pool.hpp"

#include "harness/error.hpp"
#include "harness/plugins/wording.hpp"
#include "harness/printable.hpp"
#include "harness/values.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace bitwitness::plugins {
namespace {

// A quarter of the timeout, but not so little that a busy machine makes a value hang.
constexpr std::chrono::milliseconds least_alone_time{500};

}  // namespace

WorkerPool::WorkerPool(std::string name, Sizes sizes, std::chrono::milliseconds timeout, StartWorker start)
    : name_(std::move(name)), sizes_(sizes), timeout_(timeout), start_(std::move(start)) {}

void WorkerPool::fail(const std::string& what) const {
  throw Error(fmt::format("decoder {}: {}", printable(name_, true), what));
}

std::string WorkerPool::start_first(const std::stop_token& stop) {
  try {
    std::unique_ptr<Worker> worker = start_(spawner_, stop);
    if (worker == nullptr) fail("interrupted while it was started");
    std::string description = worker->description();
    most_values_ = worker->most_values();
    const std::scoped_lock lock(mutex_);
    idle_.push_back(std::move(worker));
    return description;
  } catch (const Failure& failure) {
    fail(failure.what);
  }
}

std::unique_ptr<Worker> WorkerPool::take(const std::stop_token& stop) {
  {
    const std::scoped_lock lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Worker> worker = std::move(idle_.back());
      idle_.pop_back();
      return worker;
    }
  }
  return start_(spawner_, stop);
}

bool WorkerPool::decode(std::span<const std::byte> packed, std::span<std::uint32_t> words,
                        const std::stop_token& stop) {
  const std::size_t count = packed.size() / sizes_.packed;
  for (std::size_t first = 0; first < count; first += most_values_) {
    const std::size_t piece = std::min(most_values_, count - first);
    if (!decode_piece(packed.subspan(first * sizes_.packed, piece * sizes_.packed),
                      words.subspan(first * sizes_.words, piece * sizes_.words), stop)) {
      return false;
    }
  }
  return true;
}

bool WorkerPool::decode_piece(std::span<const std::byte> packed, std::span<std::uint32_t> words,
                              const std::stop_token& stop) {
  std::unique_ptr<Worker> worker;
  try {
    worker = take(stop);
  } catch (const Failure& failure) {
    fail(failure.what);
  }
  if (worker == nullptr) return false;
  try {
    if (!worker->decode(packed, words, stop)) return false;
  } catch (const Failure& failure) {
    worker.reset();
    return blame(failure, packed, stop);
  }
  const std::scoped_lock lock(mutex_);
  idle_.push_back(std::move(worker));
  return true;
}

/// Throws Error unless a stop is requested while it looks for the value: each by itself, in a new process.
bool WorkerPool::blame(const Failure& failure, std::span<const std::byte> packed, const std::stop_token& stop) {
  const std::size_t count = packed.size() / sizes_.packed;
  const auto value = [&](std::size_t index) { return to_hex(packed.subspan(index * sizes_.packed, sizes_.packed)); };
  // "what; its last line: …" gets the value in front of the semicolon.
  const auto fail_on = [&](const std::string& what, const std::string& where) {
    const std::size_t end = std::min(what.find("; its last line: "), what.size());
    fail(what.substr(0, end) + where + what.substr(end));
  };
  if (failure.index || count == 1) {
    fail_on(failure.what, " on value " + value(std::min(failure.index.value_or(0), count - 1)));
  }
  const std::string batch = fmt::format(" in a batch of {} values from {} to {}", count, value(0), value(count - 1));
  // A hang has cost its time already: it is told soon, and a value only named where it is found quickly.
  const std::chrono::milliseconds alone_time = std::max(timeout_ / 4, least_alone_time);
  std::size_t index = 0;
  std::unique_ptr<Worker> worker;
  try {
    worker = start_(spawner_, stop);
  } catch (const Failure&) {
    fail_on(failure.what, batch);  // what went wrong at first says more than that it cannot be tried again
  }
  if (worker == nullptr) return false;
  try {
    std::vector<std::uint32_t> words(sizes_.words);
    if (failure.hangs) worker->set_timeout(alone_time);
    const auto last_start = std::chrono::steady_clock::now() + alone_time;
    for (; index < count; ++index) {
      if (failure.hangs && std::chrono::steady_clock::now() > last_start) fail_on(failure.what, batch);
      if (!worker->decode(packed.subspan(index * sizes_.packed, sizes_.packed), words, stop)) return false;
    }
  } catch (const Failure& alone) {
    if (!failure.hangs || !alone.hangs) fail_on(alone.what, " on value " + value(index));
    fail_on(failure.what, fmt::format(", and alone none in {} s on value {}", seconds_text(alone_time), value(index)));
  }
  fail_on(failure.what, batch + ", on none of which it does so alone");
  return false;
}

void WorkerPool::finish() {
  std::vector<std::unique_ptr<Worker>> workers;
  {
    const std::scoped_lock lock(mutex_);
    workers.swap(idle_);
  }
  try {
    for (const std::unique_ptr<Worker>& worker : workers) worker->finish();
  } catch (const Failure& failure) {
    fail(failure.what);
  }
}

}  // namespace bitwitness::plugins
