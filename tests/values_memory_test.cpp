#include "harness/error.hpp"
#include "harness/values.hpp"
#include "tests/catch.hpp"
#include "tests/held_memory.hpp"

#if BITWITNESS_MEASURES_MEMORY
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace bitwitness;

namespace {

// Builds a set in a process of its own. Returns the bytes a value that this took, to the nearest, or nothing where the
// kernel does not let the peak be reset.
std::optional<int> bytes_a_value(std::uint64_t (*measure)(), std::size_t packed_size, std::uint64_t count,
                                 Shard shard) {
  constexpr int unknown = 255;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // What earlier tests freed goes back, so that what the set takes is new.
    malloc_trim(0);
    std::ofstream reset("/proc/self/clear_refs");
    if (!(reset << "5" << std::flush)) _exit(unknown);
    const std::uint64_t before = measure();
    const ValueSet set = ValueSet::build(packed_size, {}, std::vector{"random:" + std::to_string(count)},
                                         {.shard = shard, .corpus = {}});
    malloc_trim(0);
    const std::uint64_t taken = measure() - before;
    _exit(set.size() == 0 ? unknown
                          : static_cast<int>(std::min<std::uint64_t>((taken + count / 2) / count, unknown - 1)));
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == unknown) return std::nullopt;
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("values are built within twice their rows' memory and kept in their own", "[values]") {
  constexpr std::uint64_t count = 1'000'000;
  struct Case {
    std::size_t packed_size;
    int rows;
    int scratch;
  };
  for (const Case& expected : {Case{6, 8, 8}, Case{12, 16, 16}, Case{17, 24, 16}}) {
    INFO("packed size " << expected.packed_size);
    const std::optional<int> peak = bytes_a_value(tests::peak_memory, expected.packed_size, count, {});
    if (!peak) {
      tests::skip("this kernel does not let a process reset its peak");
      return;
    }
    CHECK(*peak >= expected.rows);
    CHECK(*peak <= expected.rows + expected.scratch + 1);
    const auto size = static_cast<int>(expected.packed_size);
    const std::optional<int> kept = bytes_a_value(tests::held_memory, expected.packed_size, count, {});
    REQUIRE(kept);
    CHECK(*kept >= size);
    CHECK(*kept <= size + 1);
    const std::optional<int> kept_of_third = bytes_a_value(tests::held_memory, expected.packed_size, count, {2, 3});
    REQUIRE(kept_of_third);
    CHECK(*kept_of_third >= size / 3);
    CHECK(*kept_of_third <= size / 3 + 1);
  }
}

TEST_CASE("values that do not fit the memory there is are an Error", "[values]") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    constexpr rlim_t enough_for_less = 500'000'000;
    const rlimit limits{enough_for_less, enough_for_less};
    bool refused = false;
    try {
      if (setrlimit(RLIMIT_AS, &limits) == 0) ValueSet::build(6, {}, std::vector<std::string>{"random:100000000"});
    } catch (const Error& error) {
      refused = std::string_view(error.what()) == "not enough memory for the values asked for";
    }
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
#else
TEST_CASE("values are built within twice their rows' memory and kept in their own", "[values]") {
  tests::skip("memory is measured with glibc and without sanitizers only");
}
#endif
