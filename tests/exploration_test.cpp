// One call of code of which nothing is known.

#include "harness/probe/exploration.hpp"

#include "harness/image.hpp"
#include "tests/catch.hpp"

#include <algorithm>
#include <cstring>
#include <string>

using namespace bitwitness;

namespace {

using Where = ObservedAccess::Where;

const Image& conventions() {
  static const Image image = Image::load(BITWITNESS_FIXTURES_DIR "/conventions32.dll");
  return image;
}

Exploration exploration_of(const std::string& name, const ExplorationOptions& options = {}) {
  return {conventions(), conventions().resolve("export:" + name), options};
}

std::size_t place_of(const Exploration& exploration, Place place) {
  const auto places = exploration.places();
  return static_cast<std::size_t>(std::ranges::find(places, place) - places.begin());
}

std::uint32_t load(std::span<const std::byte> bytes) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data(), 4);
  return word;
}

void store(std::span<std::byte> bytes, std::uint32_t word) {
  std::memcpy(bytes.data(), &word, 4);
}

}  // namespace

TEST_CASE("loads and stores are told by place, offset and order") {
  Exploration exploration = exploration_of("thiscall_in_out");
  const std::size_t ecx = place_of(exploration, {Place::Kind::general, 1});
  Attempt attempt = exploration.blank();
  store(attempt.window(ecx).subspan(window_front), 37);
  const Observed& observed = exploration.run(attempt);
  REQUIRE(observed.returned());
  CHECK(observed.removed == 4);
  CHECK(observed.general[0] == 42);
  REQUIRE(observed.accesses.size() == 3);
  CHECK(observed.accesses[0].where == Where::region);
  CHECK(observed.accesses[0].place == ecx);
  CHECK_FALSE(observed.accesses[0].is_write);
  CHECK(observed.accesses[0].size == 4);
  CHECK(observed.accesses[1].where == Where::arguments);
  CHECK(observed.accesses[1].offset == 0);
  CHECK(observed.accesses[2].is_write);
  CHECK(observed.accesses[2].place == 0);
  CHECK(load(exploration.after(0).subspan(window_front)) == 42);
  CHECK(observed.instructions == 5);
  CHECK(observed.path.size() == 5);
}

TEST_CASE("each call finds memory as the file has it") {
  Exploration exploration = exploration_of("counts_calls");
  Attempt attempt = exploration.blank();
  store(attempt.window(0).subspan(window_front), 100);
  for (int i = 0; i < 3; ++i) {
    REQUIRE(exploration.run(attempt).returned());
    CHECK(load(exploration.after(1).subspan(window_front)) == 100);
  }
}

TEST_CASE("a place may hold a number") {
  Exploration exploration = exploration_of("value_u32");
  Attempt attempt = exploration.blank();
  attempt.integers[0] = 5;
  REQUIRE(exploration.run(attempt).returned());
  CHECK(load(exploration.after(1).subspan(window_front)) == ~5U);
}

TEST_CASE("results in st0 and xmm0 are seen") {
  Exploration in_st0 = exploration_of("result_f64");
  const Observed& x87 = in_st0.run(in_st0.blank());
  REQUIRE(x87.returned());
  CHECK(x87.x87_values == 1);
  REQUIRE(x87.st0);
  CHECK((*x87.st0)[9] == std::byte{0x3f});  // 1 in the 80-bit format
  Exploration in_xmm0 = exploration_of("result_f32_xmm0");
  Attempt attempt = in_xmm0.blank();
  store(attempt.window(0).subspan(window_front), 0x40000000);
  const Observed& sse = in_xmm0.run(attempt);
  CHECK(sse.xmm[0][0] == 0x3f800000);
  CHECK(sse.x87_values == 0);
}

TEST_CASE("what does not return says why") {
  const auto why = [](const std::string& name) {
    Exploration exploration = exploration_of(name);
    const Observed& observed = exploration.run(exploration.blank());
    CHECK_FALSE(observed.returned());
    return exploration.why(observed);
  };
  CHECK(why("calls_sleep") == "calls the import KERNEL32.dll!Sleep");
  CHECK(why("reads_null") == "reads 4 bytes at 0x10, where nothing is mapped");
  CHECK(why("runs_int3") == "raises interrupt 0x3");
  CHECK(why("runs_mov_cr0") == "meets 'mov eax, cr0', which is privileged: no program may execute it");
  CHECK(why("loops_forever_rep") == "has executed 50000 instructions and not returned");
}

TEST_CASE("the budget is counted in instructions") {
  ExplorationOptions options;
  options.budget = 1000;
  Exploration exploration = exploration_of("straight_2000", options);
  CHECK(exploration.run(exploration.blank()).end == Observed::End::out_of_budget);
  options.budget = 2000;
  Exploration enough = exploration_of("straight_2000", options);
  CHECK(enough.run(enough.blank()).returned());
  CHECK(enough.executed() == 2000);
}

TEST_CASE("fs has a page of its own, a null pointer has none") {
  Exploration exploration = exploration_of("uses_seh");
  REQUIRE(exploration.run(exploration.blank()).returned());
  CHECK(exploration.uses_thread_block());
  Attempt attempt = exploration.blank();
  attempt.integers[0] = 0;
  const Observed& null = exploration.run(attempt);
  CHECK_FALSE(null.returned());
  CHECK(exploration.why(null) == "reads 4 bytes at 0x0, where nothing is mapped");
}

TEST_CASE("a store at the end of the address space comes back") {
  const Image image = Image::load(BITWITNESS_FIXTURES_DIR "/conventions64.dll");
  Exploration exploration(image, image.resolve("export:in_out"));
  Attempt attempt = exploration.blank();
  attempt.integers[place_of(exploration, {Place::Kind::general, 2})] = ~std::uint64_t{0} - 80;
  CHECK_FALSE(exploration.run(attempt).returned());
}
