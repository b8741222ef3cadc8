#include "harness/cli/progress.hpp"

#ifdef _WIN32
#include <io.h>
#else
#include <unistd.h>
#endif

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

namespace bitwitness::cli {

namespace {

using Clock = std::chrono::steady_clock;

/// The rate is that of the last seconds, so that the estimate follows a machine that becomes busier.
constexpr auto window = std::chrono::seconds(8);
constexpr std::size_t least_steps = 3;

/// A rate is not told before; an estimate waits for longer, for the first values meet cold caches.
constexpr auto least_time = std::chrono::milliseconds(500);
constexpr auto estimate_time = std::chrono::seconds(3);
constexpr double long_run = 30;  // seconds
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

std::string estimate_text(const std::string& title, const Progress& progress, double rate) {
  const double seconds = static_cast<double>(progress.total - progress.done) / rate;
  if (seconds < long_run) return {};
  const std::string before =
      progress.resumed == 0 ? std::string() : fmt::format(", {} of them done before", progress.resumed);
  return fmt::format("{}: {} values{}: about {} left at the present {:.0f}/s", title, progress.total, before,
                     duration_text(seconds), rate);
}

void RateMeter::add(Time now, std::uint64_t done) {
  if (done == steps_.back().done) return;
  steps_.push_back({now, done});
  while (steps_.size() > least_steps && now - steps_[1].time > window) steps_.pop_front();
}

double RateMeter::rate(Time now) const {
  const Step& first = steps_.front();
  const Step& last = steps_.back();
  const auto measured = last.time - first.time;
  if (steps_.size() < 2 || now - first.time < least_time || measured.count() <= 0) return 0;
  // What is under way counts from when it should have been done.
  const auto step = measured / static_cast<std::int64_t>(steps_.size() - 1);
  const std::chrono::duration<double> seconds = std::max(measured, now - first.time - step);
  return static_cast<double>(last.done - first.done) / seconds.count();
}

ProgressLine::ProgressLine(std::string title) : title_(std::move(title)), begin_(Clock::now()), meter_(begin_) {}

void ProgressLine::show(const Progress& progress) {
  const Clock::time_point now = Clock::now();
  meter_.add(now, progress.done - progress.resumed);
  const double rate = meter_.rate(now);
  if (standard_error_is_terminal()) return put(progress_text(title_, progress, rate));
  if (is_estimated_ || rate <= 0 || now - begin_ < estimate_time) return;
  const std::string text = estimate_text(title_, progress, rate);
  is_estimated_ = !text.empty();
  if (is_estimated_) fmt::print(stderr, "{}\n", text);
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
