#include "harness/plugins/library_worker.hpp"

#include "harness/plugins/host_protocol.hpp"
#include "harness/plugins/last_line.hpp"
#include "harness/plugins/wording.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

namespace bitwitness::plugins {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t values_at_once = 8192;

std::size_t aligned(std::size_t offset) {
  constexpr std::size_t page = 4096;
  return (offset + page - 1) / page * page;
}

/// Memory that two processes see.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t size) : size_(size) {
    const Descriptor file(::memfd_create("bitwitness", MFD_CLOEXEC));
    if (!file.is_open()) fail();
    file_ = raised(file);
    if (::ftruncate(file_.get(), static_cast<off_t>(size)) != 0) fail();
    data_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (data_ == MAP_FAILED) fail();
  }
  ~SharedMemory() { ::munmap(data_, size_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }
  [[nodiscard]] int file() const { return file_.get(); }
  void close_file() { file_.close(); }

 private:
  [[noreturn]] static void fail() {
    throw Failure{fmt::format("cannot be started: shared memory: {}", std::strerror(errno))};
  }

  std::size_t size_;
  Descriptor file_;
  void* data_ = nullptr;
};

class LibraryWorker final : public Worker {
 public:
  LibraryWorker(Spawner& spawner, const LibrarySetup& setup)
      : sizes_(setup.sizes),
        timeout_(setup.start_timeout),
        packed_offset_(aligned(sizeof(HostControl))),
        words_offset_(aligned(packed_offset_ + values_at_once * sizes_.packed)),
        memory_(aligned(words_offset_ + (values_at_once * sizes_.words + guard_words) * sizeof(std::uint32_t))),
        child_(spawn(spawner, setup)) {}

  void set_timeout(std::chrono::milliseconds timeout) override { timeout_ = timeout; }

  /// Waits until the library is loaded.
  bool load(const std::stop_token& stop) {
    if (!wait(false, stop, "while it was loaded")) return false;
    is_batch_ = control().is_batch.load() != 0;
    control().description.back() = '\0';
    description_ = control().description.data();
    return true;
  }

  bool decode(std::span<const std::byte> packed, std::span<std::uint32_t> words, const std::stop_token& stop) override {
    const auto count = static_cast<std::uint32_t>(packed.size() / sizes_.packed);
    control().done = 0;
    std::memcpy(memory_.data() + packed_offset_, packed.data(), packed.size());
    // A host that is gone shows in what follows.
    static_cast<void>(::send(socket_.get(), &count, sizeof count, MSG_NOSIGNAL));
    if (!wait(!is_batch_, stop, "")) return false;
    std::memcpy(words.data(), memory_.data() + words_offset_, words.size_bytes());
    return true;
  }

  void finish() override {}
  [[nodiscard]] std::size_t most_values() const override { return values_at_once; }
  [[nodiscard]] const std::string& description() const override { return description_; }

 private:
  [[nodiscard]] HostControl& control() const { return *reinterpret_cast<HostControl*>(memory_.data()); }

  ChildProcess spawn(Spawner& spawner, const LibrarySetup& setup) {
    auto* const shared = new (memory_.data()) HostControl{};
    shared->packed_size = sizes_.packed;
    shared->word_count = sizes_.words;
    shared->packed_offset = packed_offset_;
    shared->words_offset = words_offset_;
    shared->total = aligned(words_offset_ + (values_at_once * sizes_.words + guard_words) * sizeof(std::uint32_t));
    shared->memory_limit = setup.memory;
    auto [own, theirs] = make_socket_pair();
    Pipe errors = make_pipe();
    const Descriptor null = open_null();
    socket_ = std::move(own);
    errors_ = LastLine(std::move(errors.read));
    // What the library prints must not mix with what the tool writes.
    ChildSetup child;
    child.arguments = {"decoder_host", is_library, setup.path, setup.symbol};
    child.descriptors = {null.get(), errors.write.get(), errors.write.get(), theirs.get(), memory_.file()};
    ChildProcess process = spawner.spawn(child);
    memory_.close_file();
    return process;
  }

  /// Waits for the host's answer. `counts` tells that it counts values, which is progress.
  bool wait(bool counts, const std::stop_token& stop, std::string_view when) {
    std::uint64_t seen = 0;
    auto deadline = Clock::now() + timeout_;
    while (!stop.stop_requested()) {
      std::array<pollfd, 2> waits = {pollfd{socket_.get(), POLLIN, 0}, pollfd{errors_.descriptor(), POLLIN, 0}};
      ::poll(waits.data(), waits.size(), static_cast<int>(wait_slice.count()));
      if (waits[1].revents != 0) errors_.read();
      if (waits[0].revents != 0) {
        char byte = 0;
        const ssize_t got = ::read(socket_.get(), &byte, 1);
        if (got == 1) return true;
        if (got == 0 || errno != EINTR) fail_ended(counts, when);
      }
      const std::uint64_t done = control().done.load();
      if (counts && done != seen) {
        seen = done;
        deadline = Clock::now() + timeout_;
      } else if (Clock::now() > deadline) {
        Failure hang = failure(fmt::format("hangs: no progress in {} s", seconds_text(timeout_)), counts, when);
        hang.hangs = true;
        throw hang;
      }
    }
    return false;
  }

  Failure failure(std::string what, bool counts, std::string_view when) {
    if (!when.empty()) what += fmt::format(" {}", when);
    what += errors_.clause();
    if (!counts) return {std::move(what)};
    return {std::move(what), static_cast<std::size_t>(control().done.load())};
  }

  [[noreturn]] void fail_ended(bool counts, std::string_view when) {
    const std::optional<std::string> end = child_.ended(end_grace);
    control().text.back() = '\0';
    const std::string text = quotable(control().text.data());
    switch (control().failure.load()) {
      case HostFailure::no_library:
        throw Failure{"cannot be loaded: " + text};
      case HostFailure::no_symbol:
        throw Failure{fmt::format("the library exports no symbol {}", text)};
      case HostFailure::not_function:
        throw Failure{fmt::format("{} is data and not a function", text)};
      case HostFailure::exited:
        throw failure("called exit()", counts, when);
      case HostFailure::threw:
        throw failure("threw an exception: " + text, counts, when);
      case HostFailure::wrote_too_far:
        throw failure(fmt::format("wrote past the {} words of a result", sizes_.words), counts, when);
      case HostFailure::closed_socket:
        throw failure("closed descriptors that are not its own", false, when);
      case HostFailure::none:
        break;
    }
    throw failure(end ? *end : "closed descriptors that are not its own", counts, when);
  }

  Sizes sizes_;
  std::chrono::milliseconds timeout_;
  std::size_t packed_offset_;
  std::size_t words_offset_;
  SharedMemory memory_;
  Descriptor socket_;
  LastLine errors_;
  bool is_batch_ = false;
  std::string description_;
  ChildProcess child_;
};

}  // namespace

std::unique_ptr<Worker> start_library(Spawner& spawner, const LibrarySetup& setup, const std::stop_token& stop) {
  auto worker = std::make_unique<LibraryWorker>(spawner, setup);
  if (!worker->load(stop)) return nullptr;
  worker->set_timeout(setup.timeout);
  return worker;
}

}  // namespace bitwitness::plugins
