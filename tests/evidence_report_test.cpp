#include "harness/cli/evidence_report.hpp"

#include "tests/catch.hpp"
#include "tests/evidence_samples.hpp"

#include <sstream>

#include <nlohmann/json.hpp>

namespace bitwitness::tests {
namespace {

using namespace decoders;
using cli::to_json;
using cli::to_text;

EvidenceResult figures() {
  EvidenceResult result;
  IndexOrderEvidence& index = result.index_orders[1];
  index.game = Game::rr;
  index.changes[0][1] = {300, {240, 6}, {291, 12}};
  index.changes[2][2] = {1000, {990, 990}, {1000, 1000}};
  index.telling = index.changes[0][1];
  index.same = index.changes[2][2];
  index.supported = IndexOrder::word_0_low;
  result.rotations.push_back({Game::rr, 4, 7, 1307, 20, 1, 2, 0.25, 6, 0.9985, Verdict::refuted});
  result.rotations.push_back({Game::rr, 5, 0, 0, 0, 0, 0, 0, 0, 0, Verdict::undecided});
  result.rotations.push_back({Game::mab, 0, 0, 90, 19, 0, 0, 0, 0, 0, Verdict::undecided});
  result.layouts[0] = {Game::sws, 5000, 40, {0, 170, 165}, {0.9975, 0.125, 0.25}, Quat64Layout::ring};
  result.split = {60, {16, 1024, 1500}, TranslationSplit::x11_y11_z10};
  result.bits.push_back({"sws kind 5 bits 28-29", true, 5000, 0, Verdict::supported});
  result.bits.push_back({"rr kind 4 word two bit 15", true, 1307, 3, Verdict::refuted});
  result.bits.push_back({"rr kind 7 bit 15", false, 12, 5, Verdict::undecided});
  result.bits.push_back({"rr kind 5 bits 28-29", true, 0, 0, Verdict::undecided});
  result.times.sws_clips = 3;
  result.times.sws_tracks = 100;
  result.times.sws_other_layout_words = 2;
  result.times.sws_last_keys = Verdict::supported;
  result.times.rr_clips = 4;
  result.times.rr_tracks = 50;
  result.times.rr_late_last_keys = 1;
  result.times.rr_least_size_distance = -3;
  result.times.rr_greatest_size_distance = 8;
  result.times.rr_mask_marker_tracks = {0, 11, 12, 13};
  result.times.rr_last_keys = Verdict::refuted;
  result.times.rr_size_words = Verdict::supported;
  result.presence.clips = 1;
  result.presence.keys = 90;
  result.presence.keys_past_end = {0, 19};
  result.presence.nearer = {30, 4};
  result.presence.rising_nearer = 8;
  return result;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("each question is answered in one line with its numbers") {
  const std::string text = to_text(figures());
  INFO(text);
  std::vector<std::string> answers;
  for (const std::string& line : lines_of(text)) {
    for (const char* opening : {"supported: ", "refuted: ", "undecided: ", "counted: "}) {
      if (line.rfind(opening, 0) == 0) answers.push_back(line);
    }
  }
  CHECK(answers ==
        std::vector<std::string>{
            "supported: rr kind 4 low bit of the index: word 0 low (300 telling pairs, 97.0% against 4.0% within 0.9)",
            "refuted: rr kind 4 decodes to unit quaternions (3 of 1307 keys off by more than 1e-06 or no numbers, "
            "deviation 2.50e-01)",
            "undecided: mab decodes to unit quaternions (0 of 90 keys off by more than 1e-06 or no numbers, deviation "
            "0.00e+00)",
            "supported: sws kind 5 layout: ring (5000 keys, 40 tracks; ring: 0 over, 0.9975; low to high: 170 over, "
            "0.1250; high to low: 165 over, 0.2500)",
            "supported: sws kind 8 split: 11/11/10 (60 tracks, median largest step; 11/11/10: 16; 10/11/11: 1024; "
            "11/10/11: 1500)",
            "supported: sws kind 5 bits 28-29 zero (0 of 5000 set)",
            "refuted: rr kind 4 word two bit 15 zero (3 of 1307 set)", "counted: rr kind 7 bit 15 (5 of 12 set)",
            "supported: sws last keys on length x 60 (0 of 100 tracks stray)",
            "counted: sws layout words that differ (2 of 3 clips)",
            "refuted: rr last keys within length + 1/30 s (1 of 50 tracks late)",
            "supported: rr size words within eight bytes of the payload (0 of 50 tracks far, distance -3 to 8)",
            "counted: rr mask markers 00, 40, 80, c0 (0, 11, 12, 13 tracks)",
            "undecided: mab presence bits (past the end: 0 low, 19 high; predicted better: 30 low, 4 high)",
            "undecided: mab later keys in rising time (8 groups rise, 0 fall)"});
  CHECK_THAT(text, contains_text("  0 to 1              300    80.0%     2.0%    97.0%     4.0%\n"));
  CHECK_THAT(text, contains_text("  0 to 2                0        -        -        -        -\n"));
  CHECK_THAT(text,
             contains_text("  rr kind 4          1307       20        1        2   2.50e-01         6  0.9985\n"));
}

TEST_CASE("the JSON holds every count, and null for what is undecided") {
  const nlohmann::ordered_json json = to_json(figures());
  INFO(json.dump(2));
  REQUIRE(json.at("index_orders").size() == 1);
  const auto& index = json["index_orders"][0];
  CHECK(index["game"] == "rr");
  CHECK(index["supported"] == "word 0 low");
  CHECK(index["telling"]["pairs"] == 300);
  CHECK(index["telling"]["above_0_99"]["word 0 low"] == 240);
  CHECK(index["telling"]["above_0_9"]["word 1 low"] == 12);
  CHECK(index["same_index"]["pairs"] == 1000);
  CHECK(index["changes"].size() == 16);
  CHECK(index["changes"][1]["to"] == 1);
  CHECK(index["changes"][1]["pairs"] == 300);
  REQUIRE(json.at("rotations").size() == 2);
  CHECK(json["rotations"][0]["over_unit"] == 20);
  CHECK(json["rotations"][0]["off_unit"] == 1);
  CHECK(json["rotations"][0]["not_finite"] == 2);
  CHECK(json["rotations"][0]["largest_deviation"] == 0.25);
  CHECK(json["rotations"][0]["verdict"] == "refuted");
  REQUIRE(json.at("quat64_layouts").size() == 1);
  CHECK(json["quat64_layouts"][0]["over_unit"]["high to low"] == 165);
  CHECK(json["quat64_layouts"][0]["supported"] == "ring");
  CHECK(json["translation_split"]["median_largest_step"]["10/11/11"] == 1024);
  CHECK(json["translation_split"]["supported"] == "11/11/10");
  REQUIRE(json.at("zero_bits").size() == 3);
  CHECK(json["zero_bits"][1]["set"] == 3);
  CHECK(json["zero_bits"][1]["verdict"] == "refuted");
  CHECK(json["zero_bits"][2]["verdict"].is_null());
  CHECK(json["sws_times"]["other_layout_words"] == 2);
  CHECK(json["rr_times"]["least_size_word_distance"] == -3);
  CHECK(json["rr_times"]["mask_marker_tracks"] == nlohmann::ordered_json::array({0, 11, 12, 13}));
  CHECK(json["rr_times"]["last_keys"] == "refuted");
  CHECK(json["mab_presence"]["keys_past_end"]["high bit first"] == 19);
  CHECK(json["mab_presence"]["supported"].is_null());
  CHECK(json["mab_presence"]["rising"] == "undecided");
}

TEST_CASE("nothing gathered is nothing said") {
  const EvidenceResult nothing = Evidence().result();
  CHECK(to_text(nothing).empty());
  CHECK(to_json(nothing).dump() == R"({"index_orders":[],"rotations":[],"quat64_layouts":[],"zero_bits":[]})");
}

TEST_CASE("gathered evidence is reported game by game") {
  Random random(1);
  Evidence evidence;
  add_clip(evidence, random, Game::sws, {}, 40, 200);
  add_mab(evidence, random, {}, 60, 12);
  const std::string text = to_text(evidence.result());
  INFO(text);
  CHECK_THAT(text, contains_text("supported: sws kind 4 low bit of the index: word 0 low"));
  CHECK_THAT(text, contains_text("supported: mab presence bits: low bit first"));
  CHECK(text.find("rr ") == std::string::npos);
  CHECK(to_json(evidence.result())["index_orders"].size() == 1);
}

}  // namespace bitwitness::tests
