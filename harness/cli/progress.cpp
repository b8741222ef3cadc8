#include "harness/cli/progress.hpp"

#ifdef _WIN32
#include <io.h>
#else
#include <unistd.h>
#endif

#include <cmath>
#include <cstdio>

#include <fmt/format.h>

namespace bitwitness::cli {

namespace {

using Clock = std::chrono::steady_clock;

/// The rate is that of the last seconds, so that the estimate follows a machine that becomes busier.
constexpr auto window = std::chrono::seconds(8);
constexpr std::size_t line_width = 79;

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::ceil(seconds));
  if (whole < 120) return fmt::format("{} s", whole);
  if (whole < 7200) return fmt::format("{} min", (whole + 59) / 60);
  return fmt::format("{} h", (whole + 3599) / 3600);
}

}  // namespace

bool standard_error_is_terminal() {
#ifdef _WIN32
  return _isatty(_fileno(stderr)) != 0;
#else
  return ::isatty(STDERR_FILENO) != 0;
#endif
}

std::string progress_text(const std::string& title, const Progress& progress, double rate) {
  const std::uint64_t percent = progress.total == 0
                                    ? 100
                                    : static_cast<std::uint64_t>(100.0 * static_cast<double>(progress.done) /
                                                                 static_cast<double>(progress.total));
  std::string text = fmt::format("{}: {} % of {}, {} differ", title, percent, progress.total, progress.differed);
  if (rate > 0 && progress.done <= progress.total) {
    text += fmt::format(", {:.0f}/s, {} left", rate,
                        duration_text(static_cast<double>(progress.total - progress.done) / rate));
  }
  return text;
}

ProgressLine::ProgressLine(std::string title) : title_(std::move(title)) {
  recent_.push_back({Clock::now(), 0});
}

void ProgressLine::show(const Progress& progress) {
  if (!standard_error_is_terminal()) return;
  const Clock::time_point now = Clock::now();
  recent_.push_back({now, progress.done});
  while (recent_.size() > 2 && now - recent_[1].time > window) recent_.pop_front();
  const double seconds = std::chrono::duration<double>(now - recent_.front().time).count();
  const double rate = seconds < 0.5 ? 0 : static_cast<double>(progress.done - recent_.front().done) / seconds;
  put(progress_text(title_, progress, rate));
}

void ProgressLine::show(const std::string& text) {
  if (standard_error_is_terminal()) put(fmt::format("{}: {}", title_, text));
}

void ProgressLine::put(const std::string& line) {
  fmt::print(stderr, "\r{}\x1b[K", line.substr(0, line_width));
  std::fflush(stderr);
  shown_ = true;
}

ProgressLine::~ProgressLine() {
  if (!shown_) return;
  std::fputs("\r\x1b[K", stderr);
  std::fflush(stderr);
}

}  // namespace bitwitness::cli
