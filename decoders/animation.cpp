#include "decoders/animation.hpp"

#include "decoders/cursor.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace bitwitness::decoders {
namespace {

struct RuleText {
  Rule rule;
  std::string_view name;
  std::string_view reason;
};

constexpr std::array<RuleText, 28> rules{{
    {Rule::truncated, "truncated", "the bytes end before the field or array does"},
    {Rule::trailing_bytes, "trailing bytes", "the object ends with its last field"},
    {Rule::table_bytes, "table bytes", "the table that opens the object starts with 02 00 00"},
    {Rule::managed_byte, "managed byte", "a managed object's byte is 1"},
    {Rule::class_id, "class id", "an object carries the id of its class"},
    {Rule::object_tag, "object tag", "an object's tag is 0, or 3 where it may be null"},
    {Rule::length, "length", "a length is a finite number of seconds and not negative"},
    {Rule::boolean, "boolean", "a boolean byte is 0 or 1"},
    {Rule::events, "events", "no events take no bytes, and each event takes at least one"},
    {Rule::anchor, "anchor", "AnimTrackData follows the events"},
    {Rule::anchor_unique, "anchor unique", "only one place after the events reads as AnimTrackData"},
    {Rule::track_count, "track count", "there are as many tracks as mappings"},
    {Rule::kind, "kind", "the tag names a kind whose width is known"},
    {Rule::key_count, "key count", "a track has at least one key, and no more than its time form can number"},
    {Rule::times_rise, "times rise", "key times rise strictly from 0"},
    {Rule::mask_size, "mask size", "a mask has one to eight bytes"},
    {Rule::mask_keys, "mask keys", "a mask has as many bits set as the track has keys"},
    {Rule::size_word, "size word", "the size word is the block's size in memory"},
    {Rule::zero_word, "zero word", "the word is 0"},
    {Rule::final_byte, "final byte", "the final byte is 0 or 1"},
    {Rule::version, "version", "the version is one whose layout is known"},
    {Rule::section_offset, "section offset", "a section lies in the file, behind the section table"},
    {Rule::frame_count, "frame count", "rate times duration is a frame number"},
    {Rule::group_table, "group table", "the first group follows the table and offsets do not fall"},
    {Rule::group_tiling, "group tiling", "each group fills its place exactly"},
    {Rule::section_size, "section size", "the section's size lies in the file and behind the last group"},
    {Rule::padding, "padding", "padding is zero"},
    {Rule::work, "work", "the bytes can be told apart by looking at each of them a few times"},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (static_cast<std::size_t>(rules[i].rule) != i) return false;
  }
  return true;
}

static_assert(in_order() && static_cast<std::size_t>(Rule::work) + 1 == rules.size());

// Whether each time of eight bytes of `later` is greater than its counterpart in `earlier`. Every second time at once
// in lanes twice as wide: the bit above a lane's time survives the subtraction of earlier + 1 only where later is
// greater.
template <typename Time>
bool all_greater(std::uint64_t later, std::uint64_t earlier) {
  constexpr unsigned width = 8 * sizeof(Time);
  constexpr std::uint64_t ones = width == 8 ? 0x0001'0001'0001'0001 : 0x0000'0001'0000'0001;
  constexpr std::uint64_t lanes = ones * std::numeric_limits<Time>::max();
  constexpr std::uint64_t above = ones << width;
  const std::uint64_t low = ((later & lanes) | above) - (earlier & lanes) - ones;
  const std::uint64_t high = ((later >> width & lanes) | above) - (earlier >> width & lanes) - ones;
  return (low & high & above) == above;
}

template <typename Time>
bool rise(std::span<const std::byte> times) {
  constexpr std::size_t step = sizeof(std::uint64_t);
  if (times.size() < sizeof(Time)) return true;
  if (load<Time>(times, 0) == 0) return false;
  std::size_t at = sizeof(Time);
  for (; times.size() - at >= step; at += step) {
    if (!all_greater<Time>(load<std::uint64_t>(times, at), load<std::uint64_t>(times, at - sizeof(Time)))) return false;
  }
  if (at == times.size()) return true;
  // The rest: the last eight bytes once more where there are as many, else time by time.
  if (times.size() >= step + sizeof(Time)) {
    at = times.size() - step;
    return all_greater<Time>(load<std::uint64_t>(times, at), load<std::uint64_t>(times, at - sizeof(Time)));
  }
  for (; times.size() - at >= sizeof(Time); at += sizeof(Time)) {
    if (load<Time>(times, at) <= load<Time>(times, at - sizeof(Time))) return false;
  }
  return true;
}

std::string hex(std::uint64_t value) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  do {
    text.insert(text.begin(), digits[value & 0xF]);
    value >>= 4;
  } while (value != 0);
  return "0x" + text;
}

}  // namespace

std::string_view name(Rule rule) {
  return rules[static_cast<std::size_t>(rule)].name;
}

std::string_view reason(Rule rule) {
  return rules[static_cast<std::size_t>(rule)].reason;
}

std::string describe(const Refusal& refusal) {
  std::string text = "offset " + hex(refusal.offset) + ": " + std::string(name(refusal.rule)) + ": ";
  return text + std::string(reason(refusal.rule)) + " (found " + hex(refusal.found) + ")";
}

std::uint32_t last_tick(const Track& track) {
  if (track.time_form == TimeForm::mask) {
    const std::uint64_t bits = mask_bits(track);
    return bits == 0 ? 0 : 2 * static_cast<std::uint32_t>(std::bit_width(bits) - 1);
  }
  const std::size_t size = track.times.size();
  if (track.time_form == TimeForm::u8_ticks) return size == 0 ? 0 : std::to_integer<std::uint32_t>(track.times.back());
  return size < 2 ? 0 : load<std::uint16_t>(track.times, size - 2);
}

std::uint64_t mask_bits(const Track& track) {
  std::uint64_t bits = 0;
  for (std::size_t i = std::min(track.times.size(), sizeof bits); i-- > 0;) {
    bits = bits << 8 | std::to_integer<std::uint64_t>(track.times[i]);
  }
  return bits;
}

bool times_rise(const Track& track) {
  switch (track.time_form) {
    case TimeForm::u8_ticks:
      return rise<std::uint8_t>(track.times);
    case TimeForm::u16_ticks:
      return rise<std::uint16_t>(track.times);
    case TimeForm::mask:
      break;
  }
  return true;
}

std::size_t find_u32(std::span<const std::byte> bytes, std::uint32_t value, std::size_t from, std::size_t limit) {
  limit = std::min(limit, bytes.size());
  const int first = static_cast<int>(value & 0xFF);
  while (from < limit && limit - from >= sizeof value) {
    const void* found = std::memchr(bytes.data() + from, first, limit - from - (sizeof value - 1));
    if (found == nullptr) return npos;
    const auto at = static_cast<std::size_t>(static_cast<const std::byte*>(found) - bytes.data());
    if (load<std::uint32_t>(bytes, at) == value) return at;
    from = at + 1;
  }
  return npos;
}

}  // namespace bitwitness::decoders
