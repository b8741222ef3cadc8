#include "harness/cli/census.hpp"
#include "harness/cli/census_report.hpp"
#include "tests/catch.hpp"
#include "tests/fixtures/corpus/corpus.hpp"

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

// A census of a corpus as large as a game's.

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

}  // namespace

TEST_CASE("a census of the corpus by default is its manifest, and as large as the seed's", "[census]") {
  const fs::path folder = fs::temp_directory_path() / ("bitwitness-size-" + std::to_string(getpid()));
  fs::remove_all(folder);
  std::ostringstream text;
  bitwitness::corpus::write_json(text, bitwitness::corpus::make_corpus(folder, {}));
  const json manifest = json::parse(text.str());

  std::vector<std::string> paths;
  for (const char* const name : {"sws", "rr", "mab"}) paths.push_back((folder / name).string());
  const std::vector<std::string> files = bitwitness::list_files(paths).files;
  bitwitness::cli::CensusOptions options;
  options.corpus.jobs = 2;
  // So little that many values go to files: 891,984 rows of eight bytes alone are 7 MB.
  options.memory = std::uint64_t{4} << 20;
  const json found = json::parse(bitwitness::cli::to_json(bitwitness::cli::take_census(files, options), files));
  fs::remove_all(folder);

  for (const char* const key : {"files", "bytes", "clips", "distinct_clips", "tracks", "keys", "anim_sets",
                                "anim_pairs", "kinds", "distinct_by_kind"}) {
    INFO(key);
    const bool same = found[key] == manifest[key];
    CHECK(same);
  }
  CHECK(found["refused"] == 0);
  CHECK(found["made"] == true);
  CHECK(found["distinct_clips"] == 2708);
  for (const json& kind : found["distinct_by_kind"]) {
    if (kind["game"] == "sws" && kind["kind"] == 4) CHECK(kind["distinct"] >= 891'984);
  }
}
