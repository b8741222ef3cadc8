#pragma once
#include "decoders/animation.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

// The following-object anchor of both games' readers: events are opaque, and AnimTrackData is the first place after
// them that reads as it. Source: seed 000, Body order and Shaun White Skateboarding.

namespace bitwitness::decoders {

/// Whether bytes are one object, or start with one.
enum class Extent : bool { whole, leading };

/// Returns the first place from `from` whose class is AnimTrackData's and that reads as it, by the class's offset.
/// `try_at(at)` gives nothing where it does, else the refusal. Where none does, the refusal is that of the first place
/// that holds the class.
template <typename TryAt>
Reading<std::size_t> find_anchor(std::span<const std::byte> bytes, std::size_t from, std::size_t limit,
                                 TryAt&& try_at) {
  Refusal refusal{.offset = std::min(from, bytes.size()), .rule = Rule::anchor};
  for (bool first = true;; first = false) {
    const std::size_t at = find_u32(bytes, class_ids::anim_track_data, from, limit);
    if (at == npos) return refusal;
    const std::optional<Refusal> broken = try_at(at);
    if (!broken) return at;
    if (first || broken->rule == Rule::work) refusal = *broken;
    if (broken->rule == Rule::work) return refusal;
    from = at + 1;
  }
}

/// Tells whether no second place reads as AnimTrackData, to the end of `bytes`; else fills `refusal`. The object starts
/// `front` bytes before its class.
template <typename TryAt>
bool anchor_is_only(std::span<const std::byte> bytes, std::size_t anchor, std::size_t front, WorkBudget& budget,
                    Refusal& refusal, TryAt&& try_at) {
  if (!budget.spend(bytes.size() - anchor)) {
    refusal = {anchor, Rule::work, bytes.size()};
    return false;
  }
  const Reading<std::size_t> second = find_anchor(bytes, anchor + 1, bytes.size(), try_at);
  if (!second && second.refusal().rule != Rule::work) return true;
  refusal = second ? Refusal{*second - front, Rule::anchor_unique, anchor - front} : second.refusal();
  return false;
}

}  // namespace bitwitness::decoders
