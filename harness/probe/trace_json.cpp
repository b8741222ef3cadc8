#include "harness/probe/trace_numbers.hpp"
#include "harness/probe/trace_report.hpp"
#include "harness/report_objects.hpp"
#include "harness/report_parts.hpp"
#include "harness/values.hpp"

#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bitwitness {
namespace {

using namespace trace_numbers;
using report_parts::address_text;
using Json = nlohmann::ordered_json;

std::string dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json general_json(const TraceStep& step, bool is_64_bit) {
  Json out = Json::array();
  for (const GeneralOperand& operand : step.general) {
    out.push_back({{"register", to_string(Register{RegisterClass::general, operand.number}, is_64_bit)},
                   {"before", address_text(operand.before)},
                   {"after", address_text(operand.after)}});
  }
  return out;
}

Json x87_value_json(const std::optional<unsigned>& index, const std::optional<Extended>& value) {
  if (!index || !value) return nullptr;
  return {
      {"register", fmt::format("st{}", *index)}, {"bits", extended_bits(*value)}, {"number", extended_text(*value)}};
}

Json x87_json(const TraceStep& step) {
  Json out = Json::array();
  for (const X87Operand& operand : step.x87) {
    out.push_back({{"before", x87_value_json(operand.index_before, operand.before)},
                   {"after", x87_value_json(operand.index_after, operand.after)}});
  }
  return out;
}

Json lanes_json(const std::array<std::uint32_t, 4>& lanes) {
  Json bits = Json::array();
  Json f32 = Json::array();
  Json f64 = Json::array();
  for (const std::uint32_t lane : lanes) {
    bits.push_back(fmt::format("{:08x}", lane));
    f32.push_back(report_parts::number_text(lane, WordKind::f32));
  }
  for (const std::size_t low : {0U, 2U}) f64.push_back(f64_text(joined(lanes.at(low), lanes.at(low + 1))));
  return {{"bits", std::move(bits)}, {"f32", std::move(f32)}, {"f64", std::move(f64)}};
}

Json xmm_json(const TraceStep& step) {
  Json out = Json::array();
  for (const XmmOperand& operand : step.xmm) {
    out.push_back({{"register", fmt::format("xmm{}", operand.number)},
                   {"before", lanes_json(operand.before)},
                   {"after", lanes_json(operand.after)}});
  }
  return out;
}

Json bytes_json(std::span<const std::byte> bytes, Reading reading) {
  if (bytes.empty()) return nullptr;
  constexpr std::size_t widest_integer = 16;
  Json out = {{"bytes", to_hex(bytes)}};
  if (bytes.size() <= widest_integer) out["integer"] = bits_text(bytes);
  if (const auto numbers = numbers_of(bytes, reading); !numbers.empty()) out["numbers"] = numbers;
  return out;
}

Json memory_json(const TraceStep& step) {
  Json out = Json::array();
  for (const MemoryAccess& access : step.memory) {
    out.push_back({{"access", access.access == Access::write ? "write" : "read"},
                   {"address", address_text(access.address)},
                   {"where", access.where},
                   {"size", access.size},
                   {"before", bytes_json(access.before, access.reading)},
                   {"after", bytes_json(access.after, access.reading)}});
  }
  return out;
}

Json changed_json(const Changed& changed) {
  return {fmt::format("{:04x}", changed.before), fmt::format("{:04x}", changed.after)};
}

Json step_json(const TraceStep& step, bool is_64_bit) {
  Json out = {{"address", address_text(step.address)},
              {"instruction", step.text},
              {"completed", step.is_completed},
              {"next", step.is_completed ? Json(address_text(step.next)) : Json(nullptr)}};
  if (!step.general.empty()) out["general"] = general_json(step, is_64_bit);
  if (!step.x87.empty()) {
    out["x87"] = x87_json(step);
    out["depth"] = {step.depth_before, step.depth_after};
  }
  if (!step.xmm.empty()) out["xmm"] = xmm_json(step);
  if (!step.memory.empty()) out["memory"] = memory_json(step);
  for (const FlagChange& flag : step.flags) out["flags"][std::string(flag.name)] = flag.is_set;
  if (step.taken) out["taken"] = *step.taken;
  if (step.fpcw) out["fpcw"] = changed_json(*step.fpcw);
  if (step.mxcsr) out["mxcsr"] = changed_json(*step.mxcsr);
  return out;
}

Json words_json(const TraceReport& report) {
  Json out = Json::array();
  if (report.trace.outcome != OutcomeKind::returned) return out;
  const WordKind kind = report.subject ? report.subject->word_kind : WordKind::f32;
  for (std::size_t i = 0; i < report.trace.words.size(); ++i) {
    const std::uint32_t reference = report.trace.words[i];
    Json word = {{"reference", fmt::format("{:08x}", reference)},
                 {"reference_number", report_parts::number_text(reference, kind)}};
    if (report.subject && i < report.subject->words.size()) {
      const std::uint32_t subject = report.subject->words[i];
      if (i < report.subject->word_names.size()) word["name"] = report.subject->word_names[i];
      word["subject"] = fmt::format("{:08x}", subject);
      word["subject_number"] = report_parts::number_text(subject, kind);
      const std::uint64_t distance = ulp_distance(reference, subject, kind);
      word["ulp"] = distance == std::numeric_limits<std::uint64_t>::max() ? Json(nullptr) : Json(distance);
    }
    out.push_back(std::move(word));
  }
  return out;
}

Json failure_json(const Trace& trace) {
  if (trace.outcome == OutcomeKind::returned) return nullptr;
  return {{"address", trace.incident.address == 0 ? Json(nullptr) : Json(address_text(trace.incident.address))},
          {"instruction", trace.incident.instruction},
          {"reason", trace.incident.reason}};
}

Json head_json(const TraceReport& report) {
  const Trace& trace = report.trace;
  Json notes = Json::array();
  for (const std::string& note : report.notes) notes.push_back(note);
  for (const std::string& note : trace.notes) notes.push_back(note);
  return {{"schema", "bitwitness-trace/1"},
          {"tool", {{"version", report.tool_version}}},
          {"engine", report_objects::engine_json(report.engine)},
          {"image",
           report_objects::image_json(report.image_name, report.image_sha256, report.image_format, report.stand_in)},
          {"routine",
           {{"name", trace.routine.name},
            {"address", address_text(trace.routine.address)},
            {"signature", to_string(trace.routine.signature)}}},
          {"environment", report_objects::environment_json(trace.environment)},
          {"value", to_hex(trace.packed)},
          {"outcome", to_string(trace.outcome)},
          {"failure", failure_json(trace)},
          {"machine", {{"same", trace.disagreement.empty()}, {"difference", trace.disagreement}}},
          {"words", words_json(report)},
          {"decoder", report.subject ? Json(report.subject->decoder) : Json(nullptr)},
          {"notes", std::move(notes)},
          {"verdict", to_string(report.verdict())},
          {"instructions", trace.instructions},
          {"limit", trace.limit},
          {"omitted", trace.omitted()}};
}

}  // namespace

void write_json(const TraceReport& report, const std::function<void(std::string_view)>& sink) {
  std::string head = dump(head_json(report), 2);
  head.erase(head.find_last_of('}'));
  while (head.ends_with('\n')) head.pop_back();
  sink(head + ",\n  \"steps\": [");
  bool is_first = true;
  for (const TraceStep& step : report.trace.steps) {
    sink((is_first ? "\n    " : ",\n    ") + dump(step_json(step, report.trace.is_64_bit)));
    is_first = false;
  }
  sink(is_first ? "]\n}\n" : "\n  ]\n}\n");
}

}  // namespace bitwitness
