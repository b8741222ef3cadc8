#include "harness/merging.hpp"

#include "harness/error.hpp"
#include "harness/recording.hpp"
#include "harness/report_reader.hpp"
#include "harness/verification.hpp"
#include "tests/catch.hpp"
#include "tests/report_samples.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

constexpr std::uint64_t shard_count = 3;

std::uint16_t number_of(std::span<const std::byte> value) {
  std::uint16_t number = 0;
  std::memcpy(&number, value.data(), sizeof number);
  return number;
}

/// A witness made of plain code, on whose 65,536 values everything happens that a report may say, in every shard; what
/// it gives for a value depends on how many of its batch came before, as with a routine that has memory of its own.
class BusyMachine final : public Machine {
 public:
  void run(Batch& out, std::span<const std::byte> packed, const Environment& environment) override {
    fill(out, packed, environment, false);
  }
  void run_alone(Batch& out, std::span<const std::byte> packed, const Environment& environment) override {
    fill(out, packed, environment, true);
  }
  std::vector<std::string> path(std::span<const std::byte> packed, const Environment&) override {
    return {"reads the clock, for " + to_hex(packed)};
  }
  [[nodiscard]] const std::map<std::string, Observation>& observations() const override { return observations_; }
  void forget_observations() override { observations_.clear(); }
  [[nodiscard]] std::string_view witness() const override { return "busy"; }

 private:
  void fill(Batch& out, std::span<const std::byte> packed, const Environment& environment, bool alone) {
    const std::size_t count = packed.size() / 2;
    out.words.resize(count);
    out.outcomes.assign(count, OutcomeKind::returned);
    out.incidents.clear();
    out.unfinished = false;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint16_t number = number_of(packed.subspan(2 * i, 2));
      out.words[i] = number + environment.fpcw % 2;
      if (number % 1000 == 7) out.words[i] += static_cast<std::uint32_t>(i);  // differs
      if (number % 16384 == 0 && alone) out.words[i] ^= 1;                    // unstable, where it is sampled
      if (number % 9000 == 8) {
        out.outcomes[i] = OutcomeKind::faulted;
        out.incidents.push_back({i, OutcomeKind::faulted, 0x401000, "nop", "faults"});
      }
      // 24 facts: more than notes list.
      if (!alone && number % 500 == 9)
        observe("writes 4 bytes at " + std::to_string(number / 500 % 24), packed.subspan(2 * i, 2));
    }
  }

  void observe(const std::string& what, std::span<const std::byte> value) {
    Observation& observation = observations_[what];
    ++observation.values;
    if (observation.first_value.empty() || is_less(value, observation.first_value)) {
      observation.first_value.assign(value.begin(), value.end());
    }
  }

  std::map<std::string, Observation> observations_;
};

Subject identity() {
  Subject subject;
  subject.name = "identity";
  subject.packed_size = 2;
  subject.word_names = {"number"};
  subject.fields = {{"value", 0, 16}};
  subject.word_kind = WordKind::u32;
  subject.decode = [](std::span<const std::byte> packed, std::span<std::uint32_t> words) {
    words[0] = number_of(packed);
  };
  return subject;
}

const Image& image() {
  static const Image loaded = Image::load(BITWITNESS_STAND_INS_DIR "/stand_in_x87.exe");
  return loaded;
}

VerifyOptions busy_options(std::size_t limit) {
  VerifyOptions options;
  options.jobs = 2;
  options.limit = limit;
  options.make_machine = [](const Image&, const Routine&, const MachineOptions&) {
    return std::make_unique<BusyMachine>();
  };
  return options;
}

ValueSet values(Shard shard) {
  ValueOptions options;
  options.shard = shard;
  const std::vector<std::string> sources = {"fields"};
  const std::vector<BitField> fields = {{"value", 0, 16}};
  return ValueSet::build(2, fields, sources, options);
}

const Routine& routine() {
  static const Routine known{"busy", 0x103f1d0, parse_signature("cdecl(value u16) -> u32")};
  return known;
}

Report busy_report(Shard shard, std::size_t limit = 20) {
  const Subject subject = identity();
  const ValueSet set = values(shard);
  Report report = sample_report({});
  for (const Environment& environment : {Environment{}, Environment{0x007e, 0x1f80}}) {
    report.runs.push_back(verify(image(), routine(), subject, environment, set, busy_options(limit)));
    report.runs.back().notes.insert(report.runs.back().notes.begin(), "from the target");
  }
  return report;
}

/// The shards' reports after writing and reading, in a mixed order.
std::vector<NamedReport> busy_shards(std::uint64_t count, std::size_t limit = 20) {
  std::vector<NamedReport> shards;
  for (std::uint64_t index = count; index > 0; --index) {
    const std::string name = std::to_string(index) + ".json";
    shards.push_back({name, parse_report(to_json(busy_report({index, count}, limit)), name)});
  }
  std::swap(shards.front(), shards.back());
  return shards;
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    const std::string message = error.what();
    CHECK(message.find('\n') == std::string::npos);
    return message;
  }
  return "no error";
}

std::string recorded(Shard shard, VectorDetail detail, std::optional<std::string> decoder = {}) {
  std::string out;
  VectorHeader header;
  header.tool_version = "0.1.0";
  header.decoder = decoder.value_or("identity");
  header.word_names = {"number"};
  header.word_kind = WordKind::u32;
  header.fields = {{"value", 0, 16}};
  header.notes = {"from the target"};
  RunOptions options = busy_options(1000);
  record(header, image(), routine(), {}, values(shard), options)
      .write(
          [&out](std::span<const std::byte> bytes) {
            out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
          },
          detail);
  return out;
}

std::string merged(const std::vector<std::string>& files) {
  std::vector<VectorFile> shards;
  for (std::size_t i = 0; i < files.size(); ++i) {
    shards.push_back(VectorFile::parse(std::as_bytes(std::span(files[i])), "file" + std::to_string(i)));
  }
  std::string out;
  merge_vectors(shards, [&out](std::span<const std::byte> bytes) {
    out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return out;
}

}  // namespace

TEST_CASE("the reports of all shards give the report of the whole, byte for byte", "[merging]") {
  for (const std::size_t limit : {20U, 0U, 3U, 1000U}) {
    const std::string whole = to_json(busy_report({}, limit));
    for (const std::uint64_t count : {2U, 3U, 8U, 11U}) {  // of 8 chunks, so that some shards are empty in the end
      INFO(limit << " of " << count);
      const bool same = to_json(merge_reports(busy_shards(count, limit))) == whole;
      CHECK(same);
    }
  }
  // What the test is about is there.
  const RunReport run = busy_report({}).runs[0];
  CHECK(run.counts.faulted == 8);
  CHECK(run.isolation.unstable > 0);
  CHECK(run.notes.back() == "4 more facts of this kind are not listed");
  CHECK(run.notes[1].starts_with("on the first value (00 00) the routine"));
  CHECK(busy_report({2, 3}).runs[0].isolation.unstable > 0);
}

TEST_CASE("shards with other limits give what the smallest limit gives", "[merging]") {
  std::vector<NamedReport> shards = busy_shards(3, 5);
  shards[1] = busy_shards(3, 12)[1];
  const bool same = to_json(merge_reports(shards)) == to_json(busy_report({}, 5));
  CHECK(same);
}

TEST_CASE("processors that shards ran on are named together", "[merging]") {
  std::vector<NamedReport> shards = busy_shards(3);
  shards[0].report.engine.cpu = "A";
  shards[1].report.engine.cpu = "B";
  shards[2].report.engine.cpu = "A";
  std::ranges::sort(shards, {}, &NamedReport::file);
  const std::string cpu = merge_reports(shards).engine.cpu;
  CHECK((cpu == "A; B" || cpu == "B; A"));
}

TEST_CASE("reports that do not make up one whole are refused by name", "[merging]") {
  struct Case {
    std::string said;
    std::function<void(std::vector<NamedReport>&)> damage;
  };
  const auto run = [](NamedReport& shard) -> RunReport& { return shard.report.runs[1]; };
  const auto in_all = [](std::vector<NamedReport>& shards, auto change) {
    for (RunReport& one : shards[1].report.runs) change(one);
  };
  const std::vector<Case> cases = {
      {"no files", [](auto& shards) { shards.clear(); }},
      {"1.json and 1 more: shard 2/3 is missing", [](auto& shards) { shards.erase(shards.begin() + 1); }},
      {"again.json: shard 2/3 is there twice, as file 2 (2.json) and as file 4 of those given",
       [](auto& shards) {
         shards.push_back({"again.json", shards[1].report});
       }},
      {"whole.json: is a whole, not a shard",
       [](auto& shards) {
         shards[2] = {"whole.json", busy_report({})};
       }},
      {"of another number",
       [](auto& shards) {
         shards[2] = {"other.json", busy_report({1, 2})};
       }},
      {"2.json: the image's SHA-256 is '999",
       [](auto& shards) { shards[1].report.image_sha256 = std::string(64, '9'); }},
      {"2.json: the image is 'other.exe', in 1.json it is",
       [](auto& shards) { shards[1].report.image_name = "other.exe"; }},
      {"2.json: the image being a stand-in", [](auto& shards) { shards[1].report.stand_in = false; }},
      {"2.json: the image's format", [](auto& shards) { shards[1].report.image_format = ImageFormat::pe32_plus; }},
      {"2.json: the version of bitwitness", [](auto& shards) { shards[1].report.tool_version = "9"; }},
      {"2.json: the version of unicorn", [](auto& shards) { shards[1].report.engine.unicorn = "9"; }},
      {"2.json: the version of capstone", [](auto& shards) { shards[1].report.engine.capstone = "9"; }},
      {"2.json: the version of lief", [](auto& shards) { shards[1].report.engine.lief = "9"; }},
      {"2.json: the self-test is '19 of 20 as on hardware; quirks: dpps-order', in 1.json it is 'none'",
       [](auto& shards) {
         shards[1].report.engine.self_test = SelfTestSummary{20, 19, {"dpps-order"}};
       }},
      {"2.json: the notes are others than in 1.json", [](auto& shards) { shards[1].report.notes = {"anchor"}; }},
      {"2.json: the number of runs is '1'", [](auto& shards) { shards[1].report.runs.pop_back(); }},
      {"2.json: has no run", [](auto& shards) { shards[1].report.runs.clear(); }},
      {"2.json: has runs of several shards", [&](auto& shards) { run(shards[1]).shard = "1/3"; }},
      {"2.json: shard 2/3 was interrupted", [&](auto& shards) { run(shards[1]).counts.not_run = 1; }},
      {"2.json: shard 2/3 has no part", [&](auto& shards) { run(shards[1]).part.reset(); }},
      {"2.json: runs[1]: the routine is", [&](auto& shards) { run(shards[1]).routine = "other"; }},
      {"2.json: runs[1]: the address is '0x103f1d1'", [&](auto& shards) { ++run(shards[1]).address; }},
      {"2.json: runs[1]: the signature", [&](auto& shards) { run(shards[1]).signature = "cdecl(value u16) -> f32"; }},
      {"2.json: runs[1]: the routine's SHA-256", [&](auto& shards) { run(shards[1]).routine_sha256 = "9"; }},
      {"2.json: runs[1]: the decoder", [&](auto& shards) { run(shards[1]).decoder = "other"; }},
      {"2.json: runs[1]: the witness", [&](auto& shards) { run(shards[1]).witness = "host"; }},
      {"2.json: runs[1]: the environment is 'fpcw 037f",
       [&](auto& shards) { run(shards[1]).environment.fpcw = 0x37f; }},
      {"2.json: runs[1]: the sources", [&](auto& shards) { run(shards[1]).sources = {"special"}; }},
      {"2.json: runs[1]: the words", [&](auto& shards) { run(shards[1]).word_names = {"other"}; }},
      {"2.json: runs[1]: the kind of the words", [&](auto& shards) { run(shards[1]).word_kind = WordKind::f32; }},
      {"2.json: runs[1]: the SHA-256 of all values", [&](auto& shards) { run(shards[1]).part->values_sha256 = "9"; }},
      {"2.json: runs[1]: the number of all values", [&](auto& shards) { ++run(shards[1]).part->whole; }},
      {"2.json: runs[1]: the budget", [&](auto& shards) { run(shards[1]).part->budget = 9; }},
      {"2.json: runs[1]: the notes", [&](auto& shards) { run(shards[1]).notes[0] = "other"; }},
      {"2.json: shard 2/3 has 24576 values from number 16384",
       [&](auto& shards) { in_all(shards, [](RunReport& one) { one.part->first = 16384; }); }},
      {"2.json: shard 2/3 has 16384 values",
       [&](auto& shards) { in_all(shards, [](RunReport& one) { one.distinct = 16384; }); }},
      {"2.json: runs[0]: value 00 00 belongs into an earlier shard",
       [](auto& shards) { shards[1].report.runs[0].differences[0].value = parse_hex("0000"); }},
      {"3.json: runs[0]: value 00 ff belongs into an earlier shard",
       [](auto& shards) {
         shards[1].report.runs[0].differences.back().value = parse_hex("ffff");
         shards[2].report.runs[0].differences.clear();
         shards[2].report.runs[0].failures[0].value = parse_hex("00ff");
       }},
  };
  std::vector<NamedReport> good = busy_shards(shard_count);
  std::ranges::sort(good, {}, &NamedReport::file);
  REQUIRE(error_of([&] { merge_reports(good); }) == "no error");
  for (const Case& one : cases) {
    INFO(one.said);
    std::vector<NamedReport> bad = good;
    one.damage(bad);
    CHECK_THAT(error_of([&] { merge_reports(bad); }), contains_text(one.said));
  }
}

TEST_CASE("many lost shards are named in one short line", "[merging]") {
  std::vector<NamedReport> shards = busy_shards(3);
  std::erase_if(shards, [](const NamedReport& shard) { return shard.file == "1.json"; });
  for (NamedReport& shard : shards) {
    for (RunReport& run : shard.report.runs) run.shard = run.shard.substr(0, 2) + "65535";
  }
  CHECK_THAT(error_of([&] { merge_reports(shards); }),
             contains_text("shard 1/65535, 4/65535, 5/65535, 6/65535, 7/65535 and 65528 more is missing"));
}

TEST_CASE("the vector files of all shards give that of the whole, byte for byte", "[merging]") {
  for (const VectorDetail detail : {VectorDetail::words, VectorDetail::digests}) {
    const std::string whole = recorded({}, detail);
    for (const std::uint64_t count : {2U, 3U, 8U, 11U}) {
      std::vector<std::string> shards;
      for (std::uint64_t index = count; index > 0; --index) shards.push_back(recorded({index, count}, detail));
      const std::string joined = merged(shards);
      const VectorFile file = VectorFile::parse(std::as_bytes(std::span(joined)), "joined");
      const VectorFile expected = VectorFile::parse(std::as_bytes(std::span(whole)), "whole");
      INFO(to_string(detail) << " " << count);
      CHECK(file.digest() == expected.digest());
      CHECK(file.header().count == 65536);
      const bool same = joined == whole;
      CHECK(same);
      CHECK(file.header().shard.empty());
      CHECK(file.header().notes[0] == "from the target");
      CHECK(file.header().recorded.facts.size() == 24);
      CHECK(file.header().recorded.failures.size() == 8);
      CHECK(file.header().recorded.isolation.unstable > 0);
    }
  }
}

TEST_CASE("vector files that do not make up one whole are refused by name", "[merging]") {
  const std::string one = recorded({1, 3}, VectorDetail::words);
  const std::string two = recorded({2, 3}, VectorDetail::words);
  const std::string three = recorded({3, 3}, VectorDetail::words);
  CHECK(error_of([&] { merged({three, one, two}); }) == "no error");
  CHECK_THAT(error_of([&] { merged({one, three}); }), contains_text("file0 and 1 more: shard 2/3 is missing"));
  CHECK_THAT(error_of([&] {
               merged({one, two, one});
             }),
             contains_text("file2: shard 1/3 is there twice, as file 1 (file0) and as file 3 of those given"));
  CHECK_THAT(error_of([&] {
               merged({one, recorded({2, 2}, VectorDetail::words)});
             }),
             contains_text("file1: is shard 2/2"));
  CHECK_THAT(error_of([&] { merged({recorded({}, VectorDetail::words)}); }), contains_text("file0: is a whole"));
  CHECK_THAT(error_of([&] {
               merged({one, recorded({2, 3}, VectorDetail::digests), three});
             }),
             contains_text("file1: the detail is 'digests'"));
  CHECK_THAT(error_of([&] {
               merged({one, recorded({2, 3}, VectorDetail::words, "other"), three});
             }),
             contains_text("file1: the decoder is 'other', in file0 it is 'identity'"));
}

TEST_CASE("a note that only some shards of a recording have names its shard", "[merging]") {
  const std::string one = recorded({1, 2}, VectorDetail::words);
  std::string two = recorded({2, 2}, VectorDetail::words);
  VectorHeader header = VectorFile::parse(std::as_bytes(std::span(two)), "two").header();
  header.notes.push_back("on another machine");
  std::string noted;
  VectorWriter writer(header, VectorDetail::words, [&noted](std::span<const std::byte> bytes) {
    noted.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  const VectorFile file = VectorFile::parse(std::as_bytes(std::span(two)), "two");
  for (std::size_t number = 0; number < file.block_count(); ++number) writer.add(file.block(number));
  writer.finish();
  const std::string joined = merged({noted, one});
  CHECK(VectorFile::parse(std::as_bytes(std::span(joined)), "joined").header().notes ==
        std::vector<std::string>{"from the target", "shard 2/2: on another machine"});
}
