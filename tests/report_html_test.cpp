#include "harness/report_html.hpp"

#include "tests/program.hpp"
#include "tests/report_samples.hpp"

#include <algorithm>
#include <utility>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

RunReport differing_run(std::uint64_t more = 0) {
  RunReport run = sample_run({difference("010000000000"), difference("ff7f00000040", 3, 1000)}, more);
  run.fields = {{"a", 0, 15}, {"b", 15, 15}, {"c", 30, 15}, {"sign", 45, 1}, {"lane", 46, 2}};
  return run;
}

/// What a person may find in an executable or a folder: markup, quotes, control characters, bytes that are not UTF-8.
const std::string hostile = "<script>a</script>\" onload='x' & ]]> \x1b[2J \xff \xef\xbf\xbe -->\n</style>";

Report hostile_report() {
  RunReport run = differing_run();
  run.routine = run.decoder = run.signature = run.witness = run.shard = run.digest = hostile;
  run.routine_sha256 = run.decoder_option = hostile;
  run.sources = run.notes = run.broken = {hostile};
  run.word_names = {hostile, hostile, hostile, hostile};
  for (BitField& field : run.fields) field.name = hostile;
  run.counts.faulted = 1;
  run.failures = {{parse_hex("000000000000"), OutcomeKind::faulted, 1, hostile, hostile}};
  run.image = RunImage{hostile, hostile, ImageFormat::pe32, true};
  Report report = sample_report({run});
  report.image_name = report.image_path = report.image_sha256 = report.tool_version = hostile;
  report.engine = {hostile, hostile, hostile, hostile};
  report.notes = report.repeat_options = {hostile};
  return report;
}

void check_well_formed(const std::string& page) {
  const Folder folder;
  write(folder.path / "page.html", page);
  const tests::Result result = run_shell(folder, "xmllint --noout --nonet " + quoted(folder.file("page.html")));
  INFO(result.err);
  CHECK(result.status == 0);
  CHECK(result.err == "");
}

}  // namespace

TEST_CASE("A page is well-formed whatever the report holds") {
  check_well_formed(to_html(sample_report({differing_run(7), sample_run()})));
  check_well_formed(to_html(sample_report({})));
  HtmlExtras extras;
  extras.absence = extras.trace.title = extras.trace.text = hostile;
  extras.disassemblies = {{hostile, hostile}};
  const std::string page = to_html(hostile_report(), extras);
  check_well_formed(page);
  CHECK(occurrences(page, "<script") == 0);
  CHECK(occurrences(page, "</style>") == 1);
  CHECK(occurrences(page, "\x1b") == 0);
  CHECK(occurrences(page, "onload='") == 0);
}

TEST_CASE("A page loads and runs nothing") {
  const std::string page = to_html(sample_report({differing_run()}));
  CHECK(occurrences(page, "default-src 'none'") == 1);
  for (const std::string part : {"src=", "@import", "url(", "<link", "<iframe"}) {
    INFO(part);
    CHECK(occurrences(page, part) == 0);
  }
}

TEST_CASE("A page has the report's counts") {
  const std::string page = to_html(sample_report({differing_run(7), sample_run()}));
  CHECK(occurrences(page, "Difference 1 of 9: <code>01 00 00 00 00 00</code>") == 1);
  CHECK(occurrences(page, "<article class=\"difference\">") == 2);
  CHECK(occurrences(page, "Shown: 2 of 9.") == 1);
  CHECK(occurrences(page, "of the 2 listed differences, of 9") > 0);
  CHECK(occurrences(page, "run 20000: agreed 19991, differed 9,") == 1);
  CHECK(occurrences(page, "run 20000: agreed 20000, differed 0,") == 1);
  CHECK(occurrences(page, report_parts::verdict_text(sample_report({differing_run(7), sample_run()}))) == 1);
  CHECK(occurrences(page, "99.95 %, 9 differ") == 1);           // x: 2 listed, 7 more
  CHECK(occurrences(page, "99.99 %, 1 differ") == 2);           // y and z
  CHECK(occurrences(page, "100.00 %, none differs") == 1 + 4);  // w, and the other run's words
  CHECK(occurrences(page, "from 1: 1; from 512: 3;") == 1);
  CHECK(occurrences(page, "Distance over the code of a</title>") == 1);
  CHECK(occurrences(page, "Distance over the code of sign</title>") == 0);
}

TEST_CASE("A difference is shown bit by bit") {
  const std::string page = to_html(sample_report({differing_run()}));
  CHECK(occurrences(page, "<b>a</b> <code>111111111111111</code> = 32767") == 1);
  CHECK(occurrences(page, "<b>lane</b> <code>01</code> = 1") == 1);
  // 3f433af1 and 3f433af2: the two lowest bits.
  CHECK(occurrences(page,
                    "<span class=\"t3\">0</span> <span class=\"t2\">01111110</span> <span "
                    "class=\"t0\">100001100111010111100<b class=\"d\">01</b></span>") == 1);
  CHECK(occurrences(page, "100001100111010111100<b class=\"d\">10</b></span>") == 1);
  CHECK(occurrences(page, std::string(10 + 32, ' ') + "^^</span>") == 1);
  // 3f433af1 and 3f433ed9: bits 10, 5 and 3.
  CHECK(occurrences(page, R"(100001100111<b class="d">0</b>1011<b class="d">1</b>1<b class="d">0</b>001)") == 1);
  CHECK(occurrences(page, "<td>1 ulp</td>") == 1);
  CHECK(occurrences(page, "--values hex:010000000000</code>") == 1);
}

TEST_CASE("A stand-in is announced, a game is not") {
  Report report = sample_report({sample_run()});
  CHECK(occurrences(to_html(report), "<div class=\"stand-in\"") == 1);
  CHECK(occurrences(to_html(report), "<title>STAND-IN ") == 1);
  report.stand_in = false;
  CHECK(occurrences(to_html(report), "STAND-IN") == 0);
}

TEST_CASE("Equal reports give equal pages, and a page is bounded") {
  std::vector<Difference> differences;
  for (unsigned i = 0; i < 20'000; ++i) {
    Difference one = difference("000000000000", 4, 1 + i % 977);
    one.value[0] = static_cast<std::byte>(i);
    one.value[1] = static_cast<std::byte>(i >> 8);
    differences.push_back(std::move(one));
  }
  RunReport run = sample_run(differences);
  run.fields = differing_run().fields;
  const std::string page = to_html(sample_report({run, run}));
  CHECK(page == to_html(sample_report({run, run})));
  CHECK(occurrences(page, "<article") == 2000);
  CHECK(occurrences(page, "Shown: 2000 of 20000.") == 1);
  CHECK(occurrences(page, "Shown: 0 of 20000.") == 1);
  CHECK(page.size() < 16'000'000);
}

TEST_CASE("Values without fields, of any size, and digests without words have a page") {
  RunReport wide = sample_run({difference("010000000000")});
  wide.differences[0].value.assign(100'000, std::byte{0x5a});
  wide.fields = {{"beyond", 900'000, 4'000'000'000},
                 {"high", 4'294'967'290, 8},
                 {"empty", 3, 0},
                 {"across", 799'998, 8},
                 {"low", 0, 64}};
  RunReport digests = sample_run();
  digests.counts.differed = 5;
  digests.counts.agreed -= 5;
  const std::string page = to_html(sample_report({wide, digests}));
  check_well_formed(page);
  CHECK(page.size() < 100'000);
  CHECK(occurrences(page, "<b>low</b>") == 1);
  CHECK(occurrences(page, "<b>across</b>") == 0);
  CHECK(occurrences(page, "it is not known which words differ") == 1);
}
