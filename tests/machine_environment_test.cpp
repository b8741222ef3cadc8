// The state a routine starts with: the same on every call, whatever the calls before have done.
#include "tests/machine_runs.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

constexpr Environment environments[] = {{},
                                        {0x007f, 0x1f80},   // 24-bit precision
                                        {0x037f, 0x9fc0},   // 64-bit; FTZ and DAZ
                                        {0x0c7f, 0x7f80},   // towards zero
                                        {0x027f, 0x3f80},   // SSE downwards
                                        {0x067f, 0x5f80}};  // x87 downwards, SSE upwards

constexpr std::uint32_t entry_flags = 0x246;  // interrupts on; ZF and PF

std::vector<Bytes> counting(std::size_t size, std::size_t count) {
  std::vector<Bytes> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.emplace_back(size, std::byte{0});
    values.back()[0] = static_cast<std::byte>(i);
    values.back()[1 % size] = static_cast<std::byte>(i >> 8);
  }
  return values;
}

/// Runs values together, alone and together again; checks that all give the same, and returns it. The last `addresses`
/// words are of the stack, which lies elsewhere when a value runs alone.
std::vector<Ended> thrice(Tried& routine, std::span<const Bytes> values, const Environment& environment,
                          std::size_t addresses = 0) {
  const std::vector<Ended> together = routine.run(values, environment);
  std::vector<Ended> alone = routine.run_alone(values, environment);
  REQUIRE(alone.size() == together.size());
  for (std::size_t i = 0; i < alone.size() && addresses != 0; ++i) {
    CHECK(alone[i].words != together[i].words);
    const auto kept = static_cast<std::ptrdiff_t>(alone[i].words.size() - addresses);
    std::copy(together[i].words.begin() + kept, together[i].words.end(), alone[i].words.begin() + kept);
  }
  CHECK(alone == together);
  CHECK(routine.run(values, environment) == together);
  return together;
}

void check_environment(const Image& image, const char* signature, std::size_t words_of_sp, std::uint32_t sp_offset) {
  Tried routine(image, "export:environment", signature);
  const std::vector<Bytes> values = counting(4, 20);
  for (const Environment& environment : environments) {
    INFO(fmt::format("FPCW {:04x}, MXCSR {:04x}", environment.fpcw, environment.mxcsr));
    const std::vector<Ended> ends = thrice(routine, values, environment, words_of_sp);
    const Words& first = ends[0].words;
    const Words expected = {environment.fpcw, environment.mxcsr, entry_flags, 0, 0xffff};
    CHECK(Words(first.begin(), first.end() - static_cast<std::ptrdiff_t>(words_of_sp)) == expected);
    CHECK((first[5] + sp_offset) % 16 == 0);  // arguments begin at a multiple of 16
    CHECK(ends == std::vector<Ended>(values.size(), returned(first)));
  }
  CHECK(routine.notes().empty());
}

/// Values of `reports_then_spoils`: the low bit makes one spoil, the next three say how it ends.
Ended end_of(std::uint32_t value, const Words& report) {
  if (value % 2 == 0 || value >> 1 == 7) return returned(report);
  static const std::string runaway = over_budget(3000);
  static const std::array<const char*, 7> reasons = {
      "reads 4 bytes at 0x10, where nothing is mapped",
      "raises the debug exception (1)",
      "halts the CPU",
      runaway.c_str(),
      on_each("is not an instruction that the emulated CPU has", "is not an instruction that this computer's CPU has"),
      "writes I/O port 0xf5",
      "divides by zero, or its quotient overflows (exception 0)"};
  return {value >> 1 == 3 ? OutcomeKind::out_of_budget : OutcomeKind::faulted, {}, 0, {}, reasons[value >> 1]};
}

void check_spoiled(const Image& image, const char* signature, std::size_t words_of_sp) {
  Tried routine(image, "export:reports_then_spoils", signature, {.budget = 3000});
  // Each way to end, followed by each other way, twice in a row, and by values that only report.
  std::vector<Bytes> values;
  for (std::uint32_t first = 1; first < 16; first += 2) {
    for (std::uint32_t second = 1; second < 16; second += 2) {
      for (const std::uint32_t value : {first, first, second, 0U, first, 2U}) values.push_back(bytes_of_u32({value}));
    }
  }
  for (const Environment& environment : std::span(environments).first(2)) {
    for (const bool alone : {false, true}) {
      INFO(fmt::format("FPCW {:04x}, MXCSR {:04x}, alone {}", environment.fpcw, environment.mxcsr, alone));
      std::vector<Ended> ends = alone ? routine.run_alone(values, environment) : routine.run(values, environment);
      const Words report = ends[3].words;  // of a value that spoils nothing, after two that fault
      REQUIRE(report.size() == 6 + words_of_sp);
      CHECK(Words(report.begin(), report.begin() + 4) == Words{entry_flags, 0, environment.fpcw, environment.mxcsr});
      std::vector<Ended> expected;
      for (const Bytes& value : values) expected.push_back(end_of(read_as<std::uint32_t>(value.data()), report));
      for (Ended& ended : ends) {
        ended.address = 0;
        ended.instruction.clear();
      }
      CHECK(ends == expected);
    }
  }
}

/// Words of routines that read what their signature does not give them differ between a batch and a value run alone.
void check_dependence(const Image& image, const char* name, const char* signature, std::uint32_t independent_bits) {
  INFO(name);
  Tried routine(image, std::string("export:") + name, signature);
  const std::vector<Bytes> values = some_values(routine.signature().packed_size(), 5, 3);
  const std::vector<Ended> together = routine.run(values);
  const std::vector<Ended> alone = routine.run_alone(values);
  CHECK(routine.run(values) == together);
  CHECK(routine.run_alone(values) == alone);
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK(together[i].kind == OutcomeKind::returned);
    CHECK(alone[i].kind == OutcomeKind::returned);
    CHECK(together[i] != alone[i]);
    CHECK((together[i].words[0] & independent_bits) == (alone[i].words[0] & independent_bits));
  }
}

}  // namespace

TEST_CASE("32-bit routines start with the environment asked for, plain flags and an empty x87 stack") {
  check_environment(load_conventions(32), "cdecl(in u32, out u32[6])", 1, 4);
}

TEST_CASE("64-bit routines start with the environment asked for, plain flags and an empty x87 stack", "[64-bit]") {
  check_environment(load_conventions(64), "win64(in u32, out u32[7])", 2, 8);
}

TEST_CASE("A 32-bit call starts the same after one that has spoiled everything and stopped in any way") {
  check_spoiled(load_fixture("isolation32.dll"), "cdecl(in u32, out u32[7])", 1);
}

TEST_CASE("A 64-bit call starts the same after one that has spoiled everything and stopped in any way", "[64-bit]") {
  check_spoiled(load_fixture("isolation64.dll"), "win64(in u32, out u32[8])", 2);
}

TEST_CASE("What a call leaves behind is noted and gone at the next") {
  const Image image_32 = load_conventions(32);
  const Image image_64 = load_conventions(64);
  const std::vector<Bytes> values = counting(4, 12);
  for (const Environment& environment : environments) {
    INFO(fmt::format("FPCW {:04x}, MXCSR {:04x}", environment.fpcw, environment.mxcsr));
    const auto check = [&](const Image& image, const char* name, std::uint32_t second, const char* note) {
      INFO(name);
      const bool wide = image.format() == ImageFormat::pe32_plus;
      Tried routine(image, name, wide ? "win64(in u32, out u32[2])" : "cdecl(in u32, out u32[2])");
      std::vector<Ended> expected;
      for (std::uint32_t i = 0; i < values.size(); ++i) expected.push_back(returned({i + 1, second}));
      CHECK(thrice(routine, values, environment) == expected);
      std::vector<std::string> notes;
      if (*note != '\0') notes.push_back(fmt::format("{} × {}", 2 * values.size(), note));
      CHECK(routine.notes() == notes);
    };
    check(image_32, "export:leaves_flags", entry_flags & 0x2008d5, "");
    for (const Image* image : {&image_32, &image_64}) {
      check(*image, "export:leaves_fpcw", environment.fpcw,
            environment.fpcw == 0x0c7f ? "" : "returns with the x87 control word 0c7f");
      check(*image, "export:leaves_mxcsr", environment.mxcsr,
            environment.mxcsr == 0x7f80 ? "" : "returns with the MXCSR control bits 7f80");
      check(*image, "export:leaves_x87_values", 0, "leaves 3 values on the x87 stack");
      check(*image, "export:leaves_direction", 0, "returns with the direction flag set");
    }
  }
}

TEST_CASE("Registers that hold no argument are the same on every call, and others alone") {
  const Image image_32 = load_conventions(32);
  const Image image_64 = load_conventions(64);
  const auto check = [](const Image& image, const char* name, const char* signature, std::size_t same_at_the_end) {
    INFO(name);
    Tried routine(image, name, signature);
    const std::vector<Bytes> values = counting(4, 10);
    const std::vector<Ended> together = routine.run(values);
    const std::vector<Ended> alone = routine.run_alone(values);
    CHECK(together == std::vector<Ended>(values.size(), together[0]));
    CHECK(alone == std::vector<Ended>(values.size(), alone[0]));
    CHECK(routine.run(values) == together);
    const Words& a = together[0].words;
    const Words& b = alone[0].words;
    for (std::size_t i = 0; i + same_at_the_end < a.size(); ++i) CHECK((a[i] != b[i] || a[i] == 0));
    CHECK(a != b);
  };
  check(image_32, "export:entry_registers", "cdecl(in u32, out u32[7])", 0);
  check(image_32, "export:entry_xmm", "cdecl(in u32, out u32[8])", 0);
  check(image_64, "export:entry_registers", "win64(in u32, out u64[14])", 2);  // the last is rcx, the argument
}

TEST_CASE("Dependence on what a signature leaves open shows when a value runs alone") {
  const Image image_32 = load_conventions(32);
  check_dependence(image_32, "depends_past_value", "cdecl(in u8[6], out u32)", 0xffff);
  check_dependence(image_32, "reads_ebx", "cdecl(in u32, out u32)", 0xffff);
  check_dependence(image_32, "reads_ecx", "cdecl(in u32, out u32)", 0xffff);
  check_dependence(image_32, "reads_xmm5", "cdecl(in u32, out u32)", 0);
  check_dependence(image_32, "reads_below_stack", "cdecl(in u32, out u32)", 0xffff);
  check_dependence(image_32, "reads_above_arguments", "cdecl(in u32, out u32)", 0xffff);
  const Image image_64 = load_conventions(64);
  check_dependence(image_64, "depends_past_value", "win64(in u8[6], out u32)", 0xffff);
  check_dependence(image_64, "reads_r11", "win64(in u32, out u32)", 0xffff);
  check_dependence(image_64, "reads_below_stack", "win64(in u32, out u32)", 0xffff);
  check_dependence(image_64, "reads_shadow_space", "win64(in u32, out u32)", 0xffff);
}

TEST_CASE("A narrow value fills its register or stack word as its type extends it") {
  const Image image_32 = load_conventions(32);
  const Image image_64 = load_conventions(64);
  const auto check = [](const Image& image, const char* name, const char* signature, auto expected) {
    INFO(name << " " << signature);
    Tried routine(image, name, signature);
    const std::vector<Bytes> values = some_values(routine.signature().packed_size(), 5, 4);
    std::vector<Ended> ends;
    for (const Bytes& value : values) ends.push_back(returned({expected(value.data())}));
    CHECK(routine.run(values) == ends);
    CHECK(routine.run_alone(values) == ends);
  };
  const auto u8 = [](const std::byte* value) { return std::uint32_t{read_as<std::uint8_t>(value)}; };
  const auto u16 = [](const std::byte* value) { return std::uint32_t{read_as<std::uint16_t>(value)}; };
  const auto i8 = [](const std::byte* value) { return static_cast<std::uint32_t>(read_as<std::int8_t>(value)); };
  const auto i16 = [](const std::byte* value) { return static_cast<std::uint32_t>(read_as<std::int16_t>(value)); };
  const auto inverse = [](auto extended) { return [extended](const std::byte* value) { return ~extended(value); }; };
  check(image_64, "export:depends_past_register", "win64(value u8, out u32)", u8);
  check(image_64, "export:depends_past_register", "win64(value u16, out u32)", u16);
  check(image_64, "export:depends_past_register", "win64(value i8, out u32)", i8);
  check(image_64, "export:depends_past_register", "win64(value i16, out u32)", i16);
  check(image_32, "export:value_u32", "cdecl(value u8, out u32)", inverse(u8));
  check(image_32, "export:value_u32", "cdecl(value u16, out u32)", inverse(u16));
  check(image_32, "export:value_u32", "cdecl(value i8, out u32)", inverse(i8));
  check(image_32, "export:value_u32", "cdecl(value i16, out u32)", inverse(i16));
}

TEST_CASE("The processor that a routine asks for is the witness's own") {
  const Image image = load_conventions(32);
  Tried cpuid(image, "export:runs_cpuid", "cdecl(in u32, out u32)");
  const std::vector<Bytes> values = counting(4, 5);
  const std::vector<Ended> ends = thrice(cpuid, values, {});
  for (std::uint32_t i = 0; i < values.size(); ++i) CHECK(ends[i] == returned({ends[0].words.at(0) + i}));
  Tried clock(image, "export:runs_rdtsc", "cdecl(in u32, out u32)");
  for (const Ended& ended : clock.run(values)) CHECK(ended.kind == OutcomeKind::returned);
}
