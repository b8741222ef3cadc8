#include "harness/environments.hpp"

#include "decoders/registry.hpp"
#include "harness/cli/decoder_subject.hpp"
#include "harness/report_reader.hpp"
#include "harness/verification.hpp"
#include "tests/catch.hpp"

#include <array>
#include <atomic>
#include <string>
#include <vector>

using namespace bitwitness;

namespace {

const std::array<Environment, 4> environments = {
    {{.fpcw = 0x027f}, {.fpcw = 0x007f}, {.fpcw = 0x037f}, {.fpcw = 0x0e7f}}};  // the last rounds towards zero

struct StandIn {
  std::string name;
  std::string signature;
};

const StandIn x87 = {"x87", "cdecl(in u8[6], out f32[4])"};
const StandIn sse2 = {"sse2", "thiscall(in u8[6], out f32[4])"};

Image image_of(const StandIn& kind) {
  return Image::load(BITWITNESS_STAND_INS_DIR "/stand_in_" + kind.name + ".exe");
}

Routine routine_of(const StandIn& kind) {
  return {"packed_quat48", 0x103f1d0, parse_signature(kind.signature)};
}

Subject subject() {
  return cli::subject_of(*decoders::find_decoder("packed_quat48"));
}

ValueSet values() {
  const std::vector<std::string> sources = {"special", "random:20000"};
  return ValueSet::build(6, subject().fields, sources);
}

Report report_of(std::vector<RunReport> runs) {
  Report report;
  report.image_sha256 = std::string(64, 'a');
  report.image_name = "x.exe";
  report.runs = std::move(runs);
  return report;
}

}  // namespace

TEST_CASE("each environment of one pass reports what it does alone, on any number of threads") {
  const Image image = image_of(x87);
  std::vector<std::string> alone;
  for (const Environment& environment : environments) {
    alone.push_back(to_json(report_of({verify(image, routine_of(x87), subject(), environment, values())})));
  }
  for (const unsigned jobs : {1U, 2U, 3U}) {
    VerifyOptions options;
    options.jobs = jobs;
    EnvironmentReports all = verify_environments(image, routine_of(x87), subject(), environments, values(), options);
    REQUIRE(all.runs.size() == environments.size());
    CHECK(all.effects.changed[0] == 0);
    CHECK(all.effects.changed[1] > all.runs[1].counts.run / 4);
    // The decoder agrees at 53 bits, so what differs from it is what the environment changes.
    for (std::size_t i = 0; i < environments.size(); ++i) {
      CHECK(all.effects.changed[i] == all.runs[i].counts.differed);
      CHECK(to_json(report_of({all.runs[i]})) == alone[i]);
    }
    CHECK(all.effects.depending >= all.effects.changed[1]);
    CHECK(all.effects.depending >= all.effects.changed[3]);
    CHECK(all.effects.depending <= all.effects.changed[1] + all.effects.changed[2] + all.effects.changed[3]);
  }
}

TEST_CASE("environments that give the same are one group, and reports that say so are read back") {
  for (const StandIn& kind : {x87, sse2}) {
    EnvironmentReports all = verify_environments(image_of(kind), routine_of(kind), subject(), environments, values());
    Report report = report_of(all.runs);
    report.environments = {all.effects};
    const std::vector<EnvironmentRow> rows = environment_rows(report, all.effects);
    REQUIRE(rows.size() == environments.size());
    CHECK(rows[0].group == "A");
    CHECK(rows[0].name == "Win32 default");
    CHECK(rows[1].name == "Direct3D 9's");
    CHECK(rows[1].group == (kind.name == "x87" ? "B" : "A"));
    if (kind.name == "sse2") CHECK(all.effects.depending == 0);
    const std::string json = to_json(report);
    CHECK(to_json(parse_report(json, "report.json")) == json);
    CHECK(to_text(report).find("values depend on the environment") != std::string::npos);
  }
}

TEST_CASE("a pass that is interrupted counts the same values in every environment") {
  const std::vector<std::string> sources = {"random:400000"};
  const ValueSet many = ValueSet::build(6, subject().fields, sources);
  std::stop_source stop;
  VerifyOptions options;
  options.stop = stop.get_token();
  options.progress = [&stop](const Progress& progress) {
    if (progress.done > 0) stop.request_stop();
  };
  const EnvironmentReports all =
      verify_environments(image_of(sse2), routine_of(sse2), subject(), environments, many, options);
  for (const RunReport& run : all.runs) {
    CHECK(run.counts.run == all.runs[0].counts.run);
    CHECK(run.counts.run + run.counts.not_run == run.distinct);
    CHECK(run.counts.not_run > 0);
    CHECK(run.digest.empty());
  }
}
