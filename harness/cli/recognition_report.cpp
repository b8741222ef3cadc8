#include "harness/cli/recognition_report.hpp"

#include "harness/cli/engine.hpp"
#include "harness/report_objects.hpp"
#include "harness/report_parts.hpp"
#include "harness/values.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace bitwitness::cli {

namespace {

using Json = nlohmann::ordered_json;
using report_parts::printable;

/// "-x y z w": what each of the routine's words is among the rule's.
std::vector<std::string> order_of(const RuleStanding& standing, const std::vector<std::string>& names) {
  std::vector<std::string> order;
  for (const MappedWord& word : standing.order) order.push_back((word.negated ? "-" : "") + names[word.from]);
  return order;
}

std::string words_text(const Separation& first, const RuleSet& rules) {
  std::string text;
  const std::vector<std::string> names = rules.word_names();
  std::size_t width = 0;
  for (const std::string& name : names) width = std::max(width, name.size());
  const auto side = [&](const std::vector<std::uint32_t>& words, std::size_t i) {
    if (words.empty()) return std::string("no result");
    return fmt::format("{:08x} {}", words[i], report_parts::number_text(words[i], rules.word_kind()));
  };
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool same = !first.routine.empty() && !first.rule.empty() && first.routine[i] == first.rule[i];
    text += fmt::format("      {} {:{}}  routine {}  rule {}\n", same ? ' ' : '*', names[i], width,
                        side(first.routine, i), side(first.rule, i));
  }
  return text;
}

std::string values_text(const Recognition& found) {
  std::string text = fmt::format("  values: {} tried, {} compared", found.tried, found.compared);
  if (found.unwritten != 0) text += fmt::format(", {} of them without all output written", found.unwritten);
  if (found.failed != 0) text += fmt::format(", {} failed", found.failed);
  text += fmt::format("; {} decodings spent on looking for one that separates\n", found.searched);
  if (!found.failure.empty()) {
    text += fmt::format("  failed first: {}: {}\n", to_hex(found.failed_value), printable(found.failure));
  }
  if (found.unstable != 0) {
    text += fmt::format("  {} of {} values run again alone gave other words: what earlier values left behind matters\n",
                        found.unstable, found.sampled);
  }
  for (const std::string& seen : found.observations) text += fmt::format("  observed: {}\n", printable(seen));
  return text;
}

/// "0-46, 48" of the bits for which `wanted` holds; empty when for none.
template <typename Wanted>
std::string ranges_text(std::size_t count, Wanted wanted) {
  std::vector<std::string> ranges;
  for (std::size_t bit = 0; bit < count; ++bit) {
    if (!wanted(bit)) continue;
    const std::size_t first = bit;
    while (bit + 1 < count && wanted(bit + 1)) ++bit;
    ranges.push_back(first == bit ? fmt::format("{}", bit) : fmt::format("{}-{}", first, bit));
  }
  return fmt::format("{}", fmt::join(ranges, ", "));
}

std::string bits_text(const RecognitionRun& run) {
  const std::vector<BitUse>& bits = run.found.bits;
  if (bits.empty()) return {};
  const std::string used = ranges_text(bits.size(), [&](std::size_t bit) { return bits[bit].changed != 0; });
  const std::string idle = ranges_text(bits.size(), [&](std::size_t bit) { return bits[bit].changed == 0; });
  std::string text = fmt::format("  bits, each flipped in {} values: ", run.found.bases);
  text += used.empty() ? "none changes the output" : fmt::format("{} change the output", used);
  if (!used.empty() && !idle.empty()) text += fmt::format("; {} never", idle);
  text += '\n';
  const std::vector<std::string> names = run.rules->word_names();
  for (std::size_t word = 0; word < names.size(); ++word) {
    const std::string by =
        ranges_text(bits.size(), [&](std::size_t bit) { return std::ranges::binary_search(bits[bit].words, word); });
    text += fmt::format("    {} depends on {}\n", names[word], by.empty() ? "none" : by);
  }
  return text;
}

std::string verdict_text(const RecognitionRun& run) {
  const Recognition& found = run.found;
  switch (found.verdict) {
    case RecognitionVerdict::one:
      return fmt::format("  follows exactly one of {} known rules on all {} values compared\n", found.rules,
                         found.compared);
    case RecognitionVerdict::several:
      return fmt::format(
          "  follows {} of {} known rules on all {} values compared; no value was found that tells these apart\n",
          found.matches.size(), found.rules, found.compared);
    case RecognitionVerdict::none:
      return fmt::format("  follows none of {} known rules\n", found.rules);
    case RecognitionVerdict::nothing:
      break;
  }
  return "  no value gave a result: nothing was compared\n";
}

std::string run_text(const RecognitionRun& run) {
  std::string text =
      fmt::format("{} at {}, {}; {}\n", printable(run.routine.name), report_parts::address_text(run.routine.address),
                  to_string(run.routine.signature), report_parts::environment_text(run.environment));
  if (run.rules == nullptr) {
    text += fmt::format("  no known rule takes {} bytes and gives {} words: nothing was run\n",
                        run.routine.signature.packed_size(), run.routine.signature.word_count());
  } else {
    const std::vector<std::string> names = run.rules->word_names();
    text += verdict_text(run);
    for (const RuleStanding& match : run.found.matches) {
      text += fmt::format("    {}\n      {}\n", run.rules->name(match.rule), run.rules->sentence(match.rule));
      if (!match.order.empty()) {
        text += fmt::format("      agrees with its words in order {}\n", fmt::join(order_of(match, names), " "));
      }
    }
    text += values_text(run.found) + bits_text(run);
    if (!run.found.nearest.empty()) text += "  nearest that do not fit:\n";
    for (const RuleStanding& near : run.found.nearest) {
      text += fmt::format("    {}\n      {}\n      {} of {} values agree ({}), {} of {} words, {} within {} ulp\n",
                          run.rules->name(near.rule), run.rules->sentence(near.rule), near.agreed, run.found.compared,
                          report_parts::percentage(near.agreed, run.found.compared), near.words_agreed,
                          run.found.compared * names.size(), near.words_close, close_ulps);
      if (near.first) {
        text +=
            fmt::format("      first separated by {}{}\n", to_hex(near.first->value),
                        near.first->outcome == OutcomeKind::returned ? "" : ", on which the routine writes no result");
        text += words_text(*near.first, *run.rules);
      }
    }
  }
  for (const std::string& note : run.notes) text += fmt::format("  note: {}\n", printable(note));
  return text;
}

Json hex_words(const std::vector<std::uint32_t>& words) {
  if (words.empty()) return nullptr;
  Json list = Json::array();
  for (const std::uint32_t word : words) list.push_back(fmt::format("{:08x}", word));
  return list;
}

Json standing_json(const RuleStanding& standing, const RuleSet& rules) {
  Json json = {{"name", rules.name(standing.rule)},
               {"sentence", rules.sentence(standing.rule)},
               {"order", standing.order.empty() ? rules.word_names() : order_of(standing, rules.word_names())},
               {"agreed", standing.agreed},
               {"words_agreed", standing.words_agreed},
               {"words_close", standing.words_close}};
  if (standing.first) {
    json["first_difference"] = {{"value", to_hex(standing.first->value)},
                                {"outcome", to_string(standing.first->outcome)},
                                {"routine", hex_words(standing.first->routine)},
                                {"rule", hex_words(standing.first->rule)}};
  }
  return json;
}

Json run_json(const RecognitionRun& run) {
  const Recognition& found = run.found;
  Json matches = Json::array();
  for (const RuleStanding& match : found.matches) matches.push_back(standing_json(match, *run.rules));
  Json nearest = Json::array();
  for (const RuleStanding& near : found.nearest) nearest.push_back(standing_json(near, *run.rules));
  Json bits = Json::array();
  for (const BitUse& bit : found.bits) bits.push_back({{"changed", bit.changed}, {"words", bit.words}});
  Json failure = nullptr;
  if (!found.failure.empty()) failure = {{"value", to_hex(found.failed_value)}, {"reason", printable(found.failure)}};
  return {{"routine",
           {{"name", printable(run.routine.name)},
            {"address", report_parts::address_text(run.routine.address)},
            {"signature", to_string(run.routine.signature)}}},
          {"environment", report_objects::environment_json(run.environment)},
          {"verdict", to_string(found.verdict)},
          {"rules", found.rules},
          {"words", run.rules == nullptr ? std::vector<std::string>{} : run.rules->word_names()},
          {"values",
           {{"tried", found.tried},
            {"compared", found.compared},
            {"unwritten", found.unwritten},
            {"failed", found.failed},
            {"searched", found.searched}}},
          {"failure", std::move(failure)},
          {"matches", std::move(matches)},
          {"nearest", std::move(nearest)},
          {"bit_flips", {{"bases", found.bases}, {"bits", std::move(bits)}}},
          {"isolation", {{"sampled", found.sampled}, {"unstable", found.unstable}}},
          {"observations", found.observations},
          {"notes", run.notes}};
}

}  // namespace

std::string to_text(const RecognitionReport& report) {
  std::string text = fmt::format("{}: sha256 {}\n", printable(report.image->name()), report.image->sha256());
  if (report.image->is_stand_in()) text += fmt::format("{}\n", report_parts::stand_in_warning);
  for (const std::string& note : report.notes) text += fmt::format("note: {}\n", printable(note));
  for (const RecognitionRun& run : report.runs) text += '\n' + run_text(run);
  return text;
}

std::string to_json(const RecognitionReport& report) {
  Json runs = Json::array();
  for (const RecognitionRun& run : report.runs) runs.push_back(run_json(run));
  const Engine engine = this_engine();
  const Json document = {
      {"schema", "bitwitness-recognition/1"},
      {"tool", {{"version", BITWITNESS_VERSION}}},
      {"engine", {{"unicorn", engine.unicorn}, {"capstone", engine.capstone}, {"lief", engine.lief}}},
      {"image", report_objects::image_json(printable(report.image->name()), report.image->sha256(),
                                           report.image->format(), report.image->is_stand_in())},
      {"notes", report.notes},
      {"runs", std::move(runs)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace bitwitness::cli
