// The command `recognize` as a user runs it: what it prints, its JSON and its exit statuses.

#include "tests/program.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

using namespace bitwitness::tests;
using nlohmann::json;

namespace {

const std::string x87 = BITWITNESS_STAND_INS_DIR "/stand_in_x87.exe";
const std::string fixtures = BITWITNESS_FIXTURES_DIR;
const std::string key = "cdecl(in u8[6], out f32[4])";

Words recognize_words(const std::string& image, const std::string& at, const std::string& signature) {
  return {"recognize", "--image", image, "--at", at, "--signature", signature};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the stand-in's routines are recognised without a word", "[cli]") {
  const Folder folder;
  const Result result = run(folder, {"recognize", "--image", x87, "--json", folder.file("found.json")});
  CHECK(result.status == 0);
  CHECK(result.err.empty());
  CHECK(has(result.out, "STAND-IN executable"));
  CHECK(has(result.out, "follows exactly one of"));
  CHECK(has(result.out, "\n    packed_quat48\n"));
  CHECK(has(result.out, "\n    packed_quat48_pair\n"));
  CHECK(has(result.out, "bits, each flipped in 32 values: 0-46 change the output; 47 never"));

  const json document = json::parse(contents(folder.file("found.json")));
  CHECK(document.at("schema") == "bitwitness-recognition/1");
  CHECK(document.at("image").at("stand_in") == true);
  REQUIRE(document.at("runs").size() == 2);
  const json& first = document.at("runs").at(0);
  CHECK(first.at("verdict") == "one");
  CHECK(first.at("environment").at("fpcw") == "027f");
  CHECK(first.at("matches").at(0).at("name") == "packed_quat48");
  CHECK(first.at("matches").at(0).at("order") == json({"x", "y", "z", "w"}));
  CHECK(first.at("matches").at(0).at("agreed") == first.at("values").at("compared"));
  REQUIRE(first.at("bit_flips").at("bits").size() == 48);
  CHECK(first.at("bit_flips").at("bits").at(47).at("changed") == 0);
  CHECK(first.at("bit_flips").at("bits").at(46).at("changed") != 0);
  REQUIRE(first.at("nearest").size() == 5);
  const json& near = first.at("nearest").at(0);
  CHECK(near.at("first_difference").at("routine") != near.at("first_difference").at("rule"));
  CHECK(document.at("runs").at(1).at("matches").at(0).at("name") == "packed_quat48_pair");

  const Result again = run(folder, {"recognize", "--image", x87, "--json", "-"});
  CHECK(again.out == contents(folder.file("found.json")));
}

TEST_CASE("a routine that follows no rule exits 1 and names the nearest", "[cli]") {
  const Folder folder;
  const Result result = run(folder, recognize_words(fixtures + "/broken_x87_constant_bit.exe", "0x103f1d0", key));
  CHECK(result.status == 1);
  CHECK(has(result.out, "follows none of"));
  CHECK(has(result.out, "nearest that do not fit:\n    quat48/"));
  CHECK(has(result.out, "first separated by "));
}

TEST_CASE("a variant is named with what it does and the order of its words", "[cli]") {
  const Folder folder;
  const Result result =
      run(folder, recognize_words(fixtures + "/family_sse2.dll", "export:q32_w_first", "cdecl(in u8[4], out f32[4])"));
  CHECK(result.status == 0);
  CHECK(has(result.out, "agrees with its words in order w x y z"));
  CHECK(has(result.out, "components v * f32(sqrt2/1023) - 3f3504f3 in f32"));
}

TEST_CASE("what the control word changes is told", "[cli]") {
  const Folder folder;
  const Words words = recognize_words(x87, "0x103f1d0", key) + Words{"--fpcw", "007f", "--json", "-"};
  const Result result = run(folder, words);
  CHECK(result.status == 0);
  const json run_found = json::parse(result.out).at("runs").at(0);
  CHECK(run_found.at("environment").at("fpcw") == "007f");
  CHECK(run_found.at("matches").at(0).at("name") ==
        "quat48/step_f32.3f3504f3.f32/masked/insert/index01/zero.minus_abc.f32");
}

TEST_CASE("where nothing ran the exit status is 3", "[cli]") {
  const Folder folder;
  Result result = run(folder, recognize_words(x87, "0x103f1d0", "cdecl(in u8[5], out f32[4])"));
  CHECK(result.status == 3);
  CHECK(has(result.out, "no known rule takes 5 bytes and gives 4 words: nothing was run"));
  result =
      run(folder, recognize_words(fixtures + "/conventions32.dll", "export:loops_forever", "cdecl(in u8[2], out f32)"));
  CHECK(result.status == 3);
  CHECK(has(result.out, "no value gave a result: nothing was compared"));
}

TEST_CASE("a routine that never writes all of its output gives nothing to compare", "[cli]") {
  const Folder folder;
  const Result result = run(folder, recognize_words(fixtures + "/broken_x87_no_w.exe", "0x103f1d0", key));
  CHECK(result.status == 3);
}

TEST_CASE("a signature that is not given is inferred", "[cli]") {
  const Folder folder;
  for (const Words& words :
       {Words{"recognize", "--image", x87, "--at", "0x103f1d0"}, recognize_words(x87, "0x103f1d0", "auto")}) {
    const Result result = run(folder, words);
    CHECK(result.status == 0);
    CHECK(has(result.out, "0x103f1d0, cdecl(in u8[6], out f32[4])"));
  }
}

TEST_CASE("input that cannot be used exits 2 with one line", "[cli]") {
  const Folder folder;
  const auto refused = [&](const Words& words, const std::string& named) {
    const Result result = run(folder, words);
    INFO(result.err);
    CHECK(result.status == 2);
    CHECK(result.out.empty());
    CHECK(has(result.err, named));
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  };
  refused({"recognize", "--image", fixtures + "/broken_x87_no_w.exe", "--at", "0x1060bc7"}, "give --signature");
  refused(recognize_words(x87, "0x103f1d0", "cdecl("), "cdecl(");
  refused(recognize_words(x87, "0x10", key), "0x10");
  refused(recognize_words(x87, "export:nothing", key), "nothing");
  refused(recognize_words("/nonexistent.exe", "0x103f1d0", key), "/nonexistent.exe");
  refused(recognize_words(x87, "0x103f1d0", key) + Words{"--decoder", "packed_quat48"}, "--decoder");
  refused(recognize_words(x87, "0x103f1d0", key) + Words{"--fpcw", "zz"}, "--fpcw zz");
  refused(recognize_words(x87, "0x103f1d0", key) + Words{"--json", x87}, "would overwrite");
}
