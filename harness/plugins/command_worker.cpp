#include "harness/plugins/command_worker.hpp"

#include "harness/plugins/host_protocol.hpp"
#include "harness/plugins/last_line.hpp"
#include "harness/plugins/wording.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

namespace bitwitness::plugins {
namespace {

using Clock = std::chrono::steady_clock;

static_assert(std::endian::native == std::endian::little, "counts and words go out and come in as they lie in memory");

// Few enough that a slow decoder shows progress, enough that a round trip does not count.
constexpr std::size_t values_at_once = 1024;

constexpr std::string_view ready = "ready 1";
constexpr std::size_t longest_ready = 4096;
constexpr std::size_t most_shown = 60;

/// While it lives, writing where nobody reads is an error of the write and no signal, in this thread.
class BrokenPipeGuard {
 public:
  BrokenPipeGuard() {
    sigemptyset(&broken_);
    sigaddset(&broken_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &broken_, &before_);
  }
  ~BrokenPipeGuard() {
    constexpr timespec at_once{0, 0};
    if (!was_pending_) {
      while (::sigtimedwait(&broken_, nullptr, &at_once) < 0 && errno == EINTR) {
      }
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  BrokenPipeGuard(const BrokenPipeGuard&) = delete;
  BrokenPipeGuard& operator=(const BrokenPipeGuard&) = delete;

 private:
  sigset_t broken_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

std::string shown(std::string_view text) {
  return quotable(text.substr(0, most_shown)) + (text.size() > most_shown ? "…" : "");
}

std::string plural(std::size_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

class CommandWorker final : public Worker {
 public:
  CommandWorker(Spawner& spawner, const CommandSetup& setup)
      : sizes_(setup.sizes), timeout_(setup.start_timeout), child_(spawn(spawner, setup)) {}

  void set_timeout(std::chrono::milliseconds timeout) override { timeout_ = timeout; }

  /// Greets it and waits until it is ready.
  bool greet(const std::stop_token& stop) {
    const std::string greeting = fmt::format("bitwitness-decoder 1 {} {}\n", sizes_.packed, sizes_.words);
    std::string line;
    // One byte at a time: what follows the line is nothing that was asked for.
    for (char byte = 0; byte != '\n'; line += byte) {
      const auto out = line.empty() ? std::as_bytes(std::span(greeting)) : std::span<const std::byte>();
      if (line.size() == longest_ready) throw Failure{"answers the greeting with a line that does not end"};
      if (!exchange(out, std::as_writable_bytes(std::span(&byte, 1)), 0, stop, "before it said that it is ready")) {
        return false;
      }
    }
    line.pop_back();
    if (line.ends_with('\r')) line.pop_back();
    const std::string_view text = line;
    if (!text.starts_with(ready) || (text.size() > ready.size() && text[ready.size()] != ' ')) {
      throw Failure{fmt::format("answers the greeting with '{}' where '{}' is expected", shown(text), ready)};
    }
    description_ = text.substr(std::min(text.size(), ready.size() + 1));
    refuse_more("after it said that it is ready");
    return true;
  }

  bool decode(std::span<const std::byte> packed, std::span<std::uint32_t> words, const std::stop_token& stop) override {
    refuse_more("before it was asked");
    const auto count = static_cast<std::uint32_t>(packed.size() / sizes_.packed);
    request_.resize(sizeof count + packed.size());
    std::memcpy(request_.data(), &count, sizeof count);
    std::memcpy(request_.data() + sizeof count, packed.data(), packed.size());
    answer_.resize(sizeof count + words.size_bytes());
    if (!exchange(request_, answer_, count, stop, "")) return false;
    std::memcpy(words.data(), answer_.data() + sizeof count, words.size_bytes());
    refuse_more("after its words");
    return true;
  }

  void finish() override {
    input_.close();
    const auto deadline = Clock::now() + timeout_;
    constexpr std::string_view when = "after its input had ended";
    std::size_t extra = 0;
    bool is_open = true;
    while (is_open || !child_.ended(std::chrono::milliseconds(0))) {
      std::array<std::byte, 4096> buffer{};
      std::array<pollfd, 2> waits = {pollfd{is_open ? output_.get() : -1, POLLIN, 0},
                                     pollfd{errors_.descriptor(), POLLIN, 0}};
      ::poll(waits.data(), waits.size(), static_cast<int>(wait_slice.count()));
      if (waits[1].revents != 0) errors_.read();
      if (waits[0].revents != 0) {
        const ssize_t got = ::read(output_.get(), buffer.data(), buffer.size());
        if (got > 0) extra += static_cast<std::size_t>(got);
        if (got == 0) is_open = false;
      } else if (is_open && child_.ended(std::chrono::milliseconds(0))) {
        break;  // somebody else holds its output
      }
      if (extra > 0) throw failure(fmt::format("wrote {} that nobody asked for", plural(extra, "byte")), when);
      if (Clock::now() > deadline) throw failure(fmt::format("did not end within {} s", seconds_text(timeout_)), when);
    }
    if (!child_.succeeded()) throw failure(*child_.ended(end_grace), when);
    if (child_.left_others()) throw failure("left processes running", when);
  }

  [[nodiscard]] std::size_t most_values() const override { return values_at_once; }
  [[nodiscard]] const std::string& description() const override { return description_; }

 private:
  ChildProcess spawn(Spawner& spawner, const CommandSetup& setup) {
    Pipe input = make_pipe();
    Pipe output = make_pipe();
    Pipe errors = make_pipe();
    ChildSetup child;
    child.arguments = {"decoder_host", is_command};
    child.arguments.insert(child.arguments.end(), setup.arguments.begin(), setup.arguments.end());
    child.descriptors = {input.read.get(), output.write.get(), errors.write.get()};
    input_ = std::move(input.write);
    output_ = std::move(output.read);
    errors_ = LastLine(std::move(errors.read));
    set_nonblocking(input_);
    set_nonblocking(output_);
    return spawner.spawn(child);
  }

  /// Writes `out` while it reads until `in` is full; both may go on at once, so that neither side waits for the other.
  /// With a count, `in` starts with one and it must be the same.
  bool exchange(std::span<const std::byte> out, std::span<std::byte> in, std::uint32_t count,
                const std::stop_token& stop, std::string_view when) {
    const BrokenPipeGuard guard;
    std::size_t received = 0;
    bool refuses_input = false;  // nobody is there to read it: an answer to what was read may come still
    auto deadline = Clock::now() + timeout_;
    auto refused_since = Clock::now();
    while (!out.empty() || received < in.size()) {
      if (stop.stop_requested()) return false;
      std::array<pollfd, 3> waits = {
          pollfd{output_.get(), POLLIN, 0},
          pollfd{refuses_input ? -1 : input_.get(), static_cast<short>(out.empty() ? 0 : POLLOUT), 0},
          pollfd{errors_.descriptor(), POLLIN, 0}};
      if (received == in.size()) waits[0].fd = -1;
      ::poll(waits.data(), waits.size(), static_cast<int>(wait_slice.count()));
      if (waits[2].revents != 0) errors_.read();
      bool moved = false;
      if (!refuses_input) refused_since = Clock::now();
      if (count != 0 && out.empty() && (waits[1].revents & POLLERR) != 0) refuses_input = true;
      if (!out.empty() && waits[1].revents != 0) {
        const ssize_t put = ::write(input_.get(), out.data(), out.size());
        if (put > 0) {
          out = out.subspan(static_cast<std::size_t>(put));
          moved = true;
        } else if (errno == EPIPE) {
          refuses_input = true;
          out = {};
        }
      }
      if (waits[0].revents != 0) {
        const ssize_t got = ::read(output_.get(), in.data() + received, in.size() - received);
        if (got == 0) throw ended(received, in.size(), when);
        if (got > 0) {
          received += static_cast<std::size_t>(got);
          moved = true;
          if (count != 0) check_count(in.first(received), count);
        }
      }
      if (moved) {
        deadline = Clock::now() + timeout_;
      } else if (refuses_input && Clock::now() > refused_since + end_grace) {
        throw failure("closed its input", when);
      } else if (Clock::now() > deadline) {
        Failure hang = failure(fmt::format("hangs: no progress in {} s", seconds_text(timeout_)), when);
        hang.hangs = true;
        throw hang;
      }
    }
    // What does not read the greeting shows in its answer.
    if (refuses_input && count != 0) throw failure("closed its input", when);
    return true;
  }

  void check_count(std::span<const std::byte> in, std::uint32_t count) {
    std::uint32_t answered = 0;
    if (in.size() < sizeof answered) return;
    std::memcpy(&answered, in.data(), sizeof answered);
    if (answered == count) return;
    throw failure(fmt::format("answers with {} values where {} was asked for", answered, plural(count, "value")), "");
  }

  /// Refuses what has come without a question.
  void refuse_more(std::string_view when) {
    std::array<std::byte, 4096> buffer{};
    const ssize_t got = ::read(output_.get(), buffer.data(), buffer.size());
    if (got > 0) {
      throw failure(fmt::format("wrote {}{} that nobody asked for", plural(static_cast<std::size_t>(got), "byte"),
                                static_cast<std::size_t>(got) == buffer.size() ? " or more" : ""),
                    when);
    }
  }

  /// Its output has ended.
  Failure ended(std::size_t received, std::size_t expected, std::string_view when) {
    const std::optional<std::string> end = child_.ended(end_grace);
    std::string what = end ? *end : "closed its output";
    if (received > 0) what += fmt::format(" after {} of {} bytes", received, expected);
    return failure(std::move(what), when);
  }

  Failure failure(std::string what, std::string_view when) {
    if (!when.empty()) what += fmt::format(" {}", when);
    return {what + errors_.clause()};
  }

  Sizes sizes_;
  std::chrono::milliseconds timeout_;
  Descriptor input_;
  Descriptor output_;
  LastLine errors_;
  std::string description_;
  std::vector<std::byte> request_;
  std::vector<std::byte> answer_;
  ChildProcess child_;
};

}  // namespace

std::unique_ptr<Worker> start_command(Spawner& spawner, const CommandSetup& setup, const std::stop_token& stop) {
  auto worker = std::make_unique<CommandWorker>(spawner, setup);
  if (!worker->greet(stop)) return nullptr;
  worker->set_timeout(setup.timeout);
  return worker;
}

}  // namespace bitwitness::plugins
