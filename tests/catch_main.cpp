// What every test program begins with.
#ifndef CATCH_CONFIG_RUNNER
#define CATCH_CONFIG_RUNNER
#endif
#include "tests/catch.hpp"

#include <iostream>
#include <utility>
#include <vector>

namespace bitwitness::tests {
namespace {

/// What CTest takes for a test that was skipped. Not 4, which version 3 ends with by itself.
constexpr int exit_skipped = 77;

bool has_skipped = false;

std::vector<Restriction (*)()>& restrictions() {
  static std::vector<Restriction (*)()> all;
  return all;
}

}  // namespace

void skip(const std::string& why) {
  std::cout << "SKIPPED: " << why << std::endl;
  has_skipped = true;
}

RestrictTests::RestrictTests(Restriction (*ask)()) {
  restrictions().push_back(ask);
}

/// Runs the tests. A failure is one whatever else was skipped.
int run_tests(int count, char** arguments) {
  Catch::Session session;
  if (const int result = session.applyCommandLine(count, arguments); result != 0) return result;
  for (Restriction (*const ask)() : restrictions()) {
    const Restriction restriction = ask();
    if (restriction.why.empty()) continue;
    skip(restriction.why);
    if (restriction.filter.empty()) return exit_skipped;
    if (session.configData().testsOrTags.empty()) session.configData().testsOrTags = {restriction.filter};
  }
  const int result = session.run();
  return result == 0 && has_skipped ? exit_skipped : result;
}

}  // namespace bitwitness::tests

int main(int count, char** arguments) {
  return bitwitness::tests::run_tests(count, arguments);
}
