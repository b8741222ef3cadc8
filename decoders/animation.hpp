#pragma once
#include "decoders/assumptions.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

// What the animation readers, writers and the scan share: why bytes were refused, and one track of keys.

namespace bitwitness::decoders {

/// What a format demands of its bytes. A refusal names the one that was broken.
enum class Rule : std::uint8_t {
  truncated,
  trailing_bytes,
  table_bytes,
  managed_byte,
  class_id,
  object_tag,
  length,
  boolean,
  events,
  anchor,
  anchor_unique,
  track_count,
  kind,
  key_count,
  times_rise,
  mask_size,
  mask_keys,
  size_word,
  zero_word,
  final_byte,
  version,
  section_offset,
  frame_count,
  group_table,
  group_tiling,
  section_size,
  padding,
  work
};

/// Names a rule as reports print it: "truncated", "anchor unique" and so on.
std::string_view name(Rule rule);

/// Says in one sentence what a rule demands.
std::string_view reason(Rule rule);

/// Why bytes are not an object: the first rule broken and where.
struct Refusal {
  std::size_t offset = 0;  ///< bytes from the start of what was read; never past its end
  Rule rule = Rule::truncated;
  std::uint64_t found = 0;  ///< what stands there, or the count that does not fit
};

/// Writes a refusal on one line: offset, rule, reason, value found.
std::string describe(const Refusal& refusal);

/// What a reader gives for any bytes: an object, or a refusal.
template <typename Object>
class [[nodiscard]] Reading {
 public:
  Reading(Object object) : result_(std::move(object)) {}
  Reading(const Refusal& refusal) : result_(refusal) {}

  explicit operator bool() const { return std::holds_alternative<Object>(result_); }

  /// The object; throws std::bad_variant_access on a refusal.
  const Object& operator*() const { return std::get<Object>(result_); }
  const Object* operator->() const { return &std::get<Object>(result_); }

  /// The refusal; throws std::bad_variant_access on an object.
  const Refusal& refusal() const { return std::get<Refusal>(result_); }

 private:
  std::variant<Object, Refusal> result_;
};

/// How much a reader may look at, in bytes, before it gives up with Rule::work. Honest files look at each byte once or
/// twice; only bytes made to be hostile reach eight times their size.
struct WorkBudget {
  std::uint64_t left = std::numeric_limits<std::uint64_t>::max();

  /// Returns the budget of an input of that many bytes.
  static WorkBudget of(std::size_t size) { return {8 * std::uint64_t{size} + 4096}; }

  /// Takes `bytes` from the budget; false when it is used up.
  bool spend(std::uint64_t bytes) {
    const bool enough = bytes <= left;
    left = enough ? left - bytes : 0;
    return enough;
  }
};

/// Class ids. Proven for Shaun White Skateboarding, observed in Riders Republic (seed 000).
namespace class_ids {
inline constexpr std::uint32_t animation = 0x0FA3067F;
inline constexpr std::uint32_t anim_track_data = 0x0181EFE8;
inline constexpr std::uint32_t mapping = 0x653CAA76;
inline constexpr std::uint32_t ecl_animation = 0xAC692A57;
inline constexpr std::uint32_t anim_component = 0x8C8AA19D;
inline constexpr std::uint32_t anim_set = 0x31984F55;
inline constexpr std::uint32_t anim_pair = 0x9DE9A987;
}  // namespace class_ids

/// How a track stores its times. The first two: one fewer than its keys, in ticks of 1/60 s, the first key at 0.
/// mask: one bit a frame of 1/30 s, bit 0 of the first byte being frame 0 (the bits' order is assumed).
enum class TimeForm : std::uint8_t { u8_ticks, u16_ticks, mask };

/// One track block, its bytes left where they are in the input.
struct Track {
  std::size_t offset = 0;  ///< of the block in what was read
  std::uint8_t tag = 0;
  std::uint8_t kind = 0;
  TimeForm time_form = TimeForm::u8_ticks;
  bool flag = false;             ///< bit 1 of a Shaun White Skateboarding tag; meaning unknown
  std::uint8_t mask_marker = 0;  ///< mask form only: low six bits count the mask's bytes, the others unknown
  std::uint8_t width = 0;        ///< bytes a key
  std::uint32_t size_word = 0;
  std::uint32_t key_count = 0;
  std::span<const std::byte> times;   ///< stored times or mask, without the marker
  std::span<const std::byte> values;  ///< key_count × width bytes

  /// Bytes of time data and values, the marker included.
  std::size_t payload_size() const { return (time_form == TimeForm::mask ? 1U : 0U) + times.size() + values.size(); }
  /// Bytes of the whole block.
  std::size_t size() const { return header_size + payload_size(); }

  static constexpr std::size_t header_size = 9;
};

/// Calls visit(tick) with each key's time in ticks of 1/60 s, in key order. Frames of a mask count two ticks.
template <typename Visit>
void for_each_tick(const Track& track, Visit&& visit) {
  if (track.time_form == TimeForm::mask) {
    for (std::size_t frame = 0; frame < 8 * track.times.size(); ++frame) {
      const auto byte = std::to_integer<unsigned>(track.times[frame / 8]);
      if ((byte >> (frame % 8) & 1U) != 0) visit(static_cast<std::uint32_t>(2 * frame));
    }
    return;
  }
  const std::size_t step = track.time_form == TimeForm::u16_ticks ? 2 : 1;
  visit(std::uint32_t{0});
  for (std::size_t at = 0; at + step <= track.times.size(); at += step) {
    const auto low = std::to_integer<std::uint32_t>(track.times[at]);
    visit(step == 1 ? low : low | std::to_integer<std::uint32_t>(track.times[at + 1]) << 8);
  }
}

/// Returns the mask of a track of that form as one number: bit n is frame n of 1/30 s. At most eight bytes are read.
std::uint64_t mask_bits(const Track& track);

/// Returns the last key's time in ticks of 1/60 s.
std::uint32_t last_tick(const Track& track);

/// Tells whether stored tick times start above 0 and rise from key to key. True for masks, whose bits cannot do else.
bool times_rise(const Track& track);

/// Fills `track` from the block at `offset` of `bytes`, or returns false and fills `refusal`. Checks kind, counts and
/// bounds; not the times' order nor the size word.
using TrackLocator = bool (*)(std::span<const std::byte> bytes, std::size_t offset, Track& track, Refusal& refusal);

/// Track blocks lying side by side, found anew on each walk: nothing is allocated. A reader hands this out only when
/// every block has been checked; over other bytes the walk ends at the first block that does not fit.
class Tracks {
 public:
  class Iterator {
   public:
    using value_type = Track;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    Iterator(TrackLocator locate, std::span<const std::byte> bytes, std::size_t offset, std::uint32_t count)
        : locate_(locate), bytes_(bytes), left_(count) {
      find(offset);
    }

    const Track& operator*() const { return track_; }
    const Track* operator->() const { return &track_; }
    Iterator& operator++() {
      --left_;
      find(track_.offset + track_.size());
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return left_ == 0; }

   private:
    void find(std::size_t offset) {
      Refusal refusal;
      if (left_ != 0 && !locate_(bytes_, offset, track_, refusal)) left_ = 0;
    }

    TrackLocator locate_ = nullptr;
    std::span<const std::byte> bytes_;
    std::uint32_t left_ = 0;
    Track track_;
  };

  Tracks() = default;
  Tracks(TrackLocator locate, std::span<const std::byte> bytes, std::size_t offset, std::uint32_t count)
      : locate_(locate), bytes_(bytes), offset_(offset), count_(count) {}

  Iterator begin() const { return {locate_, bytes_, offset_, count_}; }
  std::default_sentinel_t end() const { return {}; }
  std::uint32_t size() const { return count_; }

 private:
  TrackLocator locate_ = nullptr;
  std::span<const std::byte> bytes_;
  std::size_t offset_ = 0;
  std::uint32_t count_ = 0;
};

/// Returns where a little-endian u32 next stands at or after `from` and wholly before `limit`, or npos.
std::size_t find_u32(std::span<const std::byte> bytes, std::uint32_t value, std::size_t from, std::size_t limit);

/// No position.
inline constexpr std::size_t npos = std::numeric_limits<std::size_t>::max();

}  // namespace bitwitness::decoders
