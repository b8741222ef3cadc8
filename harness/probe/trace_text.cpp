#include "harness/operands.hpp"
#include "harness/probe/trace_numbers.hpp"
#include "harness/probe/trace_report.hpp"
#include "harness/report_parts.hpp"
#include "harness/values.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace bitwitness {
namespace {

using namespace trace_numbers;
using report_parts::printable;

/// Wider instructions push what stands behind them to the right.
constexpr std::size_t widest_instruction = 44;

std::string f32_text(std::uint32_t bits) {
  return fmt::format("{:08x} ({})", bits, report_parts::number_text(bits, WordKind::f32));
}

std::string f64_bits_text(std::uint64_t bits) {
  return fmt::format("{:016x} ({})", bits, f64_text(bits));
}

std::string x87_text(const Extended& value) {
  return fmt::format("{} ({})", extended_bits(value), extended_text(value));
}

std::string without_brackets(std::string_view text) {
  std::string out;
  bool inside = false;
  for (const char c : text) {
    inside = inside ? c != ']' : c == '[';
    if (!inside) out += c;
  }
  return out;
}

void add_general(std::vector<std::string>& facts, const TraceStep& step, bool is_64_bit) {
  const Operands shown = operands_of(step.memory.empty() ? step.text : without_brackets(step.text));
  for (const GeneralOperand& operand : step.general) {
    const std::string name = to_string(Register{RegisterClass::general, operand.number}, is_64_bit);
    if (operand.before != operand.after) {
      facts.push_back(fmt::format("{} {:#x} -> {:#x}", name, operand.before, operand.after));
    } else if ((shown.general >> operand.number & 1) != 0) {
      facts.push_back(fmt::format("{} {:#x}", name, operand.before));
    }
  }
}

void add_x87(std::vector<std::string>& facts, const TraceStep& step) {
  for (const X87Operand& operand : step.x87) {
    if (!operand.before) {
      facts.push_back(fmt::format("st{} = {}", *operand.index_after, x87_text(*operand.after)));
    } else if (!operand.after) {
      facts.push_back(fmt::format("st{} {} {}", *operand.index_before, x87_text(*operand.before),
                                  step.depth_after < step.depth_before ? "popped" : "emptied"));
    } else if (operand.before == operand.after) {
      facts.push_back(fmt::format("st{} {}", *operand.index_before, x87_text(*operand.before)));
    } else {
      const std::string renamed =
          operand.index_before == operand.index_after ? "" : fmt::format("st{} = ", *operand.index_after);
      facts.push_back(fmt::format("st{} {} -> {}{}", *operand.index_before, x87_text(*operand.before), renamed,
                                  x87_text(*operand.after)));
    }
  }
  if (step.depth_before != step.depth_after) {
    facts.push_back(fmt::format("depth {} -> {}", step.depth_before, step.depth_after));
  }
}

/// Prints every lane of an XMM register with its number. Plain bits are often floats on their way.
std::vector<std::string> lane_texts(const std::array<std::uint32_t, 4>& value, Reading reading) {
  std::vector<std::string> texts;
  if (reading == Reading::f64) {
    for (const std::size_t low : {0U, 2U}) texts.push_back(f64_bits_text(joined(value.at(low), value.at(low + 1))));
    return texts;
  }
  for (const std::uint32_t lane : value) {
    texts.push_back(reading == Reading::integer
                        ? fmt::format("{:08x} ({})", lane, report_parts::number_text(lane, WordKind::i32))
                        : f32_text(lane));
  }
  return texts;
}

/// Shows the lanes that changed; of what is only read the lanes that count, and of a conversion both sides' in their
/// type.
void add_xmm(std::vector<std::string>& facts, const TraceStep& step) {
  const Lanes lanes = lanes_of(step.text);
  const bool converts = lanes.source != lanes.destination;
  const auto list = [&lanes](const std::vector<std::string>& texts) {
    return lanes.is_scalar ? texts.front() : fmt::format("[{}]", fmt::join(texts, ", "));
  };
  const char* const suffix = lanes.is_scalar ? "[0]" : "";
  for (const XmmOperand& operand : step.xmm) {
    if (operand.before == operand.after) {
      facts.push_back(
          fmt::format("xmm{}{} {}", operand.number, suffix, list(lane_texts(operand.before, lanes.source))));
      continue;
    }
    const bool is_source_too = step.xmm.size() == 1 && step.memory.empty() && step.general.empty();
    const auto before = lane_texts(operand.before, is_source_too ? lanes.source : lanes.destination);
    const auto after = lane_texts(operand.after, lanes.destination);
    if (converts) {
      facts.push_back(fmt::format("xmm{}{} {} -> {}", operand.number, suffix, list(before), list(after)));
      continue;
    }
    for (std::size_t lane = 0; lane < after.size(); ++lane) {
      if (before[lane] == after[lane]) continue;
      facts.push_back(fmt::format("xmm{}[{}] {} -> {}", operand.number, lane, before[lane], after[lane]));
    }
  }
}

std::string bytes_text(std::span<const std::byte> bytes, Reading reading) {
  const std::vector<std::string> numbers = numbers_of(bytes, reading);
  const std::string bits = bits_text(bytes);
  return numbers.empty() ? bits : fmt::format("{} ({})", bits, fmt::join(numbers, ", "));
}

void add_memory(std::vector<std::string>& facts, const TraceStep& step) {
  for (const MemoryAccess& access : step.memory) {
    std::string text =
        fmt::format("{} {} at {:#x}", access.access == Access::write ? "write" : "read", access.size, access.address);
    if (!access.where.empty()) text += fmt::format(" ({})", printable(access.where));
    if (access.access == Access::write && !access.after.empty()) {
      text += fmt::format(": {} -> {}", bits_text(access.before), bytes_text(access.after, access.reading));
    } else if (!access.before.empty()) {
      text += ": " + bytes_text(access.before, access.reading);
    } else {
      text += ": not mapped";
    }
    facts.push_back(std::move(text));
  }
}

void add_control(std::vector<std::string>& facts, const TraceStep& step) {
  std::vector<std::string> flags;
  for (const FlagChange& flag : step.flags) flags.push_back(fmt::format("{}={}", flag.name, flag.is_set ? 1 : 0));
  if (!flags.empty()) facts.push_back(fmt::format("{}", fmt::join(flags, " ")));
  if (step.fpcw) facts.push_back(fmt::format("fpcw {:04x} -> {:04x}", step.fpcw->before, step.fpcw->after));
  if (step.mxcsr) facts.push_back(fmt::format("mxcsr {:04x} -> {:04x}", step.mxcsr->before, step.mxcsr->after));
  if (step.taken) {
    facts.push_back(*step.taken ? fmt::format("taken, to {:#x}", step.next) : "not taken");
  } else if (!step.is_sequential && step.is_completed) {
    facts.push_back(fmt::format("to {:#x}", step.next));
  }
  if (!step.is_completed) facts.emplace_back("NOT COMPLETED");
}

std::string step_text(const TraceStep& step, std::size_t width, bool is_64_bit) {
  std::vector<std::string> facts;
  add_general(facts, step, is_64_bit);
  add_x87(facts, step);
  add_xmm(facts, step);
  add_memory(facts, step);
  add_control(facts, step);
  if (facts.empty()) return fmt::format("  {:#x}  {}\n", step.address, step.text);
  return fmt::format("  {:#x}  {:{}}  {}\n", step.address, step.text, width, fmt::join(facts, "; "));
}

std::string head_text(const TraceReport& report) {
  const Trace& trace = report.trace;
  std::string text = fmt::format("{}  sha256 {}  {}", printable(report.image_name), report.image_sha256.substr(0, 16),
                                 to_string(report.image_format));
  if (report.stand_in) text += fmt::format("  {}", report_parts::stand_in_warning);
  text += fmt::format("\n{} at {}: {}\n  value {}, {}\n", printable(trace.routine.name),
                      report_parts::address_text(trace.routine.address), to_string(trace.routine.signature),
                      to_hex(trace.packed), report_parts::environment_text(trace.environment));
  for (const std::string& note : report.notes) text += fmt::format("  note: {}\n", printable(note));
  return text + '\n';
}

std::string end_text(const Trace& trace) {
  std::string text;
  if (trace.omitted() > 0) {
    text += fmt::format("  … {} more not listed (--limit {})\n", trace.omitted(), trace.limit);
  }
  text += fmt::format("\n  {} instruction{}: ", trace.instructions, trace.instructions == 1 ? "" : "s");
  if (trace.outcome == OutcomeKind::returned) {
    text += "returned\n";
  } else {
    text += report_parts::failure_text({trace.packed, trace.outcome, trace.incident.address, trace.incident.instruction,
                                        trace.incident.reason}) +
            '\n';
  }
  text += trace.disagreement.empty() ? "  checked: the machine that verifies ends in the same way"
                                     : "  UNRELIABLE: " + trace.disagreement;
  if (trace.disagreement.empty() && trace.outcome == OutcomeKind::returned) text += ", with the same words";
  text += '\n';
  for (const std::string& note : trace.notes) text += fmt::format("  note: {}\n", printable(note));
  return text;
}

std::string words_text(const TraceReport& report) {
  const Trace& trace = report.trace;
  if (trace.outcome != OutcomeKind::returned) return {};
  if (report.subject) {
    RunReport run;
    run.word_names = report.subject->word_names;
    run.word_kind = report.subject->word_kind;
    return fmt::format("  words of the routine and of decoder {}:\n{}", printable(report.subject->decoder),
                       report_parts::words_text({trace.packed, trace.words, report.subject->words}, run));
  }
  std::string text = "  words:\n";
  for (std::size_t i = 0; i < trace.words.size(); ++i) {
    text += fmt::format("    word {}  {}\n", i, f32_text(trace.words[i]));
  }
  return text;
}

std::string verdict_text(const TraceReport& report) {
  const std::string name(to_string(report.verdict()));
  switch (report.verdict()) {
    case TraceVerdict::executed:
      return name + ": the routine returned; no decoder was asked";
    case TraceVerdict::agree:
      return fmt::format("{}: decoder {} gives the same bits", name, printable(report.subject->decoder));
    case TraceVerdict::differ:
      return fmt::format("{}: decoder {} gives other bits", name, printable(report.subject->decoder));
    case TraceVerdict::failed:
      return name + ": the routine gave no result";
    case TraceVerdict::unreliable:
      break;
  }
  return name + ": the trace does not show what the machine that verifies does";
}

}  // namespace

std::string_view to_string(TraceVerdict verdict) {
  switch (verdict) {
    case TraceVerdict::executed:
      return "executed";
    case TraceVerdict::agree:
      return "agree";
    case TraceVerdict::differ:
      return "differ";
    case TraceVerdict::failed:
      return "failed";
    case TraceVerdict::unreliable:
      return "unreliable";
  }
  return "";
}

TraceVerdict TraceReport::verdict() const {
  if (!trace.disagreement.empty()) return TraceVerdict::unreliable;
  if (trace.outcome != OutcomeKind::returned) return TraceVerdict::failed;
  if (!subject) return TraceVerdict::executed;
  return subject->words == trace.words ? TraceVerdict::agree : TraceVerdict::differ;
}

std::string to_text(const TraceReport& report) {
  std::size_t width = 0;
  for (const TraceStep& step : report.trace.steps) width = std::max(width, step.text.size());
  width = std::min(width, widest_instruction);
  std::string text = head_text(report);
  for (const TraceStep& step : report.trace.steps) text += step_text(step, width, report.trace.is_64_bit);
  return text + end_text(report.trace) + words_text(report) + '\n' + verdict_text(report) + '\n';
}

}  // namespace bitwitness
