#include "harness/cli/census_report.hpp"

#include "harness/cli/evidence_report.hpp"
#include "harness/report_parts.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bitwitness::cli {

namespace {

using Json = nlohmann::ordered_json;
using report_parts::printable;

Json kind_json(const KindCount& count) {
  return {{"game", decoders::name(count.game)},
          {"kind", count.kind},
          {"time_form", name(count.form)},
          {"tracks", count.tracks},
          {"keys", count.keys},
          {"distinct", count.distinct}};
}

/// The total of a kind, on the first of its rows; blanks on the others.
std::string kind_total(const Census& census, std::size_t row) {
  const KindCount& count = census.kinds[row];
  if (row != 0 && census.kinds[row - 1].game == count.game && census.kinds[row - 1].kind == count.kind) return {};
  for (const KindTotal& total : census.distinct_by_kind) {
    if (total.game == count.game && total.kind == count.kind) return std::to_string(total.distinct);
  }
  return "0";
}

}  // namespace

std::string to_json(const Census& census, std::span<const std::string> files) {
  Json kinds = Json::array();
  for (const KindCount& count : census.kinds) kinds.push_back(kind_json(count));
  Json distinct_by_kind = Json::array();
  for (const KindTotal& total : census.distinct_by_kind) {
    distinct_by_kind.push_back(
        {{"game", decoders::name(total.game)}, {"kind", total.kind}, {"distinct", total.distinct}});
  }
  Json refusals = Json::array();
  for (const FileRefusal& refusal : census.refusals) {
    refusals.push_back({{"path", files[refusal.file]},
                        {"offset", refusal.offset},
                        {"rule", refusal.rule},
                        {"reason", refusal.reason}});
  }
  Json unreachable = Json::array();
  for (const UnreachablePath& path : census.read.unreachable) {
    unreachable.push_back({{"path", path.path}, {"reason", path.reason}});
  }
  Json document = {{"schema", "bitwitness-census/1"},
                   {"made", census.read.made},
                   {"files", census.read.files},
                   {"not_read", census.read.not_read},
                   {"bytes", census.read.bytes},
                   {"clips", census.clips},
                   {"distinct_clips", census.distinct_clips},
                   {"tracks", census.tracks},
                   {"keys", census.keys},
                   {"anim_sets", census.anim_sets},
                   {"anim_pairs", census.anim_pairs},
                   {"kinds", std::move(kinds)},
                   {"distinct_by_kind", std::move(distinct_by_kind)},
                   {"refused", census.refused},
                   {"refusals", std::move(refusals)},
                   {"unreachable", std::move(unreachable)}};
  if (census.evidence) document["evidence"] = to_json(*census.evidence);
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string to_text(const Census& census, std::span<const std::string> files) {
  std::string text =
      fmt::format("{} files, {} bytes: {} clips ({} distinct) with {} tracks and {} keys; {} AnimSets with {} pairs",
                  census.read.files, census.read.bytes, census.clips, census.distinct_clips, census.tracks, census.keys,
                  census.anim_sets, census.anim_pairs);
  if (census.read.made) text += fmt::format("  {}", made_warning);
  text += '\n';
  if (!census.kinds.empty()) {
    text += fmt::format("  {:<4} {:>4}  {:<8} {:>10} {:>12} {:>12} {:>12}  {}\n", "game", "kind", "times", "tracks",
                        "keys", "distinct", "of the kind", "decoder");
  }
  for (std::size_t row = 0; row < census.kinds.size(); ++row) {
    const KindCount& count = census.kinds[row];
    text += fmt::format("  {:<4} {:>4}  {:<8} {:>10} {:>12} {:>12} {:>12}  {}\n", decoders::name(count.game),
                        count.kind, name(count.form), count.tracks, count.keys, count.distinct, kind_total(census, row),
                        decoders::find_track_kind(count.game, count.kind)->decoder);
  }
  if (census.evidence) text += to_text(*census.evidence);
  for (const FileRefusal& refusal : census.refusals) {
    text += fmt::format("refused: {} at {:#x}: {}: {}\n", printable(files[refusal.file]), refusal.offset, refusal.rule,
                        refusal.reason);
  }
  if (census.refused > census.refusals.size()) {
    text += fmt::format("refused: {} more\n", census.refused - census.refusals.size());
  }
  for (const UnreachablePath& path : census.read.unreachable) {
    text += fmt::format("not reached: {}: {}\n", printable(path.path), printable(path.reason));
  }
  text += fmt::format("{} refused, {} not reached, {} not read\n", census.refused, census.read.unreachable.size(),
                      census.read.not_read);
  return text;
}

}  // namespace bitwitness::cli
