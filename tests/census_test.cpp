#include "decoders/animation_writer.hpp"
#include "decoders/track_kinds.hpp"
#include "tests/animation_samples.hpp"
#include "tests/catch.hpp"
#include "tests/fixtures/corpus/corpus.hpp"
#include "tests/program.hpp"

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>
#include <sys/stat.h>

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
}

TEST_CASE("a census does not depend on threads, memory or the order of paths", "[census]") {
  const json one = census_of(objects() + Words{"--evidence", "--jobs", "1"});
  Words turned = objects();
  std::reverse(turned.begin(), turned.end());
  CHECK(census_of(turned + Words{"--evidence", "--jobs", "3", "--memory", "16"}) == one);
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
  check_refused(run(folder, {"census", in, "--memory", "1"}), "--memory 1");
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

TEST_CASE("verify takes a corpus together with other sources, in parts, and says what it read", "[census]") {
  const Folder folder;
  const Words sources = {"--values", "corpus:" + corpus().path("sws"), "special"};
  const auto agreed = [&](const Words& more) {
    const Result result = run(folder, verify_one + sources + more);
    CHECK(result.status == 0);
    return json::parse(result.out)["runs"][0]["counts"]["agreed"].get<std::uint64_t>();
  };
  const std::uint64_t whole = agreed({});
  CHECK(agreed({"--memory", "16", "--jobs", "3"}) == whole);
  CHECK(agreed({"--shard", "1/3"}) + agreed({"--shard", "2/3"}) + agreed({"--shard", "3/3"}) == whole);

  fs::create_directories(folder.path / "in");
  fs::copy_file(corpus().path("sws/0000.anim"), folder.path / "in/good");
  write(folder.path / "in/bad", "none");
  const Result result = run(folder, {"verify", "--values", "corpus:" + folder.file("in")});
  CHECK(result.status == 0);
  CHECK(result.out.find("note: corpus: files 2, clips 1, distinct clips 1, keys of this kind ") != std::string::npos);
  CHECK(result.out.find("note: corpus: refusals 1, the first: bad at 0x0: format: ") != std::string::npos);
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
  CHECK(none.status == 3);
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
  CHECK(run(folder, verify_one + Words{"--values", "corpus:" + corpus().path("blobs")}).status == 3);
  write(folder.path / "blob", "some bytes before" + contents(corpus().path("sws/0000.anim")) + "and behind");
  CHECK(digest({"--values", "corpus:" + folder.file("blob"), "--scan"}) ==
        digest({"--values", "corpus:" + corpus().path("sws/0000.anim")}));
}
