#include "harness/report.hpp"
#include "harness/report_parts.hpp"
#include "harness/values.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

namespace bitwitness {

namespace {

using report_parts::printable;

/// Differences and failures that the body of a test case shows; the JSON report holds all that were kept.
constexpr std::size_t shown_per_case = 5;

template <typename T>
std::span<const T> first_of(const std::vector<T>& all) {
  return std::span(all).first(std::min(all.size(), shown_per_case));
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
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
      default:
        out += c;
    }
  }
  return out;
}

std::string attribute(std::string_view name, std::string_view value) {
  return fmt::format(" {}=\"{}\"", name, escaped(printable(value)));
}

std::string property(std::string_view name, std::string_view value) {
  return "      <property" + attribute("name", name) + attribute("value", value) + "/>\n";
}

/// What a run showed, as the body of a failure or as the output of a test case that passed.
std::string body_of(const RunReport& run) {
  std::string text = report_parts::counts_text(run.counts) + '\n';
  text += "values: " + report_parts::values_text(run) + '\n';
  if (const std::string alone = report_parts::isolation_text(run); !alone.empty()) text += alone + '\n';
  for (const Difference& difference : first_of(run.differences)) {
    text += fmt::format("difference: {}\n{}", to_hex(difference.value), report_parts::words_text(difference, run));
  }
  for (const Failure& failure : first_of(run.failures)) {
    text += fmt::format("failure: {} {}\n", to_hex(failure.value), report_parts::failure_text(failure));
  }
  for (const std::string& broken : run.broken) text += "does not hold: " + printable(broken) + '\n';
  for (const std::string& note : run.notes) text += "note: " + printable(note) + '\n';
  return text;
}

std::string element(std::string_view name, std::string_view attributes, std::string_view body) {
  return fmt::format("      <{0}{1}>{2}</{0}>\n", name, attributes, escaped(body));
}

std::string failure_message(const RunReport& run) {
  const Counts& counts = run.counts;
  std::string message = fmt::format("{} of {} values agreed", counts.agreed, counts.run);
  if (counts.known > 0) message += fmt::format(", {} differed as known", counts.known);
  message += fmt::format(", {} of {} alone gave other words", run.isolation.unstable, run.isolation.sampled);
  if (!run.broken.empty()) message += fmt::format(", {} known differences do not hold", run.broken.size());
  return message;
}

std::string outcome_element(const RunReport& run) {
  const Verdict verdict = run.verdict();
  const std::string type = attribute("type", to_string(verdict));
  const Counts& counts = run.counts;
  switch (verdict) {
    case Verdict::agree:
      break;
    case Verdict::differ:
      return element("failure", attribute("message", failure_message(run)) + type, body_of(run));
    case Verdict::incomplete:
      return element("error",
                     attribute("message", fmt::format("interrupted: {} values were not run", counts.not_run)) + type,
                     body_of(run));
    case Verdict::vacuous:
      return element("error", attribute("message", "nothing was compared") + type, body_of(run));
  }
  return element("system-out", "", body_of(run));
}

std::string test_case(const Report& report, const RunReport& run) {
  std::string name =
      fmt::format("{} against {}, {}", run.routine, run.decoder, report_parts::environment_text(run.environment));
  if (!run.shard.empty()) name += ", shard " + run.shard;
  const std::string& image = run.image ? run.image->name : report.image_name;
  return "    <testcase" + attribute("name", name) + attribute("classname", image + "." + run.routine) + ">\n" +
         outcome_element(run) + "    </testcase>\n";
}

std::string empty_case(const Report& report) {
  return "    <testcase" + attribute("name", "no routine was run") + attribute("classname", report.image_name) + ">\n" +
         element("error", attribute("message", "nothing was compared") + attribute("type", to_string(Verdict::vacuous)),
                 "") +
         "    </testcase>\n";
}

}  // namespace

std::string to_junit(const Report& report) {
  std::size_t failures = 0;
  std::size_t errors = report.runs.empty() ? 1 : 0;
  std::string cases = report.runs.empty() ? empty_case(report) : std::string();
  for (const RunReport& run : report.runs) {
    const Verdict verdict = run.verdict();
    if (verdict == Verdict::differ) ++failures;
    if (verdict == Verdict::incomplete || verdict == Verdict::vacuous) ++errors;
    cases += test_case(report, run);
  }
  const std::string totals = attribute("tests", fmt::format("{}", std::max<std::size_t>(report.runs.size(), 1))) +
                             attribute("failures", fmt::format("{}", failures)) +
                             attribute("errors", fmt::format("{}", errors));

  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" + attribute("name", "bitwitness") +
                    totals + ">\n  <testsuite" + attribute("name", report.image_name) + totals +
                    ">\n    <properties>\n";
  out += property("bitwitness", report.tool_version);
  out += property("unicorn", report.engine.unicorn);
  out += property("capstone", report.engine.capstone);
  out += property("lief", report.engine.lief);
  out += property("cpu", report.engine.cpu);
  out += property("image.sha256", report.image_sha256);
  out += property("image.format", to_string(report.image_format));
  out += property("image.stand_in", report.stand_in ? "true" : "false");
  if (report.stand_in) out += property("image.warning", report_parts::stand_in_warning);
  for (const std::string& note : report.notes) out += property("note", note);
  return out + "    </properties>\n" + cases + "  </testsuite>\n</testsuites>\n";
}

}  // namespace bitwitness
