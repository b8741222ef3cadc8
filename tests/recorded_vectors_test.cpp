// The decoders agree with every recording in vectors/recorded/, and scripts/record.sh records the same again.

#include "decoders/registry.hpp"
#include "harness/cli/decoder_subject.hpp"
#include "harness/replaying.hpp"
#include "harness/vectors/vector_file.hpp"
#include "tests/catch.hpp"
#include "tests/program.hpp"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

namespace fs = std::filesystem;
const fs::path recorded = BITWITNESS_SOURCE_DIR "/vectors/recorded";

std::vector<fs::path> vector_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(recorded)) {
    if (entry.path().extension() != ".txt") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

TEST_CASE("every recording agrees with the decoder it was recorded for") {
  std::set<std::string> decoders;
  std::uintmax_t bytes = 0;
  for (const fs::path& path : vector_files()) {
    INFO(path);
    const VectorFile file = VectorFile::open(path.string());
    const VectorHeader& header = file.header();
    const RunReport report = replay(file, cli::subject_of(cli::require_decoder(header.decoder)), {.jobs = 2}).report;
    CHECK(report.verdict() == Verdict::agree);
    CHECK(report.counts.agreed == header.count);
    CHECK(report.digest == file.digest());
    CHECK(header.stand_in == header.image_name.starts_with("stand_in_"));
    CHECK(header.witness == "unicorn");
    CHECK(header.image_sha256.size() == 64);
    CHECK(header.routine_sha256.size() == 64);
    decoders.insert(header.image_name + " " + header.decoder);
    bytes += fs::file_size(path);
  }
  CHECK(decoders == std::set<std::string>{"libgcc_s_dw2-1.dll half", "stand_in_sse2.exe packed_quat48",
                                          "stand_in_sse2.exe packed_quat48_pair", "stand_in_x87.exe packed_quat48",
                                          "stand_in_x87.exe packed_quat48_pair"});
  CHECK(bytes < 600'000);
}

TEST_CASE("the script records the same again") {
  if (!fs::exists(BITWITNESS_MINGW32_DLL_DIR "/libgcc_s_dw2-1.dll")) {
    skip("no libgcc_s_dw2-1.dll");
    return;
  }
  const Folder folder;
  const fs::path out = folder.path / "out";
  const tests::Result result =
      run_shell(folder, "BITWITNESS_MINGW32_DLL_DIR=" + quoted(BITWITNESS_MINGW32_DLL_DIR) + " " +
                            quoted(BITWITNESS_SOURCE_DIR "/scripts/record.sh") + " " + quoted(BITWITNESS_PROGRAM) +
                            " " + quoted(BITWITNESS_STAND_INS_DIR) + " " + quoted(out.string()));
  INFO(result.err);
  REQUIRE(result.status == 0);
  for (const fs::path& path : vector_files()) {
    INFO(path);
    const VectorFile before = VectorFile::open(path.string());
    const VectorFile again = VectorFile::open((out / path.filename()).string());
    // With other versions of what makes the words or the file, the content must still be the same.
    CHECK(again.digest() == before.digest());
    const VectorHeader& a = before.header();
    const VectorHeader& b = again.header();
    CHECK(a.routine_sha256 == b.routine_sha256);
    CHECK(a.signature == b.signature);
    const bool same_parts = a.tool_version == b.tool_version && a.engine.unicorn == b.engine.unicorn &&
                            a.engine.capstone == b.engine.capstone && a.engine.lief == b.engine.lief &&
                            a.image_sha256 == b.image_sha256;
    if (same_parts) CHECK(contents(path) == contents(out / path.filename()));
  }
}
