#include "harness/plugins/wording.hpp"

#include "harness/printable.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>

#include <fmt/format.h>
#include <sys/wait.h>

namespace bitwitness::plugins {
namespace {

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

/// Returns how many bytes a character of several bytes at the start of a text has; 0 when there is none, or a control
/// character (U+0080 to U+009F).
std::size_t long_character(std::string_view text) {
  const auto byte = [text](std::size_t at) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[at])); };
  const std::uint32_t lead = byte(0);
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return 0;
  std::uint32_t code = lead & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
    code = code << 6U | (byte(i) & 0x3fU);
  }
  constexpr std::array<std::uint32_t, 5> least = {0, 0, 0xa0, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  return code < least[size] || is_surrogate || code > 0x10ffff ? 0 : size;
}

}  // namespace

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) return "was ended by " + signal_text(WTERMSIG(status));
  return fmt::format("exited with status {}", WEXITSTATUS(status));
}

std::string seconds_text(std::chrono::milliseconds time) {
  return fmt::format("{:g}", static_cast<double>(time.count()) / 1000);
}

std::string quotable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = long_character(text);
    out += size > 0 ? std::string(text.substr(0, size)) : printable(text.substr(0, 1));
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out;
}

}  // namespace bitwitness::plugins
