#include "tests/catch.hpp"
#include "tests/program.hpp"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

// The self-test as a user sees it: by itself, and in what emulating commands write.

namespace {

namespace fs = std::filesystem;
using namespace bitwitness::tests;

const std::string x87 = (fs::path(BITWITNESS_STAND_INS_DIR) / "stand_in_x87.exe").string();

const Words on_one_value = {"--image", x87, "--routine", "packed_quat48", "--values", "hex:341278564523"};

}  // namespace

TEST_CASE("the self-test tells every quirk of the emulator", "[cli]") {
  const Folder folder;
  const Result result = run(folder, {"--self-test"});
  CHECK(result.err == "");
  const std::string last = last_line(result.out);
  CAPTURE(last);
  CHECK(std::regex_match(last, std::regex("unicorn [0-9.]+: [0-9]+ of [0-9]+ self-test vectors as on hardware; known "
                                          "quirks found [0-9]+, not found [0-9]+; unknown differences [0-9]+")));
  CHECK(result.status == (last.ends_with("unknown differences 0") ? 0 : 1));
  CHECK(result.out.find("x87-add: ") != std::string::npos);
  if (last.starts_with("unicorn 2.0.1: ")) {
    CHECK(result.status == 0);
    CHECK(last.find("not found 0") != std::string::npos);
    CHECK(result.out.find("\nfisttp-m32-overflow: quirk, 0 of 3 as hardware: ") != std::string::npos);
    CHECK(result.out.find("    1 fisttp m32, fpcw 037f, a 401eb2d05e0000000000, b 00000000000000000000: hardware "
                          "00000000000080000000, emulator 0000000000007fffffff\n") != std::string::npos);
    CHECK(result.out.find("hardware an exception, emulator ") != std::string::npos);
    CHECK(result.out.find("hardware 00000014, emulator no result\n") != std::string::npos);
  }
  CHECK(run(folder, {"--self-test"}).out == result.out);
  check_refused(run(folder, {"--self-test", "list"}), "--self-test");
  CHECK(run(folder, {"--help"}).out.find("--self-test") != std::string::npos);
  CHECK(run(folder, {"documents", folder.path.string()}).status == 0);
  CHECK(contents(folder.path / "bitwitness.1").find("self\\-test") != std::string::npos);
  for (const char* name : {"bitwitness.bash", "bitwitness.zsh", "bitwitness.fish"}) {
    CHECK(contents(folder.path / name).find("self-test") != std::string::npos);
  }
}

TEST_CASE("a report has the self-test of the emulator where that took part", "[cli]") {
  const Folder folder;
  const auto engine_of = [&](const Words& more) {
    return nlohmann::json::parse(run(folder, Words{"verify"} + on_one_value + more + Words{"--json", "-"}).out)
        .at("engine");
  };
  const auto engine = engine_of({});
  CHECK(engine["self_test"]["vectors"] > 200);
  CHECK(engine["self_test"]["as_hardware"] < engine["self_test"]["vectors"]);
  const std::vector<std::string> quirks = engine["quirks"];
  CHECK(std::ranges::is_sorted(quirks));
  CHECK(std::ranges::count(quirks, "ftz-ignored") == 1);
  const Result recorded = run(folder, Words{"record"} + on_one_value + Words{"--text", "--out", "-"});
  CHECK(recorded.out.find("quirks = [") != std::string::npos);
  CHECK(recorded.out.find("self_test = {vectors = ") != std::string::npos);
  // The processor's own words need no emulator; where the system does not allow it there is no report.
  const Result host = run(folder, Words{"verify"} + on_one_value + Words{"--witness", "host", "--json", "-"});
  if (host.status != 2) CHECK(!nlohmann::json::parse(host.out)["engine"].contains("self_test"));
}
