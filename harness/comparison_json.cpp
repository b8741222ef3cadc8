#include "harness/comparison.hpp"
#include "harness/report_objects.hpp"
#include "harness/report_parts.hpp"
#include "harness/values.hpp"

#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bitwitness {

namespace {

using Json = nlohmann::ordered_json;

Json words_json(const std::vector<std::uint32_t>& words) {
  if (words.empty()) return nullptr;
  Json out = Json::array();
  for (const std::uint32_t word : words) out.push_back(fmt::format("{:08x}", word));
  return out;
}

Json report_json(const ComparedReport& report) {
  return {{"file", report.file},
          {"tool", {{"version", report.tool_version}}},
          {"image", {{"name", report.image_name}, {"sha256", report.image_sha256}, {"stand_in", report.stand_in}}},
          {"verdict", to_string(report.verdict)}};
}

Json side_json(const RunSide& side) {
  if (!side.present) return nullptr;
  const bool is_distance = side.max_ulp != std::numeric_limits<std::uint64_t>::max();
  return {{"run", side.counts.run},
          {"agreed", side.counts.agreed},
          {"differed", side.counts.differed},
          {"known", side.counts.known},
          {"faulted", side.counts.faulted},
          {"out_of_budget", side.counts.out_of_budget},
          {"unwritten", side.counts.unwritten},
          {"disputed", side.counts.disputed},
          {"not_run", side.counts.not_run},
          {"differing", side.differing},
          {"max_ulp", is_distance ? Json(side.max_ulp) : Json(nullptr)},
          {"unstable", side.unstable},
          {"listed", side.listed},
          {"untold", side.untold},
          {"verdict", to_string(side.verdict)}};
}

Json run_json(const RunComparison& run) {
  Json told;
  for (std::size_t i = 0; i < change_count; ++i) told[std::string(to_string(static_cast<Change>(i)))] = run.told[i];
  Json values = Json::array();
  for (const ValueChange& value : run.changes) {
    values.push_back({{"change", to_string(value.change)},
                      {"value", to_hex(value.value)},
                      {"reference", words_json(value.reference)},
                      {"before", words_json(value.before)},
                      {"after", words_json(value.after)}});
  }
  return {{"routine", {{"name", run.routine}, {"address", report_parts::address_text(run.address)}}},
          {"decoder", run.decoder},
          {"witness", run.witness},
          {"environment", report_objects::environment_json(run.environment)},
          {"words", run.word_names},
          {"before", side_json(run.before)},
          {"after", side_json(run.after)},
          {"told", std::move(told)},
          {"values", std::move(values)},
          {"worse", run.worse}};
}

}  // namespace

std::string to_json(const Comparison& comparison) {
  Json runs = Json::array();
  for (const RunComparison& run : comparison.runs) runs.push_back(run_json(run));
  const Json document = {{"schema", "bitwitness-comparison/1"},
                         {"tool", {{"version", comparison.tool_version}}},
                         {"before", report_json(comparison.before)},
                         {"after", report_json(comparison.after)},
                         {"runs", std::move(runs)},
                         {"notes", comparison.notes},
                         {"incomparable", comparison.incomparable},
                         {"verdict", to_string(comparison.verdict())}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace bitwitness
