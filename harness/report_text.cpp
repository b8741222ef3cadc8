#include "harness/report.hpp"
#include "harness/report_environments.hpp"
#include "harness/report_parts.hpp"
#include "harness/values.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

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

std::string command_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    line += shell_word(word);
  }
  return line;
}

std::string image_text(std::string_view name, std::string_view sha256, ImageFormat format, bool stand_in) {
  std::string text(printable(name));
  if (!sha256.empty()) text += fmt::format("  sha256 {}  {}", sha256.substr(0, 16), to_string(format));
  if (stand_in) text += fmt::format("  {}", report_parts::stand_in_warning);
  return text;
}

std::string head_text(const Report& report) {
  std::string text = image_text(report.image_name, report.image_sha256, report.image_format, report.stand_in);
  text += "\nbitwitness " + report.tool_version;
  const Engine& engine = report.engine;
  for (const auto& [part, version] : {std::pair("unicorn", &engine.unicorn), std::pair("capstone", &engine.capstone),
                                      std::pair("lief", &engine.lief), std::pair("cpu", &engine.cpu)}) {
    if (!version->empty()) text += fmt::format(", {} {}", part, printable(*version));
  }
  text += '\n';
  if (const std::string tested = report_parts::self_test_text(engine); !tested.empty()) {
    text += fmt::format("unicorn {}: {}\n", printable(engine.unicorn), printable(tested));
  }
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
                                 report_parts::address_text(run.address), run.signature, printable(run.decoder),
                                 run.witness, report_parts::environment_text(run.environment));
  if (const auto& image = run.image) {
    text += "  image: " + image_text(image->name, image->sha256, image->format, image->stand_in) + '\n';
  }
  text += "  " + report_parts::counts_text(run.counts) + '\n';
  if (run.counts.run > 0) {
    text += fmt::format("  agreed {} of {} run\n", report_parts::percentage(run.counts.agreed, run.counts.run),
                        run.counts.run);
  }
  text += "  values: " + report_parts::values_text(run) + '\n';
  // Of digests nobody knows which words.
  const bool told = std::ranges::any_of(run.differing, [](std::uint64_t count) { return count > 0; });
  if (told) text += differing_text(run);
  if (const std::string alone = report_parts::isolation_text(run); !alone.empty()) {
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
    text += fmt::format("\n  difference {} of {}: {}{}\n{}", i + 1, run.counts.differed, to_hex(difference.value),
                        fields_text(difference.value, run.fields), report_parts::words_text(difference, run));
    if (report.is_repeatable) {
      text += "  repeat: " + report_parts::repeat_command(report, run, difference.value) + '\n';
    }
  }
  text += unlisted_text(run.counts.differed, run.differences.size(), "differences");
  const std::uint64_t failed = run.counts.without_result();
  for (std::size_t i = 0; i < run.failures.size(); ++i) {
    const Failure& failure = run.failures[i];
    text += fmt::format("\n  failure {} of {}: {}\n    {}\n", i + 1, failed, to_hex(failure.value),
                        report_parts::failure_text(failure));
    if (run.vector_file.empty()) text += "  repeat: " + report_parts::repeat_command(report, run, failure.value) + '\n';
  }
  text += unlisted_text(failed, run.failures.size(), "failures");
  if (!run.notes.empty() && (!run.differences.empty() || !run.failures.empty())) text += '\n';
  for (const std::string& broken : run.broken) text += "  does not hold: " + printable(broken) + '\n';
  for (const std::string& note : run.notes) text += "  note: " + printable(note) + '\n';
  return text;
}

}  // namespace

namespace report_parts {

std::string repeat_command(const Report& report, const RunReport& run, std::span<const std::byte> value) {
  std::string hex = to_hex(value);
  std::erase(hex, ' ');
  const std::string& decoder = run.decoder_option.empty() ? run.decoder : run.decoder_option;
  if (!run.vector_file.empty()) {
    const std::string file = run.vector_file.starts_with('-') ? "./" + run.vector_file : run.vector_file;
    return command_line({"bitwitness", "replay", file, "--decoder", decoder, "--values", "hex:" + hex});
  }
  // A path that starts with a dash would be read as an option.
  const std::string path = report.image_path.starts_with('-') ? "./" + report.image_path : report.image_path;
  std::vector<std::string> words = {"bitwitness",  "verify",
                                    "--image",     path,
                                    "--at",        report_parts::address_text(run.address),
                                    "--signature", run.signature,
                                    "--decoder",   decoder,
                                    "--fpcw",      fmt::format("{:04x}", run.environment.fpcw),
                                    "--mxcsr",     fmt::format("{:04x}", run.environment.mxcsr)};
  words.insert(words.end(), report.repeat_options.begin(), report.repeat_options.end());
  words.insert(words.end(), {"--values", "hex:" + hex});
  return command_line(words);
}

std::string verdict_text(const Report& report) {
  Counts sum;
  std::size_t agreeing = 0;
  std::uint64_t unstable = 0;
  std::size_t broken = 0;
  for (const RunReport& run : report.runs) {
    sum.run += run.counts.run;
    sum.agreed += run.counts.agreed;
    sum.differed += run.counts.differed;
    sum.known += run.counts.known;
    sum.not_run += run.counts.not_run;
    unstable += run.isolation.unstable;
    broken += run.broken.size();
    if (run.verdict() == Verdict::agree) ++agreeing;
  }
  std::string agreed = fmt::format("{} of {} values agreed bit for bit", sum.agreed, sum.run);
  if (sum.known > 0) agreed += fmt::format(", {} differed as known", sum.known);
  if (broken > 0) agreed += fmt::format(", {} known differences do not hold", broken);
  switch (report.verdict()) {
    case Verdict::agree:
      return fmt::format("agree: {}, {} of {} runs", agreed, agreeing, report.runs.size());
    case Verdict::differ:
      return fmt::format("differ: {}, {} differed, {} gave no result, {} gave other words alone, {} not run", agreed,
                         sum.differed, sum.run - sum.agreed - sum.differed - sum.known, unstable, sum.not_run);
    case Verdict::incomplete:
      return fmt::format("incomplete: interrupted, {}, {} not run", agreed, sum.not_run);
    case Verdict::vacuous:
      break;
  }
  if (sum.run == 0 && sum.not_run != 0) return "vacuous: interrupted before anything was compared";
  if (sum.run == 0) return "vacuous: nothing was compared";
  return fmt::format("vacuous: {}, but a run compared nothing", agreed);
}

}  // namespace report_parts

std::string to_text(const Report& report) {
  std::string text = head_text(report);
  for (const RunReport& run : report.runs) text += run_text(report, run);
  text += report_environments::to_text(report);
  return text + '\n' + report_parts::verdict_text(report) + '\n';
}

}  // namespace bitwitness
