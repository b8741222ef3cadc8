#include "harness/report_reader.hpp"

#include "harness/error.hpp"
#include "harness/json_place.hpp"
#include "tests/catch.hpp"
#include "tests/report_samples.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include <nlohmann/json.hpp>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

using Json = nlohmann::ordered_json;

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A report that has everything a report may have.
Report full_report() {
  RunReport run = sample_run({difference("341278564523"), difference("ffff00000080", 2, 0x8000)});
  run.differences[1].subject[3] = 0x7fc00000;
  run.differing = {2, 1, 0, 1};
  run.max_ulp = std::numeric_limits<std::uint64_t>::max();
  run.counts.agreed -= 3;
  run.counts.faulted = 2;
  run.counts.unwritten = 1;
  run.failures = {
      {parse_hex("000000000000"), OutcomeKind::faulted, 0x103f1ff, "mov eax, dword ptr [ecx]", "reads \"0x10\""},
      {parse_hex("010000000000"), OutcomeKind::unwritten, 0, "", "never wrote word 3 (w)"}};
  run.isolation = {32, 2, parse_hex("341278564523")};
  run.notes = {"from the target", "on the first value (00 00 00 00 00 00) the routine reads a clock"};
  make_shard(run, {2, 2}, 20000);
  run.part->path_notes = 1;
  add_facts(run, {{"reads 4 bytes at 0x1200000", 12, parse_hex("341278564523")}});
  RunReport whole = sample_run();
  whole.environment = {0x007f, 0x9fc0};
  whole.counts.known = 2;
  whole.counts.agreed -= 2;
  whole.vector_file = "folder/some.bwv";
  whole.vector_sha256 = std::string(64, '6');
  whole.broken = {"a known difference that agrees again"};
  whole.image = RunImage{"other.exe", std::string(64, '5'), ImageFormat::pe32_plus, true};
  Report report = sample_report({run, whole});
  report.engine.self_test = SelfTestSummary{20, 17, {"fbstp-overflow", "unknown: x87-add 3 fadd"}};
  report.notes = {"expected anchor: a \x01 control character and \xc3\xa4"};
  return report;
}

/// A report of one routine in three environments, of which the second changes what two values give, and of another run.
Report environments_report() {
  RunReport first = sample_run();
  RunReport second = sample_run({difference("341278564523"), difference("ffff00000080")});
  second.environment.fpcw = 0x007f;
  second.digest = std::string(64, 'e');
  RunReport third = sample_run();
  third.environment.fpcw = 0x037f;
  RunReport other = sample_run();
  other.witness = "both";
  other.counts.agreed -= 2;
  other.counts.disputed = 2;
  other.failures = {
      {parse_hex("000000000000"), OutcomeKind::disputed, 0x103f1ff, "rsqrtss xmm0, xmm0", "the emulator gives 1"},
      {parse_hex("010000000000"), OutcomeKind::disputed, 0, "", "the emulator gives 2"}};
  Report report = sample_report({first, second, third, other});
  report.environments = {{.first_run = 0, .changed = {0, 2, 0}, .depending = 2}};
  return report;
}

std::string refusal_of(const std::string& text) {
  try {
    parse_report(text, "some.json");
  } catch (const Error& error) {
    const std::string message = error.what();
    CHECK(message.find('\n') == std::string::npos);
    CHECK(message.starts_with("some.json: "));
    return message;
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a report that was read is written again byte for byte", "[report_reader]") {
  for (const char* name : {"report_agree", "report_differ", "report_incomplete", "report_vacuous"}) {
    const auto path = std::filesystem::path(BITWITNESS_GOLDEN_DIR) / (std::string(name) + ".json");
    INFO(path.string());
    CHECK(to_json(read_report(path.string())) == contents(path));
  }
  const std::string full = to_json(full_report());
  CHECK(to_json(parse_report(full, "some.json")) == full);
  // Neither blanks nor the order of keys mean anything.
  CHECK(to_json(parse_report(nlohmann::json::parse(full).dump(), "some.json")) == full);
}

TEST_CASE("every key of a report must be there, and no other", "[report_reader]") {
  const Json good = Json::parse(to_json(full_report()));
  REQUIRE(refusal_of(good.dump()) == "accepted");
  std::size_t tried = 0;
  const std::function<void(const Json::json_pointer&, const std::string&)> walk = [&](const Json::json_pointer& at,
                                                                                      const std::string& path) {
    const Json& place = good.at(at);
    if (place.is_array()) {
      for (std::size_t i = 0; i < place.size(); ++i) walk(at / i, path + "[" + std::to_string(i) + "]");
      return;
    }
    if (!place.is_object()) return;
    const std::string prefix = path.empty() ? "" : path + ".";
    Json more = good;
    more[at]["surplus"] = 1;
    CHECK(refusal_of(more.dump()) == "some.json: " + prefix + "surplus is not known");
    for (const auto& [key, member] : place.items()) {
      ++tried;
      INFO(prefix + key);
      Json less = good;
      less[at].erase(key);
      const bool is_file = key == "vectors" && path != "engine.self_test";
      const bool independent = key == "part" || is_file || (key == "image" && !path.empty());
      const bool optional = key == "shard" || key == "known" || key == "broken" || path.ends_with(".isolation");
      CHECK_THAT(refusal_of(less.dump()),
                 independent ? contains_text("accepted")
                 : optional  ? contains_text("some.json: ")  // something else does not fit then
                             : contains_text("some.json: " + prefix + key + " is missing"));
      Json other = good;
      other[at][key] = true;
      if (key != "stand_in") CHECK_THAT(refusal_of(other.dump()), contains_text("some.json: " + prefix + key));
      walk(at / key, prefix + key);
    }
  };
  walk(Json::json_pointer(), "");
  CHECK(tried > 60);
}

TEST_CASE("what a report says must fit together", "[report_reader]") {
  struct Case {
    std::string said;
    std::function<void(Json&)> damage;
  };
  const auto run = [](Json& json) -> Json& { return json["runs"][0]; };
  const std::vector<Case> cases = {
      {"schema is not \"bitwitness-report/1\"", [](Json& json) { json["schema"] = "bitwitness-report/2"; }},
      {"engine.self_test is missing", [](Json& json) { json["engine"].erase("self_test"); }},
      {"engine.quirks is missing", [](Json& json) { json["engine"].erase("quirks"); }},
      {"engine.self_test.missed is not known", [](Json& json) { json["engine"]["self_test"]["missed"] = 1; }},
      {"engine.self_test has no vectors", [](Json& json) { json["engine"]["self_test"]["vectors"] = 0; }},
      {"engine.self_test has more vectors", [](Json& json) { json["engine"]["self_test"]["as_hardware"] = 21; }},
      {"engine.self_test.vectors is", [](Json& json) { json["engine"]["self_test"]["vectors"] = 1'000'001; }},
      {"engine.self_test has 0 vectors that differ, and the quirks are 2",
       [](Json& json) { json["engine"]["self_test"]["as_hardware"] = 20; }},
      {"engine.self_test has 1 vectors that differ, and the quirks are 2",
       [](Json& json) { json["engine"]["self_test"]["as_hardware"] = 19; }},
      {"engine.self_test has 3 vectors that differ, and the quirks are 0",
       [](Json& json) { json["engine"]["quirks"] = Json::array(); }},
      {"quirks that are not sorted",
       [](Json& json) {
         json["engine"]["quirks"] = {"b", "a"};
       }},
      {"quirks that are not sorted",
       [](Json& json) {
         json["engine"]["quirks"] = {"a", "a"};
       }},
      {"quirks that are not sorted",
       [](Json& json) {
         json["engine"]["quirks"] = {"", "a"};
       }},
      {"engine.quirks[0] is not", [](Json& json) { json["engine"]["quirks"] = {1}; }},
      {"image.sha256 is not a SHA-256", [](Json& json) { json["image"]["sha256"] = "00"; }},
      {"image.sha256 is not a SHA-256", [](Json& json) { json["image"]["sha256"] = std::string(64, 'A'); }},
      {"image.format is none of \"pe32\", \"pe32+\"", [](Json& json) { json["image"]["format"] = "elf"; }},
      {"verdict is not \"differ\"", [](Json& json) { json["verdict"] = "agree"; }},
      {"runs[0].verdict is not \"differ\"", [&](Json& json) { run(json)["verdict"] = "agree"; }},
      {"runs[0].routine.address", [&](Json& json) { run(json)["routine"]["address"] = "0x0103f1d0"; }},
      {"runs[0].routine.signature", [&](Json& json) { run(json)["routine"]["signature"] = "cdecl("; }},
      {"runs[0].routine.signature gives another",
       [&](Json& json) { run(json)["routine"]["signature"] = "cdecl(in u8[6], out f32[3])"; }},
      {"has not 5 bytes", [&](Json& json) { run(json)["routine"]["signature"] = "cdecl(in u8[5], out f32[4])"; }},
      {"environment.fpcw is not four", [&](Json& json) { run(json)["environment"]["fpcw"] = "27F"; }},
      {"environment.fpcw is 12345", [&](Json& json) { run(json)["environment"]["fpcw"] = "12345"; }},
      {"values.shard: shard 3/2", [&](Json& json) { run(json)["values"]["shard"] = "3/2"; }},
      {"values.shard is not one", [&](Json& json) { run(json)["values"]["shard"] = "02/2"; }},
      {"runs[1].values.shard is not one", [](Json& json) { json["runs"][1]["values"]["shard"] = "1/1"; }},
      {"counts.run and not_run", [&](Json& json) { run(json)["counts"]["not_run"] = 1; }},
      {"counts do not add up", [&](Json& json) { run(json)["counts"]["agreed"] = 7; }},
      {"counts.faulted and what", [&](Json& json) { run(json)["counts"]["faulted"] = UINT64_MAX; }},
      {"counts.run is not a count", [&](Json& json) { run(json)["counts"]["run"] = 3.0; }},
      {"counts.run is not a count", [&](Json& json) { run(json)["counts"]["run"] = -3; }},
      {"runs[1].counts.known is 0",
       [](Json& json) { json["runs"][1]["counts"]["known"] = 0, json["runs"][1]["counts"]["agreed"] = 20000; }},
      {"runs[1].broken is empty", [](Json& json) { json["runs"][1]["broken"] = Json::array(); }},
      {"runs[1].image.sha256 is not a SHA-256", [](Json& json) { json["runs"][1]["image"]["sha256"] = "5"; }},
      {"runs[1].vectors.name is not a file's", [](Json& json) { json["runs"][1]["vectors"]["name"] = "a/b.bwv"; }},
      {"runs[1].vectors.name is not a file's", [](Json& json) { json["runs"][1]["vectors"]["name"] = ""; }},
      {"runs[1].vectors.sha256 is not", [](Json& json) { json["runs"][1]["vectors"]["sha256"] = "6"; }},
      {"digest is not a SHA-256", [&](Json& json) { run(json)["digest"] = "d"; }},
      {"words.kind is none of", [&](Json& json) { run(json)["words"]["kind"] = "f64"; }},
      {"differing[0] is more", [&](Json& json) { run(json)["differing"][0] = 3; }},
      {"differing has another length", [&](Json& json) { run(json)["differing"].push_back(0); }},
      {"ulp[0] is above max_ulp", [&](Json& json) { run(json)["max_ulp"] = 1; }},
      {"max_ulp is no distance", [&](Json& json) { run(json)["max_ulp"] = UINT64_MAX; }},
      {"differences[0].value is not lowercase",
       [&](Json& json) { run(json)["differences"][0]["value"] = "341278564523"; }},
      {"differences[0].value: ", [&](Json& json) { run(json)["differences"][0]["value"] = "zz"; }},
      {"differences[1].value is not above",
       [&](Json& json) { run(json)["differences"][1]["value"] = "34 12 78 56 45 23"; }},
      {"differences[0].reference has not 4", [&](Json& json) { run(json)["differences"][0]["reference"].erase(0); }},
      {"differences[0].subject[0] is not 8",
       [&](Json& json) { run(json)["differences"][0]["subject"][0] = "3F433AF2"; }},
      {"differences[0].ulp[0] is not the distance", [&](Json& json) { run(json)["differences"][0]["ulp"][0] = 2; }},
      {"differences[1].ulp[3] is not the distance", [&](Json& json) { run(json)["differences"][1]["ulp"][3] = 2; }},
      {"differences[0].ulp has another length", [&](Json& json) { run(json)["differences"][0]["ulp"].erase(0); }},
      {"differences[0] has the same words",
       [&](Json& json) { run(json)["differences"][0]["subject"] = run(json)["differences"][0]["reference"]; }},
      {"failures[0].outcome is none of", [&](Json& json) { run(json)["failures"][0]["outcome"] = "returned"; }},
      {"failures[0].address is 0", [&](Json& json) { run(json)["failures"][0]["address"] = "0x0"; }},
      {"failures[1].value is not above", [&](Json& json) { run(json)["failures"][1]["value"] = "00 00 00 00 00 00"; }},
      {"isolation.sampled is more", [&](Json& json) { run(json)["isolation"]["sampled"] = 1000000; }},
      {"isolation.unstable is more", [&](Json& json) { run(json)["isolation"]["unstable"] = 33; }},
      {"isolation has a first_value", [&](Json& json) { run(json)["isolation"].erase("first_value"); }},
      {"part.first is not where a chunk begins", [&](Json& json) { run(json)["part"]["first"] = 8193; }},
      {"part.whole is less", [&](Json& json) { run(json)["part"]["whole"] = 19999; }},
      {"part.limit is less", [&](Json& json) { run(json)["part"]["limit"] = 1; }},
      {"part.chunks are not 1", [&](Json& json) { run(json)["part"]["chunks"].push_back(std::string(64, '0')); }},
      {"part.chunks[0] is not a SHA-256", [&](Json& json) { run(json)["part"]["chunks"][0] = "0"; }},
      {"part.chunks do not give", [&](Json& json) { run(json)["digest"] = std::string(64, '0'); }},
      {"part.facts are not what", [&](Json& json) { run(json)["part"]["facts"][0]["values"] = 13; }},
      {"part.facts[0].values is 0", [&](Json& json) { run(json)["part"]["facts"][0]["values"] = 0; }},
      {"part.path_notes is more", [&](Json& json) { run(json)["part"]["path_notes"] = 3; }},
      {"part is there without values.shard", [&](Json& json) { run(json)["values"].erase("shard"); }},
  };
  const Json good = Json::parse(to_json(full_report()));
  for (const Case& one : cases) {
    INFO(one.said);
    Json bad = good;
    one.damage(bad);
    CHECK_THAT(refusal_of(bad.dump()), contains_text(one.said));
  }
}

TEST_CASE("what a report says of environments and disputes must be what its runs say", "[report_reader]") {
  const std::string text = to_json(environments_report());
  CHECK(to_json(parse_report(text, "some.json")) == text);
  const Json good = Json::parse(text);
  struct Case {
    std::string said;
    std::function<void(Json&)> damage;
  };
  const auto entry = [](Json& json) -> Json& { return json["environments"][0]; };
  const auto row = [&entry](Json& json, std::size_t i) -> Json& { return entry(json)["table"][i]; };
  const std::vector<Case> cases = {
      {"environments is empty", [](Json& json) { json["environments"] = Json::array(); }},
      {"environments[0].table has not several", [&](Json& json) { entry(json)["table"] = {row(json, 0)}; }},
      {"environments[0].first_run and the table's rows", [&](Json& json) { entry(json)["first_run"] = 2; }},
      {"environments[0].first_run and the table's rows", [&](Json& json) { entry(json)["first_run"] = UINT64_MAX; }},
      {"environments[1].first_run is of a run that an entry before",
       [&](Json& json) { json["environments"].push_back(entry(json)); }},
      {"environments[0].routine is not what", [&](Json& json) { entry(json)["routine"] = "other"; }},
      {"environments[0].address is not what", [&](Json& json) { entry(json)["address"] = "0x103f340"; }},
      {"environments[0].run is not what", [&](Json& json) { entry(json)["run"] = 19999; }},
      {"environments[0].depending", [&](Json& json) { entry(json)["depending"] = 20001; }},
      {"environments[0].depending is more than the rows", [&](Json& json) { entry(json)["depending"] = 3; }},
      {"environments[0].table[1].changed", [&](Json& json) { row(json, 1)["changed"] = 3; }},
      {"environments[0].table[0].changed is not 0", [&](Json& json) { row(json, 0)["changed"] = 1; }},
      {"environments[0].table[1].changed is not what the digests say",
       [&](Json& json) { row(json, 1)["changed"] = 0, row(json, 2)["changed"] = 2; }},
      {"environments[0].table[2].group is not what", [&](Json& json) { row(json, 2)["group"] = "B"; }},
      {"environments[0].table[2].fpcw is not what", [&](Json& json) { row(json, 2)["fpcw"] = "027f"; }},
      {"environments[0].table[2].mxcsr is not what", [&](Json& json) { row(json, 2)["mxcsr"] = "9f80"; }},
      {"environments[0].table[1].agreed is not what", [&](Json& json) { row(json, 1)["agreed"] = 20000; }},
      {"environments[0].table[1].differed is not what", [&](Json& json) { row(json, 1)["differed"] = 0; }},
      {"environments[0].table[0].no_result is not what", [&](Json& json) { row(json, 0)["no_result"] = 1; }},
      {"environments[0].table[2] is of a run of another routine",
       [](Json& json) { json["runs"][2]["routine"]["name"] = "other"; }},
      {"runs[3].counts", [](Json& json) { json["runs"][3]["counts"]["disputed"] = 1; }},
      {"runs[3].counts", [](Json& json) { json["runs"][3]["counts"].erase("disputed"); }},
      {"runs[3].verdict is not \"differ\"", [](Json& json) { json["runs"][3]["verdict"] = "agree"; }},
      {"runs[3].failures[0].outcome is none of",
       [](Json& json) { json["runs"][3]["failures"][0]["outcome"] = "contested"; }},
  };
  for (const Case& one : cases) {
    INFO(one.said);
    Json bad = good;
    one.damage(bad);
    CHECK_THAT(refusal_of(bad.dump()), contains_text(one.said));
  }
  for (const char* key : {"routine", "address", "first_run", "run", "depending", "table"}) {
    INFO(key);
    Json less = good;
    entry(less).erase(key);
    CHECK_THAT(refusal_of(less.dump()), contains_text(std::string("environments[0].") + key + " is missing"));
  }
  for (const char* key : {"fpcw", "mxcsr", "name", "group", "agreed", "differed", "no_result", "changed"}) {
    INFO(key);
    Json less = good;
    row(less, 1).erase(key);
    CHECK_THAT(refusal_of(less.dump()), contains_text(std::string("environments[0].table[1].") + key + " is missing"));
  }
}

TEST_CASE("every count must be one: neither below 0, nor a fraction, nor above all bounds", "[report_reader]") {
  const Json good = Json::parse(to_json(full_report()));
  std::size_t tried = 0;
  const std::function<void(const Json::json_pointer&, const std::string&)> walk = [&](const Json::json_pointer& at,
                                                                                      const std::string& path) {
    const Json& place = good.at(at);
    if (place.is_array()) {
      for (std::size_t i = 0; i < place.size(); ++i) walk(at / i, path + "[" + std::to_string(i) + "]");
    } else if (place.is_object()) {
      for (const auto& [key, member] : place.items()) walk(at / key, path + (path.empty() ? "" : ".") + key);
    } else if (place.is_number()) {
      ++tried;
      for (const char* const number : {"-1", "-0.5", "0.5", "3.0", "1e3", "18446744073709551616", "1e300"}) {
        INFO(path << " = " << number);
        Json bad = good;
        bad[at] = "@";
        std::string text = bad.dump();
        text.replace(text.find("\"@\""), 3, number);
        CHECK(refusal_of(text) == "some.json: " + path + " is not a count");
      }
    }
  };
  walk(Json::json_pointer(), "");
  CHECK(tried > 40);
}

TEST_CASE("what is not a JSON document is refused", "[report_reader]") {
  const std::string text = to_json(full_report());
  for (std::size_t size = 0; size + 1 < text.size(); size += 7) {
    INFO(size);
    REQUIRE(refusal_of(text.substr(0, size)) != "accepted");
  }
  CHECK_THAT(refusal_of(text + "{}"), contains_text("not JSON, at byte"));
  CHECK_THAT(refusal_of("{\"schema\": \"bitwitness-report/1\", \"schema\": \"bitwitness-report/1\"}"),
             contains_text("some.json: schema is there twice"));
  std::string twice = text;
  twice.insert(twice.find("\"faulted\": 2"), "\"faulted\": 2, ");
  CHECK_THAT(refusal_of(twice), contains_text("some.json: runs[0].counts.faulted is there twice"));
  CHECK_THAT(refusal_of("{\"a\": [0, {\"b\": " + std::string(100'000, '[')), contains_text("a[1].b[0][0]"));
  CHECK_THAT(refusal_of("{\"a\": 1e999}"), contains_text("beyond all bounds"));
  CHECK_THAT(refusal_of("[\"\xff\"]"), contains_text("not JSON, at byte"));
  CHECK_THAT(refusal_of("{\"" + std::string(100'000, 'k') + "\": 1, \"schema\": \"bitwitness-report/1\"}"),
             contains_text("kkk… is not known"));
  std::string many = "{\"a\": [";
  for (std::size_t i = 0; i <= max_json_values; ++i) many += "0,";
  CHECK_THAT(refusal_of(many + "0]}"), contains_text("holds more than 8388608 values"));
  CHECK_THROWS_WITH(read_report("/nonexistent/report.json"), contains_text("/nonexistent/report.json"));
}

TEST_CASE("a report with one changed byte is refused or means what it says", "[report_reader]") {
  const std::string text = to_json(full_report());
  std::size_t accepted = 0;
  for (std::size_t at = 0; at < text.size(); at += 3) {
    std::string other = text;
    other[at] = static_cast<char>(other[at] ^ 1);
    if (refusal_of(other) != "accepted") continue;
    ++accepted;  // a letter in a free text, a digit of a digest
    const std::string again = to_json(parse_report(other, "some.json"));
    REQUIRE(to_json(parse_report(again, "some.json")) == again);
  }
  CHECK(accepted > 0);
  CHECK(accepted < text.size() / 3);
}
