#pragma once
#include <stop_token>
#include <thread>

namespace bitwitness::cli {

/// While it lives, the first interrupt or termination signal requests a stop; another one, a moment
/// later, ends the program as usual. One at a time.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  [[nodiscard]] std::stop_token token() const { return stop_.get_token(); }
  [[nodiscard]] bool interrupted() const { return stop_.stop_requested(); }

 private:
  std::stop_source stop_;
  std::jthread poll_;
};

/// Tells whether an interrupt or termination signal came while the last watch lived.
bool interrupt_came();

}  // namespace bitwitness::cli
