#include "harness/verification.hpp"

#include "harness/disassembly.hpp"
#include "harness/error.hpp"
#include "harness/report_parts.hpp"
#include "harness/sha256.hpp"
#include "harness/vectors/vector_file.hpp"

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace bitwitness {
namespace {

/// Chains the digests of chunks in order, whichever thread finishes first.
class OrderedDigest {
 public:
  /// With `keep` the digests are there in the end, too.
  explicit OrderedDigest(bool keep) : keep_(keep) {}

  void add(std::uint64_t chunk, std::string digest) {
    pending_.emplace(chunk, std::move(digest));
    while (!pending_.empty() && pending_.begin()->first == next_) {
      hash_.update(std::as_bytes(std::span(pending_.begin()->second)));
      if (keep_) kept_.push_back(std::move(pending_.begin()->second));
      pending_.erase(pending_.begin());
      ++next_;
    }
  }

  std::vector<std::string> take() { return std::move(kept_); }

  [[nodiscard]] std::string hex() const { return hash_.hex(); }

 private:
  bool keep_;
  Sha256 hash_;
  std::vector<std::string> kept_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, std::string> pending_;
};

class Verification {
 public:
  Verification(const Image& image, const Routine& routine, const Subject& subject, const Environment& environment,
               const ValueSet& values, const VerifyOptions& options)
      : image_(image),
        routine_(routine),
        subject_(subject),
        environment_(environment),
        values_(values),
        options_(options) {}

  RunReport run() {
    WitnessResult result = run_witness(
        image_, routine_, environment_, values_,
        [this](Tally& tally, std::uint64_t number, const ReferenceChunk& chunk) { return take(tally, number, chunk); },
        options_);
    if (subject_.finish && !options_.stop.stop_requested()) subject_.finish();
    return report(std::move(result));
  }

 private:
  bool take(Tally& tally, std::uint64_t number, const ReferenceChunk& chunk) {
    if (!tally.compare(chunk, subject_, options_.stop)) return false;
    std::string digest = to_hex(vector_digest(chunk.packed, chunk.outcomes, chunk.words));
    const std::scoped_lock lock(mutex_);
    digest_.add(number, std::move(digest));
    return true;
  }

  RunReport report(WitnessResult&& result) {
    Tally& tally = result.tally;
    RunReport report;
    report.routine = routine_.name;
    report.address = routine_.address;
    report.signature = to_string(routine_.signature);
    report.routine_sha256 = routine_sha256(image_, disassemble_routine(image_, routine_.address));
    report.decoder = subject_.name;
    report.witness = std::move(result.witness);
    report.environment = environment_;
    report.sources.assign(values_.sources().begin(), values_.sources().end());
    report.distinct = values_.size();
    report.counts = tally.counts;
    report.counts.not_run = values_.size() - tally.counts.run;
    if (report.counts.not_run == 0) report.digest = digest_.hex();
    report.fields = subject_.fields;
    report.word_names = subject_.word_names;
    report.word_kind = subject_.word_kind;
    report.differing = tally.differing;
    report.max_ulp = tally.max_ulp;
    report.differences = tally.differences.take();
    report.failures = tally.failures.take();
    report.isolation = std::move(result.isolation);
    report.decoder_option = subject_.option;
    report.notes = subject_.notes;
    report.notes.insert(report.notes.end(), result.path.begin(), result.path.end());
    for (std::string& note : report_parts::fact_notes(result.facts)) report.notes.push_back(std::move(note));
    if (const Shard shard = values_.shard(); shard.count > 1) {
      describe_shard(report, shard, result.path.size(), std::move(result.facts));
    }
    return report;
  }

  void describe_shard(RunReport& report, Shard shard, std::size_t path_notes, std::vector<Fact> facts) {
    report.shard = fmt::format("{}/{}", shard.index, shard.count);
    if (report.counts.not_run != 0) return;
    report.part = ShardPart{.first = values_.whole_index(),
                            .whole = values_.whole_size(),
                            .values_sha256 = values_.whole_sha256(),
                            .limit = options_.limit,
                            .budget = options_.machine.budget,
                            .chunks = digest_.take(),
                            .path_notes = path_notes,
                            .facts = std::move(facts)};
  }

  const Image& image_;
  const Routine& routine_;
  const Subject& subject_;
  Environment environment_;
  const ValueSet& values_;
  const VerifyOptions& options_;

  std::mutex mutex_;  // guards what follows
  OrderedDigest digest_{values_.shard().count > 1};
};

}  // namespace

RunReport verify(const Image& image, const Routine& routine, const Subject& subject, const Environment& environment,
                 const ValueSet& values, const VerifyOptions& options) {
  const std::size_t packed = routine.signature.packed_size();
  const std::size_t words = routine.signature.word_count();
  if (packed != subject.packed_size) {
    throw Error(fmt::format("routine {} takes {} bytes a value by its signature '{}', decoder {} takes {}",
                            routine.name, packed, to_string(routine.signature), subject.name, subject.packed_size));
  }
  if (words != subject.word_names.size()) {
    throw Error(fmt::format("routine {} gives {} words by its signature '{}', decoder {} gives {}", routine.name, words,
                            to_string(routine.signature), subject.name, subject.word_names.size()));
  }
  if (values.packed_size() != packed) {
    throw Error(
        fmt::format("the values have {} bytes, routine {} takes {}", values.packed_size(), routine.name, packed));
  }
  return Verification(image, routine, subject, environment, values, options).run();
}

}  // namespace bitwitness
