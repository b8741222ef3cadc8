#include "harness/cli/interrupt.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>

namespace bitwitness::cli {

namespace {

constexpr std::array signals = {SIGINT, SIGTERM, SIGHUP};
constexpr auto poll_interval = std::chrono::milliseconds(20);

// Programs that end others may signal both the process and its group: what comes this soon is one request.
constexpr auto one_request = std::chrono::milliseconds(300);

std::atomic<bool> signalled = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

extern "C" void note_signal(int) {
  signalled.store(true);
}

void end_program_on_signals() {
  for (const int number : signals) {
    if (std::signal(number, SIG_DFL) == SIG_IGN) std::signal(number, SIG_IGN);
  }
}

}  // namespace

InterruptWatch::InterruptWatch() {
  signalled.store(false);
  for (const int number : signals) {
    // A shell starts background jobs with interrupts ignored: that stays so.
    if (std::signal(number, note_signal) == SIG_IGN) std::signal(number, SIG_IGN);
  }
  poll_ = std::jthread([this](const std::stop_token& end) {
    while (!end.stop_requested()) {
      if (signalled.load()) {
        stop_.request_stop();
        for (auto waited = std::chrono::milliseconds(0); waited < one_request && !end.stop_requested();
             waited += poll_interval) {
          std::this_thread::sleep_for(poll_interval);
        }
        end_program_on_signals();
        return;
      }
      std::this_thread::sleep_for(poll_interval);
    }
  });
}

InterruptWatch::~InterruptWatch() {
  poll_.request_stop();
  poll_.join();
  end_program_on_signals();
}

bool interrupt_came() {
  return signalled.load();
}

}  // namespace bitwitness::cli
