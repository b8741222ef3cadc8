#include "harness/environments.hpp"

#include "harness/environment_names.hpp"

#include <algorithm>
#include <span>

namespace bitwitness {
namespace {

constexpr std::size_t letters = 26;

/// "A" … "Z", "AA", "AB", …
std::string group_name(std::size_t index) {
  std::string name;
  for (std::size_t rest = index + 1; rest > 0; rest = (rest - 1) / letters) {
    name.insert(name.begin(), static_cast<char>('A' + (rest - 1) % letters));
  }
  return name;
}

}  // namespace

void ChunkComparison::begin(const ReferenceChunk& first) {
  outcomes_.assign(first.outcomes.begin(), first.outcomes.end());
  words_.assign(first.words.begin(), first.words.end());
  depends_.assign(outcomes_.size(), false);
}

std::uint64_t ChunkComparison::compare(const ReferenceChunk& other) {
  // Words of values that did not return are 0 on both sides.
  if (std::ranges::equal(outcomes_, other.outcomes) && std::ranges::equal(words_, other.words)) return 0;
  const std::size_t word_count = words_.size() / outcomes_.size();
  std::uint64_t changed = 0;
  for (std::size_t i = 0; i < outcomes_.size(); ++i) {
    const auto words = std::span(words_).subspan(i * word_count, word_count);
    if (outcomes_[i] == other.outcomes[i] && std::ranges::equal(words, other.words.subspan(i * word_count, word_count)))
      continue;
    ++changed;
    depends_[i] = true;
  }
  return changed;
}

std::uint64_t ChunkComparison::depending() const {
  return static_cast<std::uint64_t>(std::ranges::count(depends_, true));
}

void add_effects(EnvironmentEffects& into, const EnvironmentEffects& more) {
  into.changed.resize(std::max(into.changed.size(), more.changed.size()));
  for (std::size_t i = 0; i < more.changed.size(); ++i) into.changed[i] += more.changed[i];
  into.depending += more.depending;
}

std::vector<EnvironmentRow> environment_rows(const Report& report, const EnvironmentEffects& effects) {
  const auto runs = std::span(report.runs).subspan(effects.first_run, effects.changed.size());
  std::vector<EnvironmentRow> rows;
  std::vector<std::string> digests;  // one per group
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunReport& run = runs[i];
    EnvironmentRow& row = rows.emplace_back();
    row.environment = run.environment;
    row.name = environment_name(run.environment);
    row.agreed = run.counts.agreed;
    row.differed = run.counts.differed + run.counts.known;
    row.no_result = run.counts.without_result();
    row.changed = effects.changed[i];
    if (run.digest.empty()) continue;
    const auto known = std::ranges::find(digests, run.digest);
    row.group = group_name(static_cast<std::size_t>(known - digests.begin()));
    if (known == digests.end()) digests.push_back(run.digest);
  }
  return rows;
}

}  // namespace bitwitness
