#include "harness/error.hpp"
#include "harness/verification.hpp"
#include "tests/catch.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

// How verification uses a subject that decodes whole batches.

using namespace bitwitness;

namespace {

constexpr std::uint16_t faults = 0x1234;
constexpr std::uint16_t differs = 0x4567;
constexpr std::uint16_t first_refused = 8200;

std::uint16_t u16_at(std::span<const std::byte> bytes) {
  std::uint16_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// Doubles a u16; one value faults, one comes out wrong.
class Doubling final : public Machine {
 public:
  void run(Batch& out, std::span<const std::byte> packed, const Environment&) override {
    const std::size_t count = packed.size() / 2;
    out.words.resize(count);
    out.outcomes.assign(count, OutcomeKind::returned);
    out.incidents.clear();
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint16_t value = u16_at(packed.subspan(2 * i, 2));
      out.words[i] = value == differs ? 7U : 2U * value;
      if (value != faults) continue;
      out.outcomes[i] = OutcomeKind::faulted;
      out.incidents.push_back({i, OutcomeKind::faulted, 0x401000, "nop", "faults"});
    }
  }
  void run_alone(Batch& out, std::span<const std::byte> packed, const Environment& environment) override {
    run(out, packed, environment);
  }
  [[nodiscard]] const std::map<std::string, Observation>& observations() const override { return observations_; }
  void forget_observations() override { observations_.clear(); }
  [[nodiscard]] std::string_view witness() const override { return "doubling"; }

 private:
  std::map<std::string, Observation> observations_;
};

/// What a batch subject was asked for.
struct Calls {
  std::atomic<std::size_t> values = 0;
  std::atomic<std::size_t> batches = 0;
  std::atomic<std::size_t> finished = 0;
  std::atomic<bool> saw_fault = false;
};

Subject doubler(Calls& calls, const std::vector<std::uint16_t>& refuses = {}) {
  Subject subject;
  subject.name = "doubler.so:f";
  subject.option = "/here/doubler.so:f";
  subject.notes = {"a note of the decoder"};
  subject.packed_size = 2;
  subject.word_names = {"twice"};
  subject.fields = {{"value", 0, 16}};
  subject.word_kind = WordKind::u32;
  subject.decode = [](std::span<const std::byte>, std::span<std::uint32_t>) { throw Error("not to be called"); };
  subject.decode_batch = [&calls, refuses](std::span<const std::byte> packed, std::span<std::uint32_t> words,
                                           const std::stop_token& stop) {
    ++calls.batches;
    calls.values += words.size();
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::uint16_t value = u16_at(packed.subspan(2 * i, 2));
      if (value == faults) calls.saw_fault = true;
      // Others get the time to fail on later values first.
      if (value == first_refused && !refuses.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(30));
      if (std::ranges::count(refuses, value) != 0) throw Error("refuses " + std::to_string(value));
      words[i] = 2U * value;
    }
    return !stop.stop_requested();
  };
  subject.finish = [&calls] { ++calls.finished; };
  return subject;
}

RunReport run(const Subject& subject, unsigned jobs, std::stop_token stop = {}) {
  static const Image image = Image::load(BITWITNESS_STAND_INS_DIR "/stand_in_x87.exe");
  const Routine routine = {"doubling", 0x103f1d0, parse_signature("cdecl(value u16) -> u32")};
  VerifyOptions options;
  options.jobs = jobs;
  options.stop = std::move(stop);
  options.make_machine = [](const Image&, const Routine&, const MachineOptions&) {
    return std::make_unique<Doubling>();
  };
  const std::vector<std::string> sources = {"all"};
  return verify(image, routine, subject, {}, ValueSet::build(2, {}, sources), options);
}

}  // namespace

TEST_CASE("a batch subject is asked once for the values that returned, and ended") {
  Calls calls;
  const RunReport report = run(doubler(calls), 2);
  CHECK(calls.batches == 8);
  CHECK(calls.values == 65535);
  CHECK_FALSE(calls.saw_fault);
  CHECK(calls.finished == 1);
  CHECK(report.counts.run == 65536);
  CHECK(report.counts.agreed == 65534);
  CHECK(report.counts.faulted == 1);
  CHECK(report.counts.differed == 1);
  REQUIRE(report.differences.size() == 1);
  CHECK(to_hex(report.differences[0].value) == "67 45");
  CHECK(report.differences[0].reference == std::vector<std::uint32_t>{7});
  CHECK(report.differences[0].subject == std::vector<std::uint32_t>{2 * differs});
  CHECK(report.notes == std::vector<std::string>{"a note of the decoder"});
  CHECK(report.decoder_option == "/here/doubler.so:f");
}

TEST_CASE("a batch subject that fails ends the run, and the first batch that fails is told on any number of threads") {
  for (const unsigned jobs : {1U, 2U, 8U}) {
    for (int i = 0; i < 20; ++i) {
      Calls calls;
      const Subject subject = doubler(calls, {60000, 30000, first_refused});
      CHECK_THROWS_WITH(run(subject, jobs), "refuses 8200");
      CHECK(calls.finished == 0);
    }
  }
}

TEST_CASE("a failure at the end ends the run, too") {
  Calls calls;
  Subject subject = doubler(calls);
  subject.finish = [] { throw Error("no good end"); };
  CHECK_THROWS_WITH(run(subject, 2), "no good end");
}

TEST_CASE("values whose decoding was stopped count as not run") {
  Calls calls;
  std::stop_source stop;
  Subject subject = doubler(calls);
  const auto decode = subject.decode_batch;
  subject.decode_batch = [&](std::span<const std::byte> packed, std::span<std::uint32_t> words,
                             const std::stop_token& token) {
    if (calls.batches == 3) stop.request_stop();
    return decode(packed, words, token);
  };
  const RunReport report = run(subject, 1, stop.get_token());
  CHECK(report.counts.run == 3 * 8192);
  CHECK(report.counts.not_run == 5 * 8192);
  CHECK(report.verdict() != Verdict::agree);
  CHECK(calls.finished == 0);
}
