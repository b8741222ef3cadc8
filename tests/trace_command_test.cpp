// Runs `trace` as a user does.
#include "tests/catch.hpp"
#include "tests/program.hpp"

#include <cstdlib>
#include <functional>
#include <regex>

#include <nlohmann/json.hpp>

namespace {

namespace fs = std::filesystem;
using namespace bitwitness::tests;
using Json = nlohmann::json;

const fs::path stand_ins = BITWITNESS_STAND_INS_DIR;
const fs::path fixtures = BITWITNESS_FIXTURES_DIR;
const std::string x87 = (stand_ins / "stand_in_x87.exe").string();
const std::string sse2 = (stand_ins / "stand_in_sse2.exe").string();
const std::string broken = (fixtures / "broken_x87_no_clamp.exe").string();
const Words one_value = {"--values", "hex:341278564523"};
const std::string cdecl_text = "cdecl(in u8[6], out f32[4])";
const Words at_key = {"--at", "0x103f1d0", "--signature", cdecl_text};

Words trace_words(const Words& more) {
  return Words{"trace", "--image", x87} + more;
}

const Words key_routine = trace_words(at_key + Words{"--decoder", "packed_quat48"});

/// Compares with tests/golden/NAME. With BITWITNESS_ACCEPT=1 in the environment the file is written instead.
void check_golden(const std::string& name, const std::string& text) {
  const fs::path path = fs::path(BITWITNESS_GOLDEN_DIR) / name;
  if (const char* accept = std::getenv("BITWITNESS_ACCEPT"); accept != nullptr && std::string(accept) == "1") {
    write(path, text);
    WARN("accepted " << path.string());
  }
  INFO(path.string() << " (BITWITNESS_ACCEPT=1 writes it)");
  CHECK(contents(path) == text);
}

/// Hides what another assembler or library would change.
std::string without_versions(std::string text) {
  text = std::regex_replace(text, std::regex("sha256 [0-9a-f]{16}"), "sha256 …");
  text = std::regex_replace(text, std::regex("\"sha256\": \"[0-9a-f]{64}\""), "\"sha256\": \"…\"");
  return std::regex_replace(text, std::regex("\"(unicorn|capstone|lief|cpu|version)\": \"[^\"]*\""), "\"$1\": \"…\"");
}

/// A report of a run on a twin of the stand-in that has no clamp, with the differences on two values.
std::string differing_report(const Folder& folder, const Words& more = {}) {
  const std::string path = folder.file("report.json");
  const Result result =
      run(folder, Words{"verify", "--image", broken, "--routine", "packed_quat48", "--jobs", "1", "--values",
                        "hex:341278564523", "hex:ff7fff7fff7f", "hex:fe7fff7fff7f", "--json", path} +
                      more);
  REQUIRE(result.status == 1);
  return path;
}

}  // namespace

TEST_CASE("the text of a trace shows every instruction and both sides' words", "[trace]") {
  const Folder folder;
  const Result result = run(folder, key_routine + one_value);
  CHECK(result.status == 0);
  CHECK(result.err == "");
  check_golden("trace_x87.txt", without_versions(result.out));
  const Result lanes = run(folder, Words{"trace", "--image", sse2, "--routine", "packed_quat48", "--signature",
                                         "thiscall(in u8[6], out f32[4])"} +
                                       one_value);
  CHECK(lanes.status == 0);
  check_golden("trace_sse2.txt", without_versions(lanes.out));
}

TEST_CASE("the JSON of a trace has the same facts", "[trace]") {
  const Folder folder;
  const std::string path = folder.file("trace.json");
  const Result result = run(folder, key_routine + one_value + Words{"--json", path, "--limit", "12"});
  CHECK(result.status == 0);
  CHECK_THAT(result.out, contains_text("more not listed (--limit 12)"));
  check_golden("trace_x87.json", without_versions(contents(path)));
  const Json json = Json::parse(contents(path));
  CHECK(json.at("schema") == "bitwitness-trace/1");
  CHECK(json.at("verdict") == "agree");
  CHECK(json.at("machine").at("same") == true);
  CHECK(json.at("steps").size() == 12);
  CHECK(json.at("instructions") == json.at("omitted").get<int>() + 12);

  const Result standard = run(folder, key_routine + one_value + Words{"--json", "-", "--limit", "12"});
  CHECK(standard.status == 0);
  CHECK(standard.out == contents(path));
  const Result none = run(folder, key_routine + one_value + Words{"--json", "-", "--limit", "0"});
  CHECK(Json::parse(none.out).at("steps").empty());
  const Result whole = run(folder, key_routine + one_value + Words{"--json", "-"});
  const Json all = Json::parse(whole.out);
  CHECK(all.at("omitted") == 0);
  CHECK(all.at("steps").size() == all.at("instructions"));
  CHECK(all.at("steps").back().at("instruction") == "ret");
}

TEST_CASE("a routine without a decoder is traced", "[trace]") {
  const Folder folder;
  const Result result = run(folder, trace_words(at_key + one_value));
  CHECK(result.status == 0);
  CHECK(last_line(result.out) == "executed: the routine returned; no decoder was asked");
  CHECK_THAT(result.out, contains_text("word 3  bea2849b"));
  CHECK_THAT(result.out, contains_text("checked: the machine that verifies ends in the same way, with the same words"));
  const Result decoded = run(folder, trace_words(at_key + one_value + Words{"--decoder", "packed_quat48"}));
  CHECK(decoded.status == 0);
  CHECK(last_line(decoded.out) == "agree: decoder packed_quat48 gives the same bits");
}

TEST_CASE("a trace at another precision differs from the decoder and exits 1", "[trace]") {
  const Folder folder;
  // Of these values at least one has other words at 24 bits.
  bool differs = false;
  for (const char* value : {"hex:341278564523", "hex:112233445566", "hex:345612347856"}) {
    const Result result = run(folder, key_routine + Words{"--fpcw", "007f", "--values", value});
    CHECK_THAT(result.out, contains_text("fpcw 007f, mxcsr 1f80"));
    if (result.status == 0) continue;
    differs = true;
    CHECK(result.status == 1);
    CHECK(last_line(result.out) == "differ: decoder packed_quat48 gives other bits");
    CHECK_THAT(result.out, contains_text("  > "));
  }
  CHECK(differs);
}

TEST_CASE("a routine that fails is traced to where it stops, and exits 1", "[trace]") {
  const Folder folder;
  const Words command = {"trace",
                         "--image",
                         (fixtures / "conventions32.dll").string(),
                         "--at",
                         "export:reads_null",
                         "--signature",
                         "cdecl(in u32, out u32)",
                         "--values",
                         "hex:01000000"};
  const Result result = run(folder, command);
  CHECK(result.status == 1);
  CHECK(last_line(result.out) == "failed: the routine gave no result");
  CHECK_THAT(result.out, contains_text("read 4 at 0x10: not mapped; NOT COMPLETED"));
  CHECK_THAT(result.out, contains_text("reads 4 bytes at 0x10"));
  const Json json = Json::parse(run(folder, command + Words{"--json", "-"}).out);
  CHECK(json.at("verdict") == "failed");
  CHECK(json.at("outcome") == "faulted");
  CHECK(json.at("words").empty());
  CHECK(json.at("steps").back().at("completed") == false);
  CHECK(json.at("steps").back().at("next").is_null());
  CHECK(json.at("failure").at("address") == json.at("steps").back().at("address"));

  const Result budget = run(folder, key_routine + one_value + Words{"--budget", "20"});
  CHECK(budget.status == 1);
  CHECK_THAT(budget.out, contains_text("20 instructions: out of budget at 0x"));
}

TEST_CASE("the first difference of a report is traced in its environment", "[trace]") {
  const Folder folder;
  const std::string report = differing_report(folder, {"--fpcw", "037f"});
  const Json listed = Json::parse(contents(report));
  REQUIRE(!listed.at("runs").at(0).at("differences").empty());
  const Json first = listed.at("runs").at(0).at("differences").at(0);
  const Result result = run(folder, {"trace", "--image", broken, "--from-difference", report});
  CHECK(result.status == 1);
  CHECK(result.err == "");
  CHECK(last_line(result.out) == "differ: decoder packed_quat48 gives other bits");
  CHECK_THAT(result.out, contains_text("value " + first.at("value").get<std::string>() + ", fpcw 037f, mxcsr 1f80"));
  CHECK_THAT(result.out, !contains_text("the report has other words"));

  const Result json = run(folder, {"trace", "--image", broken, "--from-difference", report, "--json", "-"});
  CHECK(json.status == 1);
  const Json traced = Json::parse(json.out);
  CHECK(traced.at("routine").at("name") == "packed_quat48");
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(traced.at("words").at(i).at("reference") == first.at("reference").at(i));
    CHECK(traced.at("words").at(i).at("subject") == first.at("subject").at(i));
    CHECK(traced.at("words").at(i).at("ulp") == first.at("ulp").at(i));
  }

  // What has changed since is said.
  Json changed = listed;
  changed["runs"][0]["differences"][0]["reference"][0] = "12345678";
  changed["runs"][0]["differences"][0]["subject"][1] = "12345678";
  write(folder.path / "changed.json", changed.dump());
  const Result other = run(folder, {"trace", "--image", broken, "--from-difference", folder.file("changed.json")});
  CHECK(other.status == 1);
  CHECK_THAT(other.out, contains_text("the report has other words of the routine: 12345678 "));
  CHECK_THAT(other.out, contains_text("the report has other words of the decoder: "));
}

TEST_CASE("a report without differences leaves nothing to trace", "[trace]") {
  const Folder folder;
  const std::string path = folder.file("agree.json");
  REQUIRE(run(folder,
              Words{"verify", "--image", x87, "--routine", "packed_quat48", "--jobs", "1", "--json", path} + one_value)
              .status == 0);
  const Result result = run(folder, trace_words({"--from-difference", path}));
  CHECK(result.status == 3);
  CHECK(result.out == "");
  CHECK(result.err == "bitwitness: --from-difference " + path + ": the report has no difference\n");

  const std::string unlisted = differing_report(folder, {"--limit", "0"});
  const Result none = run(folder, {"trace", "--image", broken, "--from-difference", unlisted});
  CHECK(none.status == 3);
  CHECK_THAT(none.err, contains_text("lists none of its 2 differences"));
}

TEST_CASE("a report that cannot be used is refused with one line", "[trace]") {
  const Folder folder;
  const std::string report = differing_report(folder);
  const Json good = Json::parse(contents(report));
  const std::string path = folder.file("bad.json");
  const Words command = {"trace", "--image", broken, "--from-difference", path};
  write(path, good.dump());
  REQUIRE(run(folder, command).status == 1);

  struct Case {
    std::string named;
    std::function<void(Json&)> damage;
  };
  const auto run_of = [](Json& json) -> Json& { return json["runs"][0]; };
  const std::vector<Case> cases = {
      {"schema is missing", [](Json& json) { json.erase("schema"); }},
      {"schema is not \"bitwitness-report/1\"", [](Json& json) { json["schema"] = "bitwitness-report/2"; }},
      {"schema is not a string", [](Json& json) { json["schema"] = 1; }},
      {"the document is not an object", [](Json& json) { json = Json::array(); }},
      {"image.sha256 is missing", [](Json& json) { json["image"].erase("sha256"); }},
      {"image.sha256 is not a SHA-256", [](Json& json) { json["image"]["sha256"] = "00"; }},
      {"image.name is not a string", [](Json& json) { json["image"]["name"] = nullptr; }},
      {"SHA-256", [](Json& json) { json["image"]["sha256"] = std::string(64, '0'); }},
      {"runs is not an array", [](Json& json) { json["runs"] = Json::object(); }},
      {"runs[0].differences is missing", [&](Json& json) { run_of(json).erase("differences"); }},
      {"runs[0].counts.differed is not a count", [&](Json& json) { run_of(json)["counts"]["differed"] = -1; }},
      {"runs[0].routine.address", [&](Json& json) { run_of(json)["routine"]["address"] = "here"; }},
      {"0x10", [&](Json& json) { run_of(json)["routine"]["address"] = "0x10"; }},
      {"runs[0].routine.signature", [&](Json& json) { run_of(json)["routine"]["signature"] = "cdecl("; }},
      {"auto", [&](Json& json) { run_of(json)["routine"]["signature"] = "auto"; }},
      {"runs[0].environment.fpcw", [&](Json& json) { run_of(json)["environment"]["fpcw"] = "12345"; }},
      {"runs[0].environment.mxcsr is not a string", [&](Json& json) { run_of(json)["environment"]["mxcsr"] = 7; }},
      {"no decoder is named 'nosuch'", [&](Json& json) { run_of(json)["decoder"] = "nosuch"; }},
      {"decoder half takes 2", [&](Json& json) { run_of(json)["decoder"] = "half"; }},
      {"differences[0].value", [&](Json& json) { run_of(json)["differences"][0]["value"] = "zz"; }},
      {"differences[0].value has not", [&](Json& json) { run_of(json)["differences"][0]["value"] = "00"; }},
      {"differences[0].reference[0]", [&](Json& json) { run_of(json)["differences"][0]["reference"][0] = "1"; }},
      {"differences[0].reference has not", [&](Json& json) { run_of(json)["differences"][0]["reference"].erase(0); }},
      {"differences[0].subject has", [&](Json& json) { run_of(json)["differences"][0]["subject"].erase(0); }},
  };
  for (const Case& one : cases) {
    INFO(one.named);
    Json bad = good;
    one.damage(bad);
    write(path, bad.dump());
    const Result result = run(folder, command);
    check_refused(result, one.named);
    check_refused(result, one.named.find("0x10") == 0 || one.named.find("auto") == 0 || one.named.find("no dec") == 0
                              ? ""
                              : path);
  }
  for (const std::string text : {"", "{", "nonsense", "\xff\xfe", "{\"schema\": \"bitwitness-report/1\"} {}"}) {
    INFO(text);
    write(path, text);
    check_refused(run(folder, command), path);
  }
  write(path, std::string(100'000, '['));
  check_refused(run(folder, command), path);
}

TEST_CASE("a trace that cannot be made is refused with one line", "[trace]") {
  const Folder folder;
  const std::string report = differing_report(folder);
  struct Case {
    Words arguments;
    std::string named;
  };
  const std::vector<Case> cases = {
      {key_routine, "--values"},
      {key_routine + Words{"--values", "hex:341278564523", "hex:341278564524"}, "exactly one value"},
      {key_routine + Words{"--values", "special"}, "--values special"},
      {key_routine + Words{"--values", "hex:zz"}, "hex:zz"},
      {key_routine + Words{"--values", "hex:1234"}, "takes 6"},
      {key_routine + one_value + Words{"--fpcw", "027f", "007f"}, "one environment"},
      {key_routine + one_value + Words{"--fpcw", "zz"}, "--fpcw zz"},
      {key_routine + one_value + Words{"--limit", "many"}, "--limit many"},
      {key_routine + one_value + Words{"--limit", "1000001"}, "--limit 1000001"},
      {key_routine + one_value + Words{"--budget", "0"}, "--budget 0"},
      {key_routine + one_value + Words{"--json", folder.file("no/such/folder.json")}, "--json"},
      {key_routine + one_value + Words{"--json", x87}, "overwrite"},
      {trace_words(one_value), "packed_quat48, packed_quat48_pair"},
      {trace_words(one_value + Words{"--at", "0x10", "--signature", cdecl_text}), "0x10"},
      {trace_words(one_value + Words{"--at", "0x103f1d0", "--signature", "cdecl(in"}), "cdecl(in"},
      {trace_words(one_value + Words{"--at", "0x103f1d0", "--signature", "win64(in u8[6], out f32[4])"}), "win64"},
      {trace_words(at_key + one_value + Words{"--decoder", "half"}), "half takes 2"},
      {trace_words(at_key + one_value + Words{"--decoder", "nosuch"}), "nosuch"},
      {trace_words({"--from-difference", folder.file("nosuch.json")}), "nosuch.json"},
      {trace_words({"--from-difference", folder.path.string()}), folder.path.string()},
      {trace_words({"--from-difference", report}), "SHA-256"},
      {trace_words({"--from-difference", report, "--fpcw", "007f"}), "--from-difference"},
      {trace_words(Words{"--from-difference", report} + one_value), "--from-difference"},
      {trace_words({"--from-difference", report, "--routine", "packed_quat48"}), "--from-difference"},
      {{"trace", "--image", broken, "--from-difference", report, "--json", report}, "overwrite"},
      {{"trace", "--image", broken, "--from-difference", report, "--decoder", "half"}, "half takes 2"},
  };
  for (const Case& one : cases) {
    INFO(command_line(one.arguments));
    check_refused(run(folder, one.arguments), one.named);
  }
}
