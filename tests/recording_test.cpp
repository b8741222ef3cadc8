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

TEST_CASE("what happened beside the results is noted in the header") {
  const Recorded recorded = record_doubling(with_doubling());
  const std::vector<std::string> notes = VectorFile::parse(recorded.bytes, "doubling").header().notes;
  REQUIRE(notes.size() == 4);
  CHECK(notes[0] == "on 1 value the routine hums (first: 78 56)");
  CHECK(notes[1] == "no result for 34 12: faulted at 0x401000, nop: faults");
  CHECK(notes[3] == "no result for 56 34: unwritten at 0x401000, nop: writes nothing");

  RunOptions options = with_doubling(1, true);
  options.limit = 1;
  const Recorded unstable = record_doubling(options);
  CHECK(unstable.recording.isolation.unstable == 1);
  const std::vector<std::string>& more = unstable.recording.header.notes;
  REQUIRE(more.size() == 4);
  CHECK(more[1].find("gave other words than in the batch; first ff ff") != std::string::npos);
  CHECK(more[3] == "2 more values without a result are not listed");
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
