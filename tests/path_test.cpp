#include "harness/image.hpp"
#include "harness/machine.hpp"
#include "harness/probe/inference.hpp"
#include "harness/probe/trace.hpp"
#include "tests/catch.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

// What reports say of the way a routine took where the processor or its writable data decide it.

namespace {

using namespace bitwitness;

constexpr std::array<std::byte, 4> value{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
constexpr std::array<std::byte, 4> turned{std::byte{0xfe}, std::byte{0xfd}, std::byte{0xfc}, std::byte{0xfb}};

Image load(const std::string& file, std::vector<MemoryPatch> memory = {}) {
  Surroundings surroundings;
  surroundings.memory = std::move(memory);
  return Image::link(Image::load(std::filesystem::path(BITWITNESS_FIXTURES_DIR) / file), std::move(surroundings));
}

Routine routine_of(const Image& image, const std::string& name, std::string_view signature = "cdecl(in u32, out u32)") {
  return {name, image.resolve("export:" + name), parse_signature(signature)};
}

/// The clauses, which trace and probe must print as well.
std::vector<std::string> path(const Image& image, const std::string& name) {
  const Routine routine = routine_of(image, name);
  const auto clauses = make_unicorn_machine(image, routine)->path(value, {});
  const Trace traced = trace(image, routine, value, {});
  const Inference inference = infer(image, routine.address);
  for (const std::string& clause : clauses) {
    CAPTURE(clause);
    CHECK(std::ranges::count(traced.notes, "it " + clause) == 1);
    CHECK(std::ranges::count(inference.seen, "it " + clause) == 1);
  }
  return clauses;
}

std::string only_path(const Image& image, const std::string& name) {
  const auto clauses = path(image, name);
  REQUIRE(clauses.size() == 1);
  return clauses.front();
}

bool gives(const Image& image, const std::string& name, const std::array<std::byte, 4>& bytes) {
  Batch batch;
  make_unicorn_machine(image, routine_of(image, name))->run(batch, value, {});
  return batch.outcomes.at(0) == OutcomeKind::returned &&
         std::ranges::equal(std::as_bytes(std::span(batch.words)), bytes);
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("code that asks for a processor's features is named with the answer and its way") {
  const Image image = load("paths32.dll");
  CHECK(gives(image, "asks_for_sse2", value));
  const std::string sse2 = only_path(image, "asks_for_sse2");
  CAPTURE(sse2);
  CHECK(sse2.starts_with("executes cpuid at 0x10001022, to which this witness answers (leaf 0x1) SSE, SSE2, "));
  CHECK(has(sse2, "; code for other processors was not executed; "));
  CHECK(sse2.ends_with("the jump at 0x1000102b, which depends on it, was not taken"));

  CHECK(gives(image, "asks_for_avx", value));
  const auto avx = path(image, "asks_for_avx");
  REQUIRE(avx.size() == 2);
  CHECK(has(avx[0], "(leaf 0x0) "));
  CHECK(has(avx[0], ", leaves up to "));
  CHECK_FALSE(has(avx[0], "the jump"));
  const std::size_t absent = avx[1].find("; not ");
  CHECK(avx[1].find("AVX;", absent) != std::string::npos);
  CHECK(avx[1].ends_with("was taken, to 0x1000106c"));

  CHECK(only_path(image, "asks_for_state") == "executes xgetbv at 0x1000108f, which its processor does not have");
}

TEST_CASE("writable data that decides the way is named, and memory that is set decides otherwise") {
  const Image image = load("paths32.dll");
  CHECK(gives(image, "reads_level", value));
  CHECK(
      only_path(image, "reads_level") ==
      "reads 4 bytes of writable data at 0x10003000 (.data): 00000000 as in the file, which a running program may have "
      "changed (--memory 0x10003000=HEX sets it); the jump at 0x100010b3, which depends on it, was taken, to "
      "0x100010b7");
  const Image higher = load("paths32.dll", {{0x10003000, {std::byte{2}}}});
  CHECK(gives(higher, "reads_level", turned));
  CHECK(only_path(higher, "reads_level") ==
        "reads 4 bytes of writable data at 0x10003000 (.data): 02000000, as --memory sets it; the jump at 0x100010b3, "
        "which depends on it, was not taken");

  CHECK(has(only_path(image, "reads_flag"), "reads 1 byte of writable data at 0x10003004 (.data): 00 as"));
  CHECK(only_path(image, "reads_flag").ends_with("0x100010d9, which depends on it, was not taken"));
  const Image flagged = load("paths32.dll", {{0x10003004, {std::byte{1}}}});
  CHECK(gives(flagged, "reads_flag", turned));
  CHECK(has(only_path(flagged, "reads_flag"), "which depends on it, was taken, to 0x"));
}

TEST_CASE("pointers in writable data are named with where they lead") {
  const Image image = load("paths32.dll");
  CHECK(only_path(image, "jumps_through_data").ends_with("; 0x10001102 went on to 0x10001110, which depends on it"));
  const std::string unset = only_path(image, "calls_unset_pointer");
  CHECK(has(unset, "at 0x1000300c (.data): 00000000 as in the file"));
  CHECK_FALSE(has(unset, "went on"));
}

TEST_CASE("loads in pieces are one fact, and a few facts are listed") {
  const Image image = load("paths32.dll");
  CHECK(has(only_path(image, "reads_wide"), "reads 16 bytes of writable data at 0x10003010 (.data): 0100000002000000"));
  const auto seven = path(image, "reads_seven");
  REQUIRE(seven.size() == 6);
  CHECK(seven.back() == "depends on 2 more facts of this kind");
}

TEST_CASE("constants, imports, a heap and what the routine has written itself are no facts") {
  const Image image = load("paths32.dll");
  CHECK(path(image, "reads_its_own").empty());
  CHECK(path(image, "reads_constants").empty());
  const Image surroundings = load("surroundings32.dll");
  CHECK(make_unicorn_machine(surroundings, routine_of(surroundings, "calls_malloc", "cdecl(in u32[2], out u32[3])"))
            ->path(std::vector<std::byte>(8, std::byte{8}), {})
            .empty());
  const Image crt = load("probe_crt.dll");  // its import table is writable
  CHECK(make_unicorn_machine(crt, routine_of(crt, "root_by_crt", "cdecl(in u8[6], out f32[4])"))
            ->path(std::vector<std::byte>(6), {})
            .empty());
}

TEST_CASE("64-bit code finds a thread's block through gs") {
  const Image image = load("surroundings64.dll");
  const Routine routine = routine_of(image, "has_a_thread", "win64(in u32, out u32)");
  Batch batch;
  const auto machine = make_unicorn_machine(image, routine);
  machine->run(batch, value, {});
  CHECK(batch.outcomes.at(0) == OutcomeKind::returned);
  CHECK(batch.words.at(0) == 0x04030201);
  machine->run_alone(batch, value, {});
  CHECK(batch.outcomes.at(0) == OutcomeKind::returned);
  CHECK(trace(image, routine, value, {}).disagreement.empty());
  const Inference inference = infer(image, routine.address);
  REQUIRE(inference.certain() != nullptr);
  CHECK(to_string(inference.certain()->signature) == "win64(in u8[4], out u32)");
  CHECK(std::ranges::count(inference.seen, "it uses gs:[…], for which scratch memory stood") == 1);
}

TEST_CASE("a compiled routine calls the C library's square root") {
  const Image image = load("probe_crt.dll");
  const Inference inference = infer(image, image.resolve("export:root_by_crt"));
  REQUIRE(inference.certain() != nullptr);
  CHECK(to_string(inference.certain()->signature) == "cdecl(in u8[6], out f32[4])");
}
