#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/types.h>

// Inside of harness/plugins/ only.

namespace bitwitness::plugins {

/// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { close(); }

  [[nodiscard]] int get() const { return number_; }
  [[nodiscard]] bool is_open() const { return number_ >= 0; }
  void close();

 private:
  int number_ = -1;
};

/// Returns another one for the same file, above those that a child is started with. Throws Failure.
Descriptor raised(const Descriptor& low);

/// Two ends that no program started meanwhile inherits. Throw Failure when there are no more descriptors.
struct Pipe {
  Descriptor read;
  Descriptor write;
};
Pipe make_pipe();
std::pair<Descriptor, Descriptor> make_socket_pair();
Descriptor open_null();

/// Lets reads and writes of a descriptor return at once.
void set_nonblocking(const Descriptor& descriptor);

struct ChildSetup {
  int image = -1;  ///< descriptor of an executable file; without one argv[0] names it, as in a shell
  std::vector<std::string> arguments;  ///< from argv[0] on
  std::vector<int> descriptors;        ///< become 0, 1, 2, …; every other one is closed
};

/// Starts programs from a thread of its own: the kernel ends them when that thread ends, so none outlives this program
/// even when it is killed. Must live as long as what it started.
class Spawner {
 public:
  Spawner();
  ~Spawner();
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  /// Starts a program in a process group of its own, with default signal handling and no core file. Throws Failure when
  /// it cannot be executed.
  pid_t spawn(const ChildSetup& setup);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<pid_t()>> tasks_;
  bool is_over_ = false;
  std::thread thread_;
};

/// Owns a process and its group: both are gone, and the process reaped, when this is destroyed.
class ChildProcess {
 public:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  ~ChildProcess() { end(); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Waits until it has ended, at most so long; returns how as a clause ("exited with status 3"), nothing while it
  /// runs.
  std::optional<std::string> ended(std::chrono::milliseconds wait);

  /// Tells whether it ended with status 0; after `ended`.
  [[nodiscard]] bool succeeded() const { return is_reaped_ && status_ == 0; }

  /// Tells whether processes of its group are there still after it has ended, giving them a moment to go.
  bool left_others(std::chrono::milliseconds wait);

  /// Kills the group and reaps the process.
  void end();

 private:
  pid_t pid_;
  int status_ = 0;
  bool is_reaped_ = false;
};

/// Says how a process ended: "exited with status 3", "was ended by SIGSEGV (invalid memory access)".
std::string describe_end(int status);

}  // namespace bitwitness::plugins
