#include "decoders/scan.hpp"

#include "tests/animation_samples.hpp"
#include "tests/catch.hpp"

#include <algorithm>
#include <chrono>

namespace bitwitness::tests {
namespace {

using namespace decoders;

constexpr std::uint64_t seed = 0x5eed5a5a04;

struct Place {
  std::size_t
      kind;  // index of the variant: Shaun White Skateboarding's Animation, AnimSet, Riders Republic's Animation
  std::size_t offset;
  std::size_t size;

  bool operator==(const Place&) const = default;
};

struct Seen {
  std::vector<Place> places;
  std::vector<Refusal> refusals;
  ScanSummary summary;
};

Seen scan_all(std::span<const std::byte> blob) {
  Seen seen;
  ScanListener listener;
  listener.found = [&](const FoundObject& found) {
    seen.places.push_back({found.object.index(), found.offset, found.size});
  };
  listener.refused = [&](const Refusal& refusal) { seen.refusals.push_back(refusal); };
  seen.summary = scan(blob, listener);
  return seen;
}

void append(Bytes& blob, std::span<const std::byte> bytes) {
  blob.insert(blob.end(), bytes.begin(), bytes.end());
}

// A body behind the class id that is taken to end its resource's header.
Bytes with_class(const Bytes& body) {
  Bytes made = from_hex("1122334455667788 7f06a30f");
  append(made, body);
  return made;
}

double seconds_to_scan(const Bytes& blob) {
  const auto start = std::chrono::steady_clock::now();
  scan(blob, {});
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("objects are found in noise, at any offset, several in a row") {
  Random random(seed);
  for (int round = 0; round < 100; ++round) {
    INFO("seed " << seed << ", round " << round);
    Bytes blob = random.bytes(random.below(60));
    std::vector<Place> wanted;
    for (int object = 0; object < 12; ++object) {
      if (random.one_in(2)) append(blob, random.bytes(random.below(50)));
      switch (random.below(3)) {
        case 0: {
          const Bytes made = make_sws(random).bytes;
          wanted.push_back({0, blob.size(), made.size()});
          append(blob, made);
          break;
        }
        case 1: {
          const Bytes made = make_anim_set(random, 5);
          wanted.push_back({1, blob.size(), made.size()});
          append(blob, made);
          break;
        }
        default: {
          const Bytes made = make_rr(random).bytes;
          wanted.push_back({2, blob.size() + 12, made.size()});
          append(blob, with_class(made));
        }
      }
    }
    if (random.one_in(2)) append(blob, random.bytes(random.below(50)));
    const Seen seen = scan_all(blob);
    CHECK(seen.places == wanted);
    CHECK(seen.refusals.empty());
    CHECK(seen.summary.objects == wanted.size());
    CHECK_FALSE(seen.summary.stopped);
  }
}

TEST_CASE("a body without a class id is found when it has no events and no arrays") {
  Random random(seed);
  int found = 0;
  for (int round = 0; round < 200; ++round) {
    const RrSample made = make_rr(random);
    Bytes blob = random.bytes(37);
    append(blob, made.bytes);
    append(blob, random.bytes(20));
    const bool fixed =
        made.clip.event_count == 0 && made.clip.halves_251905d9.empty() && made.clip.halves_556e9166.empty();
    const Seen seen = scan_all(blob);
    CHECK(seen.places.size() == (fixed ? 1U : 0U));
    if (!seen.places.empty()) CHECK(seen.places[0] == Place{2, 37, made.bytes.size()});
    found += fixed;
  }
  CHECK(found > 3);
}

TEST_CASE("a broken object is reported with the blob's offset, and the next one is found") {
  Random random(seed);
  int refused = 0;
  for (int round = 0; round < 100; ++round) {
    SwsSample broken = make_sws(random);
    if (broken.tracks.empty()) continue;
    broken.tracks[0].size_word += 1;
    broken.bytes.clear();
    write_sws_animation(broken.bytes, broken.clip, broken.mappings, broken.tracks);
    const SwsSample whole = make_sws(random);
    Bytes blob = random.bytes(9);
    append(blob, broken.bytes);
    const std::size_t second = blob.size();
    append(blob, whole.bytes);
    const Seen seen = scan_all(blob);
    REQUIRE(seen.refusals.size() == 1);
    CHECK(seen.refusals[0].rule == Rule::size_word);
    std::size_t first_track = broken.bytes.size();
    for (const Track& track : broken.tracks) first_track -= track.size();
    CHECK(seen.refusals[0].offset == 9 + first_track + 1);
    CHECK(seen.places == std::vector<Place>{{0, second, whole.bytes.size()}});
    ++refused;
  }
  CHECK(refused > 50);
}

TEST_CASE("an object cut by the blob's end is not found") {
  Random random(seed);
  const Bytes made = make_sws(random).bytes;
  const Bytes body = with_class(make_rr(random).bytes);
  for (std::size_t cut = 1; cut < 40; ++cut) {
    CHECK(scan_all(std::span(made).first(made.size() - cut)).places.empty());
    CHECK(scan_all(std::span(body).first(body.size() - cut)).places.empty());
  }
}

TEST_CASE("an object with two places that read as AnimTrackData is not found") {
  RrAnimation clip;
  const Bytes decoy = from_hex("00 0000000000000000 e8ef8101 00000000 00000000 0000");
  clip.buffer_b832d26f = decoy;
  Bytes body;
  write_rr_animation(body, clip, {}, {});
  const Seen seen = scan_all(with_class(body));
  CHECK(seen.places.empty());
  REQUIRE_FALSE(seen.refusals.empty());
  CHECK(seen.refusals[0].rule == Rule::anchor_unique);
}

TEST_CASE("class ids that open nothing are no objects") {
  Random random(seed);
  constexpr std::size_t size = 64U << 20;
  Bytes blob(size);
  for (std::size_t at = 0; at < size; at += 8) set(blob, at, random.next());
  constexpr std::array<std::uint32_t, 7> ids{
      class_ids::animation, class_ids::anim_track_data, class_ids::mapping,       class_ids::anim_set,
      class_ids::anim_pair, class_ids::ecl_animation,   class_ids::anim_component};
  std::size_t placed = 0;
  for (std::size_t at = 16; at + 4 < size; at += 5 + random.below(60), ++placed) {
    set(blob, at, ids[random.below(ids.size())]);
    if (random.one_in(2)) blob[at - 5] = std::byte{1};
    if (random.one_in(2)) blob[at + 4] = std::byte{1};
  }
  const Seen seen = scan_all(blob);
  CHECK(seen.places.empty());
  CHECK_FALSE(seen.summary.stopped);
  CHECK(seen.summary.class_ids > placed / 4);
  // Linear: an eighth of the blob takes about an eighth of the time. The bound leaves room for a busy machine.
  const Bytes eighth(blob.begin(), blob.begin() + size / 8);
  double small = seconds_to_scan(eighth);
  for (int again = 0; again < 2; ++again) small = std::min(small, seconds_to_scan(eighth));
  const double large = std::min(seconds_to_scan(blob), seconds_to_scan(blob));
  INFO("8 MB in " << small << " s, 64 MB in " << large << " s");
  CHECK(large < 8 * small * 4 + 0.05);
}

TEST_CASE("a scan asks every few megabytes whether to go on") {
  Random random(seed);
  const SwsSample first = make_sws(random);
  const SwsSample last = make_sws(random);
  Bytes blob = first.bytes;
  blob.resize(blob.size() + 5 * scan_window);
  append(blob, last.bytes);
  std::vector<std::size_t> searched;
  std::uint64_t found = 0;
  ScanListener listener;
  listener.found = [&](const FoundObject&) { ++found; };
  listener.keep_going = [&](std::size_t bytes) {
    searched.push_back(bytes);
    return true;
  };
  CHECK(scan(blob, listener).objects == 2);
  CHECK(searched.size() >= 15);  // three class ids
  CHECK(searched.size() <= 21);
  CHECK(std::ranges::is_sorted(searched));
  CHECK(searched.front() < 2 * scan_window);
  CHECK(searched.back() > 4 * scan_window);
  CHECK(searched.back() <= blob.size());

  for (std::size_t most = 0; most < 3; ++most) {
    found = 0;
    std::size_t asked = 0;
    listener.keep_going = [&](std::size_t) { return asked++ < most; };
    const ScanSummary summary = scan(blob, listener);
    CHECK(summary.given_up);
    CHECK_FALSE(summary.stopped);
    CHECK(asked == most + 1);
    CHECK(summary.objects == found);
    CHECK(found < 2);
  }
}

TEST_CASE("a class id across the windows of a scan is found") {
  Random random(seed);
  const Bytes set_bytes = make_anim_set(random, 3);
  const std::size_t id_at = 5;
  for (std::size_t before = 0; before < 6; ++before) {
    Bytes blob(scan_window - id_at - before);
    const Place wanted{1, blob.size(), set_bytes.size()};
    append(blob, set_bytes);
    CHECK(scan_all(blob).places == std::vector<Place>{wanted});
  }
}

TEST_CASE("many objects are asked after as well, though little lies between them") {
  Random random(seed);
  const Bytes one = make_anim_set(random, 400);
  Bytes blob;
  while (blob.size() < 3 * scan_window) append(blob, one);
  std::size_t found = 0;
  ScanListener listener;
  listener.found = [&](const FoundObject&) { ++found; };
  listener.keep_going = [&](std::size_t) { return found == 0; };
  const ScanSummary summary = scan(blob, listener);
  CHECK(summary.given_up);
  CHECK(summary.objects > 0);
  CHECK(summary.objects < blob.size() / one.size());
}

// Every opening leads, over a buffer, to one shared track whose last time does not rise: each proof looks at all its
// times. Without a bound on the work this takes openings × times.
TEST_CASE("a blob made to be looked at again and again stops the scan") {
  constexpr std::size_t openings = 20000;
  Bytes times;
  for (std::uint32_t tick = 1; tick < 0xFFFF; ++tick) {
    times.push_back(std::byte(tick & 0xFF));
    times.push_back(std::byte(tick >> 8));
  }
  times.push_back(std::byte{1});
  times.push_back(std::byte{0});
  const Bytes values(0x10000);
  Track track;
  track.tag = rr_tag(16, TimeForm::u16_ticks);
  track.time_form = TimeForm::u16_ticks;
  track.key_count = 0x10000;
  track.times = times;
  track.values = values;
  RrAnimation clip;
  clip.length = 1.0F;
  const RrMapping mapping;
  Bytes one;
  write_rr_animation(one, clip, {&mapping, 1}, {&track, 1});
  const std::size_t front = one.size() - track.size() - 8;  // the word and count before the track belong to its end
  const Bytes tail(one.begin() + static_cast<std::ptrdiff_t>(front), one.end());
  Bytes opening = with_class(Bytes(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(front)));
  Bytes blob;
  for (std::size_t i = 0; i < openings; ++i) {
    set(opening, opening.size() - 4, static_cast<std::uint32_t>((openings - 1 - i) * opening.size()));
    append(blob, opening);
  }
  append(blob, tail);
  const Seen seen = scan_all(blob);
  CHECK(seen.places.empty());
  REQUIRE(seen.summary.stopped);
  CHECK(seen.summary.stopped->rule == Rule::work);
  CHECK(seen.summary.stopped->offset < blob.size());
  CHECK(seen.refusals.size() > 10);
  CHECK(seen.refusals.size() < openings / 10);
  CHECK(seen.refusals[0].rule == Rule::times_rise);
}

TEST_CASE("a file's format is guessed from its opening") {
  Random random(seed);
  CHECK_FALSE(guess_format({}));
  CHECK(guess_format(make_sws(random).bytes) == FileFormat::sws_animation);
  CHECK(guess_format(make_anim_set(random, 3)) == FileFormat::sws_anim_set);
  CHECK(guess_format(make_rr(random).bytes) == FileFormat::rr_animation);
  CHECK(guess_format(make_mab(random).bytes) == FileFormat::mab);
  CHECK_FALSE(guess_format(from_hex("ff00")));
}

}  // namespace bitwitness::tests
