#include "harness/report.hpp"
#include "harness/report_parts.hpp"
#include "harness/values.hpp"

#include <limits>
#include <span>

#include <fmt/format.h>

namespace bitwitness {

namespace {

/// "  (a 1023, lane_low 0)"; nothing when the fields are not known. Wider ones than 64 bits are left to the bytes.
std::string fields_text(std::span<const std::byte> value, std::span<const BitField> fields) {
  std::string text;
  for (const BitField& field : fields) {
    if (field.width > 64 || field.offset + field.width > 8 * value.size()) continue;
    std::uint64_t bits = 0;
    for (unsigned bit = 0; bit < field.width; ++bit) {
      const unsigned at = field.offset + bit;
      bits |= (std::to_integer<std::uint64_t>(value[at / 8]) >> at % 8 & 1) << bit;
    }
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", field.name, bits);
  }
  return text.empty() ? text : "  (" + text + ")";
}

using report_parts::printable;

/// Quotes a word for a POSIX shell, where it needs to be.
std::string shell_word(std::string_view word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=@%+,-";
  if (!word.empty() && word.find_first_not_of(plain) == std::string_view::npos) return std::string(word);
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + '\'';
}

/// Returns the command line that repeats one value of a run.
std::string repeat_command(const Report& report, const RunReport& run, std::span<const std::byte> value) {
  std::string hex = to_hex(value);
  std::erase(hex, ' ');
  // A path that starts with a dash would be read as an option.
  const std::string path = report.image_path.starts_with('-') ? "./" + report.image_path : report.image_path;
  std::vector<std::string> words = {"bitwitness",  "verify",
                                    "--image",     path,
                                    "--at",        report_parts::address_text(run.address),
                                    "--signature", run.signature,
                                    "--decoder",   run.decoder,
                                    "--fpcw",      fmt::format("{:04x}", run.environment.fpcw),
                                    "--mxcsr",     fmt::format("{:04x}", run.environment.mxcsr)};
  words.insert(words.end(), report.repeat_options.begin(), report.repeat_options.end());
  words.insert(words.end(), {"--values", "hex:" + hex});
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += shell_word(word);
  }
  return line;
}

std::string head_text(const Report& report) {
  std::string text = fmt::format("{}  sha256 {}  {}", printable(report.image_name), report.image_sha256.substr(0, 16),
                                 to_string(report.image_format));
  if (report.stand_in) text += fmt::format("  {}", report_parts::stand_in_warning);
  text += fmt::format("\nbitwitness {}, unicorn {}, capstone {}, lief {}, cpu {}\n", report.tool_version,
                      report.engine.unicorn, report.engine.capstone, report.engine.lief, printable(report.engine.cpu));
  for (const std::string& note : report.notes) text += "note: " + printable(note) + '\n';
  return text;
}

std::string differing_text(const RunReport& run) {
  std::string text = "  words that differ:";
  for (std::size_t i = 0; i < run.differing.size(); ++i) {
    const std::string name = i < run.word_names.size() ? printable(run.word_names[i]) : fmt::format("word {}", i);
    text += fmt::format("{} {} {}", i == 0 ? "" : ",", name, run.differing[i]);
  }
  if (run.max_ulp == std::numeric_limits<std::uint64_t>::max()) return text + "; NaNs among them\n";
  return text + fmt::format("; largest distance {}{}\n", run.max_ulp, run.word_kind == WordKind::f32 ? " ulp" : "");
}

std::string summary_text(const RunReport& run) {
  std::string text = fmt::format("\n{} at {}: {}\n  decoder {}, witness {}, {}\n", printable(run.routine),
                                 report_parts::address_text(run.address), run.signature, run.decoder, run.witness,
                                 report_parts::environment_text(run.environment));
  text += "  " + report_parts::counts_text(run.counts) + '\n';
  if (run.counts.run > 0) {
    text += fmt::format("  agreed {} of {} run\n", report_parts::percentage(run.counts.agreed, run.counts.run),
                        run.counts.run);
  }
  text += "  values: " + report_parts::values_text(run) + '\n';
  if (run.counts.differed > 0) text += differing_text(run);
  if (const std::string alone = report_parts::isolation_text(run.isolation); !alone.empty()) {
    text += "  alone: " + alone + '\n';
  }
  if (!run.digest.empty()) text += "  digest " + run.digest + '\n';
  if (!run.routine_sha256.empty()) text += "  routine sha256 " + run.routine_sha256 + '\n';
  return text;
}

std::string unlisted_text(std::uint64_t count, std::size_t listed, std::string_view what) {
  return count > listed ? fmt::format("\n  {} not listed: {} (--limit)\n", what, count - listed) : std::string();
}

std::string run_text(const Report& report, const RunReport& run) {
  std::string text = summary_text(run);
  for (std::size_t i = 0; i < run.differences.size(); ++i) {
    const Difference& difference = run.differences[i];
    text += fmt::format("\n  difference {} of {}: {}{}\n{}  repeat: {}\n", i + 1, run.counts.differed,
                        to_hex(difference.value), fields_text(difference.value, run.fields),
                        report_parts::words_text(difference, run),
                        repeat_command(report, run, difference.value));
  }
  text += unlisted_text(run.counts.differed, run.differences.size(), "differences");
  const std::uint64_t failed = run.counts.faulted + run.counts.out_of_budget + run.counts.unwritten;
  for (std::size_t i = 0; i < run.failures.size(); ++i) {
    const Failure& failure = run.failures[i];
    text += fmt::format("\n  failure {} of {}: {}\n    {}\n  repeat: {}\n", i + 1, failed, to_hex(failure.value),
                        report_parts::failure_text(failure), repeat_command(report, run, failure.value));
  }
  text += unlisted_text(failed, run.failures.size(), "failures");
  if (!run.notes.empty() && (!run.differences.empty() || !run.failures.empty())) text += '\n';
  for (const std::string& note : run.notes) text += "  note: " + printable(note) + '\n';
  return text;
}

std::string verdict_text(const Report& report) {
  Counts sum;
  std::size_t agreeing = 0;
  std::uint64_t unstable = 0;
  for (const RunReport& run : report.runs) {
    sum.run += run.counts.run;
    sum.agreed += run.counts.agreed;
    sum.differed += run.counts.differed;
    sum.not_run += run.counts.not_run;
    unstable += run.isolation.unstable;
    if (run.verdict() == Verdict::agree) ++agreeing;
  }
  const std::string agreed = fmt::format("{} of {} values agreed bit for bit", sum.agreed, sum.run);
  switch (report.verdict()) {
    case Verdict::agree:
      return fmt::format("agree: {}, {} of {} runs", agreed, agreeing, report.runs.size());
    case Verdict::differ:
      return fmt::format("differ: {}, {} differed, {} gave no result, {} gave other words alone, {} not run", agreed,
                         sum.differed, sum.run - sum.agreed - sum.differed, unstable, sum.not_run);
    case Verdict::incomplete:
      return fmt::format("incomplete: interrupted, {}, {} not run", agreed, sum.not_run);
    case Verdict::vacuous:
      break;
  }
  if (sum.run == 0 && sum.not_run != 0) return "vacuous: interrupted before anything was compared";
  if (sum.run == 0) return "vacuous: nothing was compared";
  return fmt::format("vacuous: {}, but a run compared nothing", agreed);
}

}  // namespace

std::string to_text(const Report& report) {
  std::string text = head_text(report);
  for (const RunReport& run : report.runs) text += run_text(report, run);
  return text + '\n' + verdict_text(report) + '\n';
}

}  // namespace bitwitness
