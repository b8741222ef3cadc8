#include "harness/plugins/child_process.hpp"

#include "harness/plugins/wording.hpp"
#include "harness/plugins/worker.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bitwitness::plugins {
namespace {

using Clock = std::chrono::steady_clock;

// Above what a child gets, so that none of ours stands where one of its own is to be.
constexpr int first_own_descriptor = 16;

// A keeper needs less for all that it ends, unless somebody has stopped it.
constexpr std::chrono::milliseconds keeper_end{6000};

[[noreturn]] void cannot_start() {
  throw Failure{fmt::format("cannot be started: {}", std::strerror(errno))};
}

/// Waits until something comes or the other side is gone; returns whether one of both was.
bool wait_for_input(const Descriptor& descriptor, Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd wait = {descriptor.get(), POLLIN, 0};
    const int found = ::poll(&wait, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (found > 0) return true;
    if (found == 0 || errno != EINTR) return false;
  }
}

}  // namespace

void Descriptor::close() {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

Descriptor raised(const Descriptor& low) {
  const int high = ::fcntl(low.get(), F_DUPFD_CLOEXEC, first_own_descriptor);
  if (high < 0) cannot_start();
  return Descriptor(high);
}

Pipe make_pipe() {
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) cannot_start();
  const Descriptor read(ends[0]);
  const Descriptor write(ends[1]);
  return {raised(read), raised(write)};
}

std::pair<Descriptor, Descriptor> make_socket_pair() {
  std::array<int, 2> ends = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) cannot_start();
  const Descriptor first(ends[0]);
  const Descriptor second(ends[1]);
  return {raised(first), raised(second)};
}

Descriptor open_null() {
  const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null.is_open()) cannot_start();
  return raised(null);
}

void set_nonblocking(const Descriptor& descriptor) {
  ::fcntl(descriptor.get(), F_SETFL, ::fcntl(descriptor.get(), F_GETFL) | O_NONBLOCK);
}

std::optional<KeeperReport> ChildProcess::next_report(std::chrono::milliseconds wait) {
  if (is_lost_ || !wait_for_input(control_, Clock::now() + wait)) return std::nullopt;
  KeeperReport report{};
  ssize_t got = 0;
  while ((got = ::recv(control_.get(), &report, sizeof report, MSG_WAITALL)) < 0 && errno == EINTR) {
  }
  if (got == static_cast<ssize_t>(sizeof report)) return report;
  is_lost_ = true;
  return std::nullopt;
}

KeeperReport ChildProcess::started() {
  constexpr std::chrono::hours long_enough{1};
  return next_report(long_enough).value_or(KeeperReport{KeeperNews::cannot_start, ECHILD});
}

std::optional<std::string> ChildProcess::ended(std::chrono::milliseconds wait) {
  if (!status_) {
    if (const std::optional<KeeperReport> report = next_report(wait)) status_ = report->value;
  }
  if (status_) return describe_end(*status_);
  // Its child ends with it.
  if (is_lost_) return "was ended together with the process that watches it";
  return std::nullopt;
}

bool ChildProcess::left_others() {
  if (!left_) {
    constexpr std::chrono::milliseconds wait{2 * keeper_grace_ms};
    const std::optional<KeeperReport> report = next_report(wait);
    left_ = !report || report->value != 0;
  }
  return *left_;
}

void ChildProcess::end() {
  if (keeper_ <= 0) return;
  ::shutdown(control_.get(), SHUT_WR);
  const auto deadline = Clock::now() + keeper_end;
  while (!is_lost_ && Clock::now() < deadline)
    next_report(std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()));
  if (!is_lost_) ::kill(keeper_, SIGKILL);
  while (::waitpid(keeper_, nullptr, 0) < 0 && errno == EINTR) {
  }
  keeper_ = -1;
}

}  // namespace bitwitness::plugins
