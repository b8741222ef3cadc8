#include "harness/plugins/spawner.hpp"

#include "harness/plugins/worker.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" char** environ;

namespace bitwitness::plugins {
namespace {

constexpr int most_busy = 100;
constexpr timespec busy_pause{0, 10'000'000};
constexpr unsigned set_close_on_exec = 4;  // CLOSE_RANGE_CLOEXEC, which older headers lack

[[noreturn]] void cannot_start(int reason) {
  throw Failure{fmt::format("cannot be started: {}", std::strerror(reason))};
}

void close_others_on_exec(unsigned first) {
  if (::syscall(SYS_close_range, first, ~0U, set_close_on_exec) == 0) return;
  constexpr int most = 65536;
  for (int number = static_cast<int>(first); number < most; ++number) ::fcntl(number, F_SETFD, FD_CLOEXEC);
}

/// Returns an executable file that lives in memory.
Descriptor host_image() {
  const std::span<const std::byte> bytes = embedded_host();
  Descriptor file(::memfd_create("decoder_host", MFD_CLOEXEC));
  if (!file.is_open()) cannot_start(errno);
  if (::write(file.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) cannot_start(errno);
  // What is open for writing cannot be executed.
  Descriptor image(::open(fmt::format("/proc/self/fd/{}", file.get()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!image.is_open()) cannot_start(errno);
  return raised(image);
}

/// Runs in the child: only what a signal handler may call.
[[noreturn]] void become(const ChildSetup& setup, int image, int control, char* const* arguments, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
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
  ::dup2(control, static_cast<int>(number++));
  close_others_on_exec(number);
  // A process that another thread is just starting may still hold the file open for writing.
  for (int i = 0; i < most_busy; ++i) {
    ::syscall(SYS_execveat, image, "", arguments, environ, AT_EMPTY_PATH);
    if (errno != ETXTBSY) break;
    ::nanosleep(&busy_pause, nullptr);
  }
  const KeeperReport report = {KeeperNews::cannot_start, errno};
  static_cast<void>(::write(control, &report, sizeof report) == 0);
  ::_exit(1);
}

/// Signals wait meanwhile: the child would run this program's handlers.
ChildProcess fork_and_become(const ChildSetup& setup) {
  std::vector<char*> arguments;
  for (const std::string& argument : setup.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const Descriptor image = host_image();
  auto [own, theirs] = make_socket_pair();
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::fork();
  const int reason = errno;
  if (pid == 0) become(setup, image.get(), theirs.get(), arguments.data(), parent);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) cannot_start(reason);
  ChildProcess child(pid, std::move(own));
  theirs.close();
  const KeeperReport report = child.started();
  if (report.news == KeeperNews::started) return child;
  if (report.news != KeeperNews::cannot_execute) cannot_start(report.value);
  throw Failure{fmt::format("cannot be executed: {}", std::strerror(report.value))};
}

}  // namespace

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
    std::packaged_task<ChildProcess()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

ChildProcess Spawner::spawn(const ChildSetup& setup) {
  std::packaged_task<ChildProcess()> task([&setup] { return fork_and_become(setup); });
  std::future<ChildProcess> child = task.get_future();
  {
    const std::scoped_lock lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
  return child.get();
}

}  // namespace bitwitness::plugins
