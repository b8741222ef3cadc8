#include "harness/self_test.hpp"

#include "harness/emulator.hpp"
#include "harness/machine.hpp"
#include "harness/values.hpp"
#include "tests/host_support.hpp"
#include "tests/machine_runs.hpp"
#include "tests/pe_builder.hpp"

#include <array>
#include <bit>
#include <iostream>
#include <optional>
#include <set>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

/// A function of two operands of 16 bytes and a result, around what a vector executes. It is 64-bit code, which more
/// systems run: what the vectors execute means the same there.
FileBytes function_of(const SelfTestVector& vector) {
  FileBytes code = parse_hex(
      "56574889ce4889d7"          // push rsi, push rdi; mov rsi, rcx; mov rdi, rdx
      "0f57c00f1107"              // xorps xmm0, xmm0; movups [rdi], xmm0
      "0f10060f104e104883ee10");  // movups xmm0, [rsi]; movups xmm1, [rsi + 16]; sub rsi, 16
  for (const std::byte byte : self_test_code(vector)) code.push_back(byte);
  for (const std::byte byte : parse_hex("0f775f5ec3")) code.push_back(byte);  // emms; pop rdi, pop rsi, ret
  return code;
}

/// What this computer's processor answers.
struct Answer {
  bool is_known_instruction = true;
  std::optional<Bits128> bits;  ///< none after an exception
};

Answer ask_processor(const SelfTestVector& vector) {
  PeBuilder builder;
  builder.is_64 = true;
  builder.sections = {{.name = ".text", .data = function_of(vector)}};
  const TemporaryFile file(builder.build().bytes);
  const Image image = Image::load(file.path());
  const Routine routine{"tried", image.base() + 0x1000, parse_signature("win64(in u8[32], out u32[4])")};
  std::vector<std::byte> packed(32);
  std::memcpy(packed.data(), &vector.a, sizeof vector.a);
  std::memcpy(packed.data() + 16, &vector.b, sizeof vector.b);
  Environment environment;
  if (is_x87(vector.shape)) {
    environment.fpcw = static_cast<std::uint16_t>(vector.control);
  } else {
    environment.mxcsr = vector.control;
  }
  Batch batch;
  make_host_machine(image, routine)->run(batch, packed, environment);
  Answer answer;
  if (batch.outcomes.at(0) != OutcomeKind::returned) {
    answer.is_known_instruction = batch.incidents.at(0).reason.find("invalid") == std::string::npos;
    return answer;
  }

  const auto pair = std::bit_cast<std::array<std::uint64_t, 2>>(
      read_as<std::array<std::uint32_t, 4>>(reinterpret_cast<const std::byte*>(batch.words.data())));
  answer.bits = Bits128{pair[0], pair[1]};
  return answer;
}

std::string row_text(const Bits128& bits) {
  return fmt::format("{{{:#x}, {:#x}}}", bits.low, bits.high);
}

/// A copy of a group's vectors that may be changed.
std::vector<SelfTestVector> copy_of(std::string_view name) {
  for (const SelfTestGroup& group : self_test_groups()) {
    if (group.name == name) return {group.vectors.begin(), group.vectors.end()};
  }
  FAIL("no group " << name);
  return {};
}

bool is_tabled_emulator() {
  return unicorn_version() == "2.0.1";
}

}  // namespace

TEST_CASE("every answer in the table is the processor's") {
  if (const std::string reason = why_no_host(64); !reason.empty()) {
    skip(reason);
    return;
  }
  std::size_t asked = 0;
  for (const SelfTestGroup& group : self_test_groups()) {
    for (std::size_t i = 0; i < group.vectors.size(); ++i) {
      const SelfTestVector& vector = group.vectors[i];
      const Answer answer = ask_processor(vector);
      if (!answer.is_known_instruction) {
        std::cout << "not asked: this processor has no " << vector.instruction << "\n";
        continue;
      }
      ++asked;
      INFO(group.name << " " << i + 1 << " " << vector.instruction << ": the processor gives "
                      << (answer.bits ? row_text(*answer.bits) : "an exception"));
      CHECK(answer.bits.has_value() == (vector.kind != SelfTestAnswer::fault));
      if (answer.bits) CHECK(is_as_hardware(vector, *answer.bits));
    }
  }
  CHECK(asked > 200);
}

TEST_CASE("the emulator differs in the quirks that are known of it and in nothing else") {
  const SelfTest test = run_self_test();
  CHECK(test.vectors > 200);
  CHECK(test.as_hardware + test.differences.size() == test.vectors);
  if (!is_tabled_emulator()) return skip("unicorn " + unicorn_version() + " has no table of quirks");
  CHECK(test.unknown.empty());
  CHECK(test.missing.empty());
  std::set<std::string> quirks;
  std::size_t quirk_vectors = 0;
  for (const SelfTestGroup& group : self_test_groups()) {
    if (!group.is_quirk) continue;
    quirks.emplace(group.name);
    quirk_vectors += group.vectors.size();
  }
  CHECK(std::vector<std::string>(quirks.begin(), quirks.end()) == test.found);
  CHECK(test.differences.size() == quirk_vectors);
  CHECK(quirks.contains("fisttp-m32-overflow"));
  CHECK(quirks.contains("snan-load-store-kept"));
}

TEST_CASE("equal emulators give equal results") {
  const SelfTest first = run_self_test();
  const SelfTest again = run_self_test();
  CHECK(summary_of(first) == summary_of(again));
  REQUIRE(first.differences.size() == again.differences.size());
  for (std::size_t i = 0; i < first.differences.size(); ++i) {
    CHECK(first.differences[i].given == again.differences[i].given);
    CHECK(first.differences[i].has_result == again.differences[i].has_result);
  }
}

TEST_CASE("an answer that is not the emulator's is named as unknown, whatever its kind") {
  for (const std::string_view name : {"x87-add", "x87-store", "sse-single", "sse-convert"}) {
    std::vector<SelfTestVector> vectors = copy_of(name);
    const std::array<SelfTestGroup, 1> groups = {{{name, "tried", false, vectors}}};
    REQUIRE(run_self_test(groups).unknown.empty());
    vectors[2].answer.low ^= 1;
    const SelfTest broken = run_self_test(groups);
    const std::string expected = fmt::format("{} 3 {}", name, vectors[2].instruction);
    CHECK(broken.unknown == std::vector{expected});
    CHECK(broken.as_hardware == vectors.size() - 1);
    REQUIRE(broken.differences.size() == 1);
    CHECK(broken.differences[0].number == 3);
    CHECK(broken.differences[0].given.low == (vectors[2].answer.low ^ 1));
    CHECK(summary_of(broken).quirks == std::vector{"unknown: " + expected});
    vectors[2].kind = SelfTestAnswer::beside;
    CHECK(run_self_test(groups).unknown.empty());
    vectors[2].answer.low ^= 1;
    vectors[2].kind = SelfTestAnswer::other;
    CHECK(run_self_test(groups).unknown == std::vector{expected});
    vectors[2].kind = SelfTestAnswer::fault;
    CHECK(run_self_test(groups).unknown == std::vector{expected});
  }
}

TEST_CASE("a quirk that no vector shows is missing") {
  const std::vector<SelfTestVector> vectors = copy_of("sse-shuffle");
  const std::array<SelfTestGroup, 1> groups = {{{"some-quirk", "tried", true, vectors}}};
  const SelfTest test = run_self_test(groups);
  CHECK(test.missing == std::vector<std::string>{"some-quirk"});
  CHECK(test.found.empty());
  CHECK(test.as_hardware == vectors.size());
  std::vector<std::string> all;
  for (const SelfTestGroup& group : self_test_groups()) {
    if (group.is_quirk) all.emplace_back(group.name);
  }
  std::ranges::sort(all);
  CHECK(quirks_not_in(all).empty());
  const std::string taken = all[1];
  all.erase(all.begin() + 1);
  CHECK(quirks_not_in(all) == std::vector{taken});
}

TEST_CASE("after a vector that does not end well the next ones run") {
  const SelfTestVector good = copy_of("sse-shuffle").front();
  SelfTestVector bad = good;
  std::vector<SelfTestVector> vectors;
  // ud2; a jump to where nothing is; a stack that is gone; a system call.
  for (const std::string_view code : {"0f0b", "b800000000ffe0", "31e4c3", "cd2e"}) {
    bad.code = code;
    vectors.push_back(bad);
    vectors.push_back(good);
  }
  vectors.push_back(bad);
  const std::array<SelfTestGroup, 1> groups = {{{"tried", "tried", false, vectors}}};
  const SelfTest test = run_self_test(groups);
  CHECK(test.as_hardware == 4);
  REQUIRE(test.differences.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(test.differences[i].number == 2 * i + 1);
    CHECK(!test.differences[i].has_result);
  }
}

TEST_CASE("a vector has the operands and control words that it names") {
  // Both operands, and both control words as memory has them.
  const SelfTestVector vector = {SelfTestShape::sse_plain,
                                 "tried",
                                 "d93f0fae5f048b461089470c8b4e20894f08",
                                 0x5f80,
                                 {0x11112222},
                                 {0x33334444},
                                 {0x5f80'0000'027f, 0x1111'2222'3333'4444}};
  const SelfTestVector x87 = {SelfTestShape::x87_plain, "tried", "d93f0fae5f04", 0x0a7f, {}, {}, {0x1f80'0000'0a7f}};
  const std::array<SelfTestVector, 4> vectors = {vector, x87, vector, x87};
  const std::array<SelfTestGroup, 1> groups = {{{"tried", "tried", false, vectors}}};
  const SelfTest test = run_self_test(groups);
  for (const SelfTestDifference& difference : test.differences) CHECK(row_text(difference.given).empty());
  CHECK(test.as_hardware == 4);
}

TEST_CASE("names of groups can stand in reports") {
  std::set<std::string_view> names;
  for (const SelfTestGroup& group : self_test_groups()) {
    INFO(group.name);
    CHECK(names.insert(group.name).second);
    CHECK(group.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos);
    CHECK(!group.vectors.empty());
    CHECK(!group.what.empty());
  }
}
