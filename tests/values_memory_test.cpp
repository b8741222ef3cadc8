#include "harness/values.hpp"
#include "tests/catch.hpp"

// The sanitizers hold memory of their own.
#if defined(__has_feature)
#define BITWITNESS_HAS_FEATURE(name) __has_feature(name)
#else
#define BITWITNESS_HAS_FEATURE(name) 0
#endif
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !BITWITNESS_HAS_FEATURE(address_sanitizer) && !BITWITNESS_HAS_FEATURE(thread_sanitizer)
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace bitwitness;

namespace {

// Most memory, in bytes, that this process has held since the peak was last reset.
std::uint64_t peak() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return 1024 * kilobytes;
  }
  return 0;
}

// Builds a set in a process of its own. Returns the bytes a value that it held at its peak, or nothing where Linux does
// not let the peak be reset.
std::optional<int> bytes_a_value(std::size_t packed_size, std::uint64_t count) {
  constexpr int unknown = 255;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // What earlier tests freed goes back, so that what the set takes is new.
    malloc_trim(0);
    std::ofstream reset("/proc/self/clear_refs");
    if (!(reset << "5" << std::flush)) _exit(unknown);
    const std::uint64_t before = peak();
    const ValueSet set = ValueSet::build(packed_size, {}, std::vector{"random:" + std::to_string(count)});
    const std::uint64_t after = peak();
    _exit(set.size() == 0 ? unknown : static_cast<int>(std::min<std::uint64_t>((after - before) / count, unknown - 1)));
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == unknown) return std::nullopt;
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("values are built within twice their rows' memory", "[values]") {
  constexpr std::uint64_t count = 1'000'000;
  struct Case {
    std::size_t packed_size;
    int rows;
    int scratch;
  };
  for (const Case& expected : {Case{6, 8, 8}, Case{12, 16, 16}, Case{17, 24, 16}}) {
    const std::optional<int> used = bytes_a_value(expected.packed_size, count);
    if (!used) {
      WARN("SKIPPED: this kernel does not reset the peak of a process");
      return;
    }
    INFO("packed size " << expected.packed_size);
    CHECK(*used >= expected.rows);
    CHECK(*used <= expected.rows + expected.scratch + 1);
  }
}
#else
TEST_CASE("values are built within twice their rows' memory", "[values]") {
  WARN("SKIPPED: memory is measured with glibc and without sanitizers only");
}
#endif
