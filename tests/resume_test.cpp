#include "decoders/registry.hpp"
#include "harness/cli/decoder_subject.hpp"
#include "harness/cli/progress.hpp"
#include "harness/error.hpp"
#include "harness/resume_file.hpp"
#include "harness/verification.hpp"
#include "tests/catch.hpp"
#include "tests/doubling.hpp"
#include "tests/random.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

/// A path that is removed in the end.
struct StateFile {
  std::string path = (fs::temp_directory_path() / ("bitwitness-resume-" + std::to_string(::getpid()))).string();
  StateFile() { fs::remove(path); }
  ~StateFile() { fs::remove(path); }
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;
};

/// A run that can be done at once or in several sessions.
struct Case {
  const Image& image;
  Routine routine;
  Subject subject;
  std::vector<Environment> environments = {{}};
  ValueSet values;
  RunOptions options = {};

  [[nodiscard]] RunStateShape shape() const {
    return {environments.size(), options.limit, routine.signature.word_count(), values};
  }
};

std::string json_of(EnvironmentReports reports) {
  Report report;
  report.runs = std::move(reports.runs);
  if (report.runs.size() > 1) report.environments.push_back(std::move(reports.effects));
  return to_json(report) + to_text(report);
}

std::string at_once(const Case& work) {
  return json_of(
      verify_environments(work.image, work.routine, work.subject, work.environments, work.values, work.options));
}

const RunFingerprint fingerprint = {{"the image", "x"}, {"the decoder", "y"}};

struct Session {
  std::string json;
  bool is_complete = false;
  std::uint64_t done = 0;
  std::uint64_t resumed = 0;
};

/// Goes on with a file until so many chunks more are done, and keeps them.
Session go_on(const Case& work, const std::string& path, unsigned jobs, std::uint64_t chunks) {
  ResumeFile file(path);
  file.load(fingerprint, 1);
  std::stop_source stop;
  RunKeeping keeping;
  keeping.from = file.state(0, work.shape());
  std::uint64_t more = 0;
  keeping.is_due = [&] {
    if (++more >= chunks) stop.request_stop();
    return more % 3 == 0;
  };
  Session session;
  keeping.keep = [&](const RunState& state) {
    file.keep(0, state);
    session.is_complete = state.is_complete;
    session.done = state.found.each.front().tally.counts.run;
  };
  RunOptions options = work.options;
  options.jobs = jobs;
  options.stop = stop.get_token();
  options.keeping = &keeping;
  options.progress = [&](const Progress& progress) { session.resumed = progress.resumed; };
  session.json =
      json_of(verify_environments(work.image, work.routine, work.subject, work.environments, work.values, options));
  return session;
}

/// Interrupts a run after random numbers of chunks, on random numbers of threads, until it is done, and compares its
/// report with that of one run.
void check_resumed(Case work, std::uint64_t seed, std::uint64_t most_chunks) {
  INFO("seed " << seed);
  Random random(seed);
  const std::string whole = at_once(work);
  const StateFile file;
  std::uint64_t sessions = 0;
  std::uint64_t done = 0;
  Session session;
  for (; !session.is_complete; ++sessions) {
    REQUIRE(sessions < 1000);
    session = go_on(work, file.path, 1 + static_cast<unsigned>(random.below(4)), 1 + random.below(most_chunks));
    CHECK(session.done >= done);
    done = session.done;
    if (!session.is_complete && session.done < work.values.size()) CHECK(session.json != whole);
  }
  CHECK(sessions > 2);
  CHECK(session.json == whole);

  // What is done is told again without a witness.
  work.options.make_machine = [](const Image&, const Routine&, const MachineOptions&) -> std::unique_ptr<Machine> {
    throw Error("something was executed");
  };
  work.subject.finish = [] { throw Error("something was ended"); };
  CHECK(go_on(work, file.path, 2, 1).json == whole);
}

bool is_near(double a, double b) {
  return std::abs(a - b) <= 1e-6 * b;
}

/// Doubles a u16 and says of every value whose low byte is 7 that two witnesses dispute it.
class DisputingMachine final : public Machine {
 public:
  explicit DisputingMachine(std::function<void()> explaining) : explaining_(std::move(explaining)) {}

  void run(Batch& out, std::span<const std::byte> packed, const Environment&) override {
    out = {};
    for (std::size_t i = 0; i < packed.size() / 2; ++i) {
      const bool is_disputed = packed[2 * i] == std::byte{7};
      const auto value =
          std::to_integer<std::uint32_t>(packed[2 * i]) | std::to_integer<std::uint32_t>(packed[2 * i + 1]) << 8;
      out.words.push_back(2 * value);
      out.outcomes.push_back(is_disputed ? OutcomeKind::disputed : OutcomeKind::returned);
      if (is_disputed) out.incidents.push_back({i, OutcomeKind::disputed, 0, {}, "they part"});
    }
  }
  void run_alone(Batch& out, std::span<const std::byte> packed, const Environment& environment) override {
    run(out, packed, environment);
  }
  void explain(Incident& incident, std::span<const std::byte>, const Environment&) override {
    incident.address = 0x401000;
    incident.instruction = "nop";
    incident.reason += " there";
    explaining_();
  }
  [[nodiscard]] const std::map<std::string, Observation>& observations() const override { return observations_; }
  void forget_observations() override {}
  [[nodiscard]] std::string_view witness() const override { return "disputing"; }

 private:
  std::function<void()> explaining_;
  std::map<std::string, Observation> observations_;
};

Image translations(const std::string& bits = "32") {
  return Image::load(BITWITNESS_FIXTURES_DIR "/translations" + bits + ".dll");
}

Case translation(const Image& image, const std::string& name, const std::vector<std::string>& sources) {
  const Subject subject = cli::subject_of(*decoders::find_decoder("translation_11_11_10"));
  return {image,
          {name, image.resolve("export:unpack_" + name),
           parse_signature(image.format() == ImageFormat::pe32 ? "cdecl(in u32, out f32[3])"
                                                               : "win64(in u32, out f32[3])")},
          subject,
          {{}},
          values_of(subject, sources)};
}

Case doubling_case(const Image& image, bool unstable = false) {
  Case work{image, doubling(), doubler(), {{}}, values_of(doubler(), {"all"}), with_doubling(1, unstable)};
  work.options.limit = 2;
  return work;
}

/// Writes a state after so many chunks, and returns the file's bytes.
std::string kept_bytes(const Case& work, std::uint64_t chunks) {
  const StateFile file;
  go_on(work, file.path, 1, chunks);
  std::ifstream in(file.path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  REQUIRE(out.flush());
}

/// Ends a file's bytes with their digest.
std::string sealed(std::string bytes) {
  bytes.resize(bytes.size() - sizeof(Sha256Bytes));
  Sha256 hash;
  hash.update(std::as_bytes(std::span(bytes)));
  const Sha256Bytes digest = hash.digest();
  return bytes.append(reinterpret_cast<const char*>(digest.data()), digest.size());
}

/// Reads a file as a run of that case does and returns what is complained of, or nothing.
std::string complaint(const Case& work, const std::string& path, const RunFingerprint& of = fingerprint) {
  try {
    ResumeFile file(path);
    file.load(of, 1);
    static_cast<void>(file.state(0, work.shape()));
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("a run in any number of sessions, on any number of threads, reports what one without interruption does") {
  const Image image = any_image();
  for (const bool unstable : {false, true}) {
    for (const std::uint64_t seed : {1U, 2U, 3U}) check_resumed(doubling_case(image, unstable), seed, 2);
  }
}

TEST_CASE("several environments are done together, and what differs between them is kept") {
  const Image image = any_image();
  const Subject subject = cli::subject_of(*decoders::find_decoder("packed_quat48"));
  Case work{image,
            {"packed_quat48", 0x103f1d0, parse_signature("cdecl(in u8[6], out f32[4])")},
            subject,
            {{.fpcw = 0x027f}, {.fpcw = 0x007f}, {.fpcw = 0x037f}},
            values_of(subject, {"special", "random:60000"})};
  check_resumed(std::move(work), 4, 3);
}

TEST_CASE("a shard's part is kept") {
  const Image image = any_image();
  Case work = doubling_case(image);
  work.values =
      ValueSet::build(2, work.subject.fields, std::vector<std::string>{"all"}, {.shard = {1, 2}, .corpus = {}});
  check_resumed(std::move(work), 5, 1);
}

TEST_CASE("chunks of a routine with memory of its own, of one that fails, and of both kinds of code are kept") {
  const Image image = translations();
  for (const std::string name : {"sse2", "x87", "counting", "failing"}) {
    INFO(name);
    Case work = translation(image, name, {"special", "random:40000"});
    if (name == "failing") {
      work.values =
          values_of(work.subject, {"hex:23010000", "hex:56040100", "hex:89070200", "hex:bc0a0300", "random:40000"});
      work.options.machine.budget = 10'000;
    }
    const std::string whole = at_once(work);
    CHECK((whole.find("\"verdict\": \"agree\"") != std::string::npos) == (name == "sse2" || name == "x87"));
    check_resumed(std::move(work), 6, 3);
  }
}

TEST_CASE("a run on the processor is kept as one in the emulator is") {
  // Not every system runs 32-bit code.
  const Image image = translations("64");
  for (const std::string name : {"sse2", "counting", "failing"}) {
    INFO(name);
    Case work = translation(image, name, {"hex:23010000", "hex:56040100", "random:40000"});
    work.options.machine.budget = 10'000;
    work.options.make_machine = [](const Image& of, const Routine& routine, const MachineOptions& options) {
      return make_host_machine(of, routine, options);
    };
    check_resumed(std::move(work), 7, 3);
  }
}

TEST_CASE("what is explained in the end is explained once, also when that is interrupted") {
  const Image image = any_image();
  std::stop_source* stop = nullptr;
  Case work = doubling_case(image);
  work.options.make_machine = [&stop](const Image&, const Routine&, const MachineOptions&) {
    return std::make_unique<DisputingMachine>([&stop] {
      if (stop != nullptr) stop->request_stop();
    });
  };
  const std::string whole = at_once(work);
  CHECK(whole.find("they part there\"") != std::string::npos);
  check_resumed(std::move(work), 8, 3);

  // The last chunk is done, and the stop comes while the first failure is explained.
  Case again = doubling_case(image);
  again.options.make_machine = [&stop](const Image&, const Routine&, const MachineOptions&) {
    return std::make_unique<DisputingMachine>([&stop] {
      if (stop != nullptr) stop->request_stop();
    });
  };
  std::stop_source now;
  stop = &now;
  std::optional<std::string> kept;
  RunKeeping keeping;
  keeping.is_due = [] { return false; };
  keeping.keep = [&kept](const RunState& state) {
    CHECK_FALSE(state.is_complete);
    kept = to_bytes(state);
  };
  again.options.keeping = &keeping;
  again.options.stop = now.get_token();
  static_cast<void>(at_once(again));
  stop = nullptr;
  REQUIRE(kept);
  keeping.from = read_run_state({std::as_bytes(std::span(*kept)), 0, "kept"}, again.shape());
  keeping.keep = [](const RunState& state) { CHECK(state.is_complete); };
  again.options.stop = {};
  CHECK(at_once(again) == whole);
}

TEST_CASE("progress counts what was done before, and says how much that is") {
  const Image image = any_image();
  const Case work = doubling_case(image);
  const StateFile file;
  CHECK(go_on(work, file.path, 1, 3).resumed == 0);
  CHECK(go_on(work, file.path, 1, 100).resumed == 3 * values_per_chunk);
}

TEST_CASE("a file that was cut, or changed in any byte, is refused with the offset") {
  const Image image = any_image();
  const Case work = doubling_case(image);
  const std::string bytes = kept_bytes(work, 5);
  REQUIRE(bytes.size() > 500);
  const StateFile file;
  put_bytes(file.path, bytes);
  CHECK(complaint(work, file.path) == "");
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    INFO("byte " << at);
    for (const int bit : {1, 128}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ bit);
      put_bytes(file.path, changed);
      REQUIRE(complaint(work, file.path).starts_with(file.path + ": offset "));
    }
    put_bytes(file.path, bytes.substr(0, at));
    // An empty file has nothing: the run starts.
    REQUIRE((complaint(work, file.path).empty() == (at == 0)));
  }
  put_bytes(file.path, bytes + "x");
  CHECK(complaint(work, file.path).find(": offset ") != std::string::npos);
  put_bytes(file.path, "a file of somebody else's\n");
  CHECK(complaint(work, file.path) == file.path + ": offset 0: is not a file that keeps a run");
  std::string newer = bytes;
  newer[8] = 2;
  put_bytes(file.path, sealed(newer));
  CHECK(complaint(work, file.path) == file.path + ": offset 8: version 2 is not known, only 1");
}

TEST_CASE("a file whose digest was made to fit is read strictly") {
  const Image image = any_image();
  const Case work = doubling_case(image);
  const std::string bytes = kept_bytes(work, 5);
  const StateFile file;
  std::size_t refused = 0;
  for (std::size_t at = 0; at + sizeof(Sha256Bytes) < bytes.size(); ++at) {
    for (const int bits : {1, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ bits);
      put_bytes(file.path, sealed(changed));
      const std::string said = complaint(work, file.path);
      if (!said.empty()) REQUIRE(said.starts_with(file.path + ": "));
      refused += said.empty() ? 0U : 1U;
      if (!said.empty()) continue;
      ResumeFile accepted(file.path);
      accepted.load(fingerprint, 1);
      const RunState state = accepted.state(0, work.shape());
      const Counts& counts = state.found.each.front().tally.counts;
      REQUIRE(counts.run == 5 * values_per_chunk);
      REQUIRE(counts.agreed + counts.differed + counts.without_result() == counts.run);
      REQUIRE(state.digests.count() == 5);
      for (const auto& [position, failure] : state.found.each.front().tally.failures.by_position()) {
        Bytes value(2);
        work.values.read(position, value);
        REQUIRE(failure.value == value);
      }
      REQUIRE_FALSE(state.is_complete);
    }
  }
  CHECK(refused > 500);
}

TEST_CASE("a file of another run is refused, and what differs is named") {
  const Image image = any_image();
  const Case work = doubling_case(image);
  const StateFile file;
  put_bytes(file.path, kept_bytes(work, 2));
  const std::string start = file.path + ": is of another run (old → new): ";
  CHECK(complaint(work, file.path, {{"the image", "x"}, {"the decoder", "z\n"}}) ==
        start + "the decoder 'y' → 'z\\x0a'");
  CHECK(complaint(work, file.path, {{"the image", "x"}}) == start + "the decoder 'y' → none");
  CHECK(complaint(work, file.path, {{"the image", "x"}, {"the decoder", "y"}, {"a thing", "t"}}) ==
        start + "a thing none → 't'");
}

TEST_CASE("one process at a time uses a file, and one that was only opened is gone again") {
  const Image image = any_image();
  const StateFile file;
  {
    const ResumeFile first(file.path);
    CHECK(fs::exists(file.path));
    CHECK_THROWS_WITH(ResumeFile(file.path), file.path + ": another process is using it");
  }
  CHECK_FALSE(fs::exists(file.path));
  const Case work = doubling_case(image);
  ResumeFile again(file.path);
  again.load(fingerprint, 1);
  again.keep(0, RunState(1, 2, 1, true));
  // Its name leads to another file now, which is locked as well.
  CHECK_THROWS_WITH(ResumeFile(file.path), file.path + ": another process is using it");
  CHECK_THROWS_WITH(ResumeFile("/dev/null"), "/dev/null: is not a regular file");
}

TEST_CASE("the rate is that of the last seconds, or of as many steps as there are in longer ones") {
  using cli::RateMeter;
  const RateMeter::Time start{};
  const auto at = [start](double seconds) {
    return start + std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
  };
  RateMeter meter(start);
  CHECK(meter.rate(at(0.1)) == 0);
  meter.add(at(0.1), 100);
  CHECK(meter.rate(at(0.1)) == 0);
  for (int i = 2; i <= 100; ++i) meter.add(at(0.1 * i), 100ULL * static_cast<unsigned>(i));
  CHECK(is_near(meter.rate(at(10)), 1000));
  for (int i = 1; i <= 1000; ++i) meter.add(at(10 + 0.1 * i), 10'000 + 10ULL * static_cast<unsigned>(i));
  CHECK(is_near(meter.rate(at(110)), 100));
  // Nothing more comes: the rate falls.
  CHECK(meter.rate(at(150)) < 20);

  RateMeter slow(start);
  for (int i = 1; i <= 5; ++i) {
    slow.add(at(60.0 * i), 8192ULL * static_cast<unsigned>(i));
    for (const double later : {1.0, 30.0, 59.0}) {
      INFO(i << " steps and " << later << " s");
      CHECK(is_near(slow.rate(at(60.0 * i + later)), 8192.0 / 60));
    }
  }
}

TEST_CASE("an estimate counts what is left, and leaves out short runs") {
  CHECK(cli::estimate_text("r 1/1", {.done = 0, .total = 29'000, .differed = 0, .resumed = 0}, 1000) == "");
  CHECK(cli::estimate_text("r 1/1", {.done = 1000, .total = 4'294'967'296, .differed = 0, .resumed = 0}, 1e6) ==
        "r 1/1: 4294967296 values: about 72 min left at the present 1000000/s");
  CHECK(cli::estimate_text("r 1/1", {.done = 900'000, .total = 1'000'000, .differed = 0, .resumed = 800'000}, 1000) ==
        "r 1/1: 1000000 values, 800000 of them done before: about 100 s left at the present 1000/s");
}
