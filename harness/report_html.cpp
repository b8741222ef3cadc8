#include "harness/report_html.hpp"

#include "harness/report_environments.hpp"
#include "harness/report_html_parts.hpp"
#include "harness/report_parts.hpp"
#include "harness/values.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace bitwitness {

namespace report_html {

namespace {

/// Differences and failures that one page shows, of all runs together; each takes a few kilobytes of it.
constexpr std::size_t most_blocks = 2000;

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::agree:
      return "agree";
    case Verdict::differ:
      return "differ";
    case Verdict::incomplete:
      return "incomplete";
    case Verdict::vacuous:
      break;
  }
  return "nothing compared";
}

std::string entry(std::string_view name, std::string_view value) {
  return value.empty() ? std::string() : fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, escaped(value));
}

std::string code_entry(std::string_view name, std::string_view value) {
  return value.empty() ? std::string() : fmt::format("<dt>{}</dt><dd><code>{}</code></dd>\n", name, escaped(value));
}

std::string list_of(std::string_view head, const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  std::string out = fmt::format("<h3>{}</h3>\n<ul>\n", head);
  for (const std::string& line : lines) out += "<li>" + escaped(line) + "</li>\n";
  return out + "</ul>\n";
}

std::string stand_in_banner(std::string_view kind) {
  return fmt::format("<div class=\"{}\" role=\"note\">{}</div>\n", kind, escaped(report_parts::stand_in_warning));
}

std::string image_entries(std::string_view name, std::string_view sha256, ImageFormat format, bool stand_in) {
  std::string out = entry("image", name);
  if (sha256.empty()) return out;
  return out + code_entry("SHA-256", sha256) +
         entry("format", fmt::format("{}{}", to_string(format), stand_in ? ", a stand-in" : ""));
}

std::string run_name(const RunReport& run) {
  return fmt::format("{} against {}, {}{}", run.routine, run.decoder, report_parts::environment_text(run.environment),
                     run.shard.empty() ? "" : ", shard " + run.shard);
}

std::string state(Verdict verdict) {
  return fmt::format("<span class=\"state {}\">{}</span>", to_string(verdict), verdict_name(verdict));
}

std::string runs_table(const Report& report) {
  if (report.runs.empty()) return "<p>No routine was run.</p>\n";
  std::string out =
      "<h3>Runs</h3>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Runs\"><table><thead><tr>"
      "<th>run</th><th>verdict</th><th class=\"number\">agreed</th><th class=\"number\">differed</th>"
      "<th class=\"number\">values run</th><th class=\"number\">agreed</th></tr></thead><tbody>\n";
  for (std::size_t i = 0; i < report.runs.size(); ++i) {
    const RunReport& run = report.runs[i];
    const Counts& counts = run.counts;
    out += fmt::format(
        "<tr><td><a href=\"#run-{}\">{}</a></td><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>"
        "<td class=\"number\">{}</td><td class=\"number\">{}</td></tr>\n",
        i + 1, escaped(run_name(run)), state(run.verdict()),
        counts.run == 0 ? "none" : report_parts::percentage(counts.agreed, counts.run), counts.differed, counts.run,
        counts.agreed);
  }
  return out + "</tbody></table></div>\n";
}

std::string head_of(const Report& report) {
  const std::string title =
      fmt::format("{}{}: {}", report.stand_in ? "STAND-IN " : "", report.image_name, verdict_name(report.verdict()));
  // The policy lets the page load and execute nothing, whatever it says.
  return "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\" xml:lang=\"en\">\n<head>\n"
         "<meta charset=\"utf-8\"/>\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
         "style-src "
         "'unsafe-inline'\"/>\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
         "<meta name=\"referrer\" content=\"no-referrer\"/>\n<title>" +
         escaped(title) + "</title>\n<style>" + std::string(style()) + "</style>\n</head>\n<body>\n";
}

std::string summary_of(const Report& report) {
  std::string out = "<h1>" + escaped(report.image_name) + "</h1>\n";
  out += fmt::format("<p class=\"verdict {}\">{}</p>\n", to_string(report.verdict()),
                     escaped(report_parts::verdict_text(report)));
  out += runs_table(report);
  out += report_environments::to_html(report);
  out += "<h3>Made with</h3>\n<dl>\n" +
         image_entries(report.image_name, report.image_sha256, report.image_format, report.stand_in) +
         entry("bitwitness", report.tool_version) + entry("unicorn", report.engine.unicorn) +
         entry("capstone", report.engine.capstone) + entry("lief", report.engine.lief) +
         entry("processor", report.engine.cpu);
  if (const std::string tested = report_parts::self_test_text(report.engine); !tested.empty()) {
    out += entry("self-test", tested);
  }
  out += "</dl>\n";
  return out + list_of("Notes", report.notes);
}

std::string facts_of(const RunReport& run) {
  std::string out = "<dl>\n";
  out += code_entry("routine", fmt::format("{} at {}", run.routine, report_parts::address_text(run.address)));
  out += code_entry("signature", run.signature) + code_entry("routine SHA-256", run.routine_sha256);
  out += entry("decoder", run.decoder) + entry("witness", run.witness);
  out += entry("environment", report_parts::environment_text(run.environment));
  if (run.image) out += image_entries(run.image->name, run.image->sha256, run.image->format, run.image->stand_in);
  out += entry("values", report_parts::values_text(run)) + entry("counts", report_parts::counts_text(run.counts));
  if (run.counts.run > 0) {
    out += entry("agreed", fmt::format("{} of {} run", report_parts::percentage(run.counts.agreed, run.counts.run),
                                       run.counts.run));
  }
  const bool told = std::ranges::any_of(run.differing, [](std::uint64_t count) { return count > 0; });
  if (told) {
    const std::string distance = report_parts::distance_text(run.max_ulp);
    out += entry("largest distance", distance == "nan" ? "NaN against a number"
                                                       : distance + (run.word_kind == WordKind::f32 ? " ulp" : ""));
  }
  out += entry("alone", report_parts::isolation_text(run)) + code_entry("digest", run.digest);
  return out + "</dl>\n";
}

std::string charts_of(const RunReport& run, std::string_view id) {
  std::string out = "<div class=\"charts\">\n" + agreement_chart(run, fmt::format("{}-a", id));
  if (!run.differences.empty()) out += distance_histogram(run, fmt::format("{}-h", id)) + code_plots(run, id);
  return out + "</div>\n";
}

std::string missing_text(std::size_t listed, std::uint64_t all, std::size_t shown) {
  if (all == shown) return {};
  std::string out = fmt::format("<p>Shown: {} of {}.", shown, all);
  if (listed < all) out += fmt::format(" The report lists the {} smallest values (--limit).", listed);
  if (shown < listed) out += " The page shows no more, the JSON report (--json) does.";
  return out + "</p>\n";
}

std::string differences_of(const Report& report, const RunReport& run, std::size_t& room) {
  if (run.counts.differed == 0) return {};
  const std::size_t shown = std::min(run.differences.size(), room);
  room -= shown;
  std::string out = fmt::format("<h3>Differences ({})</h3>\n", run.counts.differed);
  out += missing_text(run.differences.size(), run.counts.differed, shown);
  if (shown == 0) return out;
  out +=
      "<p class=\"mute\">Reference: the words of the routine. Subject: those of the decoder. Fields and words are "
      "written "
      "from the highest bit down; ";
  out += run.word_kind == WordKind::f32 ? "words as sign, exponent and mantissa. " : "words in groups of eight bits. ";
  out += "Bits in which the sides differ are bold, underlined and have a caret below.</p>\n";
  for (std::size_t i = 0; i < shown; ++i) out += difference_block(report, run, i);
  return out;
}

std::string failures_of(const Report& report, const RunReport& run, std::size_t& room) {
  const std::uint64_t failed = run.counts.without_result();
  if (failed == 0) return {};
  const std::size_t shown = std::min(run.failures.size(), room);
  room -= shown;
  std::string out = fmt::format("<h3>Without a result ({})</h3>\n", failed);
  out += missing_text(run.failures.size(), failed, shown);
  for (std::size_t i = 0; i < shown; ++i) {
    const Failure& failure = run.failures[i];
    out += fmt::format("<article class=\"difference\"><h4>Failure {} of {}: <code>{}</code></h4>\n<p>{}</p>\n", i + 1,
                       failed, to_hex(failure.value), escaped(report_parts::failure_text(failure)));
    if (run.vector_file.empty()) {
      out += "<p>Repeat it:</p>\n<code class=\"command\">" +
             escaped(report_parts::repeat_command(report, run, failure.value)) + "</code>\n";
    }
    out += "</article>\n";
  }
  return out;
}

std::string run_section(const Report& report, std::size_t index, std::size_t& room) {
  const RunReport& run = report.runs[index];
  const std::string id = fmt::format("run-{}", index + 1);
  std::string out =
      fmt::format("<section id=\"{}\">\n<h2>{}: {}</h2>\n", id, escaped(run_name(run)), state(run.verdict()));
  if (run.image && run.image->stand_in) out += stand_in_banner("stand-in inner");
  out += facts_of(run) + charts_of(run, id);
  out += list_of("Does not hold", run.broken) + list_of("Notes", run.notes);
  return out + differences_of(report, run, room) + failures_of(report, run, room) + "</section>\n";
}

/// Lines of untrusted text, each fit for the page.
std::string lines_of(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += escaped(text.substr(0, end)) + '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string listing_of(const HtmlListing& listing, std::string_view what) {
  return fmt::format(
      "<details open=\"open\"><summary>{}: {}</summary>\n<pre class=\"listing\" tabindex=\"0\">{}</pre></details>\n",
      what, escaped(listing.title), lines_of(listing.text));
}

std::string code_section(const HtmlExtras& extras) {
  std::string out = "<section id=\"code\">\n<h2>Code</h2>\n";
  if (!extras.absence.empty()) out += "<p>" + escaped(extras.absence) + "</p>\n";
  if (!extras.trace.text.empty()) out += listing_of(extras.trace, "Trace of the first difference");
  for (const HtmlListing& listing : extras.disassemblies) out += listing_of(listing, "Disassembly");
  return out + "</section>\n";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : report_parts::printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string shortened(std::string_view text, std::size_t most) {
  const std::string whole = report_parts::printable(text);
  std::size_t characters = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    const bool starts = (static_cast<unsigned char>(whole[at]) & 0xc0U) != 0x80;
    if (starts && characters++ == most) return escaped(std::string_view(whole).substr(0, at)) + "…";
  }
  return escaped(whole);
}

std::string word_name(const RunReport& run, std::size_t word) {
  return word < run.word_names.size() ? run.word_names[word] : fmt::format("word {}", word);
}

}  // namespace report_html

std::string to_html(const Report& report, const HtmlExtras& extras) {
  using namespace report_html;
  std::string out = head_of(report);
  if (report.stand_in) out += stand_in_banner("stand-in");
  out += "<main>\n" + summary_of(report);
  std::size_t room = most_blocks;
  for (std::size_t i = 0; i < report.runs.size(); ++i) out += run_section(report, i, room);
  out += code_section(extras);
  return out + "</main>\n<footer>bitwitness " + escaped(report.tool_version) + "</footer>\n</body>\n</html>\n";
}

}  // namespace bitwitness
