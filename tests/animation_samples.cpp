#include "tests/animation_samples.hpp"

#include "decoders/scan.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>

namespace bitwitness::tests {

using namespace decoders;

namespace {

constexpr std::array<unsigned, 9> sws_kinds{4, 5, 6, 7, 8, 9, 10, 11, 17};
constexpr std::array<unsigned, 12> rr_kinds{3, 4, 5, 7, 8, 9, 16, 17, 18, 21, 22, 25};

// Rising ticks from 1 on, one fewer than the keys.
Bytes rising_times(Random& random, TimeForm time_form, std::size_t keys) {
  const std::size_t limit = time_form == TimeForm::u16_ticks ? 0xFFFF : 0xFF;
  std::set<std::size_t> ticks;
  while (ticks.size() + 1 < keys) ticks.insert(1 + random.below(limit));
  Bytes times;
  for (const std::size_t tick : ticks) {
    times.push_back(std::byte(tick & 0xFF));
    if (time_form == TimeForm::u16_ticks) times.push_back(std::byte(tick >> 8));
  }
  return times;
}

Track make_track(Random& random, Store& store, TimeForm time_form, std::size_t most_keys, unsigned width) {
  Track track;
  track.time_form = time_form;
  track.width = static_cast<std::uint8_t>(width);
  track.key_count = static_cast<std::uint32_t>(1 + random.below(most_keys));
  if (time_form == TimeForm::mask) {
    Bytes mask = random.bytes(1 + random.below(8));
    mask[0] |= std::byte{1};
    track.key_count = 0;
    for (const std::byte byte : mask) {
      track.key_count += static_cast<std::uint32_t>(std::popcount(std::to_integer<unsigned>(byte)));
    }
    track.mask_marker = static_cast<std::uint8_t>(mask.size() | random.below(4) << 6);
    track.times = store.keep(std::move(mask));
  } else {
    track.times = store.keep(rising_times(random, time_form, track.key_count));
  }
  track.values = store.keep(random.bytes(std::size_t{track.key_count} * width));
  return track;
}

float length_of(const std::vector<Track>& tracks) {
  std::uint32_t last = 0;
  for (const Track& track : tracks) last = std::max(last, last_tick(track));
  return static_cast<float>(last) / 60.0F;
}

}  // namespace

SwsSample make_sws(Random& random, const SampleSize& size) {
  SwsSample made;
  const std::size_t count = random.below(size.most_tracks + 1);
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned kind = sws_kinds[random.below(sws_kinds.size())];
    const TimeForm form = random.one_in(2) ? TimeForm::u8_ticks : TimeForm::u16_ticks;
    const bool flag = random.one_in(4);
    Track track = make_track(random, made.store, form, size.most_keys, sws_kind(kind).width);
    track.kind = static_cast<std::uint8_t>(kind);
    track.flag = flag;
    track.tag = sws_tag(kind, form, flag);
    track.size_word = static_cast<std::uint32_t>(sws_size_word(kind, form, flag, track.key_count));
    made.tracks.push_back(track);
    made.mappings.push_back({random.one_in(8) ? random.word() : 0, random.word()});
  }
  Bytes rows = random.bytes(SwsAnimation::row_size * random.below(4));
  for (std::size_t at = 4; at < rows.size(); at += SwsAnimation::row_size) set<std::uint16_t>(rows, at, 0);
  made.clip.table_rows = made.store.keep(rows);
  made.clip.id = random.word();
  made.clip.length = length_of(made.tracks);
  made.clip.layout_word = random.word();
  made.clip.unknown_24 = random.word();
  made.clip.unknown_28 = static_cast<std::uint16_t>(random.word());
  made.clip.unknown_30 = random.word();
  made.clip.event_count = static_cast<std::uint32_t>(random.below(3));
  made.clip.events = made.store.keep(random.bytes(made.clip.event_count * (8 + random.below(40))));
  made.clip.unknown_after_events = random.word();
  made.clip.track_data_id = random.word();
  made.clip.track_data_layout_word = random.word();
  made.clip.unknown_after_mappings = static_cast<std::uint16_t>(random.word());
  write_sws_animation(made.bytes, made.clip, made.mappings, made.tracks);
  return made;
}

RrSample make_rr(Random& random, const SampleSize& size) {
  RrSample made;
  const std::size_t count = random.below(size.most_tracks + 1);
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned kind = rr_kinds[random.below(rr_kinds.size())];
    const auto form = static_cast<TimeForm>(random.below(3));
    Track track = make_track(random, made.store, form, size.most_keys, rr_kind_width(kind));
    track.kind = static_cast<std::uint8_t>(kind);
    track.tag = rr_tag(kind, form);
    track.size_word = static_cast<std::uint32_t>(track.payload_size() + random.below(9));
    made.tracks.push_back(track);
    made.mappings.push_back({random.next(), random.word()});
  }
  made.clip.length = length_of(made.tracks);
  made.clip.word_f4f597ff = random.word();
  made.clip.word_322b96b8 = random.word();
  made.clip.halves_556e9166 = made.store.keep(random.bytes(2 * random.below(3)));
  made.clip.halves_251905d9 = made.store.keep(random.bytes(2 * random.below(3)));
  for (std::uint8_t& boolean : made.clip.booleans) boolean = static_cast<std::uint8_t>(random.below(2));
  made.clip.event_count = static_cast<std::uint32_t>(random.below(3));
  made.clip.events = made.store.keep(random.bytes(made.clip.event_count * (12 + random.below(40))));
  made.clip.track_data_id = random.next();
  made.clip.track_data_hash = random.word();
  made.clip.unknown_after_mappings = static_cast<std::uint16_t>(random.word());
  if (random.one_in(2)) {
    made.clip.ecl.present = true;
    made.clip.ecl.id = random.next();
    made.clip.ecl.first_bytes = made.store.keep(random.bytes(random.below(9)));
    made.clip.ecl.words = made.store.keep(random.bytes(4 * random.below(9)));
    made.clip.ecl.halves = made.store.keep(random.bytes(2 * random.below(9)));
    made.clip.ecl.last_bytes = made.store.keep(random.bytes(random.below(9)));
  }
  made.clip.buffer_b832d26f = made.store.keep(random.bytes(random.below(20)));
  made.clip.word_cb4e5f18 = random.word();
  write_rr_animation(made.bytes, made.clip, made.mappings, made.tracks);
  return made;
}

MabSample make_mab(Random& random, const SampleSize& size) {
  MabSample made;
  made.options.size_word = !random.one_in(4);
  made.options.group_count =
      random.one_in(2) ? MabOptions::GroupCount::by_duration : MabOptions::GroupCount::by_last_frame;
  Mab& clip = made.clip;
  clip.version = random.one_in(2) ? 0x4C : 0x61;
  clip.clip_base = made.options.clip_base;
  clip.has_rotations = true;
  clip.size_word = made.options.size_word;
  clip.track_count = static_cast<std::uint16_t>(random.below(size.most_tracks + 1));
  clip.last_frame = static_cast<std::uint16_t>(random.below(size.most_keys));
  clip.rate = 30.0F;
  clip.duration = (static_cast<float>(clip.last_frame) + 0.5F) / clip.rate;
  const std::size_t group_count = (std::size_t{clip.last_frame} >> 3) + 1;
  for (std::size_t index = 0; index < group_count; ++index) {
    MabGroup group;
    group.first_frame = static_cast<std::uint32_t>(8 * index);
    group.first_keys = made.store.keep(random.bytes(Mab::key_size * clip.track_count));
    Bytes presence = random.bytes(clip.track_count);
    std::size_t keys = 0;
    for (std::byte& byte : presence) {
      // Bits of frames past the last are clear, lowest bit first.
      const std::size_t frames = std::min<std::size_t>(7, clip.last_frame - 8 * index);
      byte &= std::byte(0x80 | ((1U << frames) - 1));
      keys += static_cast<std::size_t>(std::popcount(std::to_integer<unsigned>(byte) & 0x7F));
    }
    group.presence = made.store.keep(std::move(presence));
    group.padding = made.store.keep(random.bytes(clip.track_count & 1U));
    group.later_keys = made.store.keep(random.bytes(Mab::key_size * keys));
    made.groups.push_back(group);
  }
  const std::size_t header = clip.clip_base + (clip.version == 0x4C ? 0x9C : 0xDC);
  clip.before = made.store.keep(random.bytes(header + random.below(30)));
  clip.section_offsets[Mab::rotation_section] = static_cast<std::int32_t>(clip.before.size() - clip.clip_base);
  Bytes written;
  write_mab(written, clip, made.groups);
  Bytes after(random.below(15));
  const auto next_section = static_cast<std::int32_t>(written.size() + after.size() - clip.clip_base);
  for (const std::byte byte : random.bytes(random.below(60))) after.push_back(byte);
  clip.after = made.store.keep(std::move(after));
  clip.section_offsets[4] = next_section;
  write_mab(made.bytes, clip, made.groups);
  return made;
}

Bytes make_anim_set(Random& random, std::size_t most_pairs) {
  std::vector<SwsAnimPair> pairs(random.below(most_pairs + 1));
  for (SwsAnimPair& pair : pairs) pair = {random.word(), random.word(), random.word()};
  Bytes made;
  write_sws_anim_set(made, random.word(), pairs, static_cast<std::uint8_t>(random.below(2)));
  return made;
}

namespace {

template <typename Clip>
std::string check_tracks(const Clip& clip) {
  std::uint64_t keys = 0;
  std::size_t count = 0;
  std::size_t end = clip.size;
  for (const Track& track : clip.tracks) {
    std::uint64_t ticks = 0;
    for_each_tick(track, [&](std::uint32_t) { ++ticks; });
    if (ticks != track.key_count || track.values.size() != std::size_t{track.key_count} * track.width) {
      return "a track's keys, times and values differ in number";
    }
    keys += track.key_count;
    ++count;
    end = track.offset + track.size();
  }
  if (count != clip.tracks.size() || count != clip.mapping_count()) return "the walk ends before the last track";
  if (keys != clip.key_count) return "the keys do not add up";
  return end == clip.size ? "" : "the last track does not end the object";
}

// What must hold for a reading of `bytes`, whose object is checked and written back by the functions given.
template <typename Object, typename Check, typename Write>
void check_reading(std::string& wrong, std::span<const std::byte> bytes, const Reading<Object>& reading, Check check,
                   Write write) {
  if (!wrong.empty()) return;
  if (!reading) {
    if (reading.refusal().offset > bytes.size()) wrong = "offset past the end: " + describe(reading.refusal());
    return;
  }
  wrong = check(*reading);
  if (!wrong.empty()) return;
  Bytes again;
  write(again, *reading);
  if (!std::ranges::equal(again, bytes)) wrong = "an accepted object is not written back byte for byte";
}

std::string check_mab(const Mab& clip) {
  for (const PresenceOrder order : {PresenceOrder::low_bit_first, PresenceOrder::high_bit_first}) {
    std::uint64_t keys = 0;
    for_each_key(clip, order, [&](std::uint32_t, std::uint32_t, std::span<const std::byte>) { ++keys; });
    if (keys != clip.key_count) return "the keys do not add up";
  }
  return "";
}

std::string check_scan(std::span<const std::byte> bytes) {
  std::string wrong;
  std::size_t floor = 0;
  ScanListener listener;
  listener.found = [&](const FoundObject& found) {
    if (found.offset < floor || found.size > bytes.size() - found.offset) {
      wrong = "a found object overlaps another or the end";
      return;
    }
    floor = found.offset + found.size;
    const std::span<const std::byte> own = bytes.subspan(found.offset, found.size);
    const bool again = std::visit(
        [&](const auto& object) {
          using Object = std::decay_t<decltype(object)>;
          if constexpr (std::is_same_v<Object, SwsAnimation>) return bool(read_sws_animation(own));
          if constexpr (std::is_same_v<Object, SwsAnimSet>) return bool(read_sws_anim_set(own));
          if constexpr (std::is_same_v<Object, RrAnimation>) return bool(read_rr_animation(own));
        },
        found.object);
    if (!again) wrong = "a found object is refused by its own reader";
  };
  listener.refused = [&](const Refusal& refusal) {
    if (refusal.offset > bytes.size()) wrong = "a scan's refusal lies past the end";
  };
  scan(bytes, listener);
  return wrong;
}

}  // namespace

std::string check_any_bytes(std::span<const std::byte> bytes) {
  std::string wrong;
  const auto nothing = [](const auto&) { return std::string(); };
  check_reading(wrong, bytes, read_sws_animation(bytes), check_tracks<SwsAnimation>,
                [](Bytes& out, const SwsAnimation& clip) { write_sws_animation(out, clip); });
  check_reading(wrong, bytes, read_rr_animation(bytes), check_tracks<RrAnimation>,
                [](Bytes& out, const RrAnimation& clip) { write_rr_animation(out, clip); });
  check_reading(wrong, bytes, read_sws_anim_pair(bytes), nothing,
                [](Bytes& out, const SwsAnimPair& pair) { write_sws_anim_pair(out, pair); });
  check_reading(wrong, bytes, read_sws_anim_set(bytes), nothing, [](Bytes& out, const SwsAnimSet& set) {
    std::vector<SwsAnimPair> pairs;
    for (std::size_t i = 0; i < set.pair_count(); ++i) pairs.push_back(set.pair(i));
    write_sws_anim_set(out, set.id, pairs, set.final_byte);
  });
  check_reading(wrong, bytes, read_rr_anim_component(bytes), nothing,
                [](Bytes& out, const RrAnimComponent& component) { write_rr_anim_component(out, component); });
  for (const bool size_word : {true, false}) {
    for (const auto rule : {MabOptions::GroupCount::by_duration, MabOptions::GroupCount::by_last_frame}) {
      const MabOptions options{.group_count = rule, .size_word = size_word};
      check_reading(wrong, bytes, read_mab(bytes, options), check_mab,
                    [](Bytes& out, const Mab& clip) { write_mab(out, clip); });
    }
  }
  return wrong.empty() ? check_scan(bytes) : wrong;
}

Bytes from_hex(std::string_view text) {
  const auto digit = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10); };
  Bytes bytes;
  std::optional<unsigned> high;
  for (const char c : text) {
    if (c == ' ' || c == '\n') continue;
    if (high) bytes.push_back(std::byte(*high << 4 | digit(c)));
    high = high ? std::nullopt : std::optional(digit(c));
  }
  return bytes;
}

}  // namespace bitwitness::tests
