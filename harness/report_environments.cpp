#include "harness/report_environments.hpp"

#include "harness/environments.hpp"
#include "harness/report_html_parts.hpp"
#include "harness/report_parts.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bitwitness::report_environments {
namespace {

constexpr std::size_t column_count = 8;
using Cells = std::array<std::string, column_count>;

/// "changed" is told as what it means.
const Cells heads = {"fpcw", "mxcsr", "name", "group", "agreed", "differed", "no result", "changed"};
constexpr std::size_t first_number = 4;  ///< column from which on there are numbers

constexpr std::string_view legend =
    "The same letter: the same outcome and words for every value. Changed: values of other words, or another outcome, "
    "than in the first environment.";

const RunReport& first_run(const Report& report, const EnvironmentEffects& effects) {
  return report.runs[effects.first_run];
}

/// After an interruption as well, all environments ran the same values.
std::uint64_t values_run(const Report& report, const EnvironmentEffects& effects) {
  return first_run(report, effects).counts.run;
}

std::vector<Cells> rows_of(const Report& report, const EnvironmentEffects& effects) {
  std::vector<Cells> rows;
  for (const EnvironmentRow& row : environment_rows(report, effects)) {
    rows.push_back({fmt::format("{:04x}", row.environment.fpcw), fmt::format("{:04x}", row.environment.mxcsr), row.name,
                    row.group.empty() ? "?" : row.group, fmt::format("{}", row.agreed), fmt::format("{}", row.differed),
                    fmt::format("{}", row.no_result), fmt::format("{}", row.changed)});
  }
  return rows;
}

std::string depending_text(const Report& report, const EnvironmentEffects& effects) {
  const std::uint64_t run = values_run(report, effects);
  return fmt::format("{} of {} values depend on the environment{}", effects.depending, run,
                     first_run(report, effects).counts.not_run > 0 ? " (interrupted)" : "");
}

std::string line_of(const Cells& cells, const std::array<std::size_t, column_count>& widths) {
  std::string line;
  for (std::size_t i = 0; i < column_count; ++i) {
    line +=
        i < first_number ? fmt::format("  {:<{}}", cells[i], widths[i]) : fmt::format("  {:>{}}", cells[i], widths[i]);
  }
  return line + '\n';
}

nlohmann::ordered_json entry_json(const Report& report, const EnvironmentEffects& effects) {
  nlohmann::ordered_json table = nlohmann::ordered_json::array();
  for (const EnvironmentRow& row : environment_rows(report, effects)) {
    table.push_back({{"fpcw", fmt::format("{:04x}", row.environment.fpcw)},
                     {"mxcsr", fmt::format("{:04x}", row.environment.mxcsr)},
                     {"name", row.name},
                     {"group", row.group},
                     {"agreed", row.agreed},
                     {"differed", row.differed},
                     {"no_result", row.no_result},
                     {"changed", row.changed}});
  }
  const RunReport& run = first_run(report, effects);
  return {{"routine", run.routine},         {"address", report_parts::address_text(run.address)},
          {"first_run", effects.first_run}, {"run", values_run(report, effects)},
          {"depending", effects.depending}, {"table", std::move(table)}};
}

/// Requires that a text or a number is said again.
void require_again(const JsonPlace& place, const nlohmann::ordered_json& expected) {
  const bool is_same = expected.is_string() ? place.text() == expected.get<std::string>()
                                            : place.count() == expected.get<std::uint64_t>();
  place.require(is_same, "is not what the runs say");
}

/// Reads the numbers that are nowhere else and requires that they are possible.
EnvironmentEffects read_numbers(const Report& report, const JsonPlace& entry, const std::vector<JsonPlace>& table) {
  entry.allow({"routine", "address", "first_run", "run", "depending", "table"});
  EnvironmentEffects effects;
  effects.first_run = entry["first_run"].count();
  entry["table"].require(table.size() > 1, "has not several environments");
  entry["first_run"].require(
      effects.first_run < report.runs.size() && table.size() <= report.runs.size() - effects.first_run,
      "and the table's rows are more runs than there are");
  const std::uint64_t run = values_run(report, effects);
  effects.depending = entry["depending"].count(run);
  std::uint64_t sum = 0;
  for (const JsonPlace& row : table) {
    row.allow({"fpcw", "mxcsr", "name", "group", "agreed", "differed", "no_result", "changed"});
    effects.changed.push_back(row["changed"].count(effects.depending));
    sum += std::min(run - sum, effects.changed.back());
  }
  table.front()["changed"].require(effects.changed.front() == 0, "is not 0 in the first environment");
  entry["depending"].require(effects.depending <= sum, "is more than the rows have changed together");
  return effects;
}

/// Requires that runs and entry are about one routine and the same values.
void require_one_routine(const Report& report, const EnvironmentEffects& effects, const std::vector<JsonPlace>& table) {
  const RunReport& first = first_run(report, effects);
  for (std::size_t i = 1; i < effects.changed.size(); ++i) {
    const RunReport& run = report.runs[effects.first_run + i];
    table[i].require(run.routine == first.routine && run.address == first.address && run.distinct == first.distinct &&
                         run.counts.run == first.counts.run,
                     "is of a run of another routine, or of other values");
    if (first.digest.empty() || run.digest.empty()) continue;
    table[i]["changed"].require((effects.changed[i] == 0) == (run.digest == first.digest),
                                "is not what the digests say");
  }
}

}  // namespace

std::string to_text(const Report& report) {
  std::string text;
  for (const EnvironmentEffects& effects : report.environments) {
    const RunReport& run = first_run(report, effects);
    text += fmt::format("\n{} at {}, environments:\n", report_parts::printable(run.routine),
                        report_parts::address_text(run.address));
    const std::vector<Cells> rows = rows_of(report, effects);
    std::array<std::size_t, column_count> widths{};
    for (std::size_t i = 0; i < column_count; ++i) {
      widths[i] = heads[i].size();
      for (const Cells& row : rows) widths[i] = std::max(widths[i], row[i].size());
    }
    text += line_of(heads, widths);
    for (const Cells& row : rows) text += line_of(row, widths);
    text += fmt::format("  {}\n  {}\n", legend, depending_text(report, effects));
  }
  return text;
}

std::string to_html(const Report& report) {
  using report_html::escaped;
  std::string out;
  for (const EnvironmentEffects& effects : report.environments) {
    const std::string head = "Environments of " + escaped(first_run(report, effects).routine);
    out += fmt::format(
        "<h3>{}</h3>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table><thead><tr>", head,
        head);
    const auto cell = [&out](std::string_view tag, std::size_t column, const std::string& text) {
      out += fmt::format("<{}{}>{}</{}>", tag, column < first_number ? "" : " class=\"number\"", escaped(text), tag);
    };
    for (std::size_t i = 0; i < column_count; ++i) cell("th", i, heads[i]);
    out += "</tr></thead><tbody>\n";
    for (const Cells& row : rows_of(report, effects)) {
      out += "<tr>";
      for (std::size_t i = 0; i < column_count; ++i) cell("td", i, row[i]);
      out += "</tr>\n";
    }
    out += fmt::format("</tbody></table></div>\n<p>{}</p>\n<p class=\"mute\">{}</p>\n",
                       escaped(depending_text(report, effects)), legend);
  }
  return out;
}

nlohmann::ordered_json to_json(const Report& report) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const EnvironmentEffects& effects : report.environments) out.push_back(entry_json(report, effects));
  return out;
}

void read(Report& report, const JsonPlace& list) {
  std::size_t next_run = 0;
  for (const JsonPlace& entry : list.items()) {
    const std::vector<JsonPlace> table = entry["table"].items();
    const EnvironmentEffects effects = read_numbers(report, entry, table);
    entry["first_run"].require(effects.first_run >= next_run, "is of a run that an entry before it has");
    next_run = effects.first_run + effects.changed.size();
    require_one_routine(report, effects, table);
    const nlohmann::ordered_json again = entry_json(report, effects);
    for (const char* key : {"routine", "address", "run"}) require_again(entry[key], again[key]);
    for (std::size_t i = 0; i < table.size(); ++i) {
      static_cast<void>(table[i]["name"].text());  // another version may know other names
      for (const char* key : {"fpcw", "mxcsr", "group", "agreed", "differed", "no_result"}) {
        require_again(table[i][key], again["table"][i][key]);
      }
    }
    report.environments.push_back(effects);
  }
  list.require(!report.environments.empty(), "is empty; then it is left out");
}

}  // namespace bitwitness::report_environments
