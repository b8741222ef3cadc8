#include "harness/cli/evidence_report.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bitwitness::cli {

using namespace decoders;

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 2> index_orders{"word 0 low", "word 1 low"};
constexpr std::array<std::string_view, 3> splits{"11/11/10", "10/11/11", "11/10/11"};
constexpr std::array<std::string_view, 3> layouts{"ring", "low to high", "high to low"};
constexpr std::array<std::string_view, 2> presence_orders{"low bit first", "high bit first"};
constexpr std::array<std::string_view, 3> verdicts{"supported", "refuted", "undecided"};

std::string_view name(Verdict verdict) {
  return verdicts[static_cast<std::size_t>(verdict)];
}

// The name of a choice among readings, or nothing.
template <typename Choice, std::size_t Count>
std::optional<std::string_view> chosen(const std::optional<Choice>& choice,
                                       const std::array<std::string_view, Count>& names) {
  if (!choice) return std::nullopt;
  return names[static_cast<std::size_t>(*choice)];
}

Json or_null(const std::optional<std::string_view>& text) {
  return text ? Json(*text) : Json(nullptr);
}

// Values by reading, as an object whose keys are the readings' names.
template <typename Value, std::size_t Count>
Json by_name(const std::array<Value, Count>& values, const std::array<std::string_view, Count>& names) {
  Json out = Json::object();
  for (std::size_t i = 0; i < Count; ++i) out[std::string(names[i])] = values[i];
  return out;
}

std::string kind_text(const RotationEvidence& row) {
  return row.game == Game::mab ? "mab" : fmt::format("{} kind {}", name(row.game), row.kind);
}

Json pairs_json(const IndexPairs& row) {
  return {{"pairs", row.pairs},
          {"above_0_99", by_name(row.near, index_orders)},
          {"above_0_9", by_name(row.loose, index_orders)}};
}

Json index_json(const IndexOrderEvidence& evidence) {
  Json changes = Json::array();
  for (std::size_t from = 0; from < 4; ++from) {
    for (std::size_t to = 0; to < 4; ++to) {
      Json row = {{"from", from}, {"to", to}};
      row.update(pairs_json(evidence.changes[from][to]));
      changes.push_back(std::move(row));
    }
  }
  return {{"game", name(evidence.game)},           {"telling", pairs_json(evidence.telling)},
          {"silent", pairs_json(evidence.silent)}, {"same_index", pairs_json(evidence.same)},
          {"changes", std::move(changes)},         {"supported", or_null(chosen(evidence.supported, index_orders))}};
}

Json rotation_json(const RotationEvidence& row) {
  return {{"game", name(row.game)},
          {"kind", row.kind},
          {"tracks", row.tracks},
          {"keys", row.keys},
          {"over_unit", row.over_unit},
          {"off_unit", row.off_unit},
          {"not_finite", row.not_finite},
          {"largest_deviation", row.largest_deviation},
          {"tracks_with_pairs", row.tracks_with_pairs},
          {"median_smallest_dot", row.median_smallest_dot},
          {"verdict", name(row.verdict)}};
}

Json layout_json(const LayoutEvidence& evidence) {
  return {{"game", name(evidence.game)},
          {"keys", evidence.keys},
          {"tracks", evidence.tracks},
          {"over_unit", by_name(evidence.over_unit, layouts)},
          {"median_smallest_dot", by_name(evidence.median_smallest_dot, layouts)},
          {"supported", or_null(chosen(evidence.supported, layouts))}};
}

Json bits_json(const BitsEvidence& row) {
  Json out = {{"name", row.name}, {"checked", row.checked}, {"set", row.set}};
  out["verdict"] = row.claimed ? Json(name(row.verdict)) : Json(nullptr);
  return out;
}

Json sws_times_json(const TimesEvidence& times) {
  return {{"clips", times.sws_clips},
          {"tracks", times.sws_tracks},
          {"stray_last_keys", times.sws_stray_last_keys},
          {"other_layout_words", times.sws_other_layout_words},
          {"last_keys", name(times.sws_last_keys)}};
}

Json rr_times_json(const TimesEvidence& times) {
  return {{"clips", times.rr_clips},
          {"tracks", times.rr_tracks},
          {"late_last_keys", times.rr_late_last_keys},
          {"least_size_word_distance", times.rr_least_size_distance},
          {"greatest_size_word_distance", times.rr_greatest_size_distance},
          {"far_size_words", times.rr_far_size_words},
          {"mask_marker_tracks", times.rr_mask_marker_tracks},
          {"last_keys", name(times.rr_last_keys)},
          {"size_words", name(times.rr_size_words)}};
}

Json presence_json(const PresenceEvidence& presence) {
  return {{"clips", presence.clips},
          {"keys", presence.keys},
          {"keys_past_end", by_name(presence.keys_past_end, presence_orders)},
          {"predicted_better", by_name(presence.nearer, presence_orders)},
          {"supported", or_null(chosen(presence.supported, presence_orders))},
          {"rising_nearer", presence.rising_nearer},
          {"falling_nearer", presence.falling_nearer},
          {"rising", name(presence.rising)}};
}

std::uint64_t pairs_of(const IndexOrderEvidence& evidence) {
  return evidence.telling.pairs + evidence.silent.pairs + evidence.same.pairs;
}

// Text. A share of nothing is a dash.
std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.1f}%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

class Text {
 public:
  template <typename... Values>
  void line(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
    text_ += '\n';
  }

  // "supported: reading (numbers)", or "undecided: question (numbers)".
  void choice(std::string_view question, const std::optional<std::string_view>& reading, std::string_view numbers) {
    if (reading) {
      line("supported: {}: {} ({})", question, *reading, numbers);
    } else {
      line("undecided: {} ({})", question, numbers);
    }
  }

  void verdict(Verdict verdict, std::string_view claim, std::string_view numbers) {
    line("{}: {} ({})", name(verdict), claim, numbers);
  }

  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void pairs_line(Text& text, std::string_view label, const IndexPairs& row) {
  text.line("  {:<10} {:>12} {:>8} {:>8} {:>8} {:>8}", label, row.pairs, percent(row.near[0], row.pairs),
            percent(row.near[1], row.pairs), percent(row.loose[0], row.pairs), percent(row.loose[1], row.pairs));
}

void index_text(Text& text, const IndexOrderEvidence& evidence) {
  text.line("{} kind 4, index by word 0's or by word 1's bit low: pairs, |dot| > 0.99 (0, 1), > 0.9 (0, 1)",
            name(evidence.game));
  for (std::size_t from = 0; from < 4; ++from) {
    for (std::size_t to = 0; to < 4; ++to) {
      if (from != to) pairs_line(text, fmt::format("{} to {}", from, to), evidence.changes[from][to]);
    }
  }
  pairs_line(text, "telling", evidence.telling);
  pairs_line(text, "silent", evidence.silent);
  pairs_line(text, "no change", evidence.same);
  const IndexPairs& telling = evidence.telling;
  text.choice(fmt::format("{} kind 4 low bit of the index", name(evidence.game)),
              chosen(evidence.supported, index_orders),
              fmt::format("{} telling pairs, {} against {} within 0.9", telling.pairs,
                          percent(telling.loose[0], telling.pairs), percent(telling.loose[1], telling.pairs)));
}

void rotations_text(Text& text, const std::vector<RotationEvidence>& rows) {
  text.line(
      "rotations: keys, past 1 by rounding or more, off 1 by more than {}, not finite, largest deviation of the norm, "
      "tracks, median smallest |dot|",
      evidence_rules::unit_tolerance);
  for (const RotationEvidence& row : rows) {
    if (row.keys == 0) continue;
    const std::string dot = row.tracks_with_pairs == 0 ? "-" : fmt::format("{:.4f}", row.median_smallest_dot);
    text.line("  {:<10} {:>12} {:>8} {:>8} {:>8} {:>10.2e} {:>9} {:>7}", kind_text(row), row.keys, row.over_unit,
              row.off_unit, row.not_finite, row.largest_deviation, row.tracks_with_pairs, dot);
  }
  for (const RotationEvidence& row : rows) {
    if (row.keys == 0) continue;
    text.verdict(
        row.verdict, kind_text(row) + " decodes to unit quaternions",
        fmt::format("{} of {} keys off by more than {} or no numbers, deviation {:.2e}", row.off_unit + row.not_finite,
                    row.keys, evidence_rules::unit_tolerance, row.largest_deviation));
  }
}

void layout_text(Text& text, const LayoutEvidence& evidence) {
  std::string numbers;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    numbers += fmt::format("{}{}: {} over, {:.4f}", i == 0 ? "" : "; ", layouts[i], evidence.over_unit[i],
                           evidence.median_smallest_dot[i]);
  }
  text.choice(fmt::format("{} kind 5 layout", name(evidence.game)), chosen(evidence.supported, layouts),
              fmt::format("{} keys, {} tracks; {}", evidence.keys, evidence.tracks, numbers));
}

void split_text(Text& text, const SplitEvidence& evidence) {
  std::string numbers;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    numbers += fmt::format("; {}: {}", splits[i], evidence.median_steps[i]);
  }
  text.choice("sws kind 8 split", chosen(evidence.supported, splits),
              fmt::format("{} tracks, median largest step{}", evidence.tracks, numbers));
}

void bits_text(Text& text, const BitsEvidence& row) {
  const std::string numbers = fmt::format("{} of {} set", row.set, row.checked);
  if (row.claimed) {
    text.verdict(row.verdict, fmt::format("{} zero", row.name), numbers);
  } else {
    text.line("counted: {} ({})", row.name, numbers);
  }
}

void times_text(Text& text, const TimesEvidence& times) {
  if (times.sws_clips != 0) {
    text.verdict(times.sws_last_keys, "sws last keys on length x 60",
                 fmt::format("{} of {} tracks stray", times.sws_stray_last_keys, times.sws_tracks));
    text.line("counted: sws layout words that differ ({} of {} clips)", times.sws_other_layout_words, times.sws_clips);
  }
  if (times.rr_clips != 0) {
    text.verdict(times.rr_last_keys, "rr last keys within length + 1/30 s",
                 fmt::format("{} of {} tracks late", times.rr_late_last_keys, times.rr_tracks));
    text.verdict(times.rr_size_words, "rr size words within eight bytes of the payload",
                 fmt::format("{} of {} tracks far, distance {} to {}", times.rr_far_size_words, times.rr_tracks,
                             times.rr_least_size_distance, times.rr_greatest_size_distance));
    const auto& markers = times.rr_mask_marker_tracks;
    text.line("counted: rr mask markers 00, 40, 80, c0 ({}, {}, {}, {} tracks)", markers[0], markers[1], markers[2],
              markers[3]);
  }
}

void presence_text(Text& text, const PresenceEvidence& presence) {
  text.choice("mab presence bits", chosen(presence.supported, presence_orders),
              fmt::format("past the end: {} low, {} high; predicted better: {} low, {} high", presence.keys_past_end[0],
                          presence.keys_past_end[1], presence.nearer[0], presence.nearer[1]));
  text.verdict(presence.rising, "mab later keys in rising time",
               fmt::format("{} groups rise, {} fall", presence.rising_nearer, presence.falling_nearer));
}

}  // namespace

Json to_json(const EvidenceResult& evidence) {
  Json out = Json::object();
  const auto append = [&](const char* list, bool any, const auto& write) {
    if (!out.contains(list)) out[list] = Json::array();
    if (any) out[list].push_back(write());
  };
  for (const auto& row : evidence.index_orders) {
    append("index_orders", pairs_of(row) != 0, [&] { return index_json(row); });
  }
  for (const auto& row : evidence.rotations) append("rotations", row.keys != 0, [&] { return rotation_json(row); });
  for (const auto& row : evidence.layouts) append("quat64_layouts", row.keys != 0, [&] { return layout_json(row); });
  if (evidence.split.tracks != 0) {
    out["translation_split"] = {{"tracks", evidence.split.tracks},
                                {"median_largest_step", by_name(evidence.split.median_steps, splits)},
                                {"supported", or_null(chosen(evidence.split.supported, splits))}};
  }
  for (const auto& row : evidence.bits) append("zero_bits", row.checked != 0, [&] { return bits_json(row); });
  if (evidence.times.sws_clips != 0) out["sws_times"] = sws_times_json(evidence.times);
  if (evidence.times.rr_clips != 0) out["rr_times"] = rr_times_json(evidence.times);
  if (evidence.presence.clips != 0) out["mab_presence"] = presence_json(evidence.presence);
  return out;
}

std::string to_text(const EvidenceResult& evidence) {
  Text text;
  for (const auto& row : evidence.index_orders) {
    if (pairs_of(row) != 0) index_text(text, row);
  }
  const auto has_keys = [](const RotationEvidence& row) { return row.keys != 0; };
  if (std::ranges::any_of(evidence.rotations, has_keys)) rotations_text(text, evidence.rotations);
  for (const auto& row : evidence.layouts) {
    if (row.keys != 0) layout_text(text, row);
  }
  if (evidence.split.tracks != 0) split_text(text, evidence.split);
  for (const auto& row : evidence.bits) {
    if (row.checked != 0) bits_text(text, row);
  }
  times_text(text, evidence.times);
  if (evidence.presence.clips != 0) presence_text(text, evidence.presence);
  return text.take();
}

}  // namespace bitwitness::cli
