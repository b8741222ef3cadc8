// The stand-ins agree with the native decoders, and each broken twin is caught for what it is.

#include "decoders/registry.hpp"
#include "harness/cli/decoder_subject.hpp"
#include "harness/image.hpp"
#include "harness/values.hpp"
#include "harness/verification.hpp"
#include "tests/catch.hpp"

#include <algorithm>
#include <chrono>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace bitwitness;

namespace {

struct Kind {
  std::string name;
  std::string six_byte;
  std::string two_key;
};

const std::vector<Kind> kinds = {
    {"x87", "cdecl(in u8[6], out f32[4])", "stdcall(in u8[6], in u8[6], out f32[4], out f32[4])"},
    {"sse2", "thiscall(in u8[6], out f32[4])", "fastcall(in u8[12], out f32[8])"},
};

RunReport run(const Image& image, const Kind& kind, bool two_key, const Environment& environment,
              const std::vector<std::string>& sources) {
  const Subject subject = cli::subject_of(*decoders::find_decoder(two_key ? "packed_quat48_pair" : "packed_quat48"));
  const Routine routine{subject.name, two_key ? 0x103f340U : 0x103f1d0U,
                        parse_signature(two_key ? kind.two_key : kind.six_byte)};
  VerifyOptions options;
  options.jobs = 2;
  return verify(image, routine, subject, environment, ValueSet::build(subject.packed_size, subject.fields, sources),
                options);
}

Image stand_in(const Kind& kind) {
  return Image::load(BITWITNESS_STAND_INS_DIR "/stand_in_" + kind.name + ".exe");
}

Image broken(const Kind& kind, const std::string& mistake) {
  return Image::load(BITWITNESS_FIXTURES_DIR "/broken_" + kind.name + "_" + mistake + ".exe");
}

const std::vector<std::string> quick = {"special", "random:20000"};
constexpr const char* singled_out = "34 12 78 56 45 23";

/// Runs both kinds of a broken twin.
template <typename Check>
void each_twin(const std::string& mistake, const std::vector<std::string>& sources, Check check) {
  for (const Kind& kind : kinds) {
    INFO(kind.name);
    const Image image = broken(kind, mistake);
    CHECK(image.is_stand_in());
    const RunReport report = run(image, kind, false, {}, sources);
    CHECK(report.verdict() == Verdict::differ);
    check(report);
  }
}

}  // namespace

TEST_CASE("both forms of both stand-ins agree with the rule") {
  for (const Kind& kind : kinds) {
    const Image image = stand_in(kind);
    CHECK(image.is_stand_in());
    for (const bool two_key : {false, true}) {
      INFO(kind.name << (two_key ? ", two keys" : ", one key"));
      const RunReport report = run(image, kind, two_key, {}, quick);
      CHECK(report.verdict() == Verdict::agree);
      CHECK(report.counts.agreed == report.distinct);
      CHECK(report.counts.agreed > 20000);
      CHECK(report.isolation.sampled == 1024);
      CHECK(report.isolation.unstable == 0);
      CHECK(report.notes.empty());
    }
  }
}

TEST_CASE("the x87 stand-in depends on the control word's precision, the SSE2 one does not") {
  for (const Kind& kind : kinds) {
    const Image image = stand_in(kind);
    for (const std::uint16_t fpcw : std::vector<std::uint16_t>{0x007f, 0x027f, 0x037f}) {
      INFO(kind.name << " at " << std::hex << fpcw);
      const RunReport report = run(image, kind, false, {fpcw, 0x1f80}, quick);
      if (kind.name == "x87" && fpcw == 0x007f) {
        CHECK(report.verdict() == Verdict::differ);
        CHECK(report.counts.differed > report.distinct / 4);  // about a third
        CHECK(report.counts.differed < report.distinct / 2);
      } else {
        CHECK(report.verdict() == Verdict::agree);
      }
    }
  }
}

TEST_CASE("a stop request is heard while every value runs away") {
  const Image image = Image::load(BITWITNESS_FIXTURES_DIR "/conventions32.dll");
  const Subject subject = cli::subject_of(*decoders::find_decoder("half"));
  const Routine routine{"loops", image.resolve("export:loops_forever"), parse_signature("cdecl(in u8[2], out f32)")};
  std::stop_source source;
  VerifyOptions options;
  options.jobs = 2;
  options.machine.budget = std::uint64_t{1} << 60;  // years
  options.stop = source.get_token();
  const std::jthread stopper([&source] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    source.request_stop();
  });
  const std::vector<std::string> all = {"all"};
  const RunReport report = verify(image, routine, subject, {}, ValueSet::build(2, subject.fields, all), options);
  CHECK(report.counts.run == 0);
  CHECK(report.counts.not_run == 65536);
}

TEST_CASE("twin with one bit wrong in the constant is caught") {
  each_twin("constant_bit", quick, [](const RunReport& report) {
    CHECK(report.counts.differed > report.distinct * 9 / 10);
    CHECK(report.max_ulp > 0);
  });
}

TEST_CASE("twin with rotated lanes is caught") {
  each_twin("lanes_rotated", quick, [](const RunReport& report) {
    CHECK(report.counts.differed > report.distinct / 4);
    REQUIRE(!report.differences.empty());
    // The same four components, in other lanes.
    auto reference = report.differences[0].reference;
    auto subject = report.differences[0].subject;
    std::ranges::sort(reference);
    std::ranges::sort(subject);
    CHECK(reference == subject);
  });
}

TEST_CASE("twin without the clamp is caught") {
  each_twin("no_clamp", quick, [](const RunReport& report) {
    CHECK(report.counts.differed > 0);
    CHECK(report.counts.differed < report.distinct / 2);  // only where the radicand is below 0
    REQUIRE(!report.differences.empty());
    const auto is_nan = [](std::uint32_t word) { return (word & 0x7fffffff) > 0x7f800000; };
    CHECK(std::ranges::count_if(report.differences[0].reference, is_nan) == 1);
    CHECK(std::ranges::count(report.differences[0].subject, 0U) == 1);
  });
}

TEST_CASE("twin with an f32 radicand is caught") {
  each_twin("radicand_f32", quick, [](const RunReport& report) {
    CHECK(report.counts.differed > report.distinct / 10);
    CHECK(report.counts.differed < report.distinct);
  });
}

TEST_CASE("twin that does not mask word two is caught on values that have its bit 15") {
  each_twin("word_two_unmasked", quick, [](const RunReport& report) {
    REQUIRE(!report.differences.empty());
    for (const Difference& difference : report.differences) {
      CHECK((difference.value[5] & std::byte{0x80}) != std::byte{0});
    }
  });
}

TEST_CASE("twin that faults on one value loses that value only") {
  each_twin("fault", {"special", "random:20000", "hex:341278564523"}, [](const RunReport& report) {
    CHECK(report.counts.faulted == 1);
    CHECK(report.counts.agreed == report.distinct - 1);
    REQUIRE(report.failures.size() == 1);
    CHECK(to_hex(report.failures[0].value) == singled_out);
    CHECK(report.failures[0].address >= 0x103f1d0);
    CHECK_FALSE(report.failures[0].instruction.empty());
    CHECK_THAT(report.failures[0].reason, Catch::Matchers::StartsWith("writes 4 bytes at 0x"));
  });
}

TEST_CASE("twin that loops on one value loses that value only") {
  each_twin("loop", {"special", "random:20000", "hex:341278564523"}, [](const RunReport& report) {
    CHECK(report.counts.out_of_budget == 1);
    CHECK(report.counts.agreed == report.distinct - 1);
    REQUIRE(report.failures.size() == 1);
    CHECK(to_hex(report.failures[0].value) == singled_out);
    CHECK_THAT(report.failures[0].reason, Catch::Matchers::StartsWith("has executed 1000000 instructions"));
  });
}

TEST_CASE("twin that never writes w gives no value at all") {
  each_twin("no_w", quick, [](const RunReport& report) {
    CHECK(report.counts.agreed == 0);
    CHECK(report.counts.unwritten == report.distinct);
    REQUIRE(!report.failures.empty());
    CHECK(report.failures[0].reason == "returns without having written all of output word 3 (out f32[4])");
  });
}
