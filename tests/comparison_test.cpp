#include "harness/comparison.hpp"

#include "tests/catch.hpp"
#include "tests/report_samples.hpp"

#include <algorithm>
#include <functional>

#include <nlohmann/json.hpp>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

const char* const value_a = "010000000000";
const char* const value_b = "020000000000";
const char* const value_c = "000000000001";  // the largest, though its bytes come first

Comparison compare_runs(std::vector<RunReport> before, std::vector<RunReport> after) {
  return compare(sample_report(std::move(before)), "old/before.json", sample_report(std::move(after)), "after.json");
}

std::string last_line(const std::string& text) {
  const std::size_t start = text.rfind('\n', text.size() - 2);
  return text.substr(start + 1, text.size() - start - 2);
}

std::string told(const Comparison& comparison) {
  std::string out;
  for (const ValueChange& change : comparison.runs.at(0).changes) {
    out += (out.empty() ? "" : ", ") + to_hex(change.value).substr(0, 2) + " " + std::string(to_string(change.change));
  }
  return out;
}

}  // namespace

TEST_CASE("a report compared with itself is the same", "[comparison]") {
  const RunReport run = sample_run({difference(value_a), difference(value_c, 2, 3)}, 5);
  const Comparison same = compare_runs({run}, {run});
  CHECK(same.verdict() == ComparisonVerdict::same);
  CHECK(told(same) == "01 unchanged, 00 unchanged");
  CHECK(same.runs[0].worse.empty());
  CHECK(compare_runs({sample_run()}, {sample_run()}).verdict() == ComparisonVerdict::same);
}

TEST_CASE("replays of several vector files are told apart by the files' names", "[comparison]") {
  RunReport special = sample_run();
  special.vector_file = "folder/special.bwv";
  RunReport random = sample_run({difference(value_a)});
  random.sources = {"random:9"};
  random.digest = std::string(64, 'e');
  random.vector_file = "folder/random.bwv";
  RunReport elsewhere = special;
  elsewhere.vector_file = "special.bwv";  // as a report that was read has it
  const Comparison same = compare_runs({special, random}, {random, elsewhere});
  CHECK(same.incomparable.empty());
  CHECK(same.runs.size() == 2);
  CHECK(same.verdict() == ComparisonVerdict::same);
  // One file of a routine may have another name, or be a verification.
  RunReport renamed = special;
  renamed.vector_file = "other.bwv";
  CHECK(compare_runs({special}, {renamed}).verdict() == ComparisonVerdict::same);
  renamed.vector_file.clear();
  CHECK(compare_runs({special}, {renamed}).verdict() == ComparisonVerdict::same);
  const Comparison lost = compare_runs({special, random}, {special});
  CHECK(lost.verdict() == ComparisonVerdict::worse);
  CHECK_THAT(to_text(lost, 1), contains_text("random.bwv"));
  CHECK_THAT(compare_runs({special, special}, {special}).incomparable.at(0),
             contains_text("special.bwv: is twice in the old report"));
}

TEST_CASE("a file's name counts only for the routine that a report has several files of", "[comparison]") {
  RunReport special = sample_run();
  special.vector_file = "special.bwv";
  RunReport random = special;
  random.vector_file = "random.bwv";
  RunReport other = sample_run();
  other.routine = "other";
  other.vector_file = "old_name.bwv";
  RunReport renamed = other;
  renamed.vector_file = "new_name.bwv";
  const Comparison same = compare_runs({special, random, other}, {special, random, renamed});
  CHECK(same.incomparable.empty());
  CHECK(same.runs.size() == 3);
  CHECK(same.verdict() == ComparisonVerdict::same);
}

TEST_CASE("values and groups of a file of digests are not compared as counts", "[comparison]") {
  RunReport values = sample_run({difference(value_a)});
  RunReport groups = sample_run({difference(value_a)});
  groups.by_group = true;
  CHECK(compare_runs({groups}, {groups}).verdict() == ComparisonVerdict::same);
  const Comparison comparison = compare_runs({values}, {groups});
  REQUIRE(comparison.incomparable.size() == 1);
  CHECK_THAT(comparison.incomparable[0],
             contains_text("differences are counted by other things: single values in the old report, groups of a file "
                           "of digests in the new one"));
}

TEST_CASE("each listed value is new, worse, better, changed, unchanged or fixed", "[comparison]") {
  const auto verdict_of = [](std::vector<Difference> before, std::vector<Difference> after,
                             const std::string& expected) {
    const Comparison comparison = compare_runs({sample_run(std::move(before))}, {sample_run(std::move(after))});
    CHECK(told(comparison) == expected);
    return comparison.verdict();
  };
  CHECK(verdict_of({}, {difference(value_a)}, "01 new") == ComparisonVerdict::worse);
  CHECK(verdict_of({difference(value_a)}, {}, "01 fixed") == ComparisonVerdict::better);
  CHECK(verdict_of({difference(value_a)}, {difference(value_a, 2)}, "01 worse") == ComparisonVerdict::worse);
  CHECK(verdict_of({difference(value_a)}, {difference(value_a, 1, 2)}, "01 worse") == ComparisonVerdict::worse);
  CHECK(verdict_of({difference(value_a, 2)}, {difference(value_a)}, "01 better") == ComparisonVerdict::better);
  CHECK(verdict_of({difference(value_a, 1, 2)}, {difference(value_a)}, "01 better") == ComparisonVerdict::better);
  // Fewer words, but farther: worse.
  CHECK(verdict_of({difference(value_a, 3)}, {difference(value_a, 1, 9)}, "01 worse") == ComparisonVerdict::worse);
  Difference other_side = difference(value_a);
  other_side.subject[0] -= 2;
  CHECK(verdict_of({difference(value_a)}, {other_side}, "01 changed") == ComparisonVerdict::same);
  // One fixed does not make up for one new.
  CHECK(verdict_of({difference(value_a)}, {difference(value_b)}, "01 fixed, 02 new") == ComparisonVerdict::worse);
  // A value may get worse while no count and no largest distance shows it.
  CHECK(verdict_of({difference(value_a, 1, 1), difference(value_b, 1, 5)},
                   {difference(value_a, 1, 5), difference(value_b, 1, 1)},
                   "01 worse, 02 better") == ComparisonVerdict::worse);
}

TEST_CASE("a difference that is declared to be known is not fixed, and declaring more is worse", "[comparison]") {
  RunReport declared = sample_run();
  declared.counts.known = 1;
  --declared.counts.agreed;
  const Comparison comparison = compare_runs({sample_run({difference(value_a)})}, {declared});
  CHECK(told(comparison).empty());
  CHECK(comparison.verdict() == ComparisonVerdict::worse);
  CHECK(comparison.runs[0].worse == std::vector<std::string>{"values declared to differ: 0 before, 1 now"});
  CHECK(told(compare_runs({declared}, {sample_run({difference(value_a)})})).empty());
}

TEST_CASE("replays of parts of a file are not comparable", "[comparison]") {
  RunReport part = sample_run();
  part.digest.clear();
  const Comparison comparison = compare_runs({part}, {part});
  CHECK(comparison.verdict() == ComparisonVerdict::not_comparable);
}

TEST_CASE("nothing is claimed of values that capped lists do not tell", "[comparison]") {
  // The lists hold the smallest values: below the last of one, a value that is not listed did not differ.
  const Comparison capped =
      compare_runs({sample_run({difference(value_a), difference(value_c)})}, {sample_run({difference(value_b)}, 1)});
  CHECK(told(capped) == "01 fixed, 02 new");  // c may be the one beyond the list
  CHECK(capped.runs[0].before.untold == 1);
  CHECK(capped.runs[0].after.untold == 1);
  CHECK_THAT(to_text(capped, 20),
             contains_text("1 values that differed before and 1 that differ now cannot be told apart"));
  CHECK_THAT(to_text(capped, 20), contains_text("list the smallest ones only (verify --limit)"));

  // Counts decide where lists cannot.
  const Comparison more = compare_runs({sample_run({difference(value_a)}, 5)}, {sample_run({difference(value_a)}, 8)});
  CHECK(more.verdict() == ComparisonVerdict::worse);
  CHECK(told(more) == "01 unchanged");
  CHECK_THAT(to_text(more, 20), contains_text("at least 3 of them are new"));
  const Comparison fewer = compare_runs({sample_run({difference(value_a)}, 8)}, {sample_run({difference(value_a)}, 5)});
  CHECK(fewer.verdict() == ComparisonVerdict::better);
  CHECK_THAT(to_text(fewer, 20), contains_text("at least 3 of them are fixed"));
  CHECK(last_line(to_text(fewer, 20)) ==
        "better: 9 values differed before, 6 differ now; by the counts: the lists do not tell every value");
  const Comparison unlisted = compare_runs({sample_run({}, 4)}, {sample_run({}, 4)});
  CHECK(unlisted.verdict() == ComparisonVerdict::same);
  CHECK(told(unlisted).empty());
}

TEST_CASE("counts that rise are worse though the values differ in number no more", "[comparison]") {
  struct Case {
    std::string why;
    std::function<void(RunReport&)> change;
  };
  const std::vector<Case> cases = {
      {"word y: 0 before, 1 now", [](RunReport& run) { ++run.differing[1]; }},
      {"largest distance: 1 before, 2 now", [](RunReport& run) { run.max_ulp = 2; }},
      {"largest distance: 1 before, nan now", [](RunReport& run) { run.max_ulp = UINT64_MAX; }},
      {"alone: 0 before, 1 now",
       [](RunReport& run) {
         run.isolation = {32, 1, parse_hex(value_a)};
       }},
      {"without a result: 0 before, 1 now", [](RunReport& run) { --run.counts.agreed, ++run.counts.faulted; }},
      {"without a result: 0 before, 1 now", [](RunReport& run) { --run.counts.agreed, ++run.counts.unwritten; }},
      {"not run: 0 before, 9 now",
       [](RunReport& run) { run.counts.agreed -= 9, run.counts.run -= 9, run.counts.not_run = 9, run.digest.clear(); }},
  };
  RunReport before = sample_run({}, 2);
  before.max_ulp = 1;
  for (const Case& one : cases) {
    INFO(one.why);
    RunReport after = before;
    one.change(after);
    const Comparison comparison = compare_runs({before}, {after});
    CHECK(comparison.verdict() == ComparisonVerdict::worse);
    CHECK_THAT(to_text(comparison, 20), contains_text(one.why));
  }
}

TEST_CASE("values of a run that is gone, or did not begin, are gone", "[comparison]") {
  RunReport other = sample_run();
  other.routine = "packed_quat48_pair";
  const Comparison lost = compare_runs({sample_run({difference(value_a)}, 1), other}, {other});
  CHECK(lost.verdict() == ComparisonVerdict::worse);
  CHECK(told(lost) == "01 gone");
  CHECK_THAT(to_text(lost, 20), contains_text("worse: the run is gone"));

  RunReport undone = sample_run();
  undone.counts = {};
  undone.counts.not_run = undone.distinct;
  undone.digest.clear();
  const Comparison interrupted = compare_runs({sample_run({difference(value_a)}), other}, {undone, other});
  CHECK(interrupted.verdict() == ComparisonVerdict::worse);
  CHECK(told(interrupted) == "01 gone");

  // What an interruption left out may have differed: it is not called fixed.
  RunReport half = sample_run({difference(value_b)});
  half.counts.agreed -= 100;
  half.counts.run -= 100;
  half.counts.not_run = 100;
  half.digest.clear();
  const Comparison partial = compare_runs({sample_run({difference(value_a), difference(value_b)})}, {half});
  CHECK(partial.verdict() == ComparisonVerdict::worse);
  CHECK(told(partial) == "02 unchanged");
  CHECK(partial.runs[0].before.untold == 1);

  // A new run is held to agreement.
  CHECK(compare_runs({other}, {other, sample_run()}).verdict() == ComparisonVerdict::same);
  const Comparison added = compare_runs({other}, {other, sample_run({difference(value_a)})});
  CHECK(added.verdict() == ComparisonVerdict::worse);
  CHECK(added.runs.at(1).count(Change::appeared) == 1);
}

TEST_CASE("reports about other things are not comparable, with the reason", "[comparison]") {
  struct Case {
    std::string why;
    std::function<void(Report&)> change;
  };
  const auto run = [](Report& report) -> RunReport& { return report.runs[0]; };
  const std::vector<Case> cases = {
      {"another executable: a stand-in in the old report, no stand-in in the new one",
       [](Report& report) { report.stand_in = false, report.image_sha256 = std::string(64, '9'); }},
      {"another executable, SHA-256", [](Report& report) { report.image_sha256 = std::string(64, '9'); }},
      {"other code of the routine", [&](Report& report) { run(report).routine_sha256 = std::string(64, '9'); }},
      {"another signature", [&](Report& report) { run(report).signature = "stdcall(in u8[6], out f32[4])"; }},
      {"at 0x103f1d0 in the old report, at 0x103f1d1", [&](Report& report) { run(report).address += 1; }},
      {"another environment in the new report, fpcw 007f",
       [&](Report& report) { run(report).environment.fpcw = 0x7f; }},
      {"witness host", [&](Report& report) { run(report).witness = "host"; }},
      {"values from other sources", [&](Report& report) { run(report).sources = {"special"}; }},
      {"another shard: whole in the old report, 1/4", [&](Report& report) { run(report).shard = "1/4"; }},
      {"another number of values", [&](Report& report) { run(report).distinct += 1, run(report).counts.not_run += 1; }},
      {"the digests are not the same", [&](Report& report) { run(report).digest = std::string(64, '9'); }},
      {"the witness gave other words for 01 00 00 00 00 00",
       [&](Report& report) { run(report).differences[0].reference[3] ^= 1; }},
      {"other output words", [&](Report& report) { run(report).word_names[0] = "i"; }},
      {"other output words", [&](Report& report) { run(report).word_kind = WordKind::i32; }},
      {"is twice in the new report", [&](Report& report) { report.runs.push_back(run(report)); }},
      {"no run in common", [&](Report& report) { run(report).routine = "half"; }},
      {"no run in common", [&](Report& report) { report.runs.clear(); }},
  };
  const Report before = sample_report({sample_run({difference(value_a)})});
  for (const Case& one : cases) {
    INFO(one.why);
    Report after = before;
    one.change(after);
    const Comparison comparison = compare(before, "a.json", after, "b.json");
    CHECK(comparison.verdict() == ComparisonVerdict::not_comparable);
    REQUIRE(!comparison.incomparable.empty());
    CHECK_THAT(comparison.incomparable.front(), contains_text(one.why));
    CHECK(last_line(to_text(comparison, 20)).starts_with("not comparable: "));
    CHECK_THAT(to_markdown(comparison, 20), contains_text("### bitwitness: not comparable"));
  }
  Report interrupted = before;
  run(interrupted).counts.agreed -= 1;
  run(interrupted).counts.run -= 1;
  run(interrupted).counts.not_run = 1;
  CHECK_THAT(compare(interrupted, "a", before, "b").incomparable.at(0),
             contains_text("the old report was interrupted"));
  // The tool, its libraries and the processor may be others: that is what one compares.
  Report newer = before;
  newer.tool_version = "0.2.0";
  newer.engine = {"3", "6", "1", "Other CPU"};
  CHECK(compare(before, "a", newer, "b").verdict() == ComparisonVerdict::same);
}

TEST_CASE("other quirks of the emulator are a note that judges nothing", "[comparison]") {
  Report before = sample_report({sample_run()});
  Report after = before;
  const auto notes = [&] { return compare(before, "a.json", after, "b.json").notes; };
  before.engine.self_test = SelfTestSummary{20, 18, {"dpps-order", "ftz-ignored"}};
  CHECK(notes().empty());  // nothing is known of the other one
  after.engine.self_test = before.engine.self_test;
  CHECK(notes().empty());
  after.engine.self_test->quirks = {"dpps-order", "unknown: x87-add 3 fadd"};
  after.engine.unicorn = "2.1.4";
  const Comparison comparison = compare(before, "a.json", after, "b.json");
  const std::string note =
      "the emulators have other quirks: only unicorn 2.0.1 of the old report: ftz-ignored; only unicorn 2.1.4 of the "
      "new one: unknown: x87-add 3 fadd";
  CHECK(comparison.notes == std::vector{note});
  CHECK(comparison.verdict() == ComparisonVerdict::same);
  CHECK_THAT(to_text(comparison, 20), contains_text("\nnote: " + note + "\n"));
  CHECK_THAT(to_markdown(comparison, 20), contains_text("\n- note: `" + note + "`\n"));
  CHECK(nlohmann::json::parse(to_json(comparison))["notes"] == nlohmann::json({note}));
  before.engine.self_test->quirks = {"dpps-order"};
  CHECK_THAT(notes().at(0), contains_text("of the old report: none; "));
}

TEST_CASE("the JSON form has every value that can be told", "[comparison]") {
  const Comparison comparison = compare_runs({sample_run({difference(value_a), difference(value_b)})},
                                             {sample_run({difference(value_b, 1, 2), difference(value_c)})});
  const nlohmann::json json = nlohmann::json::parse(to_json(comparison));
  CHECK(json["schema"] == "bitwitness-comparison/1");
  CHECK(json["verdict"] == "worse");
  CHECK(json["before"]["file"] == "before.json");
  CHECK(json["after"]["image"]["stand_in"] == true);
  const nlohmann::json& run = json["runs"][0];
  CHECK(run["told"]["new"] == 1);
  CHECK(run["told"]["worse"] == 1);
  CHECK(run["told"]["fixed"] == 1);
  CHECK(run["told"]["gone"] == 0);
  CHECK(run["before"]["untold"] == 0);
  REQUIRE(run["values"].size() == 3);
  CHECK(run["values"][0]["change"] == "fixed");
  CHECK(run["values"][0]["after"].is_null());
  CHECK(run["values"][1]["before"][0] == "3f433af2");
  CHECK(run["values"][1]["after"][0] == "3f433af3");
  CHECK(run["values"][2]["value"] == "00 00 00 00 00 01");
  CHECK(!run["worse"].empty());
}

TEST_CASE("the Markdown form marks stand-ins, and foreign names are no markup in it", "[comparison]") {
  const RunReport plain = sample_run({difference(value_a)});
  CHECK_THAT(to_markdown(compare_runs({plain}, {plain}), 20),
             contains_text("**STAND-IN executable: assembled for tests, not the game**"));
  Report game = sample_report({plain});
  game.stand_in = false;
  CHECK_THAT(to_markdown(compare(game, "a", game, "b"), 20), !contains_text("STAND-IN"));

  RunReport hostile = sample_run({difference(value_a, 2)});
  hostile.routine = "a`<img>|@user\n# b";
  hostile.decoder = "[x](y)";
  hostile.word_names[0] = "`|`";
  RunReport better = hostile;
  better.differences = {};
  better.counts = sample_run().counts;
  better.differing = {0, 0, 0, 0};
  better.max_ulp = 0;
  const std::string text = to_markdown(compare_runs({hostile}, {better}), 20);
  CHECK_THAT(text, contains_text("| `a'<img>\\|@user\\x0a# b` | `[x](y)` |"));
  CHECK_THAT(text, contains_text("| fixed | `01 00 00 00 00 00` | `'\\|' 1, y 1` | `agrees` |"));
  std::size_t ticks = 0;
  for (const char c : text) ticks += c == '`' ? 1 : 0;
  CHECK(ticks % 2 == 0);
}

TEST_CASE("a Markdown comment stays within what a comment may hold, and lists have their limit", "[comparison]") {
  std::vector<RunReport> before;
  std::vector<RunReport> after;
  for (int i = 0; i < 300; ++i) {
    std::vector<Difference> differences;
    for (unsigned value = 0; value < 30; ++value)
      differences.push_back({{std::byte(value), {}, {}, {}, {}, {}}, reference_words, {0, 0, 0, 0}});
    before.push_back(sample_run());
    after.push_back(sample_run(differences));
    before.back().routine = after.back().routine = "routine " + std::to_string(i);
  }
  const std::string text = to_markdown(compare_runs(before, after), 20);
  CHECK(text.size() < 65'536);
  CHECK_THAT(text, contains_text("The rest does not fit into a comment."));
  CHECK_THAT(text, contains_text("worse: 0 values differed before, 9000 differ now"));

  const Comparison one = compare_runs({before[0]}, {after[0]});
  CHECK_THAT(to_markdown(one, 20), contains_text("10 more values are not shown."));
  CHECK_THAT(to_text(one, 7), contains_text("23 more values are not shown (--limit)"));
  CHECK_THAT(to_text(one, 30), !contains_text("not shown"));
}
