// What is lifted from machine code equals what the machine gives, bit for bit, on every path that is found.

#include "harness/error.hpp"
#include "harness/proof/evaluate.hpp"
#include "harness/proof/lifter.hpp"
#include "harness/values.hpp"
#include "tests/catch.hpp"
#include "tests/pe_builder.hpp"
#include "tests/random.hpp"
#include "tests/real_executables.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

using namespace bitwitness;
using proof::Lift;
using proof::Lifter;
using proof::NodeId;
using proof::Store;

namespace {

/// Words and conditions of one path, ready to be evaluated.
struct Path {
  Lift lift;
  std::unique_ptr<proof::Evaluation> evaluation;  // words, then conditions
  std::size_t values = 0;                         // that took it

  bool holds() const {
    for (std::size_t i = 0; i < lift.path.size(); ++i) {
      if (((*evaluation)[lift.words.size() + i] != 0) != lift.path[i].taken) return false;
    }
    return true;
  }
};

struct Trial {
  std::vector<Path> paths;
  std::size_t values = 0;
  std::size_t differences = 0;
  std::string first_failure;
};

/// Keys whose three words lie near the middle, far from it or anywhere, so that three squares leave something for the
/// fourth or do not.
std::vector<std::byte> draw(tests::Random& random, std::size_t size) {
  std::vector<std::byte> value = random.bytes(size);
  constexpr std::size_t key_size = 6;
  for (std::size_t at = 0; at + key_size <= size; at += key_size) {
    const std::size_t kind = random.below(3);
    if (kind == 0) continue;
    for (std::size_t i = 0; i < key_size; i += 2) {
      const std::uint32_t code = kind == 1 ? random.between(16384 - 9000, 16384 + 9000) : random.between(0, 2000);
      const std::uint32_t word = code | (random.one_in(2) ? 0x8000U : 0U);
      value[at + i] = static_cast<std::byte>(word & 0xff);
      value[at + i + 1] = static_cast<std::byte>(word >> 8);
    }
  }
  return value;
}

/// Runs random values on a machine and on lifted expressions. Each value takes exactly one path; one that takes none of
/// those known so far is lifted.
Trial try_routine(Store& store, const Image& image, const Routine& routine, const Environment& environment,
                  std::size_t count, std::uint64_t seed, const std::vector<std::vector<std::byte>>& given = {}) {
  Trial trial;
  const proof::Program program = proof::program_of(image);
  Lifter lifter(store, program, routine.address, routine.signature);
  const auto machine = make_unicorn_machine(image, routine);
  const std::size_t size = routine.signature.packed_size();
  tests::Random random(seed);
  std::vector<std::byte> packed;
  for (const auto& value : given) packed.insert(packed.end(), value.begin(), value.end());
  while (packed.size() < count * size) {
    const auto value = draw(random, size);
    packed.insert(packed.end(), value.begin(), value.end());
  }
  Batch batch;
  machine->run(batch, packed, environment);
  const std::size_t words = routine.signature.word_count();
  for (std::size_t i = 0; i < packed.size() / size; ++i) {
    if (batch.outcomes[i] != OutcomeKind::returned) FAIL(batch.incidents.at(0).reason);
    const auto value = std::span(packed).subspan(i * size, size);
    ++trial.values;
    Path* taken = nullptr;
    for (Path& path : trial.paths) {
      path.evaluation->run(value);
      if (!path.holds()) continue;
      REQUIRE(taken == nullptr);
      taken = &path;
    }
    if (taken == nullptr) {
      Path path;
      path.lift = lifter.run(value, environment);
      if (!path.lift.lifted) {
        trial.first_failure = fmt::format("0x{:x} {}: {}", path.lift.address, path.lift.instruction, path.lift.reason);
        return trial;
      }
      REQUIRE(path.lift.words.size() == words);
      std::vector<NodeId> roots = path.lift.words;
      for (const auto& condition : path.lift.path) roots.push_back(condition.condition);
      path.evaluation = std::make_unique<proof::Evaluation>(store, roots);
      path.evaluation->run(value);
      REQUIRE(path.holds());
      taken = &trial.paths.emplace_back(std::move(path));
    }
    ++taken->values;
    for (std::size_t word = 0; word < words; ++word) {
      if ((*taken->evaluation)[word] != batch.words[i * words + word]) ++trial.differences;
    }
  }
  return trial;
}

void check_agrees(const Trial& trial, std::size_t paths) {
  CHECK(trial.first_failure.empty());
  CHECK(trial.differences == 0);
  CHECK(trial.paths.size() == paths);
  for (const Path& path : trial.paths) CHECK(path.lift.writable_reads.empty());
}

struct Form {
  std::string image;
  std::uint64_t address;
  std::string signature;
  std::size_t paths;
};

const std::vector<Form> stand_ins = {
    {"x87", 0x103f1d0, "cdecl(in u8[6], out f32[4])", 8},
    {"x87", 0x103f340, "stdcall(in u8[6], in u8[6], out f32[4], out f32[4])", 64},
    {"sse2", 0x103f1d0, "thiscall(in u8[6], out f32[4])", 4},
    {"sse2", 0x103f340, "fastcall(in u8[12], out f32[8])", 16},
};

}  // namespace

TEST_CASE("both forms of both stand-ins are lifted to what the machine computes") {
  for (const Form& form : stand_ins) {
    const Image image = Image::load(BITWITNESS_STAND_INS_DIR "/stand_in_" + form.image + ".exe");
    for (const std::uint16_t fpcw : std::vector<std::uint16_t>{0x027f, 0x007f, 0x037f}) {
      INFO(form.image << " " << form.signature << " at " << std::hex << fpcw);
      Store store;
      const Routine routine{"unpack", form.address, parse_signature(form.signature)};
      const Trial trial = try_routine(store, image, routine, {fpcw, 0x1f80}, 6000, 1 + fpcw);
      check_agrees(trial, form.paths);
    }
  }
}

TEST_CASE("the broken twins are lifted to what they compute, too") {
  for (const Form& form : stand_ins) {
    if (form.address != 0x103f1d0) continue;
    for (const std::string mistake :
         {"constant_bit", "lanes_rotated", "no_clamp", "radicand_f32", "word_two_unmasked"}) {
      INFO(form.image << " " << mistake);
      const Image image = Image::load(BITWITNESS_FIXTURES_DIR "/broken_" + form.image + "_" + mistake + ".exe");
      Store store;
      const Routine routine{"unpack", form.address, parse_signature(form.signature)};
      const Trial trial = try_routine(store, image, routine, {}, 3000, 7);
      check_agrees(trial, mistake == "no_clamp" ? 4 : form.paths);
    }
  }
}

namespace {

void try_half(tests::Width width, const std::string& file, const std::string& symbol, const std::string& signature) {
  const auto path = tests::mingw_dll(width, file);
  if (!path) return;
  const Image image = Image::load(*path);
  const Routine routine{"half", image.resolve("symbol:" + symbol), parse_signature(signature)};
  std::vector<std::vector<std::byte>> all;
  for (unsigned value = 0; value < 0x10000; ++value) {
    all.push_back({static_cast<std::byte>(value & 0xff), static_cast<std::byte>(value >> 8)});
  }
  Store store;
  const Trial trial = try_routine(store, image, routine, {}, all.size(), 1, all);
  INFO(trial.first_failure);
  CHECK(trial.first_failure.empty());
  CHECK(trial.values == 65536);
  CHECK(trial.differences == 0);
  CHECK(trial.paths.size() >= 4);  // zeros, numbers, denormals, infinities and NaNs
  CHECK(trial.paths.size() < 40);
}

}  // namespace

TEST_CASE("the 32-bit half routine that others compiled is lifted for all values") {
  try_half(tests::Width::bits_32, "libgcc_s_dw2-1.dll", "___extendhfsf2", "cdecl(value u16) -> f32");
}

TEST_CASE("the 64-bit half routine that others compiled is lifted for all values") {
  try_half(tests::Width::bits_64, "libgcc_s_seh-1.dll", "__extendhfsf2", "win64(value u16) -> f32");
}

namespace {

struct Compiled {
  std::string name;
  std::string arguments;
  std::string convention = "cdecl";
};

const std::vector<Compiled> compiled = {
    {"cdecl_in_out", "(in u8[6], out f32[4])"},
    {"stdcall_out_in", "(out f32[4], in u8[6])", "stdcall"},
    {"this_is_packed", "(in u8[6], out f32[4])", "thiscall"},
    {"fastcall_in_out", "(in u8[6], out f32[4])", "fastcall"},
    {"returns_structure", "(out f32[4], in u8[6])"},
    {"two_keys", "(in u8[6], in u8[6], out f32[4], out f32[4])", "stdcall"},
    {"into_bones", "(in u8[12], out f32[4, +16, 4])"},
    {"from_key", "(in u8[+4, 6], out f32[+16, 4])"},
    {"lane_by_lane", "(in u8[6], out f32[1, +12, 1, +12, 1, +12, 1])"},
    {"counted", "(in u8[6], out f32[4], u32 = 1)"},
    {"by_table", "(in u8, out f32)"},
    {"returns_float", "(value u16) -> f32"},
    {"returns_integer", "(in u8[6]) -> u32"},
    {"halves", "(inout f32[4])"},
    {"sums_f64", "(value f64, value f64, value f32, value u32) -> f64"},
    {"sums_two", "(value f32, value f64) -> f64"},
    {"by_mode", "(in u8[2], out f32, value u32)"},
    {"compares", "(in u8[3], out u32)"},
    {"upper_half_is_zero", "(in u8[4]) -> u64"},
    {"with_setting", "(in u8[4], value u32, out u32)"},
};

bool is_finite_case(const std::string& name) {
  return name != "halves" && !name.starts_with("sums");
}

}  // namespace

TEST_CASE("routines that a compiler wrote are lifted to what the machine computes") {
  for (const std::string kind : {"x87", "sse2", "64"}) {
    const Image image = Image::load(BITWITNESS_FIXTURES_DIR "/probe_" + kind + ".dll");
    for (const Compiled& each : compiled) {
      INFO("probe_" << kind << ".dll " << each.name);
      // The emulator mistakes some NaNs; what the processor does with them is tried instruction by instruction.
      if (!is_finite_case(each.name)) continue;
      const std::string convention = kind == "64" ? "win64" : each.convention;
      const Routine routine{each.name, image.resolve("export:" + each.name),
                            parse_signature(convention + each.arguments)};
      Store store;
      const Trial trial = try_routine(store, image, routine, {}, 2000, 11);
      INFO(trial.first_failure);
      CHECK(trial.first_failure.empty());
      CHECK(trial.differences == 0);
      CHECK(trial.values == 2000);
      CHECK(!trial.paths.empty());
      for (const Path& path : trial.paths) {
        CHECK(path.lift.executed > 2);
        CHECK(std::ranges::is_sorted(path.lift.addresses));
      }
    }
  }
}

namespace {

/// Lifts code that stands alone in an image, with the value 0.
Lift lift_code(const std::string& hex, const std::string& signature, const proof::LiftOptions& options = {}) {
  tests::PeBuilder builder;
  builder.is_64 = signature.starts_with("win64");
  builder.sections = {{.name = ".text", .data = parse_hex(hex)}};
  const tests::TemporaryFile file(builder.build().bytes);
  const Image image = Image::load(file.path());
  const proof::Program program = proof::program_of(image);
  Store store;
  const Signature parsed = parse_signature(signature);
  Lifter lifter(store, program, image.base() + 0x1000, parsed, options);
  const std::vector<std::byte> zero(parsed.packed_size());
  return lifter.run(zero, {});
}

}  // namespace

TEST_CASE("a lift that ends says where and why") {
  struct Ending {
    std::string code;
    std::string signature;
    std::uint64_t offset;  // of the instruction; none: 0
    std::string instruction;
    std::string reason;
  };
  const std::string simple = "cdecl(in u8[4], out u32)";
  const std::vector<Ending> endings = {
      {"90 d9ee d9fe c3", simple, 0x1003, "fsin", "is not known to lifts"},
      {"90 0f52c1 c3", simple, 0x1001, "rsqrtps xmm0, xmm1", "is not known to lifts"},
      {"90 c5f058c1 c3", simple, 0x1001, "vaddps xmm0, xmm1, xmm1", "is not known to lifts"},
      {"8b442408 8918 c3", simple, 0, "", "output word 0 (out u32) depends on something unknown: ebx at entry"},
      {"85db 7401 90 c3", simple, 0x1002, "je 0x401005", "its condition depends on something unknown: ebx at entry"},
      {"8b03 c3", simple, 0x1000, "mov eax, dword ptr [ebx]",
       "an address of it depends on something unknown: ebx at entry"},
      {"c3", simple, 0, "", "output word 0 (out u32) depends on something unknown: "},
      {"a110000000 c3", simple, 0x1000, "mov eax, dword ptr [0x10]", "reads 4 bytes at 0x10, which is not mapped"},
      {"a300104000 c3", simple, 0x1000, "mov dword ptr [0x401000], eax",
       "writes 4 bytes at 0x401000, which is read-only"},
      {"8b442404 8900 c3", simple, 0x1004, "mov dword ptr [eax], eax", "which is read-only"},
      {"c20400", simple, 0, "", "comes back with the stack pointer elsewhere than its convention says"},
      {"ebfe", simple, 0x1000, "jmp 0x401000", "has executed 100000 instructions"},
      {"d9c0 c3", simple, 0x1000, "fld st(0)", "takes st(0), which is empty"},
      {"b810000000 ffe0", simple, 0x1005, "jmp eax", "goes to 0x10, where nothing is mapped"},
      {"8b442404 d920 c3", simple, 0x1004, "fldenv [eax]", "takes an x87 control word that is no constant"},
      {"8b442404 d928 c3", simple, 0x1004, "fldcw word ptr [eax]", "takes an x87 control word that is no constant"},
      {"0f0b", simple, 0x1000, "ud2", "is not known to lifts"},
  };
  for (const Ending& ending : endings) {
    INFO(ending.code);
    const Lift lift = lift_code(ending.code, ending.signature);
    CHECK_FALSE(lift.lifted);
    CHECK(lift.address == (ending.offset == 0 ? 0 : 0x400000 + ending.offset));
    if (!ending.instruction.empty()) CHECK(lift.instruction == ending.instruction);
    CHECK_THAT(lift.reason, tests::contains_text(ending.reason));
    CHECK(lift.words.empty());
  }
}

TEST_CASE("limits end a lift") {
  // eax = eax * eax + 1, a hundred thousand times
  const std::string code = "8b442404 8b00 b9a0860100 0fafc0 40 49 75f9 8b542408 8902 c3";
  const Lift lift = lift_code(code, "cdecl(in u8[4], out u32)", {.max_instructions = 1'000'000, .max_nodes = 5000});
  CHECK_FALSE(lift.lifted);
  CHECK(lift.reason == "has made more than 5000 expressions");
}

TEST_CASE("an address that depends on the value is a case of its own where no table serves") {
  // out[in[0] & 3] = 1 behind out[0 … 3] = 0, on the stack
  const std::string code =
      "83ec10 31c0 890424 89442404 89442408 8944240c 8b4c2414 0fb609 83e103 c7048c01000000 8b542418 "
      "8b0424 8902 8b442404 894204 8b442408 894208 8b44240c 89420c 83c410 c3";
  const Lift lift = lift_code(code, "cdecl(in u8, out u32[4])");
  INFO(lift.reason);
  REQUIRE(lift.lifted);
  REQUIRE(lift.path.size() == 1);
  CHECK(lift.path[0].kind == proof::PathCondition::Kind::address);
  CHECK(lift.path[0].taken);
  CHECK(lift.path[0].address == 0x401000 + 0x1e);
}

TEST_CASE("a value of another size is refused") {
  const Image image = Image::load(BITWITNESS_STAND_INS_DIR "/stand_in_x87.exe");
  const proof::Program program = proof::program_of(image);
  Store store;
  Lifter lifter(store, program, 0x103f1d0, parse_signature("cdecl(in u8[6], out f32[4])"));
  const std::vector<std::byte> five(5);
  CHECK_THROWS_AS(lifter.run(five, {}), Error);
}
