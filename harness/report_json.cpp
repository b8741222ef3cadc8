#include "harness/file_bytes.hpp"
#include "harness/report.hpp"
#include "harness/report_environments.hpp"
#include "harness/report_objects.hpp"
#include "harness/report_parts.hpp"
#include "harness/values.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bitwitness {

namespace {

using Json = nlohmann::ordered_json;

Json words_json(const std::vector<std::uint32_t>& words) {
  Json out = Json::array();
  for (const std::uint32_t word : words) out.push_back(fmt::format("{:08x}", word));
  return out;
}

Json distance_json(std::uint64_t distance) {
  if (distance == std::numeric_limits<std::uint64_t>::max()) return nullptr;
  return distance;
}

Json difference_json(const Difference& difference, WordKind kind) {
  Json ulp = Json::array();
  const std::size_t count = std::min(difference.reference.size(), difference.subject.size());
  for (std::size_t i = 0; i < count; ++i) {
    ulp.push_back(distance_json(ulp_distance(difference.reference[i], difference.subject[i], kind)));
  }
  return {{"value", to_hex(difference.value)},
          {"reference", words_json(difference.reference)},
          {"subject", words_json(difference.subject)},
          {"ulp", std::move(ulp)}};
}

Json values_json(const RunReport& run) {
  Json sources = Json::array();
  for (const std::string& source : run.sources) sources.push_back(report_parts::portable_source(source));
  Json out = {{"sources", std::move(sources)}, {"distinct", run.distinct}};
  if (!run.shard.empty()) out["shard"] = run.shard;
  return out;
}

std::string_view kind_name(WordKind kind) {
  switch (kind) {
    case WordKind::i32:
      return "i32";
    case WordKind::u32:
      return "u32";
    case WordKind::f32:
      break;
  }
  return "f32";
}

Json part_json(const ShardPart& part) {
  return {{"first", part.first},
          {"whole", part.whole},
          {"values_sha256", part.values_sha256},
          {"limit", part.limit},
          {"budget", part.budget},
          {"chunks", part.chunks},
          {"path_notes", part.path_notes},
          {"facts", report_objects::facts_json(part.facts)}};
}

Json run_json(const RunReport& run) {
  Json differences = Json::array();
  for (const Difference& difference : run.differences)
    differences.push_back(difference_json(difference, run.word_kind));
  Json counts = {{"run", run.counts.run},
                 {"agreed", run.counts.agreed},
                 {"differed", run.counts.differed},
                 {"faulted", run.counts.faulted},
                 {"out_of_budget", run.counts.out_of_budget},
                 {"unwritten", run.counts.unwritten},
                 {"not_run", run.counts.not_run}};
  if (run.counts.disputed > 0) counts["disputed"] = run.counts.disputed;
  if (run.counts.known > 0) counts["known"] = run.counts.known;
  Json out = {{"routine",
               {{"name", run.routine},
                {"address", report_parts::address_text(run.address)},
                {"signature", run.signature},
                {"sha256", run.routine_sha256}}},
              {"decoder", run.decoder},
              {"witness", run.witness},
              {"environment", report_objects::environment_json(run.environment)},
              {"values", values_json(run)},
              {"counts", std::move(counts)},
              {"digest", run.digest},
              {"words", {{"kind", kind_name(run.word_kind)}, {"names", run.word_names}}},
              {"differing", run.differing},
              {"max_ulp", distance_json(run.max_ulp)},
              {"differences", std::move(differences)},
              {"failures", report_objects::failures_json(run.failures)},
              {"isolation", report_objects::isolation_json(run.isolation)},
              {"notes", run.notes},
              {"verdict", to_string(run.verdict())}};
  if (!run.broken.empty()) out["broken"] = run.broken;
  if (const auto& image = run.image) {
    out["image"] = report_objects::image_json(image->name, image->sha256, image->format, image->stand_in);
  }
  if (!run.vector_file.empty()) {
    out["vectors"] = {{"name", file_name_of(run.vector_file)}, {"sha256", run.vector_sha256}};
    if (run.by_group) out["vectors"]["by_group"] = true;
  }
  if (run.part) out["part"] = part_json(*run.part);
  return out;
}

}  // namespace

std::string to_json(const Report& report) {
  Json runs = Json::array();
  for (const RunReport& run : report.runs) runs.push_back(run_json(run));
  Json document = {{"schema", "bitwitness-report/1"},
                   {"tool", {{"version", report.tool_version}}},
                   {"engine", report_objects::engine_json(report.engine)},
                   {"image", report_objects::image_json(report.image_name, report.image_sha256, report.image_format,
                                                        report.stand_in)},
                   {"notes", report.notes},
                   {"runs", std::move(runs)},
                   {"verdict", to_string(report.verdict())}};
  if (!report.environments.empty()) document["environments"] = report_environments::to_json(report);
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace bitwitness
