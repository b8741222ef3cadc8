#include "harness/comparison.hpp"
#include "harness/comparison_parts.hpp"
#include "harness/report_parts.hpp"
#include "harness/values.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace bitwitness {

namespace {

using report_parts::printable;

std::string head_text(std::string_view which, const ComparedReport& report) {
  std::string text = fmt::format("{} {}: {}  sha256 {}  bitwitness {}  {}", which, printable(report.file),
                                 printable(report.image_name), report.image_sha256.substr(0, 16),
                                 printable(report.tool_version), to_string(report.verdict));
  if (report.stand_in) text += fmt::format("  {}", report_parts::stand_in_warning);
  return text + '\n';
}

std::string side_text(std::string_view which, const RunSide& side) {
  if (!side.present) return fmt::format("  {}: not in the report\n", which);
  return fmt::format("  {}: {}; largest distance {}\n", which, report_parts::counts_text(side.counts),
                     report_parts::distance_text(side.max_ulp));
}

std::string run_text(const RunComparison& run, std::size_t limit) {
  std::string text = fmt::format("\n{} at {} against {}, witness {}, {}{}\n", printable(run.routine),
                                 report_parts::address_text(run.address), printable(run.decoder),
                                 printable(run.witness), report_parts::environment_text(run.environment),
                                 run.vector_file.empty() ? "" : ", " + printable(run.vector_file));
  text += side_text("before", run.before) + side_text("now", run.after);
  text += "  values told: " + comparison_parts::told_text(run) + '\n';
  if (const std::string untold = comparison_parts::untold_text(run); !untold.empty()) text += "  " + untold + '\n';
  for (const std::string& reason : run.worse) text += "  worse: " + printable(reason) + '\n';
  std::size_t shown = 0;
  for (const Change change : comparison_parts::reading_order) {
    if (change == Change::unchanged) continue;
    for (const ValueChange& value : run.changes) {
      if (value.change != change || shown == limit) continue;
      ++shown;
      text += fmt::format("  {:8} {}  before: {}; now: {}\n", to_string(change), to_hex(value.value),
                          comparison_parts::distances_text(run, value, false),
                          comparison_parts::distances_text(run, value, true));
    }
  }
  const std::size_t all = run.changes.size() - run.count(Change::unchanged);
  if (all > shown) text += fmt::format("  {} more values are not shown (--limit)\n", all - shown);
  return text;
}

}  // namespace

std::string to_text(const Comparison& comparison, std::size_t limit) {
  std::string text = head_text("before", comparison.before) + head_text("now   ", comparison.after);
  for (const std::string& note : comparison.notes) text += "note: " + printable(note) + '\n';
  for (const RunComparison& run : comparison.runs) text += run_text(run, limit);
  for (const std::string& reason : comparison.incomparable) text += "\nnot comparable: " + printable(reason);
  if (!comparison.incomparable.empty()) text += '\n';
  return text + '\n' + printable(comparison_parts::verdict_text(comparison)) + '\n';
}

}  // namespace bitwitness
