#pragma once
#include <chrono>
#include <string>
#include <string_view>

// Inside of harness/plugins/ only.

namespace bitwitness::plugins {

/// Says how a process ended, from its wait status: "exited with status 3", "was ended by SIGSEGV (invalid memory
/// access)".
std::string describe_end(int status);

/// Prints a time in seconds: "10", "0.5".
std::string seconds_text(std::chrono::milliseconds time);

/// Returns what a decoder said fit for one line of a terminal: UTF-8 stays, anything else, control characters of both
/// kinds and backslashes become `\xNN`.
std::string quotable(std::string_view text);

}  // namespace bitwitness::plugins
