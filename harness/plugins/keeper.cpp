#include "harness/plugins/keeper.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bitwitness::plugins {
namespace {

using Clock = std::chrono::steady_clock;

// For a decoder whose processes start others faster than they can be ended.
constexpr std::chrono::milliseconds most_ending{3000};

constexpr timespec pause_between{0, 2'000'000};

void tell(int control, KeeperNews news, int value) {
  const KeeperReport report = {news, value};
  static_cast<void>(::send(control, &report, sizeof report, MSG_NOSIGNAL));
}

/// Calls `use` with the number and the state letter of each child. None of the numbers becomes another process's
/// meanwhile: only this process reaps them.
void visit_children(const std::function<void(pid_t, char)>& use) {
  DIR* folder = ::opendir("/proc");
  if (folder == nullptr) return;
  const int own = ::getpid();
  while (const dirent* entry = ::readdir(folder)) {
    const int pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    char text[512] = {};
    std::snprintf(text, sizeof text, "/proc/%d/stat", pid);
    const int file = ::open(text, O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    const ssize_t got = ::read(file, text, sizeof text - 1);
    ::close(file);
    if (got <= 0) continue;
    text[got] = '\0';
    const char* name_end = std::strrchr(text, ')');  // the name may hold anything
    char state = 0;
    int parent = 0;
    if (name_end != nullptr && std::sscanf(name_end + 1, " %c %d", &state, &parent) == 2 && parent == own) {
      use(pid, state);
    }
  }
  ::closedir(folder);
}

class Keeper {
 public:
  Keeper(int control, pid_t decoder, int signals) : control_(control), decoder_(decoder), signals_(signals) {}

  [[noreturn]] void watch() {
    bool has_ended = false;
    bool has_told_all = false;
    Clock::time_point ended_at{};
    while (true) {
      pollfd waits[2] = {{signals_, POLLIN, 0}, {control_, POLLIN, 0}};
      ::poll(waits, 2, has_ended && !has_told_all ? 5 : -1);
      if (waits[0].revents != 0) {
        signalfd_siginfo info{};
        if (::read(signals_, &info, sizeof info) == sizeof info && info.ssi_signo == SIGTERM) end_all();
      }
      if (waits[1].revents != 0) end_all();
      if (!has_ended && look_at_decoder()) {
        has_ended = true;
        ended_at = Clock::now();
      }
      const bool others = has_others();
      const bool is_late = Clock::now() - ended_at > std::chrono::milliseconds(keeper_grace_ms);
      if (has_ended && !has_told_all && (!others || is_late)) {
        has_told_all = true;
        tell(control_, KeeperNews::left, others ? 1 : 0);
      }
    }
  }

 private:
  /// Tells how the decoder ended, once it has. It is not reaped: its number, which is its group's too, stays its own.
  [[nodiscard]] bool look_at_decoder() const {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(decoder_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) return false;
    if (info.si_pid != decoder_) return false;
    // As wait(2) has it: the exit status in bits 8 to 15, or the signal in bits 0 to 6.
    tell(control_, KeeperNews::ended, info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8 : info.si_status);
    return true;
  }

  /// Reaps those that have ended and tells whether others than the decoder live.
  [[nodiscard]] bool has_others() const {
    bool others = false;
    visit_children([&](pid_t pid, char state) {
      if (pid == decoder_) return;
      if (state != 'Z' || ::waitpid(pid, nullptr, WNOHANG) == 0) others = true;
    });
    return others;
  }

  [[noreturn]] void end_all() const {
    ::kill(-decoder_, SIGKILL);
    const auto deadline = Clock::now() + most_ending;
    while (Clock::now() < deadline) {
      // What a killed process had started becomes a child of this one.
      visit_children([](pid_t pid, char) { ::kill(pid, SIGKILL); });
      pid_t reaped = 0;
      while ((reaped = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
      }
      if (reaped < 0) break;
      ::nanosleep(&pause_between, nullptr);
    }
    ::_exit(0);
  }

  int control_;
  pid_t decoder_;
  int signals_;
};

}  // namespace

int keep(int control) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t watched;
  sigset_t before;
  sigemptyset(&watched);
  sigaddset(&watched, SIGCHLD);
  sigaddset(&watched, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &watched, &before);
  const int signals = ::signalfd(-1, &watched, SFD_CLOEXEC);
  int result[2] = {-1, -1};
  const pid_t own = ::getpid();
  pid_t decoder = -1;
  if (signals >= 0 && ::pipe2(result, O_CLOEXEC) == 0) decoder = ::fork();
  if (decoder < 0) {
    tell(control, KeeperNews::cannot_start, errno);
    ::_exit(1);
  }
  if (decoder == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != own) ::_exit(1);
    ::close(control);
    ::close(signals);
    ::close(result[0]);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    return result[1];
  }
  ::setpgid(decoder, decoder);  // both do, as either may come first
  // The decoder's channels must end with it.
  const int last = result[0] > result[1] ? result[0] : result[1];
  for (int number = 0; number <= last; ++number) {
    if (number != control && number != signals && number != result[0]) ::close(number);
  }
  int reason = 0;
  ssize_t got = 0;
  while ((got = ::read(result[0], &reason, sizeof reason)) < 0 && errno == EINTR) {
  }
  ::close(result[0]);
  const bool has_failed = got == static_cast<ssize_t>(sizeof reason);
  tell(control, has_failed ? KeeperNews::cannot_execute : KeeperNews::started, reason);
  Keeper(control, decoder, signals).watch();
}

}  // namespace bitwitness::plugins
