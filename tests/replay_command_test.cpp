// record and replay as a user runs them.

#include "tests/catch.hpp"
#include "tests/program.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

// BITWITNESS_PROGRAM and BITWITNESS_STAND_INS_DIR come from CMake.

namespace {

namespace fs = std::filesystem;
using namespace bitwitness::tests;
using Json = nlohmann::json;

const std::string x87 = BITWITNESS_STAND_INS_DIR "/stand_in_x87.exe";
const std::string sse2 = BITWITNESS_STAND_INS_DIR "/stand_in_sse2.exe";
const Words few_values = {"--values", "special", "random:9000:7"};
const std::string lane_0 = "341278564523";

Words record_words(const std::string& image, const std::string& out, const Words& more) {
  return Words{"record", "--image", image, "--routine", "packed_quat48", "--out", out} + more;
}

/// What is in a folder besides what the runs printed.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name != "stdout" && name != "stderr") names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

/// A recorded file of a few values.
std::string recorded(const Folder& folder, const Words& more = few_values, const std::string& image = x87) {
  const std::string path = folder.file("vectors.bwv");
  const Result result = run(folder, record_words(image, path, more));
  INFO(result.err);
  REQUIRE(result.status == 0);
  return path;
}

}  // namespace

TEST_CASE("what is recorded replays without the executable, and says where it comes from", "[replay]") {
  const Folder folder;
  const std::string file = recorded(folder);
  const Result result = run(folder, {"replay", file, "--json", folder.file("r.json"), "--junit", folder.file("r.xml")});
  CHECK(result.status == 0);
  CHECK(result.err.empty());
  CHECK(result.out.find("STAND-IN executable") != std::string::npos);
  CHECK(result.out.find("replayed from vectors.bwv (sha256 ") != std::string::npos);
  CHECK(result.out.find("agree: ") != std::string::npos);
  const Json report = Json::parse(contents(folder.file("r.json")));
  CHECK(report["schema"] == "bitwitness-report/1");
  CHECK(report["image"]["name"] == "stand_in_x87.exe");
  CHECK(report["image"]["stand_in"] == true);
  const Json& replayed = report["runs"][0];
  CHECK(replayed["witness"] == "unicorn");
  CHECK(replayed["decoder"] == "packed_quat48");
  CHECK(replayed["counts"]["agreed"] == replayed["values"]["distinct"]);
  CHECK(contents(folder.file("r.xml")).find("<testcase") != std::string::npos);

  const Result verified =
      run(folder, Words{"verify", "--image", x87, "--routine", "packed_quat48", "--json", "-"} + few_values);
  const Json expected = Json::parse(verified.out)["runs"][0];
  for (const char* key : {"digest", "routine", "counts", "environment", "values", "words", "isolation"}) {
    INFO(key);
    CHECK(replayed[key] == expected[key]);
  }
}

TEST_CASE("a replay of several files compares with itself", "[replay]") {
  const Folder folder;
  Words files;
  for (const char* name : {"a.bwv", "b.bwv"}) {
    files.push_back(folder.file(name));
    REQUIRE(run(folder, record_words(x87, files.back(), {"--values", name[0] == 'a' ? "random:100:1" : "random:100:2"}))
                .status == 0);
  }
  const std::string report = folder.file("r.json");
  REQUIRE(run(folder, Words{"replay", "--json", report} + files).status == 0);
  const Json json = Json::parse(contents(report));
  CHECK(json["runs"][1]["vectors"]["name"] == "b.bwv");
  CHECK(json["runs"][1]["vectors"]["sha256"].get<std::string>().size() == 64);
  const Result same = run(folder, {"compare", report, report});
  CHECK(same.err.empty());
  CHECK(same.status == 0);
}

TEST_CASE("a path of known differences must name a file", "[replay]") {
  const Folder folder;
  const std::string file = recorded(folder);
  write(folder.path / "empty.toml", "");
  CHECK(run(folder, {"replay", file, "--known", folder.file("empty.toml")}).status == 0);
  for (const std::string& path : {std::string(), std::string(" "), folder.file("nosuch.toml")}) {
    const Result result = run(folder, {"replay", file, "--known", path});
    INFO(path << ": " << result.err);
    CHECK(result.status == 2);
    CHECK(std::ranges::count(result.err, '\n') == 1);
  }
}

TEST_CASE("two recordings are the same bytes on any number of threads", "[replay]") {
  const Folder folder;
  const std::string one = contents(recorded(folder, few_values + Words{"--jobs", "1"}));
  CHECK(contents(recorded(folder, few_values + Words{"--jobs", "2"})) == one);
  CHECK(contents(recorded(folder, few_values + Words{"--jobs", "3"})) == one);
  CHECK(names_in(folder.path) == std::vector<std::string>{"vectors.bwv"});
}

TEST_CASE("a decoder that differs is told, with a command that repeats the value", "[replay]") {
  const Folder folder;
  const std::string file = recorded(folder);
  const Result result = run(folder, {"replay", file, "--decoder", "dunia_quat48", "--limit", "2"});
  CHECK(result.status == 1);
  CHECK(result.out.find("differ: ") != std::string::npos);
  const std::size_t at = result.out.find("repeat: bitwitness ");
  REQUIRE(at != std::string::npos);
  const std::string command = result.out.substr(at + 19, result.out.find('\n', at) - at - 19);
  const Result repeated = run_shell(folder, quoted(BITWITNESS_PROGRAM) + " " + command);
  CHECK(repeated.status == 1);
  CHECK(repeated.out.find("run 1: agreed 0, differed 1") != std::string::npos);
}

TEST_CASE("digests are smaller and name the group that differs", "[replay]") {
  const Folder folder;
  const auto whole = fs::file_size(recorded(folder));
  const std::string file = recorded(folder, few_values + Words{"--digests-only"});
  CHECK(fs::file_size(file) < whole);
  CHECK(run(folder, {"replay", file}).status == 0);
  const Result result = run(folder, {"replay", file, "--decoder", "dunia_quat48"});
  CHECK(result.status == 1);
  CHECK(result.out.find("differs on at least one of the 32 values") != std::string::npos);
}

TEST_CASE("the text form is told by its content and can carry known differences", "[replay]") {
  const Folder folder;
  const std::string path = folder.file("lanes");
  REQUIRE(run(folder, record_words(x87, path,
                                   {"--values", "hex:" + lane_0, "hex:349278564523", "--text", "--note", "two lanes"}))
              .status == 0);
  const std::string text = contents(path);
  CHECK(text.find("two lanes") != std::string::npos);
  CHECK(run(folder, {"replay", path}).status == 0);

  std::string edited = text;
  const std::size_t word = edited.find("\"3f433af1\"");
  REQUIRE(word != std::string::npos);
  edited[word + 8] = '2';
  write(path, edited);
  const Result differs = run(folder, {"replay", path});
  CHECK(differs.status == 1);

  const std::size_t packed = edited.rfind("packed = ", word);
  const std::string value = edited.substr(packed + 10, 17);
  const std::string known = "\n[[known_difference]]\nvalue = \"" + value + "\"\ndecoder = \"packed_quat48\"\n";
  write(path, edited + known + "reason = \"edited by hand\"\n");
  const Result excused = run(folder, {"replay", path, "--json", folder.file("r.json")});
  CHECK(excused.status == 0);
  CHECK(excused.out.find("edited by hand") != std::string::npos);
  CHECK(Json::parse(contents(folder.file("r.json")))["runs"][0]["counts"]["known"] == 1);
  write(path, edited + known);
  const Result unexplained = run(folder, {"replay", path});
  CHECK(unexplained.status == 1);
  CHECK(unexplained.out.find("lacks a reason") != std::string::npos);
  write(path, text + known + "reason = \"it was so\"\n");
  const Result stale = run(folder, {"replay", path, "--json", folder.file("r.json")});
  CHECK(stale.status == 1);
  CHECK(stale.out.find("agrees now: take it out") != std::string::npos);
  CHECK(Json::parse(contents(folder.file("r.json")))["runs"][0]["broken"].size() == 1);
}

TEST_CASE("several files are one report", "[replay]") {
  const Folder folder;
  const std::string a = folder.file("a.bwv");
  const std::string b = folder.file("b.bwv");
  REQUIRE(run(folder, record_words(x87, a, {"--values", "random:50"})).status == 0);
  REQUIRE(run(folder, record_words(sse2, b, {"--values", "hex:" + lane_0})).status == 0);
  const Result result = run(folder, {"replay", a, b, "--json", folder.file("r.json"), "--junit", folder.file("r.xml")});
  CHECK(result.status == 0);
  const Json report = Json::parse(contents(folder.file("r.json")));
  CHECK(report["image"]["name"] == "images of 2 vector files");
  CHECK(report["image"]["stand_in"] == true);
  REQUIRE(report["runs"].size() == 2);
  CHECK(report["runs"][0]["image"]["name"] == "stand_in_x87.exe");
  CHECK(report["runs"][1]["image"]["name"] == "stand_in_sse2.exe");
  CHECK(contents(folder.file("r.xml")).find("classname=\"stand_in_sse2.exe.packed_quat48\"") != std::string::npos);
  CHECK(run(folder, {"replay", a, b, "--decoder", "packed_quat48", "--decoder", "dunia_quat48"}).status == 1);
}

TEST_CASE("routines and environments go to a folder, one file each", "[replay]") {
  const Folder folder;
  const Words words = {"record", "--image", x87, "--values", "random:20", "--fpcw", "027f", "007f", "--out"};
  const Result refused = run(folder, words + Words{folder.file("all.bwv")});
  CHECK(refused.status == 2);
  CHECK(refused.err.find("--out") != std::string::npos);
  CHECK(names_in(folder.path).empty());
  REQUIRE(run(folder, words + Words{folder.file("all/")}).status == 0);
  CHECK(names_in(folder.path / "all") ==
        std::vector<std::string>{"packed_quat48-007f-1f80.bwv", "packed_quat48-027f-1f80.bwv",
                                 "packed_quat48_pair-007f-1f80.bwv", "packed_quat48_pair-027f-1f80.bwv"});
}

TEST_CASE("values without a result are recorded, counted and fail", "[replay]") {
  const Folder folder;
  const std::string path = folder.file("faults.bwv");
  const Result result = run(folder, record_words(x87, path, {"--values", "random:50", "--budget", "3"}));
  CHECK(result.status == 1);
  CHECK(result.out.find("out of budget 50") != std::string::npos);
  const Result replayed = run(folder, {"replay", path});
  CHECK(replayed.status == 1);
  CHECK(replayed.out.find("out of budget 50") != std::string::npos);
}

TEST_CASE("nothing recorded is nothing checked", "[replay]") {
  const Folder folder;
  const std::string path = folder.file("empty.bwv");
  CHECK(run(folder, record_words(x87, path, {"--values", "hex:" + lane_0, "--shard", "2/2"})).status == 3);
  CHECK(run(folder, {"replay", path}).status == 3);
}

TEST_CASE("an interrupted recording leaves nothing", "[replay]") {
  const Folder folder;
  const std::string path = folder.file("long.bwv");
  for (const char* signal : {"INT", "KILL"}) {
    const Words words = record_words(x87, path, {"--values", "random:5000000"});
    CHECK(run_shell(folder, "timeout -s " + std::string(signal) + " 2 " + command_line(words)).status != 0);
    CHECK(names_in(folder.path).empty());
  }
}

TEST_CASE("damaged files are refused by block", "[replay]") {
  const Folder folder;
  const std::string file = recorded(folder);
  std::string bytes = contents(file);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write(file, bytes);
  const Result result = run(folder, {"replay", file, "--json", folder.file("r.json")});
  check_refused(result, "vectors.bwv: block ");
  CHECK_FALSE(fs::exists(folder.file("r.json")));
}

TEST_CASE("what cannot be recorded or replayed exits 2 with one line", "[replay]") {
  struct Case {
    Words words;
    std::string named;
  };
  const Folder folder;
  const std::string file = recorded(folder, {"--values", "hex:" + lane_0});
  write(folder.file("known.toml"), "nonsense = 1\n");
  write(folder.file("none"), "");
  const std::vector<Case> cases = {
      {{"record", "--image", x87}, "--out"},
      {record_words(x87, folder.file("no/such.bwv"), few_values), "--out"},
      {record_words(x87, x87, few_values), "overwrite"},
      {record_words(x87, folder.file("a"), {"--text", "--digests-only"}), "--"},
      {record_words(x87, folder.file("a"), {"--text"}), "--text"},
      {record_words(x87, folder.file("a"), {"--values", "nosuch"}), "nosuch"},
      {record_words(x87, folder.file("a"), {"--shard", "3/2"}), "3/2"},
      {{"replay"}, "files"},
      {{"replay", "/nonexistent.bwv"}, "/nonexistent.bwv"},
      {{"replay", folder.file("none")}, "none"},
      {{"replay", folder.path.string()}, folder.path.filename().string()},
      {{"replay", file, "--decoder", "nosuch"}, "nosuch"},
      {{"replay", file, "--decoder", "half"}, "half"},
      {{"replay", file, "--known", folder.file("known.toml")}, "known.toml:1"},
      {{"replay", file, "--values", "random:5"}, "random:5"},
      {{"replay", file, "--values", "hex:zz"}, "hex:zz"},
      {{"replay", file, "--values", "hex:000000000000"}, "is not in it"},
      {{"replay", file, "--json", file}, "overwrite"},
      {{"replay", file, "--jobs", "0"}, "--jobs 0"},
  };
  for (const Case& one : cases) {
    check_refused(run(folder, one.words), one.named);
  }
  CHECK_FALSE(fs::exists(folder.file("a")));
}
