#include "harness/plugins/child_process.hpp"

#include "harness/plugins/worker.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" char** environ;

namespace bitwitness::plugins {
namespace {

// Above what a child gets, so that none of ours stands where one of its own is to be.
constexpr int first_own_descriptor = 16;

constexpr int cannot_execute = 127;
constexpr int most_busy = 100;
constexpr timespec busy_pause{0, 10'000'000};
constexpr unsigned set_close_on_exec = 4;  // CLOSE_RANGE_CLOEXEC, which older headers lack
constexpr std::chrono::milliseconds end_poll{2};

[[noreturn]] void cannot_start() {
  throw Failure{fmt::format("cannot be started: {}", std::strerror(errno))};
}

void close_others_on_exec(unsigned first) {
  if (::syscall(SYS_close_range, first, ~0U, set_close_on_exec) == 0) return;
  constexpr int most = 65536;
  for (int number = static_cast<int>(first); number < most; ++number) ::fcntl(number, F_SETFD, FD_CLOEXEC);
}

/// Runs in the child: only what a signal handler may call.
[[noreturn]] void become(const ChildSetup& setup, char* const* arguments, pid_t parent, int report) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(cannot_execute);
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &standard, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  constexpr rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  unsigned number = 0;
  for (const int descriptor : setup.descriptors) ::dup2(descriptor, static_cast<int>(number++));
  close_others_on_exec(number);
  // A process that another thread is just starting may still hold the file open for writing.
  for (int i = 0; i < most_busy; ++i) {
    if (setup.image >= 0) {
      ::syscall(SYS_execveat, setup.image, "", arguments, environ, AT_EMPTY_PATH);
    } else {
      ::execvp(arguments[0], arguments);
    }
    if (errno != ETXTBSY) break;
    ::nanosleep(&busy_pause, nullptr);
  }
  const int reason = errno;
  static_cast<void>(::write(report, &reason, sizeof reason) == 0);
  ::_exit(cannot_execute);
}

/// Signals wait meanwhile: the child would run this program's handlers.
pid_t fork_and_become(const ChildSetup& setup) {
  std::vector<char*> arguments;
  for (const std::string& argument : setup.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  Pipe report = make_pipe();  // closed by what is executed, and told the reason otherwise
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  int reason = errno;
  if (pid == 0) become(setup, arguments.data(), parent, report.write.get());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) throw Failure{fmt::format("cannot be started: {}", std::strerror(reason))};
  ::setpgid(pid, pid);  // both do, as either may come first
  report.write.close();
  ssize_t got = 0;
  while ((got = ::read(report.read.get(), &reason, sizeof reason)) < 0 && errno == EINTR) {
  }
  if (got == static_cast<ssize_t>(sizeof reason)) {
    ChildProcess(pid).end();
    throw Failure{fmt::format("cannot be executed: {}", std::strerror(reason))};
  }
  return pid;
}

std::string signal_text(int number) {
  struct Known {
    int number;
    std::string_view text;
  };
  constexpr std::array known = {Known{SIGSEGV, "SIGSEGV (invalid memory access)"},
                                Known{SIGBUS, "SIGBUS (invalid memory access)"},
                                Known{SIGABRT, "SIGABRT (abort, or an exception that nobody caught)"},
                                Known{SIGFPE, "SIGFPE (division by zero or another arithmetic error)"},
                                Known{SIGILL, "SIGILL (illegal instruction)"},
                                Known{SIGTRAP, "SIGTRAP (breakpoint)"},
                                Known{SIGSYS, "SIGSYS (forbidden system call)"},
                                Known{SIGPIPE, "SIGPIPE (it wrote where nobody reads)"},
                                Known{SIGKILL, "SIGKILL (perhaps memory ran out)"},
                                Known{SIGTERM, "SIGTERM"},
                                Known{SIGINT, "SIGINT"}};
  for (const Known& each : known) {
    if (each.number == number) return std::string(each.text);
  }
  return fmt::format("signal {}", number);
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

Spawner::Spawner() : thread_([this] { work(); }) {}

Spawner::~Spawner() {
  {
    const std::scoped_lock lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Spawner::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_over_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::packaged_task<pid_t()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

pid_t Spawner::spawn(const ChildSetup& setup) {
  std::packaged_task<pid_t()> task([&setup] { return fork_and_become(setup); });
  std::future<pid_t> pid = task.get_future();
  {
    const std::scoped_lock lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
  return pid.get();
}

std::optional<std::string> ChildProcess::ended(std::chrono::milliseconds wait) {
  const auto deadline = std::chrono::steady_clock::now() + wait;
  while (!is_reaped_) {
    const pid_t found = ::waitpid(pid_, &status_, WNOHANG);
    if (found == pid_) {
      is_reaped_ = true;
    } else if (found < 0 && errno == ECHILD) {
      // A program that ignores SIGCHLD gets no status.
      is_reaped_ = true;
      return "ended";
    } else if (std::chrono::steady_clock::now() >= deadline) {
      return std::nullopt;
    } else {
      std::this_thread::sleep_for(end_poll);
    }
  }
  return describe_end(status_);
}

bool ChildProcess::left_others(std::chrono::milliseconds wait) {
  const auto deadline = std::chrono::steady_clock::now() + wait;
  while (::kill(-pid_, 0) == 0) {
    if (std::chrono::steady_clock::now() >= deadline) return true;
    std::this_thread::sleep_for(end_poll);
  }
  return false;
}

void ChildProcess::end() {
  if (pid_ <= 0) return;
  ::kill(-pid_, SIGKILL);
  if (!is_reaped_) {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    is_reaped_ = true;
  }
  pid_ = -1;
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) return "was ended by " + signal_text(WTERMSIG(status));
  return fmt::format("exited with status {}", WEXITSTATUS(status));
}

}  // namespace bitwitness::plugins
