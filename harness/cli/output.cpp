#include "harness/cli/output.hpp"

#include "harness/cli/interrupt.hpp"
#include "harness/error.hpp"
#include "harness/report_parts.hpp"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace bitwitness::cli {

namespace {

namespace fs = std::filesystem;

struct Closer {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

Error cannot_write(std::string_view option, const std::string& path, std::string_view why) {
  return Error(fmt::format("{} {}: cannot write: {}", option, path, why));
}

/// Removes a file unless it has been renamed to its final name.
struct TemporaryFile {
  fs::path path;
  bool renamed = false;
  explicit TemporaryFile(fs::path p) : path(std::move(p)) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    std::error_code ignored;
    if (!renamed) fs::remove(path, ignored);
  }
};

/// Opens a device or a pipe. A pipe that nobody reads yet is waited for, until an interrupt comes. Throws Error.
std::FILE* open_in_place(std::string_view option, const std::string& path) {
  constexpr auto pause = std::chrono::milliseconds(20);
  int descriptor = -1;
  while ((descriptor = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0) {
    const int reason = errno;
    std::error_code ignored;
    const bool is_unread = reason == ENXIO && fs::is_fifo(path, ignored);  // a socket answers so too
    if (!is_unread && reason != EINTR) throw cannot_write(option, path, std::strerror(reason));
    if (interrupt_came()) throw cannot_write(option, path, "interrupted before anything read it");
    std::this_thread::sleep_for(pause);
  }
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  std::FILE* const file = ::fdopen(descriptor, "wb");
  if (file == nullptr) {
    const int reason = errno;
    ::close(descriptor);
    throw cannot_write(option, path, std::strerror(reason));
  }
  return file;
}

using Produce = std::function<void(const TextSink&)>;

/// Writes to a file just opened (null: errno says why not) and closes it.
void write_all(std::string_view option, const std::string& path, std::FILE* opened, const Produce& produce) {
  std::unique_ptr<std::FILE, Closer> file(opened);
  if (!file) throw cannot_write(option, path, std::strerror(errno));
  produce([&](std::string_view text) {
    const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
    if (!written) throw cannot_write(option, path, std::strerror(errno));
  });
  if (std::fflush(file.get()) != 0) throw cannot_write(option, path, std::strerror(errno));
  if (std::fclose(file.release()) != 0) throw cannot_write(option, path, std::strerror(errno));
}

/// Writes through a temporary file; with `keep` false only tries whether that works.
void write_beside(std::string_view option, const std::string& path, const Produce& produce, bool keep) {
  if (path.empty()) throw Error(fmt::format("{} needs a file name", option));
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) throw cannot_write(option, path, "it is a directory");
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    if (keep) write_all(option, path, open_in_place(option, path), produce);
    return;
  }
  error.clear();  // that nothing is there yet is none
  // A link keeps pointing where it does: the file behind it is what is replaced.
  const fs::path final_path = fs::exists(status) ? fs::canonical(path, error) : fs::path(path);
  if (error) throw cannot_write(option, path, error.message());
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  TemporaryFile temporary(final_path.string() + fmt::format(".{:x}.tmp", now));
  write_all(option, path, std::fopen(temporary.path.c_str(), "wbx"), produce);
  if (!keep) return;
  fs::rename(temporary.path, final_path, error);
  if (error) throw cannot_write(option, path, error.message());
  temporary.renamed = true;
}

}  // namespace

void complain(std::string_view message) {
  const std::string line = fmt::format("bitwitness: {}\n", report_parts::printable(message));
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void write_standard_output(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0) {
    throw Error(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
  }
}

void require_writable(std::string_view option, const std::string& path) {
  write_beside(
      option, path, [](const TextSink&) {}, false);
}

void write_file(std::string_view option, const std::string& path, std::string_view text) {
  write_beside(
      option, path, [&](const TextSink& sink) { sink(text); }, true);
}

void write_pieces(std::string_view option, const std::string& path, const Produce& produce) {
  if (path != "-") return write_beside(option, path, produce, true);
  produce([](std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) write_standard_output({});
  });
  write_standard_output({});
}

}  // namespace bitwitness::cli
