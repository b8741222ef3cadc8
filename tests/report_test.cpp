#include "harness/report.hpp"

#include "harness/report_html.hpp"
#include "harness/self_test.hpp"
#include "harness/values.hpp"
#include "tests/catch.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <regex>
#include <sstream>

#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace bitwitness;

namespace {

constexpr std::uint64_t not_a_distance = std::numeric_limits<std::uint64_t>::max();

const std::filesystem::path tests_directory = BITWITNESS_TESTS_DIR;

RunReport agreeing_run() {
  RunReport run;
  run.routine = "packed_quat48";
  run.address = 0x103f1d0;
  run.signature = "cdecl(in u8[6], out f32[4])";
  run.routine_sha256 = std::string(64, 'a');
  run.decoder = "packed_quat48";
  run.witness = "unicorn";
  run.sources = {"special", "fields", "random:1000000:1"};
  run.distinct = 1163204;
  run.counts.run = run.counts.agreed = 1163204;
  run.digest = std::string(64, 'd');
  run.word_names = {"x", "y", "z", "w"};
  run.differing = {0, 0, 0, 0};
  run.isolation.sampled = 32;
  return run;
}

RunReport differing_run() {
  RunReport run = agreeing_run();
  run.environment = {0x007f, 0x1f80};
  run.shard = "1/4";
  run.counts = {1163204, 1163197, 3, 2, 1, 1, 0};
  run.differing = {1, 0, 0, 3};
  run.max_ulp = not_a_distance;
  run.differences = {
      {parse_hex("341278564523"),
       {0x3f433af1, 0xbf018814, 0x3e7e3c18, 0xbea2849b},
       {0x3f433af1, 0xbf018814, 0x3e7e3c18, 0xbea2849c}},
      {parse_hex("ffff00000080"), {0x7fc00000, 0, 0x3f800000, 0x80000000}, {0x3f800000, 0, 0x3f800000, 0}}};
  run.failures = {{parse_hex("000000000000"), OutcomeKind::faulted, 0x103f1ff, "mov eax, dword ptr [ecx]",
                   "reads 4 bytes at 0x10, which is not mapped"},
                  {parse_hex("010000000000"), OutcomeKind::faulted, 0, "", "calls KERNEL32.dll!Sleep"},
                  {parse_hex("020000000000"), OutcomeKind::unwritten, 0x103f23a, "ret", "never wrote word 3 (w)"}};
  run.isolation = {32, 2, parse_hex("341278564523")};
  run.notes = {"wrote 4 bytes at 0x1200000 (.data), outside its output and stack, on 12 values"};
  return run;
}

RunReport interrupted_run(std::uint64_t run_count) {
  RunReport run = agreeing_run();
  run.counts = {run_count, run_count, 0, 0, 0, 0, run.distinct - run_count};
  return run;
}

Report report_of(std::vector<RunReport> runs) {
  Report report;
  report.tool_version = "0.1.0";
  report.engine = {"2.0.1", "4.0.2", "0.9.0", "Example CPU"};
  report.image_name = "stand_in_x87.exe";
  report.image_path = "/opt/it's here/stand_in_x87.exe";
  report.image_sha256 = "0123456789abcdef" + std::string(48, '0');
  report.stand_in = true;
  report.runs = std::move(runs);
  return report;
}

/// What a self-test comes to that finds every known quirk and nothing else.
SelfTestSummary usual_self_test() {
  return {300, 200, quirks_not_in({})};
}

Report differing_report() {
  Report report = report_of({differing_run(), agreeing_run()});
  report.image_name = "SWS.exe";
  report.stand_in = false;
  report.notes = {"expected anchor: the routine references 0x3f06a0cba0000000; found: no such reference"};
  report.repeat_options = {"--base", "0x500000"};
  return report;
}

/// Strings that an executable may hold: bytes that are not UTF-8, an escape sequence, markup.
Report hostile_report() {
  Report report = differing_report();
  report.image_name = "a<b>&\"\x1b[31m\xff.exe";
  report.notes = {
      "section \xc3\x28 \xed\xa0\x80 \xf8\x88\x80\x80\x80 ]]> \x01 \xef\xbf\xbe \xc2\x9b"
      "2J"};
  report.runs[0].routine = "na\nme\xe2\x82";
  report.runs[0].failures[0].reason = "calls \xfe\xff!f\x08";
  return report;
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Compares with tests/golden/NAME. With BITWITNESS_ACCEPT=1 in the environment the file is written instead.
void check_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(BITWITNESS_GOLDEN_DIR) / name;
  if (const char* accept = std::getenv("BITWITNESS_ACCEPT"); accept != nullptr && std::string(accept) == "1") {
    std::ofstream(path, std::ios::binary) << text;
    WARN("accepted " << path.string());
  }
  INFO(path.string() << " (BITWITNESS_ACCEPT=1 writes it)");
  CHECK(contents(path) == text);
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  const std::size_t start = text.rfind('\n', end);
  return text.substr(start + 1, end - start);
}

std::string output_of(const std::string& command, int& status) {
  FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string out;
  std::array<char, 4096> buffer{};
  while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) out.append(buffer.data(), n);
  status = ::pclose(pipe);
  return out;
}

void check_junit_schema(const std::string& xml) {
  const auto path =
      std::filesystem::temp_directory_path() / ("bitwitness-junit-" + std::to_string(::getpid()) + ".xml");
  std::ofstream(path, std::ios::binary) << xml;
  int status = 0;
  const std::string said = output_of(
      "xmllint --noout --schema '" + (tests_directory / "junit.xsd").string() + "' '" + path.string() + "' 2>&1",
      status);
  std::filesystem::remove(path);
  INFO(said);
  CHECK(status == 0);
}

}  // namespace

TEST_CASE("ulp distance counts representable floats between two bit patterns", "[report]") {
  CHECK(ulp_distance(0x3f800000, 0x3f800000) == 0);
  CHECK(ulp_distance(0x3f800000, 0x3f800001) == 1);
  CHECK(ulp_distance(0x3f7fffff, 0x3f800001) == 2);
  CHECK(ulp_distance(0x80000000, 0x00000000) == 1);
  CHECK(ulp_distance(0x80000001, 0x00000001) == 3);
  CHECK(ulp_distance(0xbea2849b, 0xbea2849c) == 1);
  CHECK(ulp_distance(0x7f7fffff, 0x7f800000) == 1);
  CHECK(ulp_distance(0xff800000, 0x7f800000) == 0xff000001);
  CHECK(ulp_distance(0x7fc00000, 0x7fc00000) == 0);
  CHECK(ulp_distance(0x7fc00000, 0x7fc00001) == not_a_distance);
  CHECK(ulp_distance(0x3f800000, 0xffc00000) == not_a_distance);
  CHECK(ulp_distance(0xffffffff, 1, WordKind::i32) == 2);
  CHECK(ulp_distance(0x80000000, 0x7fffffff, WordKind::i32) == 0xffffffff);
  CHECK(ulp_distance(0xffffffff, 1, WordKind::u32) == 0xfffffffe);
  for (const auto& [a, b] : {std::pair{0x3f800000U, 0xbf800000U}, std::pair{0x00000001U, 0x7f800000U}}) {
    CHECK(ulp_distance(a, b) == ulp_distance(b, a));
  }
}

TEST_CASE("a run agrees only when every value ran, was compared and agreed", "[report]") {
  CHECK(agreeing_run().verdict() == Verdict::agree);

  CHECK(RunReport().verdict() == Verdict::vacuous);
  CHECK(interrupted_run(0).verdict() == Verdict::vacuous);
  CHECK(interrupted_run(5).verdict() == Verdict::incomplete);

  const auto with = [](std::uint64_t Counts::*member) {
    RunReport run = agreeing_run();
    run.counts.agreed -= 1;
    run.counts.*member += 1;
    return run.verdict();
  };
  CHECK(with(&Counts::differed) == Verdict::differ);
  CHECK(with(&Counts::faulted) == Verdict::differ);
  CHECK(with(&Counts::out_of_budget) == Verdict::differ);
  CHECK(with(&Counts::unwritten) == Verdict::differ);

  RunReport unstable = agreeing_run();
  unstable.isolation.unstable = 1;
  CHECK(unstable.verdict() == Verdict::differ);
  RunReport both = interrupted_run(5);
  both.counts.agreed = 4;
  both.counts.differed = 1;
  CHECK(both.verdict() == Verdict::differ);
}

TEST_CASE("a report's verdict is the worst of its runs", "[report]") {
  const RunReport agree = agreeing_run();
  const RunReport differ = differing_run();
  const RunReport incomplete = interrupted_run(5);
  const RunReport undone = interrupted_run(0);
  const RunReport vacuous;
  CHECK(report_of({}).verdict() == Verdict::vacuous);
  CHECK(report_of({agree, agree}).verdict() == Verdict::agree);
  CHECK(report_of({agree, differ, incomplete, vacuous}).verdict() == Verdict::differ);
  CHECK(report_of({agree, incomplete, vacuous}).verdict() == Verdict::incomplete);
  CHECK(report_of({agree, vacuous}).verdict() == Verdict::vacuous);
  CHECK(report_of({agree, undone}).verdict() == Verdict::incomplete);
  CHECK(report_of({undone, undone}).verdict() == Verdict::vacuous);
}

TEST_CASE("reports match their golden files", "[report][golden]") {
  const auto [name, report] = GENERATE(table<std::string, Report>({
      {"report_agree", report_of({agreeing_run(), agreeing_run()})},
      {"report_differ", differing_report()},
      {"report_incomplete", report_of({agreeing_run(), interrupted_run(1000000), interrupted_run(0)})},
      {"report_vacuous", report_of({})},
  }));
  check_golden(name + ".txt", to_text(report));
  check_golden(name + ".json", to_json(report));
  check_golden(name + ".xml", to_junit(report));
}

TEST_CASE("the JSON report holds the counts, words and verdicts of its runs", "[report]") {
  const nlohmann::json json = nlohmann::json::parse(to_json(differing_report()));
  CHECK(json["schema"] == "bitwitness-report/1");
  CHECK(json["verdict"] == "differ");
  CHECK(json["image"]["stand_in"] == false);
  const nlohmann::json& run = json["runs"][0];
  const nlohmann::json& counts = run["counts"];
  CHECK(counts["run"] == 1163204);
  CHECK(counts["agreed"].get<int>() + counts["differed"].get<int>() + counts["faulted"].get<int>() +
            counts["out_of_budget"].get<int>() + counts["unwritten"].get<int>() ==
        counts["run"].get<int>());
  CHECK(run["values"]["shard"] == "1/4");
  CHECK_FALSE(json["runs"][1]["values"].contains("shard"));
  CHECK(run["environment"]["fpcw"] == "007f");
  CHECK(run["differences"][0]["value"] == "34 12 78 56 45 23");
  CHECK(run["differences"][0]["reference"][3] == "bea2849b");
  CHECK(run["differences"][0]["ulp"] == nlohmann::json({0, 0, 0, 1}));
  CHECK(run["differences"][1]["ulp"] == nlohmann::json({nullptr, 0, 0, 1}));
  CHECK(run["max_ulp"].is_null());
  CHECK(run["failures"][0]["outcome"] == "faulted");
  CHECK(run["failures"][0]["address"] == "0x103f1ff");
  CHECK(run["failures"][1]["address"].is_null());
  CHECK(json["runs"][1]["verdict"] == "agree");
}

TEST_CASE("JSON and JUnit reports name no directory of this machine", "[report]") {
  Report report = differing_report();
  report.runs[0].sources = {"file:/home/me/values.txt", "file:relative/values.txt", "corpus:C:\\games\\anims"};
  for (const std::string& text : {to_json(report), to_junit(report)}) {
    CHECK(text.find("it's here") == std::string::npos);
    CHECK(text.find("/home/me") == std::string::npos);
    CHECK(text.find("games") == std::string::npos);
  }
  CHECK(nlohmann::json::parse(to_json(report))["runs"][0]["values"]["sources"] ==
        nlohmann::json({"file:values.txt", "file:relative/values.txt", "corpus:anims"}));
}

TEST_CASE("strings of an executable cannot break a report", "[report]") {
  const Report report = hostile_report();
  const nlohmann::json json = nlohmann::json::parse(to_json(report));
  CHECK(json["runs"][0]["routine"]["name"] == "na\nme\xef\xbf\xbd");
  const std::string junit = to_junit(report);
  check_junit_schema(junit);
  for (const std::string& text : {to_text(report), junit}) {
    for (const char c : text) {
      INFO("control character " << static_cast<int>(c));
      REQUIRE((static_cast<unsigned char>(c) >= 0x20 || c == '\n'));
    }
    CHECK(text.find("\xc2\x9b") == std::string::npos);
    CHECK(text.find("\xed\xa0\x80") == std::string::npos);
    CHECK(text.find("\\x1b[31m\xef\xbf\xbd.exe") != std::string::npos);
  }
}

TEST_CASE("JUnit reports keep to their schema and never pass what was not compared", "[report]") {
  for (const Report& report : {report_of({agreeing_run()}), differing_report(), report_of({interrupted_run(7)}),
                               report_of({interrupted_run(0), agreeing_run()}), report_of({})}) {
    const std::string xml = to_junit(report);
    check_junit_schema(xml);
    CHECK(xml.find("skipped") == std::string::npos);
    CHECK(occurrences(xml, "tests=\"" + std::to_string(occurrences(xml, "<testcase ")) + "\"") == 2);
    CHECK(occurrences(xml, "failures=\"" + std::to_string(occurrences(xml, "<failure ")) + "\"") == 2);
    CHECK(occurrences(xml, "errors=\"" + std::to_string(occurrences(xml, "<error ")) + "\"") == 2);
    CHECK((occurrences(xml, "<failure ") + occurrences(xml, "<error ") == 0) == (report.verdict() == Verdict::agree));
  }
}

TEST_CASE("every form of a report says that the image is a stand-in", "[report]") {
  Report report = report_of({agreeing_run()});
  const std::string warning = "STAND-IN executable: assembled for tests, not the game";
  const auto first_line = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  CHECK(first_line(to_text(report)).find(warning) != std::string::npos);
  CHECK(to_junit(report).find(warning) != std::string::npos);
  CHECK(nlohmann::json::parse(to_json(report))["image"]["stand_in"] == true);
  report.stand_in = false;
  CHECK(to_text(report).find("STAND-IN") == std::string::npos);
  CHECK(to_junit(report).find("STAND-IN") == std::string::npos);
}

TEST_CASE("percentages are rounded down, so that only all is 100", "[report]") {
  RunReport run = agreeing_run();
  const auto line = [&run](std::uint64_t agreed, std::uint64_t of) {
    run.counts = {of, agreed, of - agreed, 0, 0, 0, 0};
    const std::string text = to_text(report_of({run}));
    const std::size_t at = text.find("\n  agreed ") + 3;
    return text.substr(at, text.find('\n', at) - at);
  };
  CHECK(line(7, 7) == "agreed 100.00 % of 7 run");
  CHECK(line(9999999999, 10000000000) == "agreed 99.99 % of 10000000000 run");
  CHECK(line(2, 3) == "agreed 66.66 % of 3 run");
  CHECK(line(0, 3) == "agreed 0.00 % of 3 run");
  CHECK(line(1, 100000) == "agreed 0.00 % of 100000 run");
}

TEST_CASE("a self-test is told of where it found what is not known of the emulator", "[report]") {
  Report report = report_of({agreeing_run()});
  const auto told = [&](const std::string& text) {
    return to_text(report).find(text) != std::string::npos && to_html(report).find(text) != std::string::npos;
  };
  CHECK(!told("self-test"));
  report.engine.self_test = usual_self_test();
  CHECK(!told("self-test"));
  std::vector<std::string>& quirks = report.engine.self_test->quirks;
  const std::string last = quirks.back();
  quirks.pop_back();
  CHECK(told("200 of 300 self-test vectors as on hardware; quirks: "));
  CHECK(told("; not found: " + last));
  const std::string unknown = "unknown: x87-add 3 fadd";
  quirks.push_back(unknown);
  std::ranges::sort(quirks);
  CHECK(told(", " + unknown));
  CHECK(told("; not found: " + last));
  quirks.push_back(last);
  std::ranges::sort(quirks);
  CHECK(told(", " + unknown));
  CHECK(!told("not found"));
  CHECK(nlohmann::json::parse(to_json(report))["engine"]["quirks"] == nlohmann::json(quirks));
  CHECK(nlohmann::json::parse(to_json(report))["engine"]["self_test"] ==
        nlohmann::json({{"vectors", 300}, {"as_hardware", 200}}));
}

TEST_CASE("the text's last line is the verdict", "[report]") {
  CHECK(last_line(to_text(report_of({agreeing_run()}))).starts_with("agree: 1163204 of 1163204 values"));
  CHECK(last_line(to_text(differing_report())).starts_with("differ: "));
  CHECK(last_line(to_text(report_of({interrupted_run(7)}))).starts_with("incomplete: interrupted, 7 of 7 values"));
  CHECK(last_line(to_text(report_of({}))) == "vacuous: nothing was compared");
  CHECK(last_line(to_text(report_of({agreeing_run(), RunReport()}))).starts_with("vacuous: "));
}

TEST_CASE("a difference carries a command that a shell reads back to the same arguments", "[report]") {
  const std::string text = to_text(differing_report());
  std::smatch match;
  REQUIRE(std::regex_search(text, match, std::regex("repeat: (bitwitness verify .*)")));
  int status = 0;
  const std::string script = "bitwitness() { printf '%s\\n' \"$@\"; }; " + match[1].str();
  const std::string arguments = output_of(script, status);
  CHECK(status == 0);
  CHECK(arguments ==
        "verify\n--image\n/opt/it's here/stand_in_x87.exe\n--at\n0x103f1d0\n--signature\ncdecl(in u8[6], out f32[4])\n"
        "--decoder\npacked_quat48\n--fpcw\n007f\n--mxcsr\n1f80\n--base\n0x500000\n--values\nhex:341278564523\n");
  CHECK(occurrences(text, "repeat: ") == 5);
}

TEST_CASE("words are shown as what they are, with a mark where the sides differ", "[report]") {
  RunReport run = differing_run();
  run.word_kind = WordKind::i32;
  const std::string text = to_text(report_of({run}));
  CHECK(text.find("  > w  reference bea2849b -1096645477  subject bea2849c -1096645476  ulp 1") != std::string::npos);
  CHECK(to_text(differing_report()).find("  > w  reference bea2849b -0.3174") != std::string::npos);
  CHECK(to_text(differing_report()).find("    y  reference bf018814 -0.50598") != std::string::npos);
}
