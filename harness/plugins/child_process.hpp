#pragma once
#include "harness/plugins/keeper.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

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

/// Owns a decoder: it and every process that came from it are gone when this is destroyed. What is known of it comes
/// from its keeper (keeper.hpp), a child of this program that ends when told to: no number of a process is used that
/// may be another's by now, whatever this program does with SIGCHLD.
class ChildProcess {
 public:
  /// Takes a keeper and its control.
  ChildProcess(pid_t keeper, Descriptor control) : keeper_(keeper), control_(std::move(control)) {}
  ChildProcess(ChildProcess&& other) noexcept
      : keeper_(std::exchange(other.keeper_, -1)),
        control_(std::move(other.control_)),
        status_(other.status_),
        left_(other.left_) {}
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess() { end(); }

  /// Waits for the first report; returns it, or `cannot_start` when there is none.
  KeeperReport started();

  /// Waits until it has ended, at most so long; returns how as a clause ("exited with status 3"), nothing while it
  /// runs.
  std::optional<std::string> ended(std::chrono::milliseconds wait);

  /// Tells whether it is known to have ended with status 0; after `ended`.
  [[nodiscard]] bool succeeded() const { return status_ == 0; }

  /// Tells whether processes that came from it are there still after it has ended, giving them a moment to go.
  bool left_others();

  /// Ends it and what came from it.
  void end();

 private:
  std::optional<KeeperReport> next_report(std::chrono::milliseconds wait);

  pid_t keeper_;
  Descriptor control_;
  std::optional<int> status_;
  std::optional<bool> left_;
  bool is_lost_ = false;  ///< the keeper is gone and will report nothing
};

}  // namespace bitwitness::plugins
