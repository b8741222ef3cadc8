#include "harness/comparison.hpp"
#include "harness/comparison_parts.hpp"
#include "harness/report_parts.hpp"
#include "harness/values.hpp"

#include <fmt/format.h>

namespace bitwitness {

namespace {

/// A comment on GitHub holds 65,536 characters; what stands around the lists fits in the difference.
constexpr std::size_t max_size = 60'000;

/// Most bytes of a name, and of a sentence, that are shown.
constexpr std::size_t max_name = 80;
constexpr std::size_t max_sentence = 400;

/// Puts a foreign text where Markdown, HTML and mentions mean nothing. A pipe would end a table's cell even there.
std::string code(std::string_view text, std::size_t most = max_name) {
  std::string inside;
  for (const char c : report_parts::printable(text.substr(0, most))) {
    if (c == '`') {
      inside += '\'';
    } else if (c == '|') {
      inside += "\\|";
    } else {
      inside += c;
    }
  }
  return inside.empty() ? std::string("–") : "`" + inside + "`";
}

std::string report_line(std::string_view which, const ComparedReport& report) {
  std::string line =
      fmt::format("- {}: {}, {} (SHA-256 {}), bitwitness {}, {}", which, code(report.file), code(report.image_name),
                  code(report.image_sha256.substr(0, 16)), code(report.tool_version), to_string(report.verdict));
  if (report.stand_in) line += fmt::format(" – **{}**", report_parts::stand_in_warning);
  return line + '\n';
}

std::string differed(const RunSide& side) {
  if (!side.present) return "–";
  std::string text = fmt::format("{} of {}", side.counts.differed, side.counts.run);
  if (side.counts.not_run > 0) text += fmt::format(", {} not run", side.counts.not_run);
  return text;
}

std::string row(const RunComparison& run) {
  std::string cells =
      fmt::format("| {} | {} | {} {} | {} | {} |", code(run.routine), code(run.decoder), code(run.witness),
                  code(report_parts::environment_text(run.environment)), differed(run.before), differed(run.after));
  for (const Change change : {Change::appeared, Change::worse, Change::fixed, Change::gone}) {
    cells += fmt::format(" {} |", run.count(change));
  }
  return cells + fmt::format(" {} |\n", run.worse.empty() ? "" : "**worse**");
}

std::string value_rows(const RunComparison& run, std::size_t limit, std::size_t room) {
  std::string rows;
  std::size_t shown = 0;
  for (const Change change : comparison_parts::reading_order) {
    if (change == Change::unchanged) continue;
    for (const ValueChange& value : run.changes) {
      if (value.change != change || shown == limit) continue;
      std::string line = fmt::format("| {} | {} | {} | {} |\n", to_string(change), code(to_hex(value.value)),
                                     code(comparison_parts::distances_text(run, value, false)),
                                     code(comparison_parts::distances_text(run, value, true)));
      if (rows.size() + line.size() > room) break;
      rows += line;
      ++shown;
    }
  }
  const std::size_t all = run.changes.size() - run.count(Change::unchanged);
  if (shown == 0) return {};
  std::string text = "\n| change | value | distances before | distances now |\n| --- | --- | --- | --- |\n" + rows;
  if (all > shown) text += fmt::format("\n{} more values are not shown.\n", all - shown);
  return text;
}

std::string details(const RunComparison& run, std::size_t limit, std::size_t room) {
  std::string text;
  for (const std::string& reason : run.worse) text += "- worse: " + code(reason, max_sentence) + '\n';
  if (const std::string untold = comparison_parts::untold_text(run); !untold.empty()) text += "- " + untold + '\n';
  text += value_rows(run, limit, room > text.size() ? room - text.size() : 0);
  if (text.empty()) return {};
  return fmt::format("\n**{} against {}, {}**\n\n", code(run.routine), code(run.decoder),
                     code(report_parts::environment_text(run.environment))) +
         text;
}

}  // namespace

std::string to_markdown(const Comparison& comparison, std::size_t limit) {
  std::string text = fmt::format("### bitwitness: {}\n\n", to_string(comparison.verdict()));
  text += report_line("before", comparison.before) + report_line("now", comparison.after);
  if (!comparison.incomparable.empty() || !comparison.notes.empty()) text += '\n';
  std::size_t left_out = 0;
  const auto append = [&](const std::string& more) {
    if (text.size() + more.size() <= max_size) {
      text += more;
    } else {
      ++left_out;
    }
  };
  for (const std::string& note : comparison.notes) append("- note: " + code(note, max_sentence) + '\n');
  for (const std::string& reason : comparison.incomparable)
    append("- not comparable: " + code(reason, max_sentence) + '\n');
  if (!comparison.runs.empty()) {
    text += "\n| routine | decoder | environment | differed before | differ now | new | worse | fixed | gone | |\n";
    text += "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n";
  }
  for (const RunComparison& run : comparison.runs) append(row(run));
  for (const RunComparison& run : comparison.runs) append(details(run, limit, max_size - text.size()));
  if (left_out > 0) text += "\nThe rest does not fit into a comment.\n";
  if (comparison.incomparable.empty()) text += '\n' + comparison_parts::verdict_text(comparison) + '\n';
  return text;
}

}  // namespace bitwitness
