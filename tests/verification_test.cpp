#include "harness/verification.hpp"

#include "harness/error.hpp"
#include "tests/catch.hpp"
#include "tests/doubling.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

using namespace bitwitness;
using namespace bitwitness::tests;

TEST_CASE("every value falls into one class and is listed with its reason") {
  const Image image = any_image();
  const Subject subject = doubler();
  const RunReport report = verify(image, doubling(), subject, {}, values_of(subject, {"all"}), with_doubling());
  CHECK(report.counts.run == 65536);
  CHECK(report.counts.agreed == 65532);
  CHECK(report.counts.differed == 1);
  CHECK(report.counts.faulted == 1);
  CHECK(report.counts.out_of_budget == 1);
  CHECK(report.counts.unwritten == 1);
  CHECK(report.counts.not_run == 0);
  CHECK(report.verdict() == Verdict::differ);
  REQUIRE(report.differences.size() == 1);
  CHECK(to_hex(report.differences[0].value) == "67 45");
  CHECK(report.differences[0].reference == std::vector<std::uint32_t>{7});
  CHECK(report.differences[0].subject == std::vector<std::uint32_t>{2 * 0x4567});
  CHECK(report.differing == std::vector<std::uint64_t>{1});
  CHECK(report.max_ulp == 2 * 0x4567 - 7);
  REQUIRE(report.failures.size() == 3);
  CHECK(to_hex(report.failures[0].value) == "34 12");
  CHECK(report.failures[0].reason == "faults");
  CHECK(report.failures[1].kind == OutcomeKind::out_of_budget);
  CHECK(report.failures[2].kind == OutcomeKind::unwritten);
  REQUIRE(report.notes.size() == 1);
  CHECK(report.notes[0] == "on 1 value the routine hums (first: 78 56)");
  CHECK(report.witness == "doubling");
  Report whole;
  whole.runs = {report};
  CHECK_THAT(to_text(whole), bitwitness::tests::contains_text("difference 1 of 1: 67 45  (value 17767)\n"));
}

TEST_CASE("the report is the same on any number of threads") {
  const Image image = any_image();
  const Subject subject = doubler();
  const ValueSet values = values_of(subject, {"all"});
  Report one;
  one.runs = {verify(image, doubling(), subject, {}, values, with_doubling(1))};
  for (const unsigned jobs : {2U, 3U, 8U, 64U}) {
    Report many;
    many.runs = {verify(image, doubling(), subject, {}, values, with_doubling(jobs))};
    CHECK(to_json(many) == to_json(one));
  }
}

TEST_CASE("the digest depends on reference words, outcomes and values, and not on the decoder") {
  const Image image = any_image();
  Subject subject = doubler();
  const auto digest = [&](const std::vector<std::string>& sources, bool unstable) {
    return verify(image, doubling(), subject, {}, values_of(subject, sources), with_doubling(1, unstable)).digest;
  };
  const std::string all = digest({"all"}, false);
  CHECK(all.size() == 64);
  CHECK(digest({"all"}, true) != all);  // one word differs
  CHECK(digest({"hex:0100"}, false) != digest({"hex:0200"}, false));
  CHECK(digest({"hex:3412"}, false) != digest({"hex:4523"}, false));  // faulted against out of budget
  subject.decode = [](std::span<const std::byte>, std::span<std::uint32_t> words) { words[0] = 0; };
  CHECK(digest({"all"}, false) == all);
}

TEST_CASE("findings are capped, counts are not, and the smallest values are kept") {
  const Image image = any_image();
  Subject subject = doubler();
  subject.decode = [](std::span<const std::byte>, std::span<std::uint32_t> words) { words[0] = 1; };
  const ValueSet values = values_of(subject, {"all"});
  for (const unsigned jobs : {1U, 4U}) {
    VerifyOptions options = with_doubling(jobs);
    options.limit = 3;
    const RunReport report = verify(image, doubling(), subject, {}, values, options);
    CHECK(report.counts.differed == 65533);
    REQUIRE(report.differences.size() == 3);
    CHECK(to_hex(report.differences[0].value) == "00 00");
    CHECK(to_hex(report.differences[1].value) == "01 00");
    CHECK(to_hex(report.differences[2].value) == "02 00");
    options.limit = 0;
    CHECK(verify(image, doubling(), subject, {}, values, options).differences.empty());
  }
}

TEST_CASE("a value that differs when run alone makes the run unstable") {
  const Image image = any_image();
  Subject subject = doubler();
  subject.decode = [](std::span<const std::byte> packed, std::span<std::uint32_t> words) {
    std::uint16_t value = 0;
    std::memcpy(&value, packed.data(), 2);
    words[0] = 2U * value + (value == 0xffff ? 1U : 0U);  // agrees with what the batch gives
  };
  const ValueSet values = values_of(subject, {"hex:0000", "hex:0100", "hex:ffff"});
  const RunReport report = verify(image, doubling(), subject, {}, values, with_doubling(1, true));
  CHECK(report.counts.agreed == 3);
  CHECK(report.isolation.sampled == 3);
  CHECK(report.isolation.unstable == 1);
  CHECK(to_hex(report.isolation.first_value) == "ff ff");
  CHECK(report.verdict() == Verdict::differ);
}

TEST_CASE("stopping leaves the rest uncompared and says so") {
  const Image image = any_image();
  const Subject subject = doubler();
  const ValueSet values = values_of(subject, {"all"});
  std::stop_source source;
  VerifyOptions options = with_doubling();
  options.stop = source.get_token();
  options.progress = [&](const Progress&) { source.request_stop(); };
  const RunReport report = verify(image, doubling(), subject, {}, values, options);
  CHECK(report.counts.run > 0);
  CHECK(report.counts.not_run > 0);
  CHECK(report.counts.run + report.counts.not_run == 65536);
  CHECK(report.digest.empty());

  std::stop_source early;
  early.request_stop();
  options.stop = early.get_token();
  const RunReport nothing = verify(image, doubling(), subject, {}, values, options);
  CHECK(nothing.counts.run == 0);
  CHECK(nothing.verdict() == Verdict::vacuous);
}

TEST_CASE("progress rises to the whole and counts what is wrong") {
  const Image image = any_image();
  const Subject subject = doubler();
  std::vector<Progress> seen;
  VerifyOptions options = with_doubling(3);
  options.progress = [&](const Progress& progress) { seen.push_back(progress); };
  (void)verify(image, doubling(), subject, {}, values_of(subject, {"all"}), options);
  REQUIRE(!seen.empty());
  CHECK(seen.back().done == 65536);
  CHECK(seen.back().total == 65536);
  CHECK(std::ranges::is_sorted(seen, {}, &Progress::done));
}

TEST_CASE("no values are vacuous") {
  const Image image = any_image();
  const Subject subject = doubler();
  const RunReport report = verify(image, doubling(), subject, {}, values_of(subject, {"random:0"}), with_doubling());
  CHECK(report.counts.run == 0);
  CHECK(report.verdict() == Verdict::vacuous);
}

TEST_CASE("sizes that do not fit are refused and both are named") {
  const Image image = any_image();
  Subject subject = doubler();
  const ValueSet values = values_of(subject, {"random:1"});
  Routine routine = doubling();
  routine.signature = parse_signature("cdecl(in u8[6], out f32[4])");
  CHECK_THROWS_WITH(
      verify(image, routine, subject, {}, values, with_doubling()),
      "routine doubling takes 6 bytes a value by its signature 'cdecl(in u8[6], out f32[4])', decoder doubler takes 2");
  routine.signature = parse_signature("cdecl(in u16, out u32[2])");
  CHECK_THROWS_WITH(
      verify(image, routine, subject, {}, values, with_doubling()),
      "routine doubling gives 2 words by its signature 'cdecl(in u16, out u32[2])', decoder doubler gives 1");
}

TEST_CASE("an error in any thread ends the run") {
  const Image image = any_image();
  const Subject subject = doubler();
  VerifyOptions options = with_doubling(4);
  std::atomic<int> made = 0;
  options.make_machine = [&](const Image&, const Routine&, const MachineOptions&) -> std::unique_ptr<Machine> {
    if (made++ != 0) throw Error("no second machine");
    return std::make_unique<DoublingMachine>(false);
  };
  CHECK_THROWS_WITH(verify(image, doubling(), subject, {}, values_of(subject, {"all"}), options), "no second machine");
}
