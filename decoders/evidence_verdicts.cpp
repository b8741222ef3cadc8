#include "decoders/evidence_counts.hpp"

namespace bitwitness::decoders::evidence_parts {

namespace rules = evidence_rules;

namespace {

bool order_holds(const IndexOrderEvidence& evidence, std::size_t order) {
  const std::size_t other = 1 - order;
  const IndexPairs& telling = evidence.telling;
  if (telling.pairs < rules::least_pairs || 2 * telling.loose[order] < telling.pairs) return false;
  if (telling.loose[order] < rules::clear_factor * telling.loose[other]) return false;
  for (std::size_t from = 0; from < 4; ++from) {
    for (std::size_t to = 0; to < 4; ++to) {
      const IndexPairs& row = evidence.changes[from][to];
      if (row.pairs >= rules::least_change_pairs && row.loose[order] < row.loose[other]) return false;
    }
  }
  return true;
}

bool split_holds(const SplitEvidence& evidence, std::size_t split) {
  for (std::size_t other = 0; other < evidence.median_steps.size(); ++other) {
    if (other == split) continue;
    const std::uint64_t step = evidence.median_steps[other];
    if (step == 0 || step < rules::clear_factor * evidence.median_steps[split]) return false;
  }
  return evidence.tracks >= rules::least_tracks;
}

bool layout_holds(const LayoutEvidence& evidence, std::size_t layout) {
  for (std::size_t other = 0; other < evidence.over_unit.size(); ++other) {
    if (other == layout) continue;
    if (evidence.over_unit[other] < rules::far_factor * evidence.over_unit[layout]) return false;
    const double lead = evidence.median_smallest_dot[layout] - evidence.median_smallest_dot[other];
    if (lead < rules::median_margin) return false;
  }
  return evidence.tracks >= rules::least_tracks;
}

// The first reading that holds; the rules let no two hold.
template <typename Choice, std::size_t Count, typename Holds>
std::optional<Choice> the_one(Holds&& holds) {
  for (std::size_t i = 0; i < Count; ++i) {
    if (holds(i)) return static_cast<Choice>(i);
  }
  return std::nullopt;
}

// 0 or 1 for the one of two that is clearly ahead.
std::optional<std::size_t> clearly_ahead(std::uint64_t first, std::uint64_t second) {
  const std::uint64_t all = first + second;
  if (all < rules::least_predictions) return std::nullopt;
  if (100 * first >= rules::clear_percent * all) return 0;
  if (100 * second >= rules::clear_percent * all) return 1;
  return std::nullopt;
}

std::optional<std::size_t> fewer_past_end(const std::array<std::uint64_t, 2>& past_end) {
  for (std::size_t order = 0; order < 2; ++order) {
    const std::uint64_t others = past_end[1 - order];
    if (others >= rules::least_past_end && others >= rules::far_factor * past_end[order]) return order;
  }
  return std::nullopt;
}

Verdict verdict_of(std::uint64_t checked, std::uint64_t least, bool holds) {
  if (checked != 0 && !holds) return Verdict::refuted;
  return checked < least ? Verdict::undecided : Verdict::supported;
}

}  // namespace

std::optional<IndexOrder> supported_order(const IndexOrderEvidence& evidence) {
  return the_one<IndexOrder, 2>([&](std::size_t order) { return order_holds(evidence, order); });
}

std::optional<TranslationSplit> supported_split(const SplitEvidence& evidence) {
  return the_one<TranslationSplit, 3>([&](std::size_t split) { return split_holds(evidence, split); });
}

std::optional<Quat64Layout> supported_layout(const LayoutEvidence& evidence) {
  return the_one<Quat64Layout, 3>([&](std::size_t layout) { return layout_holds(evidence, layout); });
}

Verdict unit_length_verdict(const RotationEvidence& evidence) {
  constexpr unsigned always_unit_kind = 7;
  if (evidence.game == Game::rr && evidence.kind == always_unit_kind) return Verdict::undecided;
  const bool holds = evidence.not_finite == 0 && evidence.off_unit == 0;
  return verdict_of(evidence.keys, rules::least_keys, holds);
}

Verdict zero_verdict(const BitsEvidence& evidence) {
  if (!evidence.claimed) return Verdict::undecided;
  return verdict_of(evidence.checked, rules::least_keys, evidence.set == 0);
}

void decide(TimesEvidence& times) {
  const std::uint64_t strays = times.sws_stray_last_keys;
  const bool few = strays * rules::tracks_a_stray <= times.sws_tracks;
  // A single stray among fewer tracks tells nothing about thousands.
  if (few || strays > 1) times.sws_last_keys = verdict_of(times.sws_tracks, rules::least_tracks, few);
  times.rr_last_keys = verdict_of(times.rr_tracks, rules::least_tracks, times.rr_late_last_keys == 0);
  times.rr_size_words = verdict_of(times.rr_tracks, rules::least_tracks, times.rr_far_size_words == 0);
}

void decide(PresenceEvidence& presence) {
  const std::optional<std::size_t> direction = clearly_ahead(presence.rising_nearer, presence.falling_nearer);
  if (direction) presence.rising = *direction == 0 ? Verdict::supported : Verdict::refuted;
  const std::optional<std::size_t> by_end = fewer_past_end(presence.keys_past_end);
  std::optional<std::size_t> by_frames;
  if (presence.rising != Verdict::refuted) by_frames = clearly_ahead(presence.nearer[0], presence.nearer[1]);
  if (by_end && by_frames && *by_end != *by_frames) return;
  const std::optional<std::size_t> order = by_end ? by_end : by_frames;
  if (order) presence.supported = static_cast<PresenceOrder>(*order);
}

}  // namespace bitwitness::decoders::evidence_parts
