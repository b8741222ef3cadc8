#include "harness/replaying.hpp"

#include "harness/known_differences.hpp"
#include "harness/recording.hpp"
#include "harness/verification.hpp"
#include "tests/catch.hpp"
#include "tests/doubling.hpp"

#include <atomic>
#include <string>
#include <vector>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

std::vector<std::byte> recorded(VectorDetail detail = VectorDetail::words) {
  const Image image = any_image();
  VectorHeader header;
  header.tool_version = "test";
  header.decoder = "doubler";
  header.word_names = {"twice"};
  header.word_kind = WordKind::u32;
  header.notes = {"a note of the recording"};
  std::vector<std::byte> bytes;
  const auto sink = [&bytes](std::span<const std::byte> more) { bytes.insert(bytes.end(), more.begin(), more.end()); };
  static_cast<void>(
      record(header, image, doubling(), {}, values_of(doubler(), {"all"}), with_doubling()).write(sink, detail));
  return bytes;
}

/// A doubler that is wrong where the value's high byte is `high`.
Subject wrong_at(unsigned high) {
  Subject subject = doubler();
  subject.decode = [high](std::span<const std::byte> packed, std::span<std::uint32_t> words) {
    doubler().decode(packed, words);
    if (std::to_integer<unsigned>(packed[1]) == high) words[0] += 5;
  };
  return subject;
}

std::vector<std::byte> value(std::string_view hex) {
  return parse_hex(hex);
}

}  // namespace

TEST_CASE("a replay reports what a verification reports") {
  const Image image = any_image();
  const Subject subject = wrong_at(0x77);
  const RunReport expected = verify(image, doubling(), subject, {}, values_of(subject, {"all"}), with_doubling());
  const auto bytes = recorded();
  const VectorFile file = VectorFile::parse(bytes, "here/doubling.bwv");
  for (const unsigned jobs : {1U, 2U, 7U}) {
    const RunReport report = replay(file, subject, {.jobs = jobs}).report;
    CHECK(report.verdict() == Verdict::differ);
    CHECK(report.routine == expected.routine);
    CHECK(report.address == expected.address);
    CHECK(report.signature == expected.signature);
    CHECK(report.routine_sha256 == expected.routine_sha256);
    CHECK(report.witness == "doubling");
    CHECK(report.distinct == 65536);
    CHECK(report.digest == expected.digest);
    CHECK(report.counts.run == expected.counts.run);
    CHECK(report.counts.agreed == expected.counts.agreed);
    CHECK(report.counts.differed == expected.counts.differed);
    CHECK(report.counts.faulted == 1);
    CHECK(report.counts.out_of_budget == 1);
    CHECK(report.counts.unwritten == 1);
    CHECK(report.max_ulp == expected.max_ulp);
    CHECK(report.differing == expected.differing);
    REQUIRE(report.differences.size() == expected.differences.size());
    for (std::size_t i = 0; i < report.differences.size(); ++i) {
      CHECK(report.differences[i].value == expected.differences[i].value);
      CHECK(report.differences[i].reference == expected.differences[i].reference);
      CHECK(report.differences[i].subject == expected.differences[i].subject);
    }
    REQUIRE(report.failures.size() == 3);
    CHECK(report.failures[0].value == value("3412"));
    CHECK(report.failures[0].kind == OutcomeKind::faulted);
    CHECK(report.vector_file == "here/doubling.bwv");
    CHECK(report.notes.front() == "a note of the recording");
  }
}

TEST_CASE("a decoder that takes whole batches is given what returned") {
  Subject subject = doubler();
  std::atomic<std::size_t> given = 0;
  std::atomic<int> finished = 0;
  subject.decode_batch = [&given](std::span<const std::byte> packed, std::span<std::uint32_t> words,
                                  const std::stop_token&) {
    given += packed.size() / 2;
    for (std::size_t i = 0; i < words.size(); ++i) doubler().decode(packed.subspan(2 * i, 2), words.subspan(i, 1));
    return true;
  };
  subject.finish = [&finished] { ++finished; };
  const auto bytes = recorded();
  const RunReport report = replay(VectorFile::parse(bytes, "f"), subject, {.jobs = 2}).report;
  CHECK(report.counts.agreed == 65532);
  CHECK(given == 65533);
  CHECK(finished == 1);
}

TEST_CASE("a damaged file is refused by its lowest damaged block and nothing is reported") {
  auto bytes = recorded();
  // Somewhere in the payloads of two blocks: each takes its share of the file.
  bytes[bytes.size() / 2] ^= std::byte{1};
  bytes[bytes.size() - bytes.size() / 8] ^= std::byte{1};
  std::string told;
  for (int i = 0; i < 10; ++i) {
    try {
      static_cast<void>(replay(VectorFile::parse(bytes, "doubling.bwv"), doubler(), {.jobs = 4}));
      FAIL("not refused");
    } catch (const Error& error) {
      const std::string what = error.what();
      CHECK(what.find("doubling.bwv: block ") == 0);
      if (told.empty()) told = what;
      CHECK(what == told);
    }
  }
}

TEST_CASE("a file of digests names the groups in which a decoder differs") {
  const auto bytes = recorded(VectorDetail::digests);
  const VectorFile file = VectorFile::parse(bytes, "digests.bwv");
  Subject right = doubler();
  right.decode = [](std::span<const std::byte> packed, std::span<std::uint32_t> words) {
    doubler().decode(packed, words);
    if (words[0] == 2 * 0x4567) words[0] = 7;
  };
  const RunReport good = replay(file, right).report;
  CHECK(good.counts.agreed == 65533);
  CHECK(good.counts.differed == 0);
  CHECK(good.digest == file.digest());

  const RunReport report = replay(file, wrong_at(0x77), {.jobs = 3, .limit = 2}).report;
  CHECK(report.verdict() == Verdict::differ);
  CHECK(report.counts.differed == 256 + 32);  // 8 groups, and that of the odd one
  CHECK(report.counts.agreed == 65533 - 256 - 32);
  CHECK(report.differences.empty());
  REQUIRE(report.notes.size() >= 4);
  CHECK(report.notes[1] == "the decoder differs on at least one of the 32 values 60 45 to 7f 45");
  CHECK(report.notes[2] == "the decoder differs on at least one of the 32 values 00 77 to 1f 77");
  CHECK(report.notes[3] == "7 more groups that differ are not listed");

  CHECK_THROWS_WITH(replay(file, right, {.only = {value("0100")}}), contains_text("--values cannot be used"));
  CHECK_THROWS_WITH(replay(file, right, {.known = {value("0100")}}), contains_text("known differences cannot be used"));
}

TEST_CASE("single values are picked, and must be there") {
  const auto bytes = recorded();
  const VectorFile file = VectorFile::parse(bytes, "doubling.bwv");
  const RunReport report = replay(file, doubler(), {.jobs = 2, .only = {value("0100"), value("6745")}}).report;
  CHECK(report.counts.run == 2);
  CHECK(report.counts.agreed == 1);
  CHECK(report.counts.differed == 1);
  CHECK(report.digest.empty());
  CHECK_THROWS_WITH(replay(file, doubler(), {.only = {value("010203")}}), contains_text("01 02 03 has 3"));

  VectorHeader header = file.header();
  header.count = 1;
  header.recorded = {};
  std::vector<std::byte> small;
  VectorWriter writer(header, VectorDetail::words, [&small](std::span<const std::byte> more) {
    small.insert(small.end(), more.begin(), more.end());
  });
  writer.add(value("0200"), std::vector{OutcomeKind::returned}, std::vector<std::uint32_t>{4});
  writer.finish();
  CHECK_THROWS_WITH(replay(VectorFile::parse(small, "small.bwv"), doubler(), {.only = {value("0300")}}),
                    "small.bwv: the value 03 00 is not in it");
}

TEST_CASE("a decoder of other sizes is refused") {
  const auto bytes = recorded();
  Subject subject = doubler();
  subject.word_names = {"a", "b"};
  CHECK_THROWS_WITH(replay(VectorFile::parse(bytes, "f.bwv"), subject),
                    "f.bwv: its values have 2 bytes and 1 words, decoder doubler takes 2 and gives 2");
}

TEST_CASE("an interrupted replay is incomplete") {
  const auto bytes = recorded();
  std::stop_source stop;
  stop.request_stop();
  const RunReport report = replay(VectorFile::parse(bytes, "f"), doubler(), {.stop = stop.get_token()}).report;
  CHECK(report.counts.run == 0);
  CHECK(report.counts.not_run == 65536);
  CHECK(report.digest.empty());
}

TEST_CASE("known differences are told apart from others, and must hold") {
  const auto bytes = recorded();
  const VectorFile file = VectorFile::parse(bytes, "doubling.bwv");
  const auto judge = [&](const std::string& text, const Subject& subject) {
    KnownDifferences known(parse_known_differences(text, "known.toml", true));
    const auto indices = known.concerning(subject.name, "doubling.bwv", 2);
    ReplayOptions options;
    for (const std::size_t index : indices) options.known.push_back(known[index].value);
    Replay result = replay(file, subject, options);
    known.add(result.report, indices, result.known);
    std::vector<RunReport> runs = {result.report};
    for (std::string& note : known.finish(runs)) runs.front().notes.push_back(std::move(note));
    return runs.front();
  };
  const auto entry = [](const std::string& hex, const std::string& more) {
    return "[[known_difference]]\nvalue = \"" + hex + "\"\ndecoder = \"doubler\"\n" + more;
  };
  const std::string good = entry("67 45", "reason = \"the odd one\"\n");
  const auto breaks = [&](const std::string& text, const std::string& why) {
    const RunReport report = judge(text, doubler());
    REQUIRE(report.broken.size() == 1);
    CHECK(report.broken.front().find(why) != std::string::npos);
  };

  const RunReport held = judge(good, doubler());
  CHECK(held.counts.known == 1);
  CHECK(held.counts.differed == 0);
  CHECK(held.counts.agreed == 65532);
  CHECK(held.broken.empty());
  CHECK(held.notes.back() == "known difference 67 45 of decoder doubler (known.toml:1): the odd one");

  breaks(good + entry("68 45", "reason = \"r\"\n"), "68 45 of decoder doubler (known.toml:5) agrees now");
  breaks(entry("67 45", ""), "(known.toml:1) lacks a reason");
  breaks(entry("67 45", "reason = \" \"\n"), "lacks a reason");
  breaks(entry("34 12", "reason = \"r\"\n"), "34 12 of decoder doubler (known.toml:1) has no recorded result");
  breaks(good + entry("67 45 00", "reason = \"r\"\n"),
         "67 45 00 of decoder doubler (known.toml:5) is in none of the files");
  breaks(good + entry("01 00", "reason = \"r\"\nfile = \"other.bwv\"\n"), "is in none of the files");

  const RunReport elsewhere =
      judge("[[known_difference]]\nvalue = \"67 45\"\ndecoder = \"other\"\nreason = \"r\"\n", doubler());
  CHECK(elsewhere.counts.differed == 1);
  CHECK(elsewhere.notes.back().find("was not looked at: that decoder was not run") != std::string::npos);
}

TEST_CASE("a known difference that holds does not spoil a verdict, one that does not hold does") {
  RunReport report;
  report.counts.run = 2;
  report.counts.agreed = 1;
  report.counts.known = 1;
  CHECK(report.verdict() == Verdict::agree);
  report.broken = {"it agrees now"};
  CHECK(report.verdict() == Verdict::differ);
}

TEST_CASE("files of known differences are read strictly") {
  const auto parse = [](const std::string& text) { return parse_known_differences(text, "k.toml", true); };
  CHECK(parse("").empty());
  CHECK_THROWS_WITH(parse("x = 1\n"), contains_text("k.toml:1"));
  CHECK_THROWS_WITH(parse("[[known_difference]]\ndecoder = \"d\"\n"), contains_text("value"));
  CHECK_THROWS_WITH(parse("[[known_difference]]\nvalue = \"0\"\ndecoder = \"d\"\n"), contains_text("k.toml:2"));
  CHECK_THROWS_WITH(parse("[[known_difference]]\nvalue = \"\"\ndecoder = \"d\"\n"), contains_text("no bytes"));
  CHECK_THROWS_WITH(parse("[[known_difference]]\nvalue = \"00\"\n"), contains_text("decoder"));
  CHECK_THROWS_WITH(parse("[[known_difference]]\nvalue = \"00\"\ndecoder = \"d\"\nwhy = \"r\"\n"),
                    contains_text("k.toml:4"));
  const std::string one = "[[known_difference]]\nvalue = \"00\"\ndecoder = \"d\"\nreason = \"r\"\n";
  CHECK_THROWS_WITH(KnownDifferences(parse(one + one)), contains_text("k.toml:5"));
  // One that names no file and one that names it meet in that file.
  const KnownDifferences two(parse(one + one + "file = \"a.bwv\"\n"));
  CHECK(two.concerning("d", "b.bwv", 1).size() == 1);
  CHECK_THROWS_WITH(two.concerning("d", "a.bwv", 1), contains_text("is stated twice for a.bwv"));
}
