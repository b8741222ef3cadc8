#include "decoders/animation_writer.hpp"
#include "decoders/track_kinds.hpp"
#include "tests/animation_samples.hpp"
#include "tests/catch.hpp"
#include "tests/fixtures/corpus/corpus.hpp"
#include "tests/program.hpp"

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// `census` and `corpus:` on a small made corpus, whose contents its maker has counted.

namespace {

namespace fs = std::filesystem;
using namespace bitwitness::tests;
using nlohmann::json;

constexpr std::size_t clips = 60;

/// A corpus and what its maker says of it.
struct Corpus {
  Folder folder;
  json manifest;

  Corpus() {
    std::ostringstream text;
    bitwitness::corpus::write_json(text, bitwitness::corpus::make_corpus(folder.path / "corpus", {.clips = clips}));
    manifest = json::parse(text.str());
  }
  [[nodiscard]] std::string path(const std::string& name = "") const {
    return (folder.path / "corpus" / name).string();
  }
};

const Corpus& corpus() {
  static const Corpus made;
  return made;
}

Words objects() {
  return {corpus().path("sws"), corpus().path("rr"), corpus().path("mab")};
}

json census_of(const Words& arguments, int status = 0) {
  const Result result = run(corpus().folder, Words{"census", "--json", "-"} + arguments);
  INFO(result.err);
  CHECK(result.status == status);
  return json::parse(result.out);
}

void check_counts(const json& found, const json& expected) {
  for (const char* key : {"files", "bytes", "clips", "distinct_clips", "tracks", "keys", "anim_sets", "anim_pairs"}) {
    INFO(key);
    CHECK(found[key] == expected[key]);
  }
  CHECK(found["kinds"] == expected["kinds"]);
  CHECK(found["distinct_by_kind"] == expected["distinct_by_kind"]);
  CHECK(found["refused"] == 0);
  CHECK(found["refusals"].empty());
  CHECK(found["unreachable"].empty());
}

Bytes bytes_of(const fs::path& path) {
  const std::string text = contents(path);
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

void write_bytes(const fs::path& path, std::span<const std::byte> bytes) {
  write(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::set<std::string> lines_of(const std::string& text) {
  std::set<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with('#')) lines.insert(line);
  }
  return lines;
}

const Words verify_one = {"verify", "--routine", "packed_quat48", "--json", "-"};

}  // namespace

TEST_CASE("census counts what the writer put in", "[census]") {
  const json found = census_of(objects());
  check_counts(found, corpus().manifest);
  CHECK(found["schema"] == "bitwitness-census/1");
  CHECK(found["distinct_clips"] == clips);
  CHECK(found["clips"] > found["distinct_clips"]);
  std::set<std::pair<std::string, int>> kinds;
  for (const json& kind : found["kinds"]) kinds.emplace(kind["game"], kind["kind"]);
  CHECK(kinds.size() == bitwitness::decoders::track_kinds().size());
  REQUIRE(found["distinct_by_kind"].size() == kinds.size());
  std::uint64_t by_form = 0;
  std::uint64_t by_kind = 0;
  for (const json& kind : found["kinds"]) by_form += kind["distinct"].get<std::uint64_t>();
  for (const json& kind : found["distinct_by_kind"]) by_kind += kind["distinct"].get<std::uint64_t>();
  CHECK(by_kind < by_form);  // forms share values
}

TEST_CASE("the text of a census has a kind's distinct values of all forms on the kind's first row", "[census]") {
  const Result result = run(corpus().folder, Words{"census"} + objects());
  REQUIRE(result.status == 0);
  for (const json& kind : corpus().manifest["distinct_by_kind"]) {
    const std::regex row(R"(  )" + kind["game"].get<std::string>() + " +" + std::to_string(kind["kind"].get<int>()) +
                         R"(  \w+ +\d+ +\d+ +\d+ +)" + std::to_string(kind["distinct"].get<std::uint64_t>()) +
                         R"(  \w+\n)");
    const auto begin = std::sregex_iterator(result.out.begin(), result.out.end(), row);
    INFO(kind.dump());
    CHECK(std::distance(begin, std::sregex_iterator()) == 1);
  }
}

TEST_CASE("files that are made say so, wherever they are counted or run on", "[census]") {
  const std::string warning = "MADE from a seed, not a game's files";
  const Folder folder;
  CHECK(census_of(objects())["made"] == true);
  const Result text = run(folder, {"census", corpus().path()});
  CHECK(text.out.substr(0, text.out.find('\n')).ends_with(" pairs  " + warning));
  const Result verified =
      run(folder, {"verify", "--routine", "packed_quat48", "--values", "corpus:" + corpus().path("sws")});
  CHECK(verified.status == 0);
  CHECK(verified.out.find("note: corpus: " + warning + "\n") != std::string::npos);
  const Result values = run(folder, {"census", "--values-out", "-", "--kind", "mab:0", corpus().path("mab")});
  CHECK(values.status == 0);
  CHECK(values.out.find(" distinct values of kind mab:0\n# " + warning + "\n") != std::string::npos);

  fs::create_directories(folder.path / "in");
  fs::copy_file(corpus().path("sws/0000.anim"), folder.path / "in/0");
  CHECK(census_of({folder.file("in")})["made"] == false);
  CHECK(run(folder, {"census", folder.file("in")}).out.find(warning) == std::string::npos);
  // Known by what it says; a file that goes on for long is none.
  write(folder.path / "in/any name", "bitwitness made corpus: by hand\n");
  const json made = census_of({folder.file("in")});
  CHECK(made["made"] == true);
  CHECK(made["files"] == 1);
  write(folder.path / "in/any name", "bitwitness made corpus: " + std::string(4096 - 24, '.'));
  const json large = census_of({folder.file("in")}, 1);
  CHECK(large["made"] == false);
  CHECK(large["refused"] == 1);
}

TEST_CASE("a scan that finds nothing refuses the file as without it", "[census]") {
  const Folder folder;
  fs::create_directories(folder.path / "in");
  const Bytes good = bytes_of(corpus().path("mab/0000.mab"));
  write_bytes(folder.path / "in/short.mab", std::span(good).first(good.size() / 2));
  write(folder.path / "in/text", "not an animation\n");
  const json exact = census_of({folder.file("in")}, 1);
  const json scanned = census_of({folder.file("in"), "--scan"}, 1);
  CHECK(exact["refused"] == 2);
  CHECK(scanned["refusals"] == exact["refusals"]);
}

TEST_CASE("an interrupted census reports what it read and exits 1", "[census]") {
  const Folder folder;
  fs::create_directories(folder.path / "in");
  const std::string clip = corpus().path("sws/0000.anim");
  for (int i = 0; i < 4000; ++i) fs::create_hard_link(clip, folder.path / "in" / std::to_string(i));
  const std::string out = folder.file("census.json");
  const std::string values = folder.file("values");
  Words words{BITWITNESS_PROGRAM, "census", folder.file("in"), "--jobs", "1",      "--evidence",
              "--json",           out,      "--values-out",    values,   "--kind", "sws:4"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  // It returns when the program has replaced this one, with the signal handlers of the test.
  pid_t child = 0;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  REQUIRE(posix_spawn(&child, BITWITNESS_PROGRAM, &actions, nullptr, arguments.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  // It listens once SIGINT, bit 1, is among the signals that it catches.
  const auto listens = [child] {
    std::ifstream status("/proc/" + std::to_string(child) + "/status");
    for (std::string word; status >> word;) {
      if (word == "SigCgt:" && status >> word) return (std::stoull(word, nullptr, 16) & 2) != 0;
    }
    return false;
  };
  bool listened = false;
  for (int i = 0; i < 2000 && !listened; ++i) {
    listened = listens();
    usleep(1000);
  }
  REQUIRE(kill(child, SIGINT) == 0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(listened);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
  const json found = json::parse(contents(out));
  CHECK(found["not_read"] > 0);
  CHECK(found["files"].get<int>() + found["not_read"].get<int>() == 4000);
  CHECK(found["clips"] == found["files"]);
  const std::string text = contents(values);
  CHECK(text.substr(0, text.find('\n'))
            .ends_with(" distinct values of kind sws:4; PARTIAL: " + std::to_string(found["not_read"].get<int>()) +
                       " not read"));
}

TEST_CASE("a census does not depend on threads, memory or the order of paths", "[census]") {
  const json one = census_of(objects() + Words{"--evidence", "--jobs", "1"});
  Words turned = objects();
  std::reverse(turned.begin(), turned.end());
  CHECK(census_of(turned + Words{"--evidence", "--jobs", "3", "--values-memory", "16"}) == one);
}

TEST_CASE("blobs are read with --scan and refused without", "[census]") {
  check_counts(census_of({"--scan", corpus().path("blobs")}), corpus().manifest["blobs"]);
  const json refused = census_of({corpus().path("blobs")}, 1);
  CHECK(refused["refused"] == refused["files"]);
  CHECK(refused["clips"] == 0);
}

TEST_CASE("a file of another format than named is refused", "[census]") {
  const json found = census_of({"--format", "rr", corpus().path("mab")}, 1);
  CHECK(found["refused"] == found["files"]);
  const json sets = census_of({"--format", "sws", corpus().path("sws")});
  CHECK(sets["anim_sets"] == corpus().manifest["anim_sets"]);
}

TEST_CASE("a corrupt clip is refused by path, offset and rule, and the others are counted", "[census]") {
  const Folder folder;
  fs::create_directories(folder.path / "in");
  Bytes good = bytes_of(corpus().path("sws/0000.anim"));
  write_bytes(folder.path / "in/good", good);
  write_bytes(folder.path / "in/short", std::span(good).first(good.size() - 1));
  write(folder.path / "in/text", "not an animation\n");
  write(folder.path / "in/none", "");
  const json found = census_of({folder.file("in")}, 1);
  CHECK(found["clips"] == 1);
  CHECK(found["refused"] == 3);
  REQUIRE(found["refusals"].size() == 3);
  CHECK(found["refusals"][0]["path"] == folder.file("in/none"));
  CHECK(found["refusals"][0]["rule"] == "format");
  CHECK(found["refusals"][1]["path"] == folder.file("in/short"));
  CHECK(found["refusals"][1]["rule"] == "truncated");
  CHECK(found["refusals"][1]["offset"] > 0);
  CHECK(found["refusals"][2]["rule"] == "format");
  const Result text = run(folder, {"census", folder.file("in"), "--limit", "1"});
  CHECK(text.status == 1);
  CHECK(text.out.find("refused: " + folder.file("in/none") + " at 0x0: format: ") != std::string::npos);
  CHECK(text.out.find("refused: 2 more\n") != std::string::npos);
  CHECK(last_line(text.out) == "3 refused, 0 not reached, 0 not read");
}

TEST_CASE("paths that cannot be read exit 2", "[census]") {
  const Folder folder;
  check_refused(run(folder, {"census", folder.file("missing")}), folder.file("missing") + ": cannot read");
  check_refused(run(folder, {"census"}), "paths");
  fs::create_directories(folder.path / "in");
  fs::create_symlink(folder.file("nowhere"), folder.path / "in/broken");
  fs::copy_file(corpus().path("sws/0000.anim"), folder.path / "in/good");
  const Result result = run(folder, {"census", folder.file("in")});
  CHECK(result.status == 2);
  CHECK(result.out.find("not reached: " + folder.file("in/broken") + ": No such file") != std::string::npos);
  CHECK(result.out.find("1 clips (1 distinct)") != std::string::npos);
  CHECK(result.err.starts_with("bitwitness: 1 paths could not be read; the first: "));
  fs::create_directories(folder.path / "empty");
  CHECK(run(folder, {"census", folder.file("empty")}).status == 3);
}

TEST_CASE("options of census that make no sense exit 2", "[census]") {
  const Folder folder;
  const std::string in = corpus().path("mab");
  check_refused(run(folder, {"census", in, "--format", "elf"}), "--format elf");
  check_refused(run(folder, {"census", in, "--kind", "4"}), "--values-out");
  check_refused(run(folder, {"census", in, "--values-out", folder.file("v"), "--kind", "8"}), "sws:8");
  check_refused(run(folder, {"census", in, "--values-out", folder.file("v"), "--kind", "sws:12"}), "sws:12");
  check_refused(run(folder, {"census", in, "--values-out", folder.file("v"), "--kind", "foo:4"}), "--kind foo:4: ");
  check_refused(run(folder, {"census", in, "--values-out", folder.file("v"), "--kind", "auto:4"}), "--kind auto:4: ");
  CHECK_FALSE(fs::exists(folder.path / "v"));
  check_refused(run(folder, {"census", in, "--values-memory", "1"}), "--values-memory 1");
  check_refused(run(folder, {"census", in, "--jobs", "0"}), "--jobs 0");
  const std::string clip = (fs::path(in) / "0000.mab").string();
  REQUIRE(fs::exists(clip));
  check_refused(run(folder, {"census", in, "--json", clip}), "would overwrite");
  check_refused(run(folder, {"census", in, "--json", "-", "--values-out", "-", "--kind", "mab:0"}), "both go to -");
}

TEST_CASE("--values-out writes the distinct values of a kind, as file: reads them", "[census]") {
  const Folder folder;
  const std::string out = folder.file("values.txt");
  const Result result = run(folder, Words{"census", "--values-out", out, "--kind", "4"} + objects());
  CHECK(result.status == 0);
  const std::set<std::string> values = lines_of(contents(out));
  std::uint64_t at_least = 0;
  for (const json& kind : corpus().manifest["kinds"]) {
    if (kind["kind"] == 4) at_least = std::max(at_least, kind["distinct"].get<std::uint64_t>());
  }
  CHECK(values.size() >= at_least);
  CHECK(contents(out).starts_with("# " + std::to_string(values.size()) + " distinct values of kind 4\n"));

  const Result from_file = run(folder, verify_one + Words{"--values", "file:" + out});
  CHECK(from_file.status == 0);
  const Result from_corpus = run(folder, verify_one + Words{"--values", "corpus:" + corpus().path()});
  CHECK(from_corpus.status == 0);
  const json one = json::parse(from_file.out)["runs"][0];
  const json other = json::parse(from_corpus.out)["runs"][0];
  CHECK(one["counts"]["agreed"] == values.size());
  CHECK(one["counts"] == other["counts"]);
  CHECK(one["digest"] == other["digest"]);
}

TEST_CASE("values of a census that is not whole say so, and none of a kind exits 3", "[census]") {
  const Folder folder;
  fs::create_directories(folder.path / "in");
  fs::copy_file(corpus().path("sws/0000.anim"), folder.path / "in/good");
  const auto values_of = [&](const std::string& kind) {
    return run(folder, {"census", folder.file("in"), "--values-out", folder.file("values"), "--kind", kind});
  };
  CHECK(values_of("sws:4").status == 0);
  CHECK(contents(folder.path / "values").find("PARTIAL") == std::string::npos);
  const Result none = values_of("mab:0");
  CHECK(none.status == 3);
  CHECK(none.err == "bitwitness: --kind mab:0: not one value of it in 1 files\n");
  CHECK(contents(folder.path / "values") == "# 0 distinct values of kind mab:0\n");
  write(folder.path / "in/bad", "none");
  fs::create_symlink(folder.file("nowhere"), folder.path / "in/broken");
  CHECK(values_of("sws:4").status == 2);
  const std::string text = contents(folder.path / "values");
  CHECK(text.substr(0, text.find('\n')).ends_with(" distinct values of kind sws:4; PARTIAL: 1 refused, 1 not reached"));
}

TEST_CASE("verify takes a corpus together with other sources, in parts, and says what it read", "[census]") {
  const Folder folder;
  const Words sources = {"--values", "corpus:" + corpus().path("sws"), "special"};
  const auto agreed = [&](const Words& more) {
    const Result result = run(folder, verify_one + sources + more);
    CHECK(result.status == 0);
    return json::parse(result.out)["runs"][0]["counts"]["agreed"].get<std::uint64_t>();
  };
  const std::uint64_t whole = agreed({});
  CHECK(agreed({"--values-memory", "16", "--jobs", "3"}) == whole);
  CHECK(agreed({"--shard", "1/3"}) + agreed({"--shard", "2/3"}) + agreed({"--shard", "3/3"}) == whole);

  fs::create_directories(folder.path / "in");
  fs::copy_file(corpus().path("sws/0000.anim"), folder.path / "in/good");
  write(folder.path / "in/bad", "none");
  fs::create_symlink("nowhere", folder.path / "in/broken");
  const Result result = run(folder, {"verify", "--values", "corpus:" + folder.file("in")});
  CHECK(result.status == 0);
  CHECK(result.out.find("note: corpus: files 2, clips 1, distinct clips 1, keys of this kind ") != std::string::npos);
  CHECK(result.out.find("note: corpus: refusals 1, the first: bad at 0x0: format: ") != std::string::npos);
  CHECK(result.out.find("note: corpus: not reached 1, the first: broken\n") != std::string::npos);
}

TEST_CASE("two consecutive keys make a value of the two-key form", "[census]") {
  const Folder folder;
  const Result result = run(folder, {"verify", "--routine", "packed_quat48_pair", "--json", "-", "--values",
                                     "corpus:" + corpus().path("rr/0000.anim")});
  CHECK(result.status == 0);
  std::set<std::string> pairs;
  const Bytes bytes = bytes_of(corpus().path("rr/0000.anim"));
  const auto clip = bitwitness::decoders::read_rr_animation(bytes);
  REQUIRE(clip);
  for (const auto& track : clip->tracks) {
    if (track.kind != 4) continue;
    for (std::size_t at = 0; at + 12 <= track.values.size(); at += 6) {
      const auto pair = track.values.subspan(at, 12);
      pairs.emplace(reinterpret_cast<const char*>(pair.data()), pair.size());
    }
  }
  REQUIRE(pairs.size() > 1);
  CHECK(json::parse(result.out)["runs"][0]["counts"]["agreed"] == pairs.size());
}

TEST_CASE("a corpus that holds nothing for a routine is told", "[census]") {
  const Folder folder;
  const Result none = run(folder, verify_one + Words{"--values", "corpus:" + corpus().path("mab")});
  check_refused(none, "corpus:" + corpus().path("mab") + ": not one value for packed_quat48: files ");
  CHECK(none.err.find(", refusals 0\n") != std::string::npos);
  // Other sources do not hide it.
  check_refused(run(folder, verify_one + Words{"--values", "corpus:" + corpus().path("mab"), "special"}),
                "not one value for packed_quat48");
  fs::create_directories(folder.path / "bad");
  write(folder.path / "bad/0", "none");
  const Result bad = run(folder, verify_one + Words{"--values", "corpus:" + folder.file("bad"), "special"});
  check_refused(bad, "files 1, clips 0, refusals 1, the first: 0 at 0x0: format: ");
  check_refused(run(folder, {"verify", "--values", "corpus:" + folder.file("missing")}), "missing: cannot read");
  check_refused(run(folder, {"verify", "--values", "corpus:"}), "corpus: needs a path");
  fs::create_directories(folder.path / "empty");
  check_refused(run(folder, {"verify", "--values", "corpus:" + folder.file("empty")}), "there is no file in it");
}

TEST_CASE("a scanned corpus gives what its objects give", "[census]") {
  const Folder folder;
  const auto digest = [&](const Words& more) {
    const Result result = run(folder, verify_one + more);
    CHECK(result.status == 0);
    return json::parse(result.out)["runs"][0]["digest"];
  };
  check_refused(run(folder, verify_one + Words{"--values", "corpus:" + corpus().path("blobs")}),
                "refusals 3, the first: ");
  write(folder.path / "blob", "some bytes before" + contents(corpus().path("sws/0000.anim")) + "and behind");
  CHECK(digest({"--values", "corpus:" + folder.file("blob"), "--scan"}) ==
        digest({"--values", "corpus:" + corpus().path("sws/0000.anim")}));
}
