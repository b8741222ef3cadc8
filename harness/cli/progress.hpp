#pragma once
#include "harness/verification.hpp"

#include <chrono>
#include <deque>
#include <string>

namespace bitwitness::cli {

/// Tells whether standard error is a terminal.
bool standard_error_is_terminal();

/// One line on standard error that tells how far a run is, rewritten in place and erased at the end. Silent when
/// standard error is not a terminal. Used from one thread at a time.
class ProgressLine {
 public:
  /// `title` names the run: "packed_quat48 1/2".
  explicit ProgressLine(std::string title);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const Progress& progress);

  /// Shows a text behind the title.
  void show(const std::string& text);

 private:
  struct Sample {
    std::chrono::steady_clock::time_point time;
    std::uint64_t done = 0;
  };

  void put(const std::string& line);

  std::string title_;
  std::deque<Sample> recent_;
  bool shown_ = false;
};

/// Returns the line's text. `rate` is in values a second; 0 when not known yet, and then neither rate nor time is told.
std::string progress_text(const std::string& title, const Progress& progress, double rate);

}  // namespace bitwitness::cli
