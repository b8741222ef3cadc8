#include "decoders/evidence.hpp"

#include "decoders/evidence_counts.hpp"

#include <algorithm>

namespace bitwitness::decoders {

using namespace evidence_parts;

namespace {

struct RotationKind {
  Game game;
  std::uint8_t kind;
};

// The rotation kinds in the order of the result's rows.
constexpr std::array<RotationKind, 9> rotation_kinds{{{Game::sws, 4},
                                                      {Game::sws, 5},
                                                      {Game::sws, 6},
                                                      {Game::rr, 3},
                                                      {Game::rr, 4},
                                                      {Game::rr, 5},
                                                      {Game::rr, 7},
                                                      {Game::rr, 8},
                                                      {Game::mab, 0}}};

constexpr std::size_t row_of(Game game, unsigned kind) {
  std::size_t row = 0;
  while (rotation_kinds[row].game != game || rotation_kinds[row].kind != kind) ++row;
  return row;
}

template <std::size_t Count>
void merge_each(std::array<std::uint64_t, Count>& counts, const std::array<std::uint64_t, Count>& others) {
  for (std::size_t i = 0; i < Count; ++i) counts[i] += others[i];
}

void merge_times(TimesEvidence& times, const TimesEvidence& other) {
  // Distances count only where there are tracks to take them from.
  if (other.rr_tracks != 0) {
    const bool first = times.rr_tracks == 0;
    times.rr_least_size_distance =
        first ? other.rr_least_size_distance : std::min(times.rr_least_size_distance, other.rr_least_size_distance);
    times.rr_greatest_size_distance = first
                                          ? other.rr_greatest_size_distance
                                          : std::max(times.rr_greatest_size_distance, other.rr_greatest_size_distance);
  }
  times.sws_clips += other.sws_clips;
  times.sws_tracks += other.sws_tracks;
  times.sws_stray_last_keys += other.sws_stray_last_keys;
  times.sws_other_layout_words += other.sws_other_layout_words;
  times.rr_clips += other.rr_clips;
  times.rr_tracks += other.rr_tracks;
  times.rr_late_last_keys += other.rr_late_last_keys;
  times.rr_far_size_words += other.rr_far_size_words;
  merge_each(times.rr_mask_marker_tracks, other.rr_mask_marker_tracks);
}

void merge_presence(PresenceEvidence& presence, const PresenceEvidence& other) {
  presence.clips += other.clips;
  presence.keys += other.keys;
  merge_each(presence.keys_past_end, other.keys_past_end);
  merge_each(presence.nearer, other.nearer);
  presence.rising_nearer += other.rising_nearer;
  presence.falling_nearer += other.falling_nearer;
}

BitsEvidence bits_result(std::string_view name, bool claimed, const BitCounts& counts) {
  BitsEvidence bits{.name = name, .claimed = claimed, .checked = counts.checked, .set = counts.set};
  bits.verdict = zero_verdict(bits);
  return bits;
}

IndexOrderEvidence index_result(Game game, const IndexCounts& counts) {
  IndexOrderEvidence evidence;
  evidence.game = game;
  evidence.changes = counts.changes;
  for (std::size_t from = 0; from < 4; ++from) {
    for (std::size_t to = 0; to < 4; ++to) {
      IndexPairs& sum = from == to ? evidence.same : tells_index_order(from, to) ? evidence.telling : evidence.silent;
      sum.add(counts.changes[from][to]);
    }
  }
  evidence.supported = supported_order(evidence);
  return evidence;
}

RotationEvidence rotation_result(const RotationKind& kind, const RotationCounts& counts) {
  RotationEvidence evidence{.game = kind.game,
                            .kind = kind.kind,
                            .tracks = counts.tracks,
                            .keys = counts.keys,
                            .over_unit = counts.over_unit,
                            .off_unit = counts.off_unit,
                            .not_finite = counts.not_finite,
                            .largest_deviation = counts.largest_deviation(),
                            .tracks_with_pairs = counts.smallest_dots.total(),
                            .median_smallest_dot = counts.median_smallest_dot()};
  evidence.verdict = unit_length_verdict(evidence);
  return evidence;
}

LayoutEvidence layout_result(Game game, const RotationCounts& ring, const GameCounts& counts) {
  LayoutEvidence evidence;
  evidence.game = game;
  evidence.keys = ring.keys;
  evidence.tracks = ring.smallest_dots.total();
  const std::array<const RotationCounts*, 3> layouts{&ring, &counts.other_layouts[0], &counts.other_layouts[1]};
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    evidence.over_unit[i] = layouts[i]->over_unit;
    evidence.median_smallest_dot[i] = layouts[i]->median_smallest_dot();
  }
  evidence.supported = supported_layout(evidence);
  return evidence;
}

SplitEvidence split_result(const SplitCounts& counts) {
  SplitEvidence evidence;
  evidence.tracks = counts.largest[0].total();
  for (std::size_t i = 0; i < counts.largest.size(); ++i) {
    evidence.median_steps[i] = static_cast<std::uint32_t>(counts.largest[i].median());
  }
  evidence.supported = supported_split(evidence);
  return evidence;
}

}  // namespace

struct Evidence::Counts {
  std::array<RotationCounts, rotation_kinds.size()> rotations;
  GameCounts sws;
  GameCounts rr;
  SplitCounts split;
  BitCounts rr_kind_7_top;
  BitCounts presence_bit_7;
  TimesEvidence times;
  PresenceEvidence presence;
};

Evidence::Evidence() : counts_(std::make_unique<Counts>()) {}
Evidence::Evidence(const Evidence& other) : counts_(std::make_unique<Counts>(*other.counts_)) {}
Evidence::Evidence(Evidence&& other) noexcept = default;
Evidence& Evidence::operator=(const Evidence& other) {
  if (this != &other) counts_ = std::make_unique<Counts>(*other.counts_);
  return *this;
}
Evidence& Evidence::operator=(Evidence&& other) noexcept = default;
Evidence::~Evidence() = default;

void Evidence::add(const SwsAnimation& clip) {
  Counts& counts = *counts_;
  TimesEvidence times;
  times.sws_clips = 1;
  times.sws_stray_last_keys = clip.stray_last_keys;
  times.sws_other_layout_words = static_cast<std::uint64_t>(clip.layout_word != clip.track_data_layout_word);
  for (const Track& track : clip.tracks) {
    times.sws_tracks += static_cast<std::uint64_t>(track.key_count > 1);
    switch (track.kind) {
      case 4:
        add_quat48_track(counts.rotations[row_of(Game::sws, 4)], counts.sws, track.values);
        break;
      case 5:
        add_quat64_track(counts.rotations[row_of(Game::sws, 5)], counts.sws, track.values);
        break;
      case 6:
        add_quat_xyz_track(counts.rotations[row_of(Game::sws, 6)], track.values);
        break;
      case 8:
        counts.split.add_track(track.values);
        break;
      default:
        break;
    }
  }
  merge_times(counts.times, times);
}

void Evidence::add(const RrAnimation& clip) {
  Counts& counts = *counts_;
  TimesEvidence times;
  times.rr_clips = 1;
  times.rr_tracks = clip.tracks.size();
  times.rr_late_last_keys = clip.late_last_keys;
  times.rr_least_size_distance = clip.least_size_word_distance;
  times.rr_greatest_size_distance = clip.greatest_size_word_distance;
  times.rr_far_size_words = clip.far_size_words;
  for (std::size_t i = 0; i < 4; ++i) times.rr_mask_marker_tracks[i] = clip.mask_marker_tracks[i];
  merge_times(counts.times, times);
  for (const Track& track : clip.tracks) {
    switch (track.kind) {
      case 3:
        add_quat32_track(counts.rotations[row_of(Game::rr, 3)], track.values);
        break;
      case 4:
        add_quat48_track(counts.rotations[row_of(Game::rr, 4)], counts.rr, track.values);
        break;
      case 5:
        add_quat64_track(counts.rotations[row_of(Game::rr, 5)], counts.rr, track.values);
        break;
      case 7:
        add_rotation_z15_track(counts.rotations[row_of(Game::rr, 7)], counts.rr_kind_7_top, track.values);
        break;
      case 8:
        add_quat_xyz_track(counts.rotations[row_of(Game::rr, 8)], track.values);
        break;
      default:
        break;
    }
  }
}

void Evidence::add(const Mab& clip) {
  add_mab(counts_->rotations[row_of(Game::mab, 0)], counts_->presence_bit_7, counts_->presence, clip);
}

void Evidence::merge(const Evidence& other) {
  Counts& counts = *counts_;
  const Counts& others = *other.counts_;
  for (std::size_t i = 0; i < counts.rotations.size(); ++i) counts.rotations[i].merge(others.rotations[i]);
  counts.sws.merge(others.sws);
  counts.rr.merge(others.rr);
  counts.split.merge(others.split);
  counts.rr_kind_7_top.merge(others.rr_kind_7_top);
  counts.presence_bit_7.merge(others.presence_bit_7);
  merge_times(counts.times, others.times);
  merge_presence(counts.presence, others.presence);
}

EvidenceResult Evidence::result() const {
  const Counts& counts = *counts_;
  EvidenceResult result;
  result.index_orders = {index_result(Game::sws, counts.sws.index), index_result(Game::rr, counts.rr.index)};
  for (std::size_t i = 0; i < rotation_kinds.size(); ++i) {
    result.rotations.push_back(rotation_result(rotation_kinds[i], counts.rotations[i]));
  }
  result.split = split_result(counts.split);
  result.layouts = {layout_result(Game::sws, counts.rotations[row_of(Game::sws, 5)], counts.sws),
                    layout_result(Game::rr, counts.rotations[row_of(Game::rr, 5)], counts.rr)};
  result.bits = {bits_result("sws kind 4 word two bit 15", true, counts.sws.word_two_bit_15),
                 bits_result("rr kind 4 word two bit 15", true, counts.rr.word_two_bit_15),
                 bits_result("sws kind 5 bits 28-29", true, counts.sws.bits_28_29),
                 bits_result("rr kind 5 bits 28-29", true, counts.rr.bits_28_29),
                 bits_result("rr kind 7 bit 15", false, counts.rr_kind_7_top),
                 bits_result("mab presence bit 7", false, counts.presence_bit_7)};
  result.times = counts.times;
  decide(result.times);
  result.presence = counts.presence;
  decide(result.presence);
  return result;
}

}  // namespace bitwitness::decoders
