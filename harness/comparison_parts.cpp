#include "harness/comparison_parts.hpp"

#include "harness/report_parts.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace bitwitness {

std::string_view to_string(Change change) {
  switch (change) {
    case Change::appeared:
      return "new";
    case Change::worse:
      return "worse";
    case Change::better:
      return "better";
    case Change::changed:
      return "changed";
    case Change::unchanged:
      return "unchanged";
    case Change::fixed:
      return "fixed";
    case Change::gone:
      break;
  }
  return "gone";
}

std::string_view to_string(ComparisonVerdict verdict) {
  switch (verdict) {
    case ComparisonVerdict::same:
      return "same";
    case ComparisonVerdict::better:
      return "better";
    case ComparisonVerdict::worse:
      return "worse";
    case ComparisonVerdict::not_comparable:
      break;
  }
  return "not comparable";
}

ComparisonVerdict Comparison::verdict() const {
  if (!incomparable.empty()) return ComparisonVerdict::not_comparable;
  bool better = false;
  for (const RunComparison& run : runs) {
    if (!run.worse.empty()) return ComparisonVerdict::worse;
    if (!run.before.present) continue;
    better = better || run.count(Change::fixed) > 0 || run.count(Change::better) > 0 ||
             run.after.counts.differed < run.before.counts.differed || run.after.differing != run.before.differing ||
             run.after.max_ulp < run.before.max_ulp || run.after.unstable < run.before.unstable;
  }
  return better ? ComparisonVerdict::better : ComparisonVerdict::same;
}

namespace comparison_parts {

std::string told_text(const RunComparison& run) {
  std::string text;
  for (const Change change : reading_order) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", to_string(change), run.count(change));
  }
  return text;
}

std::string untold_text(const RunComparison& run) {
  const std::uint64_t before = run.before.untold;
  const std::uint64_t after = run.after.untold;
  if (before == 0 && after == 0) return {};
  std::string text =
      fmt::format("{} values that differed before and {} that differ now cannot be told apart", before, after);
  const bool is_capped = run.before.listed < run.before.counts.differed || run.after.listed < run.after.counts.differed;
  if (is_capped) text += ": the reports list the smallest ones only (verify --limit)";
  if (run.after.present && run.after.counts.not_run > 0) {
    return text + fmt::format("{} {} values were not run", is_capped ? ";" : ":", run.after.counts.not_run);
  }
  if (!run.before.present || !run.after.present) return text;
  if (after > before) return text + fmt::format("; at least {} of them are new", after - before);
  if (before > after) return text + fmt::format("; at least {} of them are fixed", before - after);
  return text;
}

std::string verdict_text(const Comparison& comparison) {
  const ComparisonVerdict verdict = comparison.verdict();
  if (verdict == ComparisonVerdict::not_comparable)
    return fmt::format("not comparable: {}", comparison.incomparable.front());
  std::uint64_t before = 0;
  std::uint64_t after = 0;
  bool is_untold = false;
  for (const RunComparison& run : comparison.runs) {
    before += run.before.counts.differed;
    after += run.after.counts.differed;
    is_untold = is_untold || run.before.untold > 0 || run.after.untold > 0;
  }
  const std::string counts = fmt::format("{} values differed before, {} differ now", before, after);
  if (verdict == ComparisonVerdict::worse) return "worse: " + counts;
  return fmt::format("{}: {}{}", to_string(verdict), counts,
                     is_untold ? "; by the counts: the lists do not tell every value" : "");
}

std::string distances_text(const RunComparison& run, const ValueChange& change, bool is_after) {
  const std::vector<std::uint32_t>& words = is_after ? change.after : change.before;
  if (words.empty()) {
    if (is_after ? change.change == Change::gone : !run.before.present) return "not run";
    return "agrees";
  }
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::uint64_t distance = ulp_distance(change.reference[i], words[i], run.word_kind);
    if (distance == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", report_parts::printable(run.word_names[i]),
                        report_parts::distance_text(distance));
  }
  return text;
}

}  // namespace comparison_parts
}  // namespace bitwitness
