#pragma once
#include <chrono>

namespace bitwitness {

/// Lets a few reports of progress a second pass, and the last one. Not for several threads at once.
class ProgressGate {
 public:
  /// Tells whether progress is to be told now; `is_last` always is.
  bool passes(bool is_last) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < interval && !is_last) return false;
    last_ = now;
    return true;
  }

 private:
  static constexpr std::chrono::milliseconds interval{100};
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace bitwitness
