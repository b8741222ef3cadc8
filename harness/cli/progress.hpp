#pragma once
#include "harness/verification.hpp"

#include <chrono>
#include <deque>
#include <string>

namespace bitwitness::cli {

/// Tells whether standard error is a terminal.
bool standard_error_is_terminal();

/// Tells how many values a second are run: over the last seconds, or over as many steps as it takes where each takes
/// longer than that.
class RateMeter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Begins with nothing done.
  explicit RateMeter(Time now) : steps_{{now, 0}} {}

  /// Takes how much is done at a time; neither falls.
  void add(Time now, std::uint64_t done);

  /// Returns the rate; 0 when it is not known yet.
  [[nodiscard]] double rate(Time now) const;

 private:
  struct Step {
    Time time;
    std::uint64_t done = 0;
  };

  std::deque<Step> steps_;  // when something more was done
};

/// One line on standard error that tells how far a run is, rewritten in place and erased at the end. When standard
/// error is not a terminal, a run that takes long is estimated there once, in a line of its own, and nothing else is
/// said. Used from one thread at a time.
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
  void put(const std::string& line);

  std::string title_;
  RateMeter::Time begin_;
  RateMeter meter_;  // of what this run has done itself
  bool is_estimated_ = false;
  bool shown_ = false;
};

/// Returns the line's text. `rate` is in values a second; 0 when not known yet, and then neither rate nor time is told.
std::string progress_text(const std::string& title, const Progress& progress, double rate);

/// Returns the estimate of a run that takes long, or nothing when less than half a minute is left. The rate is not 0.
std::string estimate_text(const std::string& title, const Progress& progress, double rate);

}  // namespace bitwitness::cli
