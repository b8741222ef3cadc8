#include "harness/plugins/last_line.hpp"

#include "harness/plugins/wording.hpp"

#include <array>
#include <cerrno>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

namespace bitwitness::plugins {
namespace {

constexpr std::size_t most_kept = 200;

// What is read at a time before others get a turn: a process may write for ever.
constexpr int most_reads = 16;

}  // namespace

LastLine::LastLine(Descriptor from) : from_(std::move(from)) {
  set_nonblocking(from_);
}

void LastLine::read() {
  std::array<char, 4096> buffer{};
  for (int i = 0; i < most_reads && from_.is_open(); ++i) {
    const ssize_t got = ::read(from_.get(), buffer.data(), buffer.size());
    if (got > 0) {
      take({buffer.data(), static_cast<std::size_t>(got)});
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      from_.close();
    } else {
      return;
    }
  }
}

void LastLine::take(std::string_view text) {
  for (const char c : text) {
    if (c != '\n') {
      if (line_.size() < most_kept) line_ += c;
    } else {
      if (line_.find_first_not_of(" \t\r") != std::string::npos) last_ = line_;
      line_.clear();
    }
  }
}

std::string LastLine::clause() {
  read();
  take("\n");
  while (last_.ends_with('\r') || last_.ends_with(' ')) last_.pop_back();
  return last_.empty() ? std::string() : fmt::format("; its last line: {}", quotable(last_));
}

}  // namespace bitwitness::plugins
