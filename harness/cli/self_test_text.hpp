#pragma once
#include "harness/self_test.hpp"

#include <span>
#include <string>

namespace bitwitness::cli {

/// Prints a line for each group, what was given and what a processor gives for each vector that differs, and in the
/// last line what it came to. `groups` are those that were run.
std::string self_test_text(std::span<const SelfTestGroup> groups, const SelfTest& test, const std::string& version);

}  // namespace bitwitness::cli
