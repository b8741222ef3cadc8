#pragma once
#include "decoders/mab.hpp"
#include "decoders/rr_animation.hpp"
#include "decoders/sws_animation.hpp"
#include "decoders/track_kinds.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

// The seeds' data tests, repeated on any clips: what stored keys say about a layout without executing the game's code.
// Counts, histograms, least and greatest values only, so that neither threads nor the clips' order change a result.

namespace bitwitness::decoders {

/// From where on counts decide a question; short of that it stays undecided.
namespace evidence_rules {
inline constexpr double near_dot = 0.99;  ///< the seed's bound for Riders Republic's kind 4
inline constexpr double loose_dot = 0.9;  ///< its bound for Shaun White Skateboarding's; the one that decides here

inline constexpr std::uint64_t least_pairs = 200;        ///< of the eight changes of index that tell the orders apart
inline constexpr std::uint64_t least_change_pairs = 20;  ///< for one change to speak against an order
inline constexpr std::uint64_t least_keys = 200;         ///< of random codes 1 triple in 28 passes unit length
inline constexpr std::uint64_t least_tracks = 30;        ///< of several keys, for a median
inline constexpr std::uint64_t clear_factor = 2;         ///< pairs kept or median step: so many times better
inline constexpr std::uint64_t far_factor = 10;          ///< keys that break a bound: so many times fewer
inline constexpr double median_margin = 1.0 / 16;        ///< between medians of the smallest |dot|
inline constexpr double unit_tolerance = 1e-6;           ///< of a norm: what rounding to f32 does
inline constexpr std::uint64_t tracks_a_stray = 1000;    ///< at most one stray last key in so many tracks

// Of .mab keys: times tried by predicting a key from its neighbours.
inline constexpr std::uint64_t least_past_end = 20;
inline constexpr std::uint64_t least_predictions = 500;
inline constexpr std::uint64_t clear_percent = 60;  ///< of the predictions; 4 standard deviations of 500 coin tosses
inline constexpr double still_dot = 0.99999;        ///< neighbours nearer than this have not moved and predict nothing
}  // namespace evidence_rules

/// What the counts say about a claim of the seeds.
enum class Verdict : std::uint8_t { supported, refuted, undecided };

/// Which word's bit 15 is the low bit of a kind 4 key's omitted index; the seed says word 0's.
enum class IndexOrder : std::uint8_t { word_0_low, word_1_low };

/// Pairs of consecutive keys, and how many of them lie near each other under each IndexOrder.
struct IndexPairs {
  std::uint64_t pairs = 0;
  std::array<std::uint64_t, 2> near{};   ///< |dot| above near_dot
  std::array<std::uint64_t, 2> loose{};  ///< |dot| above loose_dot

  void add(const IndexPairs& other);
  bool operator==(const IndexPairs&) const = default;
};

/// Kind 4's index order, told by changes of the index. Source: seed 000, Track blocks and Shaun White Skateboarding.
/// Supported is an order that keeps, of the eight changes between 0 or 3 and 1 or 2, at least least_pairs in all, half
/// or more within loose_dot and clear_factor times as many as the other, while no change of least_change_pairs or more
/// keeps fewer than under the other.
struct IndexOrderEvidence {
  Game game = Game::sws;
  std::array<std::array<IndexPairs, 4>, 4> changes{};  ///< [from][to] as word_0_low reads them; the diagonal: no change
  IndexPairs telling;                                  ///< sum of the eight changes
  IndexPairs silent;                                   ///< sum of the four changes that both orders read alike
  IndexPairs same;                                     ///< sum of the diagonal
  std::optional<IndexOrder> supported{};

  bool operator==(const IndexOrderEvidence&) const = default;
};

/// Tells whether the two index orders read a change of index differently.
constexpr bool tells_index_order(std::size_t from, std::size_t to) {
  const bool outer_from = from == 0 || from == 3;
  const bool outer_to = to == 0 || to == 3;
  return outer_from != outer_to;
}

/// Unit length and smoothness of a rotation kind's keys. A key that exceeds unit length counts with its omitted
/// component as 0, whatever its decoder makes of it. Supported: at least least_keys, norms within unit_tolerance of 1,
/// all numbers. A key may exceed unit length and stay within: rounding of its components puts it there. Kind 7 of
/// Riders Republic stays undecided, for any 15 bits give unit length.
struct RotationEvidence {
  Game game = Game::sws;
  std::uint8_t kind = 0;
  std::uint64_t tracks = 0;  ///< 0 for .mab, as the two below: their keys are walked group by group
  std::uint64_t keys = 0;
  std::uint64_t over_unit = 0;          ///< kept components' squares sum to more than 1, by rounding or by far
  std::uint64_t off_unit = 0;           ///< norms farther than unit_tolerance from 1
  std::uint64_t not_finite = 0;         ///< stored infinities and NaNs
  double largest_deviation = 0;         ///< of a norm from 1
  std::uint64_t tracks_with_pairs = 0;  ///< tracks of several keys
  double median_smallest_dot = 0;       ///< over them: smallest |dot| of consecutive keys, in steps of 1/4096
  Verdict verdict = Verdict::undecided;

  bool operator==(const RotationEvidence&) const = default;
};

/// How kind 8 of Shaun White Skateboarding splits its 32 bits into x, y, z from the high end; the seed says 11/11/10.
enum class TranslationSplit : std::uint8_t { x11_y11_z10, x10_y11_z11, x11_y10_z11 };

/// Kind 8's split, told by step sizes. Source: seed 000, Shaun White Skateboarding. Supported: the least median, where
/// least_tracks are measured and every other median is clear_factor times as large or more.
struct SplitEvidence {
  std::uint64_t tracks = 0;                     ///< of several keys
  std::array<std::uint32_t, 3> median_steps{};  ///< by split: a track's largest step on any axis, in units of 1 mm
  std::optional<TranslationSplit> supported{};

  bool operator==(const SplitEvidence&) const = default;
};

/// Where a kind 5 key keeps its components a, b, c and its index. ring: packed_quat64. low_to_high: a in bits 0–19, b
/// in 20–39, c in 40–59, index in 60–61. high_to_low: c, b, a in those places, index in 62–63.
enum class Quat64Layout : std::uint8_t { ring, low_to_high, high_to_low };

/// Kind 5's layout, told by unit length and smoothness. Source: seed 000. Supported: a layout under which no key
/// exceeds unit length (or far_factor times fewer than under each other one) and whose median is the greatest by
/// median_margin, where least_tracks are measured.
struct LayoutEvidence {
  Game game = Game::sws;
  std::uint64_t keys = 0;
  std::uint64_t tracks = 0;                     ///< of several keys
  std::array<std::uint64_t, 3> over_unit{};     ///< keys, by layout
  std::array<double, 3> median_smallest_dot{};  ///< by layout, as in RotationEvidence
  std::optional<Quat64Layout> supported{};

  bool operator==(const LayoutEvidence&) const = default;
};

/// Bits that are zero, or whose meaning is unknown.
struct BitsEvidence {
  std::string_view name;
  bool claimed = false;                  ///< the seed says that they are zero; the others are only counted
  std::uint64_t checked = 0;             ///< keys or bytes
  std::uint64_t set = 0;                 ///< of them, with any of the bits set
  Verdict verdict = Verdict::undecided;  ///< of a claim; decided from least_keys on, or by one bit that is set

  bool operator==(const BitsEvidence&) const = default;
};

/// Times against lengths, and the words whose meaning is open, as the readers count them.
struct TimesEvidence {
  std::uint64_t sws_clips = 0;
  std::uint64_t sws_tracks = 0;              ///< of several keys
  std::uint64_t sws_stray_last_keys = 0;     ///< tracks whose last key is not on length × 60
  std::uint64_t sws_other_layout_words = 0;  ///< clips whose two layout words differ
  std::uint64_t rr_clips = 0;
  std::uint64_t rr_tracks = 0;
  std::uint64_t rr_late_last_keys = 0;      ///< tracks whose last key lies past length + 1/30 s
  std::int64_t rr_least_size_distance = 0;  ///< of size word minus stored payload; 0 without tracks
  std::int64_t rr_greatest_size_distance = 0;
  std::uint64_t rr_far_size_words = 0;                   ///< tracks whose distance is more than eight bytes
  std::array<std::uint64_t, 4> rr_mask_marker_tracks{};  ///< mask tracks by the marker's two high bits
  Verdict sws_last_keys = Verdict::undecided;            ///< supported: at most one stray in tracks_a_stray
  Verdict rr_last_keys = Verdict::undecided;             ///< supported: none late
  Verdict rr_size_words = Verdict::undecided;            ///< supported: none far

  bool operator==(const TimesEvidence&) const = default;
};

/// A .mab's presence bits, by PresenceOrder, and whether later keys are stored in rising time.
///
/// Both orders put the same keys into the same sequence and differ in their frames only. So each key between two others
/// is predicted from them, at the frames of either order; the nearer prediction wins. An order is supported that
/// far_factor times fewer keys past the end speak for (least_past_end or more under the other), or clear_percent of
/// least_predictions or more; undecided where these two contradict. Predictions do not count where falling time is
/// supported.
struct PresenceEvidence {
  std::uint64_t clips = 0;
  std::uint64_t keys = 0;
  std::array<std::uint64_t, 2> keys_past_end{};
  std::array<std::uint64_t, 2> nearer{};  ///< keys that the order predicts better
  std::uint64_t rising_nearer = 0;        ///< groups' later keys that join the first keys around them better as
  std::uint64_t falling_nearer = 0;       ///< stored, or the other way round
  std::optional<PresenceOrder> supported{};
  Verdict rising = Verdict::undecided;  ///< by clear_percent of least_predictions or more

  bool operator==(const PresenceEvidence&) const = default;
};

/// Every figure and what it supports. Rows stand for all games and kinds, also for those without keys.
struct EvidenceResult {
  std::array<IndexOrderEvidence, 2> index_orders{};  ///< sws, rr
  std::vector<RotationEvidence> rotations;           ///< sws 4 5 6, rr 3 4 5 7 8, mab
  SplitEvidence split;
  std::array<LayoutEvidence, 2> layouts{};  ///< sws, rr
  std::vector<BitsEvidence> bits;           ///< kind 4 and kind 5 of both games, rr kind 7, .mab presence
  TimesEvidence times;
  PresenceEvidence presence;

  bool operator==(const EvidenceResult&) const = default;
};

/// Gathers evidence from clips, each to be added once however often it is stored. One thread at a time; merge what
/// several have gathered. About half a megabyte whatever is added; time linear in the keys.
class Evidence {
 public:
  Evidence();
  Evidence(const Evidence& other);
  Evidence(Evidence&& other) noexcept;
  Evidence& operator=(const Evidence& other);
  Evidence& operator=(Evidence&& other) noexcept;
  ~Evidence();

  void add(const SwsAnimation& clip);
  void add(const RrAnimation& clip);
  void add(const Mab& clip);

  /// Adds what another has gathered. Any order and grouping gives the same result.
  void merge(const Evidence& other);

  /// Works out medians and verdicts of what has been added so far.
  EvidenceResult result() const;

 private:
  struct Counts;
  std::unique_ptr<Counts> counts_;
};

}  // namespace bitwitness::decoders
