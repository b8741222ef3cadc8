// Environments and witnesses, as a user of the program asks for them.
#include "tests/catch.hpp"
#include "tests/program.hpp"

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace {

using namespace bitwitness::tests;

const std::string x87 = BITWITNESS_STAND_INS_DIR "/stand_in_x87.exe";
const std::string sse2 = BITWITNESS_STAND_INS_DIR "/stand_in_sse2.exe";
const Words four_values = {"--values", "hex:341278564523", "hex:349278564523", "hex:341278d64523", "hex:349278d64523"};
const Words one_routine = {"--routine", "packed_quat48"};

/// A quick run on the x87 stand-in.
Words verify_words(const Words& more) {
  return Words{"verify", "--image", x87, "--jobs", "1"} + more;
}

}  // namespace

TEST_CASE("each environment is a run of its own", "[cli]") {
  const Folder folder;
  const Words values = {"--values", "random:2000:7", "--routine", "packed_quat48"};
  CHECK(run(folder, verify_words(values + Words{"--fpcw", "027f", "037f", "0x027F"})).status == 0);
  const Result result =
      run(folder, verify_words(values + Words{"--fpcw", "027f", "007f", "--mxcsr", "1f80", "1fa0", "--json", "-"}));
  CHECK(result.status == 1);
  const auto runs = nlohmann::json::parse(result.out)["runs"];
  REQUIRE(runs.size() == 4);
  CHECK(runs[0]["environment"] == nlohmann::json({{"fpcw", "027f"}, {"mxcsr", "1f80"}}));
  CHECK(runs[1]["environment"] == nlohmann::json({{"fpcw", "027f"}, {"mxcsr", "1fa0"}}));
  CHECK(runs[0]["verdict"] == "agree");
  CHECK(runs[2]["environment"]["fpcw"] == "007f");
  CHECK(runs[2]["verdict"] == "differ");
  CHECK(run(folder, Words{"verify", "--image", sse2, "--fpcw", "007f", "027f", "037f"} + values).status == 0);
}

TEST_CASE("a sweep runs every environment once and says how many values depend on it", "[cli]") {
  const Folder folder;
  const Words values = {"--values", "random:2000:7", "--routine", "packed_quat48"};
  const Result result = run(folder, verify_words(values + Words{"--fpcw", "sweep", "027f", "--json", "-"}));
  CHECK(result.status == 1);
  const auto report = nlohmann::json::parse(result.out);
  REQUIRE(report["runs"].size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(report["runs"][i]["environment"]["fpcw"] == std::vector<std::string>{"027f", "007f", "037f"}[i]);
  }
  CHECK(report["environments"][0]["depending"] == report["runs"][1]["counts"]["differed"]);
  const Result text = run(folder, verify_words(values + Words{"--fpcw", "sweep:rounding"}));
  CHECK_THAT(text.out, contains_text("Win32 default"));
  CHECK_THAT(text.out, contains_text("Direct3D 9's"));
  CHECK_THAT(text.out, contains_text("values depend on the environment"));
  const Result flushing = run(folder, verify_words(values + Words{"--mxcsr", "sweep", "--json", "-"}));
  CHECK(flushing.status == 0);
  CHECK(nlohmann::json::parse(flushing.out)["runs"].size() == 4);
}

TEST_CASE("other witnesses run the same values and are named", "[cli][host]") {
  const Folder folder;
  const Words values = {"--values", "random:2000:7", "--routine", "packed_quat48"};
  if (run(folder, verify_words(values + Words{"--witness", "host"})).status == 2) {
    skip("no code is run on this processor here");
    return;
  }
  for (const std::string& image : {x87, sse2}) {
    const Words command = Words{"verify", "--image", image} + values + Words{"--fpcw", "sweep", "--json", "-"};
    const auto emulated = nlohmann::json::parse(run(folder, command).out);
    for (const std::string witness : {"host", "both"}) {
      const auto report = nlohmann::json::parse(run(folder, command + Words{"--witness", witness}).out);
      REQUIRE(report["runs"].size() == 3);
      CHECK(report["environments"] == emulated["environments"]);
      for (std::size_t i = 0; i < 3; ++i) {
        CHECK(report["runs"][i]["witness"] == witness);
        CHECK(report["runs"][i]["counts"] == emulated["runs"][i]["counts"]);
        CHECK(report["runs"][i]["digest"] == emulated["runs"][i]["digest"]);
        CHECK(report["runs"][i]["differences"] == emulated["runs"][i]["differences"]);
      }
    }
  }
}

TEST_CASE("an audit's exit status says whether the emulator can be trusted", "[cli]") {
  const Folder folder;
  const Result trusted = run(folder, {"audit", "--image", sse2});
  CHECK(trusted.status == 0);
  CHECK_THAT(last_line(trusted.out), contains_text("the emulator stands for a processor in 2 of 2 routines"));
  CHECK(trusted.out.find("STAND-IN") != std::string::npos);
}

TEST_CASE("a run tells what the emulator leaves out of its environment", "[cli]") {
  const Folder folder;
  const Words command = verify_words(four_values + one_routine);
  const auto notes = [&](const Words& environment) {
    const Result result = run(folder, command + environment + Words{"--json", "-"});
    return nlohmann::json::parse(result.out)["runs"][0]["notes"].dump();
  };
  for (const char* what : {"unmasks", "flushes", "reads denormals"}) {
    CHECK(notes({}).find(what) == std::string::npos);
  }
  CHECK(notes({"--fpcw", "0240"}).find("fpcw 0240 unmasks") != std::string::npos);
  CHECK(notes({"--mxcsr", "0f80"}).find("mxcsr 0f80 unmasks") != std::string::npos);
  CHECK(notes({"--mxcsr", "9f80"}).find("mxcsr 9f80 flushes") != std::string::npos);
  CHECK(notes({"--mxcsr", "1fc0"}).find("mxcsr 1fc0 reads denormals") != std::string::npos);
}
