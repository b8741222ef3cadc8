#include "harness/environments.hpp"
#include "harness/error.hpp"
#include "harness/facts.hpp"
#include "harness/merging.hpp"
#include "harness/merging_parts.hpp"
#include "harness/report_parts.hpp"
#include "harness/sha256.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace bitwitness {

namespace {

using merging_parts::append_up_to;
using merging_parts::require_same;
using merging_parts::ShardFile;

/// One shard of one run, with the file that it is from.
struct ShardRun {
  const ShardFile& file;
  const RunReport& run;

  [[nodiscard]] const ShardPart& part() const { return *run.part; }
};

/// Notes that say nothing of single values: those before the ones about the first value and the facts.
std::vector<std::string> common_notes(const RunReport& run) {
  const std::size_t own = report_parts::fact_notes(run.part->facts).size() + run.part->path_notes;
  return {run.notes.begin(), run.notes.end() - static_cast<std::ptrdiff_t>(own)};
}

void require_same_run(const ShardRun& first, const ShardRun& other, std::size_t number) {
  const auto what = [number](std::string_view name) { return fmt::format("runs[{}]: {}", number, name); };
  const auto same = [&](std::string_view name, std::string_view of_first, std::string_view of_other) {
    require_same(first.file, other.file, what(name), of_first, of_other);
  };
  const RunReport& a = first.run;
  const RunReport& b = other.run;
  require_same(first.file, other.file, what(""), merging_parts::subject_of(a), merging_parts::subject_of(b));
  same("the SHA-256 of all values", a.part->values_sha256, b.part->values_sha256);
  same("the number of all values", std::to_string(a.part->whole), std::to_string(b.part->whole));
  same("the budget", std::to_string(a.part->budget), std::to_string(b.part->budget));
  require_same(first.file, other.file, what("the notes"), common_notes(a), common_notes(b));
}

/// Throws unless the shards are the ranges that they must be and their findings lie in their order.
void require_ranges(const std::vector<ShardRun>& shards, std::size_t number) {
  std::span<const std::byte> last;
  for (const ShardRun& shard : shards) {
    merging_parts::require_range(shard.file, shard.part().whole, shard.part().first, shard.run.distinct);
    const auto follow = [&](std::span<const std::byte> value) {
      if (last.empty() || is_less(last, value)) return;
      throw Error(
          fmt::format("{}: runs[{}]: value {} belongs into an earlier shard", shard.file.file, number, to_hex(value)));
    };
    std::span<const std::byte> largest = last;
    for (const Difference& difference : shard.run.differences) {
      follow(difference.value);
      largest = largest.empty() || is_less(largest, difference.value) ? std::span(difference.value) : largest;
    }
    for (const Failure& failure : shard.run.failures) {
      follow(failure.value);
      largest = largest.empty() || is_less(largest, failure.value) ? std::span(failure.value) : largest;
    }
    last = largest;
  }
}

void add_counts(Counts& into, const Counts& counts) {
  into.run += counts.run;
  into.agreed += counts.agreed;
  into.differed += counts.differed;
  into.known += counts.known;
  into.faulted += counts.faulted;
  into.out_of_budget += counts.out_of_budget;
  into.unwritten += counts.unwritten;
  into.disputed += counts.disputed;
  into.not_run += counts.not_run;
}

/// The shards' runs are given in the order of their values.
RunReport merge_runs(const std::vector<ShardRun>& shards, std::size_t number) {
  for (const ShardRun& shard : shards) require_same_run(shards.front(), shard, number);
  require_ranges(shards, number);

  RunReport out = shards.front().run;
  out.shard.clear();
  out.part.reset();
  out.distinct = shards.front().part().whole;
  out.counts = {};
  out.differing.assign(out.word_names.size(), 0);
  out.max_ulp = 0;
  out.differences.clear();
  out.failures.clear();
  out.isolation = {};
  std::size_t limit = std::numeric_limits<std::size_t>::max();
  for (const ShardRun& shard : shards) limit = std::min<std::size_t>(limit, shard.part().limit);
  Sha256 digest;
  FactSum facts;
  for (const ShardRun& shard : shards) {
    const RunReport& run = shard.run;
    add_counts(out.counts, run.counts);
    for (std::size_t word = 0; word < out.differing.size(); ++word) out.differing[word] += run.differing[word];
    out.max_ulp = std::max(out.max_ulp, run.max_ulp);
    append_up_to(out.differences, limit, run.differences);
    append_up_to(out.failures, limit, run.failures);
    add_isolation(out.isolation, run.isolation);
    for (const std::string& chunk : shard.part().chunks) digest.update(std::as_bytes(std::span(chunk)));
    facts.add(shard.part().facts);
  }
  out.digest = digest.hex();

  const std::size_t own = report_parts::fact_notes(shards.front().part().facts).size();
  out.notes.resize(out.notes.size() - own);  // those about the first value stay
  for (std::string& note : report_parts::fact_notes(facts.take())) out.notes.push_back(std::move(note));
  return out;
}

ShardFile shard_file(const NamedReport& named) {
  const auto refuse = [&](std::string_view why) { throw Error(fmt::format("{}: {}", named.file, why)); };
  if (named.report.runs.empty()) refuse("has no run");
  const std::string& shard = named.report.runs.front().shard;
  for (const RunReport& run : named.report.runs) {
    if (run.shard != shard) refuse("has runs of several shards");
    if (run.counts.not_run > 0) {
      refuse(fmt::format("shard {} was interrupted, {} values were not run", shard, run.counts.not_run));
    }
    if (!run.shard.empty() && !run.part) refuse(fmt::format("shard {} has no part to merge", shard));
  }
  return {named.file, shard};
}

/// Takes which runs an entry is about.
std::string runs_of(const EnvironmentEffects& effects) {
  return fmt::format("{} runs from runs[{}]", effects.changed.size(), effects.first_run);
}

/// Values of one shard are of no other, so that counts add up.
std::vector<EnvironmentEffects> merge_environments(const std::vector<NamedReport>& shards) {
  std::vector<EnvironmentEffects> out;
  for (const EnvironmentEffects& of_first : shards.front().report.environments) {
    EnvironmentEffects& sum = out.emplace_back();
    sum.first_run = of_first.first_run;
    for (const NamedReport& shard : shards) add_effects(sum, shard.report.environments[out.size() - 1]);
  }
  return out;
}

void require_same_report(const ShardFile& first_file, const Report& first, const ShardFile& file, const Report& other) {
  require_same(first_file, file, merging_parts::source_of(first), merging_parts::source_of(other));
  require_same(first_file, file, "the notes", first.notes, other.notes);
  require_same(first_file, file, "the number of runs", std::to_string(first.runs.size()),
               std::to_string(other.runs.size()));
  require_same(first_file, file, "the number of routines in several environments",
               std::to_string(first.environments.size()), std::to_string(other.environments.size()));
  for (std::size_t i = 0; i < first.environments.size(); ++i) {
    require_same(first_file, file, fmt::format("environments[{}]", i), runs_of(first.environments[i]),
                 runs_of(other.environments[i]));
  }
}

}  // namespace

Report merge_reports(std::vector<NamedReport> shards) {
  std::vector<ShardFile> files;
  for (const NamedReport& shard : shards) {
    files.push_back(shard_file(shard));
    require_same_report(files.front(), shards.front().report, files.back(), shard.report);
  }
  const std::vector<std::size_t> order = merging_parts::order_of(files);
  const Report& first = shards[order.front()].report;
  Report out = first;
  out.runs.clear();
  std::vector<std::string> processors;
  for (const std::size_t i : order) {
    const std::string& cpu = shards[i].report.engine.cpu;
    if (std::ranges::find(processors, cpu) == processors.end()) processors.push_back(cpu);
  }
  out.engine.cpu.clear();
  for (const std::string& cpu : processors) out.engine.cpu += (out.engine.cpu.empty() ? "" : "; ") + cpu;
  for (std::size_t number = 0; number < first.runs.size(); ++number) {
    std::vector<ShardRun> runs;
    for (const std::size_t i : order) runs.push_back({files[i], shards[i].report.runs[number]});
    out.runs.push_back(merge_runs(runs, number));
  }
  out.environments = merge_environments(shards);
  return out;
}

}  // namespace bitwitness
