// What one value does costs no other: faults, runaways, budgets and wild jumps among values that return.
#include "tests/machine_runs.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

constexpr const char* plain_32 = "cdecl(in u32, out u32)";

std::vector<Bytes> u16_values(std::size_t count) {
  std::vector<Bytes> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back({static_cast<std::byte>(i), static_cast<std::byte>(i >> 8)});
  }
  return values;
}

void check_odd_values_end(const Image& image, const char* name, const char* signature, const Ended& odd) {
  INFO(name);
  Tried routine(image, std::string("export:") + name, signature, {.budget = 2000});
  const std::vector<Bytes> values = u16_values(60);
  const std::vector<Ended> ends = routine.run(values);
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    INFO("value " << i << ": " << ends[i]);
    if (i % 2 == 0) {
      CHECK(ends[i] == returned({i}));
    } else {
      CHECK(ends[i].kind == odd.kind);
      CHECK(ends[i].reason == odd.reason);
      CHECK(is_like(ends[i].instruction, odd.instruction));
    }
  }
  CHECK(comparable(routine.run_alone(values)) == comparable(ends));
  CHECK(comparable(routine.run(values)) == comparable(ends));
  CHECK(routine.notes().empty());
}

const Ended null_read = {
    OutcomeKind::faulted, {}, 0, "mov eax, dword ptr [0x10]", "reads 4 bytes at 0x10, where nothing is mapped"};

void check_budget(const Image& image, const char* signature) {
  constexpr std::uint64_t budget = 100;  // 3 * 32 + 4
  Tried routine(image, "export:count_3n_plus_4", signature, {.budget = budget});
  const auto end_of = [](std::uint32_t n) {
    return n <= 32 || tries_host  // there, nothing this short takes too long
               ? returned({3 * n})
               : Ended{OutcomeKind::out_of_budget, {}, 0, {}, "has executed 100 instructions and not returned"};
  };
  // The order of the values decides which ones share a stretch of the batch.
  RandomWords random(5);
  std::vector<std::uint32_t> order = {32, 33, 0, 1, 31, 34, 33, 32, 32, 33, 33, 100000, 32, 7};
  for (int round = 0; round < 30; ++round) {
    for (std::size_t i = order.size() - 1; i > 0; --i) {
      std::swap(order[i], order[random.below(static_cast<std::uint32_t>(i + 1))]);
    }
    std::vector<Bytes> values;
    std::vector<Ended> expected;
    for (const std::uint32_t n : order) {
      values.push_back(bytes_of_u32({n}));
      expected.push_back(end_of(n));
    }
    for (const bool alone : {false, true}) {
      std::vector<Ended> ends = alone ? routine.run_alone(values) : routine.run(values);
      for (Ended& ended : ends) {
        ended.address = 0;
        ended.instruction.clear();
      }
      CHECK(ends == expected);
    }
  }
}

double seconds_of(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Checks that nothing a routine jumps to upsets the machine: the values around it keep their ends.
void check_wild_jumps(const Image& image, const char* signature, std::span<const std::uint64_t> targets) {
  const std::uint64_t budget = 20000;
  Tried routine(image, "export:jumps_anywhere", signature, {.budget = budget});
  const std::size_t size = routine.signature().packed_size();
  std::vector<Bytes> values;
  for (const std::uint64_t target : targets) {
    for (const std::uint64_t address : {target, std::uint64_t{0x10}}) {
      Bytes value(size);
      std::memcpy(value.data(), &address, size);
      values.push_back(value);
    }
  }
  const std::vector<Ended> ends = routine.run(values);
  // The last address of all, where emulation would end of itself.
  CHECK(routine.run_one(Bytes(size, std::byte{0xff})).reason ==
        fmt::format("jumps to code at 0x{}, where nothing is mapped", std::string(2 * size, 'f')));
  for (std::size_t i = 1; i < values.size(); i += 2) {
    INFO(fmt::format("after a jump to {:#x}: ", targets[i / 2]) << ends[i]);
    CHECK(ends[i].kind == OutcomeKind::faulted);
    CHECK(ends[i].reason == "jumps to code at 0x10, where nothing is mapped");
  }
  for (std::size_t i = 0; i < values.size(); i += 2) {
    INFO(fmt::format("a jump to {:#x}: ", targets[i / 2]) << ends[i]);
    if (ends[i].kind == OutcomeKind::returned) CHECK(ends[i].words == Words{1});
    CHECK((ends[i].kind == OutcomeKind::returned) == ends[i].reason.empty());
  }
  CHECK(comparable(routine.run(values)) == comparable(ends));
}

std::vector<std::uint64_t> wild_targets(const Image& image, std::uint64_t surroundings, std::uint64_t seed) {
  RandomWords random(seed);
  std::vector<std::uint64_t> targets = {
      0,          1,          image.base(), image.base() + 0x1000, 0x7fffffff,
      0x80000000, 0xfffffff0, 0xffffffff,   ~std::uint64_t{0},     ~std::uint64_t{0} << 63};
  for (int i = 0; i < 60; ++i) targets.push_back(image.base() + random.below(0x6000));
  for (std::uint64_t at = 0; at < 0xc0; at += 2) targets.push_back(surroundings + at);  // the code that makes the calls
  for (int i = 0; i < 30; ++i) targets.push_back(surroundings + random.below(0x60000));
  return targets;
}

}  // namespace

TEST_CASE("A value that faults costs only itself") {
  check_odd_values_end(load_conventions(32), "faults_when_odd", "cdecl(in u8[2], out u32)", null_read);
  check_odd_values_end(load_conventions(64), "faults_when_odd", "win64(in u8[2], out u32)", null_read);
}

TEST_CASE("A 64-bit value that only a kernel may run costs only itself", "[64-bit]") {
  const Image image = load_fixture("isolation64.dll");
  Tried routine(image, "export:privileged_when_odd", "win64(in u8, out u32)");
  std::vector<Bytes> values;
  for (unsigned i = 0; i < 60; ++i) values.push_back({static_cast<std::byte>(i)});
  const std::vector<Ended> ends = routine.run(values);
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    INFO("value " << i << ": " << ends[i]);
    if (i % 2 == 0) {
      CHECK(ends[i] == returned({i + 1}));
    } else {
      CHECK(ends[i].kind == OutcomeKind::faulted);
      CHECK(ends[i].instruction == "cli");
    }
  }
  CHECK(routine.run_alone(values) == ends);
}

TEST_CASE("A value that never returns costs only itself") {
  check_odd_values_end(load_conventions(32), "loops_when_odd", "cdecl(in u8[2], out u32)",
                       {OutcomeKind::out_of_budget, {}, 0, "*", over_budget(2000)});
}

TEST_CASE("A value whose output stays unwritten costs only itself") {
  check_odd_values_end(
      load_conventions(32), "unwritten_when_odd", "cdecl(in u8[2], out u32)",
      {OutcomeKind::unwritten, {}, 0, "ret", "returns without having written all of output word 0 (out u32)"});
}

TEST_CASE("A division by zero is one however often it happens") {
  for (const unsigned bits : {32U, 64U}) {
    const Image image = load_conventions(bits);
    Tried routine(image, "export:divides",
                  bits == 32 ? "cdecl(in u32, in u32, out u32)" : "win64(in u32, in u32, out u32)");
    std::vector<Bytes> values;
    for (std::uint32_t i = 0; i < 40; ++i) values.push_back(bytes_of_u32({1000000007, i % 3}));
    const std::vector<Ended> ends = routine.run(values);
    for (std::uint32_t i = 0; i < values.size(); ++i) {
      INFO("value " << i << ": " << ends[i]);
      if (i % 3 != 0) {
        CHECK(ends[i] == returned({1000000007 / (i % 3)}));
      } else {
        CHECK(ends[i].kind == OutcomeKind::faulted);
        CHECK(ends[i].reason == "divides by zero, or its quotient overflows (exception 0)");
        CHECK(is_like(ends[i].instruction, "div *"));
      }
    }
    CHECK(routine.run_alone(values) == ends);
  }
}

TEST_CASE("Code the emulator must not run is found where only a jump table leads to it") {
  for (const unsigned bits : {32U, 64U}) {
    const Image image = load_fixture(fmt::format("isolation{}.dll", bits));
    const char* signature = bits == 32 ? "cdecl(in u8, out u32)" : "win64(in u8, out u32)";
    for (const bool is_vex : {true, false}) {
      Tried routine(image, is_vex ? "export:vex_by_table" : "export:privileged_when_odd", signature);
      std::vector<Bytes> values;
      for (const unsigned a : {0U, 2U, 4U, 1U, 6U, 3U, 8U}) values.push_back({static_cast<std::byte>(a)});
      const std::vector<Ended> ends = routine.run(values);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto a = std::to_integer<std::uint32_t>(values[i][0]);
        INFO("value " << a << ": " << ends[i]);
        if (a % 2 == 0 || (is_vex && tries_host)) {
          CHECK(ends[i] == returned({a + 1}));
        } else {
          CHECK(ends[i].kind == OutcomeKind::faulted);
          CHECK(ends[i].instruction == (is_vex ? "vmovd xmm0, eax" : "cli"));
          CHECK(ends[i].reason == (is_vex ? "is VEX-encoded, which the emulator would execute wrongly"
                                          : on_each("is privileged: no program may execute it",
                                                    "raises the general protection exception (13)")));
        }
      }
      CHECK(routine.run_alone(values) == ends);
      CHECK(routine.run(values) == ends);
      // Also when the first value of the first batch meets it.
      Tried other(image, is_vex ? "export:vex_by_table" : "export:privileged_when_odd", signature);
      CHECK(other.run(std::span(values).subspan(3)) == std::vector<Ended>(ends.begin() + 3, ends.end()));
    }
  }
}

TEST_CASE("A budget is exact, wherever in a batch a value stands") {
  check_budget(load_conventions(32), "cdecl(value u32) -> u32");
  check_budget(load_conventions(64), "win64(value u32) -> u32");
}

TEST_CASE("A budget of exactly what straight code takes is enough, one less is not") {
  for (const unsigned bits : {32U, 64U}) {
    const Image image = load_conventions(bits);
    const char* signature = bits == 32 ? plain_32 : "win64(in u32, out u32)";
    const std::vector<Bytes> values(20, bytes_of_u32({5}));
    const std::uint32_t result = 5 + (bits == 32 ? 1994 : 1996);
    Tried enough(image, "export:straight_2000", signature, {.budget = 2000});
    CHECK(enough.run(values) == std::vector<Ended>(values.size(), returned({result})));
    CHECK(enough.run_alone(values) == std::vector<Ended>(values.size(), returned({result})));
    Tried short_by_one(image, "export:straight_2000", signature, {.budget = 1999});
    for (const Ended& ended : short_by_one.run(values)) {
      if (tries_host) {
        CHECK(ended == returned({result}));
        continue;
      }
      CHECK(ended.kind == OutcomeKind::out_of_budget);
      CHECK(ended.instruction == "ret");
    }
  }
}

TEST_CASE("The default budget is exact, too") {
  // On the host it is a time, in which this loop ends.
  const Image image = load_conventions(32);
  Tried routine(image, "export:count_3n_plus_4", "cdecl(value u32) -> u32");
  const std::vector<Bytes> values = {bytes_of_u32({333332}), bytes_of_u32({1}), bytes_of_u32({333333}),
                                     bytes_of_u32({333332})};
  const std::vector<Ended> ends = routine.run(values);
  CHECK(ends[0] == returned({999996}));
  CHECK(ends[1] == returned({3}));
  if (tries_host) {
    CHECK(ends[2] == returned({999999}));
  } else {
    CHECK(ends[2].kind == OutcomeKind::out_of_budget);
    CHECK(ends[2].reason == "has executed 1000000 instructions and not returned");
  }
  CHECK(ends[3] == returned({999996}));
}

TEST_CASE("Words do not depend on how long a value took") {
  // Each of these takes longer than its budget at the pace that makes it suspect, and reads a register nobody set.
  const Image image = load_conventions(32);
  Tried measured(image, "export:reads_ebx", plain_32);
  Tried suspect(image, "export:reads_ebx", plain_32, {.budget = 20});
  const std::vector<Bytes> values = some_values(4, 20, 6);
  CHECK(suspect.run(values) == measured.run(values));
}

TEST_CASE("One value among ten thousand that never returns costs only itself") {
  const Image image = load_conventions(32);
  Tried routine(image, "export:loops_when_odd", "cdecl(in u8[2], out u32)");
  std::vector<Bytes> values;
  for (std::uint32_t i = 0; i < 10000; ++i) {
    values.push_back({static_cast<std::byte>(2 * i), static_cast<std::byte>(i >> 7)});
  }
  values[4711][0] |= std::byte{1};
  std::vector<Ended> ends;
  CHECK(seconds_of([&] { ends = routine.run(values); }) < 30);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == 4711) {
      CHECK(ends[i].kind == OutcomeKind::out_of_budget);
    } else if (ends[i] != returned({read_as<std::uint16_t>(values[i].data())})) {
      INFO("value " << i);
      CHECK(ends[i] == returned({read_as<std::uint16_t>(values[i].data())}));
    }
  }
}

TEST_CASE("A batch of values that never return ends") {
  for (const unsigned bits : {32U, 64U}) {
    const Image image = load_conventions(bits);
    Tried routine(image, "export:loops_forever", bits == 32 ? plain_32 : "win64(in u32, out u32)");
    const std::vector<Bytes> values = some_values(4, 33, 7);
    std::vector<Ended> ends;
    CHECK(seconds_of([&] { ends = routine.run(values); }) < 60);
    CHECK(ends.size() == 40);
    for (const Ended& ended : ends) CHECK(ended.kind == OutcomeKind::out_of_budget);
  }
}

TEST_CASE("A repeated string instruction that never ends is stopped, each repetition counting as one") {
  const Image image = load_conventions(32);
  Tried routine(image, "export:loops_forever_rep", plain_32, {.budget = 100000});
  const std::vector<Bytes> values = some_values(4, 1, 8);
  std::vector<Ended> ends;
  CHECK(seconds_of([&] { ends = routine.run(values); }) < 60);
  for (const Ended& ended : ends) {
    CHECK(ended.kind == OutcomeKind::out_of_budget);
    if (!tries_host) CHECK(is_like(ended.instruction, "rep movsb *"));
  }
  CHECK(comparable(routine.run_alone(values)) == comparable(ends));
}

TEST_CASE("Jumps to anywhere upset nothing") {
  // Where the code that makes the calls lies is found through the stack pointer at entry.
  const Image image_32 = load_fixture("isolation32.dll");
  Tried report_32(image_32, "export:reports_then_spoils", "cdecl(in u32, out u32[7])");
  const std::uint64_t sp_32 = report_32.run_one(bytes_of_u32({0})).words.at(4);
  check_wild_jumps(image_32, "cdecl(value u32, out u32)", wild_targets(image_32, sp_32 & 0xff000000, 9));

  const Image image_64 = load_fixture("isolation64.dll");
  Tried report_64(image_64, "export:reports_then_spoils", "win64(in u32, out u32[8])");
  const Words words = report_64.run_one(bytes_of_u32({0})).words;
  const std::uint64_t sp_64 = words.at(4) | std::uint64_t{words.at(5)} << 32;
  check_wild_jumps(image_64, "win64(value u64, out u32)", wild_targets(image_64, sp_64 & ~std::uint64_t{0xffffff}, 10));
}

TEST_CASE("A batch gives the same however it is split") {
  struct Case {
    unsigned bits;
    const char* name;
    const char* signature;
  };
  const Case cases[] = {{32, "copies_16", "cdecl(in u32[4], out u32[4])"},
                        {32, "divides", "cdecl(in u32, in u32, out u32)"},
                        {32, "faults_when_odd", "cdecl(in u8[2], out u32)"},
                        {32, "leaves_x87_values", "cdecl(in u32, out u32[2])"},
                        {32, "out_u8_4", "cdecl(in u8[4], out u8[4])"},
                        {32, "unwritten_when_odd", "cdecl(in u8[2], out u32)"},
                        {32, "writes_before", "cdecl(in u32, out u32[2])"},
                        {32, "writes_input", "cdecl(in u32, out u32)"},
                        {32, "caches_square", "cdecl(in u32, out u32)"},
                        {64, "value_u8_16", "win64(out u32[4], value u8[16])"},
                        {64, "values_mixed", "win64(value f32, value u32, value f64, value u16, out u32[5])"}};
  for (const Case& one : cases) {
    INFO(one.name);
    const Image image = load_conventions(one.bits);
    Tried routine(image, std::string("export:") + one.name, one.signature);
    const std::vector<Bytes> values = some_values(routine.signature().packed_size(), 60, 11);
    const std::vector<Ended> whole = routine.run(values);
    CHECK(routine.run(values) == whole);
    for (const std::size_t part : {1U, 2U, 7U, 50U}) {
      std::vector<Ended> parts;
      for (std::size_t at = 0; at < values.size(); at += part) {
        const auto some = std::span(values).subspan(at, std::min(part, values.size() - at));
        for (Ended& ended : routine.run(some)) parts.push_back(std::move(ended));
      }
      CHECK(parts == whole);
    }
    CHECK(routine.run_alone(values) == whole);
  }
}

TEST_CASE("Machines of several threads do not disturb one another") {
  // Catch2's assertions belong to one thread, so the others only collect.
  const Image image = load_conventions(32);
  const std::vector<Bytes> values = u16_values(40);
  const auto packed = joined(values);
  std::vector<Batch> batches(3);
  {
    std::vector<std::jthread> threads;
    for (Batch& batch : batches) {
      threads.emplace_back([&image, &packed, &batch] {
        for (int round = 0; round < 3; ++round) {
          const Routine routine{"loops_when_odd", image.resolve("export:loops_when_odd"),
                                parse_signature("cdecl(in u8[2], out u32)")};
          BITWITNESS_TRIED_MACHINE(image, routine, {.budget = 1000})->run(batch, packed, {});
        }
      });
    }
  }
  for (const Batch& batch : batches) {
    REQUIRE(batch.outcomes.size() == values.size());
    CHECK(batch.incidents.size() == values.size() / 2);
    if (!tries_host) CHECK(batch.incidents == batches[0].incidents);
    for (std::uint32_t i = 0; i < values.size(); ++i) {
      CHECK(batch.outcomes[i] == (i % 2 == 0 ? OutcomeKind::returned : OutcomeKind::out_of_budget));
      if (i % 2 == 0) CHECK(batch.words[i] == i);
    }
  }
}

TEST_CASE("A batch of no values is none") {
  const Image image = load_conventions(32);
  Tried routine(image, "export:cdecl_in_out", plain_32);
  CHECK(routine.run({}).empty());
  CHECK(routine.run_alone({}).empty());
  CHECK(routine.run_one(bytes_of_u32({1})) == returned({2}));
}
