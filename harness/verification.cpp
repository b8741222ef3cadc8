#include "harness/verification.hpp"

#include "harness/disassembly.hpp"
#include "harness/error.hpp"
#include "harness/report_parts.hpp"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace bitwitness {
namespace {

class Verification {
 public:
  Verification(const Image& image, const Routine& routine, const Subject& subject,
               std::span<const Environment> environments, const ValueSet& values, const VerifyOptions& options)
      : image_(image),
        routine_(routine),
        subject_(subject),
        environments_(environments),
        values_(values),
        options_(options) {}

  EnvironmentReports run() {
    const auto take_chunk = [this](Tally& tally, std::size_t, std::uint64_t, const ReferenceChunk& chunk) {
      return tally.compare(chunk, subject_, options_.stop);
    };
    const ChunkDigesting digesting = values_.shard().count > 1 ? ChunkDigesting::kept : ChunkDigesting::chained;
    WitnessResults results = run_witness_environments(image_, routine_, environments_, values_, take_chunk, options_,
                                                      digesting, subject_.finish);
    EnvironmentReports out;
    out.effects = std::move(results.effects);
    double seconds = 0;
    for (const WitnessResult& result : results.each) seconds += result.seconds;
    for (std::size_t i = 0; i < environments_.size(); ++i) {
      const double even = 1.0 / static_cast<double>(environments_.size());
      out.shares.push_back(seconds > 0 ? results.each[i].seconds / seconds : even);
      out.runs.push_back(
          report(std::move(results.each[i]), environments_[i], results.digests[i], std::move(results.chunks[i])));
    }
    return out;
  }

 private:
  RunReport report(WitnessResult&& result, const Environment& environment, const std::string& digest,
                   std::vector<std::string> chunks) {
    Tally& tally = result.tally;
    RunReport report;
    report.routine = routine_.name;
    report.address = routine_.address;
    report.signature = to_string(routine_.signature);
    report.routine_sha256 = routine_sha256(image_, disassemble_routine(image_, routine_.address));
    report.decoder = subject_.name;
    report.witness = std::move(result.witness);
    report.environment = environment;
    report.sources.assign(values_.sources().begin(), values_.sources().end());
    report.distinct = values_.size();
    report.counts = tally.counts;
    report.counts.not_run = values_.size() - tally.counts.run;
    if (report.counts.not_run == 0) report.digest = digest;
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
      describe_shard(report, shard, result.path.size(), std::move(result.facts), std::move(chunks));
    }
    return report;
  }

  void describe_shard(RunReport& report, Shard shard, std::size_t path_notes, std::vector<Fact> facts,
                      std::vector<std::string> chunks) {
    report.shard = fmt::format("{}/{}", shard.index, shard.count);
    if (report.counts.not_run != 0) return;
    report.part = ShardPart{.first = values_.whole_index(),
                            .whole = values_.whole_size(),
                            .values_sha256 = values_.whole_sha256(),
                            .limit = options_.limit,
                            .budget = options_.machine.budget,
                            .chunks = std::move(chunks),
                            .path_notes = path_notes,
                            .facts = std::move(facts)};
  }

  const Image& image_;
  const Routine& routine_;
  const Subject& subject_;
  std::span<const Environment> environments_;
  const ValueSet& values_;
  const VerifyOptions& options_;
};

}  // namespace

RunReport verify(const Image& image, const Routine& routine, const Subject& subject, const Environment& environment,
                 const ValueSet& values, const VerifyOptions& options) {
  return std::move(verify_environments(image, routine, subject, {&environment, 1}, values, options).runs.front());
}

EnvironmentReports verify_environments(const Image& image, const Routine& routine, const Subject& subject,
                                       std::span<const Environment> environments, const ValueSet& values,
                                       const VerifyOptions& options) {
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
  return Verification(image, routine, subject, environments, values, options).run();
}

}  // namespace bitwitness
