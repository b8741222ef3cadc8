#include "harness/recording.hpp"

#include "harness/replaying.hpp"
#include "harness/verification.hpp"
#include "tests/catch.hpp"
#include "tests/doubling.hpp"

#include <atomic>
#include <chrono>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

struct Recorded {
  std::vector<std::byte> bytes;
  std::string digest;
  Recording recording;
};

VectorHeader header_for_doubling() {
  VectorHeader header;
  header.tool_version = "test";
  header.decoder = "doubler";
  header.word_names = {"twice"};
  header.word_kind = WordKind::u32;
  header.fields = {{"value", 0, 16}};
  return header;
}

Recorded record_doubling(const RunOptions& options, const std::vector<std::string>& sources = {"all"},
                         VectorDetail detail = VectorDetail::words) {
  const Image image = any_image();
  Recorded out;
  const auto sink = [&out](std::span<const std::byte> bytes) {
    out.bytes.insert(out.bytes.end(), bytes.begin(), bytes.end());
  };
  out.recording = record(header_for_doubling(), image, doubling(), {}, values_of(doubler(), sources), options);
  if (out.recording.is_whole) out.digest = out.recording.write(sink, detail);
  return out;
}

/// Answers late where the value is low, so that threads finish their chunks in another order than they took them.
class LateMachine final : public Machine {
 public:
  void run(Batch& out, std::span<const std::byte> packed, const Environment& environment) override {
    inner_.run(out, packed, environment);
    const auto high = std::to_integer<int>(packed[1]);
    std::this_thread::sleep_for(std::chrono::milliseconds(high < 0x40 ? 30 : 1));
  }
  void run_alone(Batch& out, std::span<const std::byte> packed, const Environment& environment) override {
    inner_.run_alone(out, packed, environment);
  }
  [[nodiscard]] const std::map<std::string, Observation>& observations() const override {
    return inner_.observations();
  }
  void forget_observations() override { inner_.forget_observations(); }
  [[nodiscard]] std::string_view witness() const override { return inner_.witness(); }

 private:
  DoublingMachine inner_{false};
};

RunOptions late(unsigned jobs) {
  RunOptions options;
  options.jobs = jobs;
  options.make_machine = [](const Image&, const Routine&, const MachineOptions&) {
    return std::make_unique<LateMachine>();
  };
  return options;
}

}  // namespace

TEST_CASE("a recording has what the witness gave, with its header") {
  const Recorded recorded = record_doubling(with_doubling());
  CHECK(recorded.recording.is_whole);
  CHECK(recorded.recording.counts.run == 65536);
  CHECK(recorded.recording.counts.faulted == 1);
  CHECK(recorded.recording.counts.out_of_budget == 1);
  CHECK(recorded.recording.counts.unwritten == 1);
  CHECK(recorded.recording.counts.not_run == 0);
  const VectorFile file = VectorFile::parse(recorded.bytes, "doubling");
  const VectorHeader& header = file.header();
  CHECK(header.routine == "doubling");
  CHECK(header.address == 0x103f1d0);
  CHECK(header.signature == "cdecl(value u16) -> u32");
  CHECK(header.routine_sha256.size() == 64);
  CHECK(header.image_sha256 == any_image().sha256());
  CHECK(header.stand_in);
  CHECK(header.witness == "doubling");
  CHECK(header.sources == std::vector<std::string>{"all"});
  CHECK(header.shard.empty());
  CHECK(header.count == 65536);
  const VectorBlock block = file.block(0);
  CHECK(block.words[0x1000] == 0x2000);
  CHECK(block.outcomes[0x1234] == OutcomeKind::faulted);
  CHECK(block.words[0x1234] == 0);
  CHECK(file.block(1).outcomes[0x345] == OutcomeKind::out_of_budget);
  CHECK(file.block(1).outcomes[0x1456] == OutcomeKind::unwritten);
}

TEST_CASE("its digest is that of a verification") {
  const Image image = any_image();
  const Subject subject = doubler();
  const RunReport report = verify(image, doubling(), subject, {}, values_of(subject, {"all"}), with_doubling());
  const Recorded recorded = record_doubling(with_doubling());
  CHECK(recorded.digest == report.digest);
  CHECK(VectorFile::parse(recorded.bytes, "doubling").digest() == report.digest);
}

TEST_CASE("recordings are the same bytes on any number of threads") {
  const Recorded one = record_doubling(late(1));
  CHECK(record_doubling(late(2)).bytes == one.bytes);
  CHECK(record_doubling(late(5)).bytes == one.bytes);
  const Recorded digests = record_doubling(late(1), {"all"}, VectorDetail::digests);
  CHECK(record_doubling(late(3), {"all"}, VectorDetail::digests).bytes == digests.bytes);
}

TEST_CASE("what happened beside the results is in the header") {
  const Recorded recorded = record_doubling(with_doubling());
  const VectorHeader header = VectorFile::parse(recorded.bytes, "doubling").header();
  CHECK(header.notes.empty());
  CHECK(header.recorded.facts == std::vector<Fact>{{"hums", 1, parse_hex("7856")}});
  CHECK(header.recorded.facts_left_out == 0);
  CHECK(header.recorded.limit == 20);
  REQUIRE(header.recorded.failures.size() == 3);
  CHECK(to_hex(header.recorded.failures[0].value) == "34 12");
  CHECK(header.recorded.failures[0].reason == "faults");
  CHECK(header.recorded.failures[2].kind == OutcomeKind::unwritten);
  CHECK(header.recorded.isolation.sampled > 1);
  CHECK(header.recorded.isolation.unstable == 0);
  CHECK(notes_of(header) == std::vector<std::string>{"on 1 value the routine hums (first: 78 56)"});
}

TEST_CASE("words that a value alone does not give are no reference: the replay says so as a verification does") {
  const Image image = any_image();
  RunOptions options = with_doubling(1, true);
  options.limit = 1;
  const Recorded recorded = record_doubling(options);
  REQUIRE(recorded.recording.isolation.unstable == 1);
  const VectorFile file = VectorFile::parse(recorded.bytes, "doubling");
  CHECK(file.header().recorded.failures.size() == 1);
  const Subject subject = doubler();
  const RunReport verified = verify(image, doubling(), subject, {}, values_of(subject, {"all"}), options);
  const RunReport replayed = replay(file, subject).report;
  CHECK(replayed.verdict() == verified.verdict());
  CHECK(replayed.isolation.sampled == verified.isolation.sampled);
  CHECK(replayed.isolation.unstable == 1);
  CHECK(to_hex(replayed.isolation.first_value) == "ff ff");
  REQUIRE(replayed.failures.size() == 3);
  CHECK(replayed.failures[0].reason == "faults (so it was recorded)");
  CHECK(replayed.failures[0].address == 0x401000);
  CHECK(replayed.failures[1].reason == "so it was recorded");

  // Without anything else that is wrong.
  const Recorded stable = record_doubling(with_doubling(), {"hex:ffff", "hex:0000"});
  const Recorded alone = record_doubling(with_doubling(1, true), {"hex:ffff", "hex:0000"});
  CHECK(replay(VectorFile::parse(stable.bytes, "s"), subject).report.verdict() == Verdict::agree);
  CHECK(replay(VectorFile::parse(alone.bytes, "a"), subject).report.verdict() == Verdict::differ);
  ReplayOptions one;
  one.only = {parse_hex("0000")};
  CHECK(replay(VectorFile::parse(alone.bytes, "a"), subject, one).report.verdict() == Verdict::differ);
}

TEST_CASE("a header has no more in it than a reader takes, and says what was left out") {
  VectorHeader header = header_for_doubling();
  header.packed_size = 2;
  header.word_count = 1;
  header.count = 60'000;
  header.recorded.limit = 60'000;
  for (std::size_t i = 0; i < 30'000; ++i) {
    const std::vector<std::byte> value = {static_cast<std::byte>(i & 0xff), static_cast<std::byte>(i >> 8)};
    header.recorded.failures.push_back({value, OutcomeKind::faulted, 0x401000, "nop", "a \"reason\" \xff"});
  }
  const auto is_written = [](const VectorHeader& written) {
    std::vector<std::byte> bytes;
    const auto sink = [&bytes](std::span<const std::byte> more) {
      bytes.insert(bytes.end(), more.begin(), more.end());
    };
    VectorHeader empty = written;
    empty.count = 0;
    empty.recorded.failures.clear();
    VectorWriter(empty, VectorDetail::words, sink).finish();
    static_cast<void>(VectorWriter(written, VectorDetail::words, sink));
    return bytes.size();
  };
  CHECK_THROWS_WITH(is_written(header), contains_text("its header would have"));
  fit_header(header);
  CHECK(is_written(header) > 1'000'000);
  CHECK(header.recorded.failures.size() < 30'000);
  CHECK(header.recorded.limit == header.recorded.failures.size());
  CHECK(header.recorded.facts_left_out == 0);
  const std::size_t kept = header.recorded.failures.size();
  fit_header(header);
  CHECK(header.recorded.failures.size() == kept);

  header.recorded.failures.clear();
  header.recorded.path = {std::string(200'000, 'p'), std::string(2'000'000, 'p')};
  for (std::size_t i = 0; i < 40'000; ++i) {
    header.recorded.facts.push_back({"writes 4 bytes at " + std::to_string(100'000 + i), 1, parse_hex("0000")});
  }
  fit_header(header);
  CHECK(header.recorded.facts_left_out == 40'000);
  CHECK(header.recorded.path.back() == "1 notes about the first value were left out: no room for them");
  CHECK_THAT(notes_of(header).back(), contains_text("40000 more facts were left out"));

  VectorHeader noted = header_for_doubling();
  noted.notes = {std::string((std::size_t{1} << 20) - 2000, 'n')};
  CHECK_THROWS_WITH(record(noted, any_image(), doubling(), {}, values_of(doubler(), {"all"}), with_doubling()),
                    contains_text("before anything has run"));
}

TEST_CASE("an interrupted recording is not whole and cannot be written") {
  std::stop_source stop;
  RunOptions options = late(2);
  options.stop = stop.get_token();
  options.progress = [&stop](const Progress&) { stop.request_stop(); };
  const Recorded recorded = record_doubling(options);
  CHECK_FALSE(recorded.recording.is_whole);
  CHECK(recorded.recording.counts.run > 0);
  CHECK(recorded.recording.counts.not_run > 0);
  CHECK_THROWS_WITH(recorded.recording.write([](std::span<const std::byte>) {}, VectorDetail::words),
                    contains_text("interrupted"));
}

TEST_CASE("what a witness throws ends a recording, with nothing written") {
  class Throwing final : public Machine {
   public:
    void run(Batch&, std::span<const std::byte> packed, const Environment&) override {
      throw Error("chunk of " + to_hex(packed.first(2)));
    }
    void run_alone(Batch&, std::span<const std::byte>, const Environment&) override {}
    [[nodiscard]] const std::map<std::string, Observation>& observations() const override { return none_; }
    void forget_observations() override {}
    [[nodiscard]] std::string_view witness() const override { return "throwing"; }

   private:
    std::map<std::string, Observation> none_;
  };
  RunOptions options;
  options.jobs = 4;
  options.make_machine = [](const Image&, const Routine&, const MachineOptions&) {
    return std::make_unique<Throwing>();
  };
  CHECK_THROWS_WITH(record_doubling(options), "chunk of 00 00");
}

TEST_CASE("a header that does not fit is refused before anything runs") {
  const Image image = any_image();
  VectorHeader header = header_for_doubling();
  header.word_names = {"a", "b"};
  std::atomic<int> made = 0;
  RunOptions options = with_doubling();
  options.make_machine = [&made](const Image&, const Routine&, const MachineOptions&) {
    ++made;
    return std::make_unique<DoublingMachine>(false);
  };
  CHECK_THROWS_AS(record(header, image, doubling(), {}, values_of(doubler(), {"all"}), options), Error);
  const ValueSet wide = ValueSet::build(4, {}, std::vector<std::string>{"hex:00000000"});
  CHECK_THROWS_WITH(record(header_for_doubling(), image, doubling(), {}, wide, options),
                    "the values have 4 bytes, routine doubling takes 2");
  CHECK(made == 0);
}
