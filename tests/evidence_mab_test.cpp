#include "decoders/encode.hpp"
#include "decoders/evidence.hpp"
#include "decoders/evidence_counts.hpp"
#include "tests/catch.hpp"
#include "tests/evidence_samples.hpp"

#include <array>
#include <cmath>
#include <vector>

namespace bitwitness::tests {
namespace {

using namespace decoders;

constexpr std::uint64_t seed = 0x5eed5a5a12;

EvidenceResult mab_result(const MabReading& reading, std::size_t tracks = 60, std::size_t groups = 12) {
  Random random(seed);
  Evidence evidence;
  add_mab(evidence, random, reading, tracks, groups);
  return evidence.result();
}

// One track with keys at frames 0, 2, 4 and 8 of a turn about x, in degrees of a quaternion's angle and per frame.
PresenceEvidence turn(double start, double step) {
  const auto keys = [&](std::vector<double> frames) {
    Bytes bytes;
    for (const double frame : frames) {
      const double angle = (start + step * frame) * 3.14159265358979 / 180;
      const auto key =
          dunia_quat48::encode({static_cast<float>(std::cos(angle)), static_cast<float>(-std::sin(angle)), 0, 0});
      bytes.insert(bytes.end(), key.begin(), key.end());
    }
    return bytes;
  };
  MabSample made;
  made.clip.track_count = 1;
  made.clip.last_frame = 8;
  made.groups.resize(2);
  for (MabGroup& group : made.groups) group.padding = made.store.keep(Bytes(1));
  made.groups[0].first_keys = made.store.keep(keys({0}));
  made.groups[0].presence = made.store.keep(Bytes{std::byte{0x0A}});  // frames 2 and 4, or 4 and 6
  made.groups[0].later_keys = made.store.keep(keys({2, 4}));
  made.groups[1].first_keys = made.store.keep(keys({8}));
  made.groups[1].presence = made.store.keep(Bytes(1));
  Evidence evidence;
  add_groups(evidence, made);
  return evidence.result().presence;
}

}  // namespace

TEST_CASE("the presence bits' order is told by what frames predict and by keys past the end") {
  for (const PresenceOrder order : {PresenceOrder::low_bit_first, PresenceOrder::high_bit_first}) {
    const auto own = static_cast<std::size_t>(order);
    for (const bool whole_group : {true, false}) {
      INFO("order " << own << ", whole group " << whole_group);
      const EvidenceResult result = mab_result({.order = order, .whole_group = whole_group});
      CHECK(result.presence.supported == order);
      CHECK(result.presence.keys_past_end[own] == 0);
      CHECK((result.presence.keys_past_end[1 - own] == 0) == whole_group);
      CHECK(result.presence.nearer[own] > 9 * result.presence.nearer[1 - own]);
      CHECK(result.presence.rising == Verdict::supported);
      const RotationEvidence& row = row_of(result, Game::mab, 0);
      CHECK(row.keys == result.presence.keys);
      CHECK(row.over_unit == 0);
      CHECK(row.verdict == Verdict::supported);
      CHECK(bits_of(result, "mab presence bit 7").checked == 60 * 12);
      CHECK(bits_of(result, "mab presence bit 7").set == 0);
    }
  }
}

TEST_CASE("keys stored in falling time refute rising time and predict nothing") {
  const PresenceEvidence falling = mab_result({.falling = true}, 100, 12).presence;
  CHECK(falling.rising == Verdict::refuted);
  CHECK(falling.nearer[0] + falling.nearer[1] >= 500);
  CHECK_FALSE(falling.supported);
  const PresenceEvidence few = mab_result({}, 3, 3).presence;
  CHECK(few.rising == Verdict::undecided);
  CHECK(few.nearer[0] > 0);
  CHECK_FALSE(few.supported);
}

TEST_CASE("keys of the other sign are the same rotations") {
  // A turn across 45 degrees, where the component that is left out changes and with it the sign of the others.
  const PresenceEvidence slow = turn(42, 1.25);
  CHECK(slow.nearer == std::array<std::uint64_t, 2>{2, 0});
  CHECK(slow.rising_nearer == 1);
  CHECK(slow.falling_nearer == 0);
}

TEST_CASE("neighbours that have hardly moved, or too far, predict nothing") {
  constexpr std::array<std::uint64_t, 2> nothing{0, 0};
  CHECK(turn(20, 0.03).nearer == nothing);
  CHECK(turn(20, 0.5).nearer != nothing);
  CHECK(turn(20, 10).nearer == nothing);
}

TEST_CASE("later keys of a last group join nothing") {
  CHECK(mab_result({}, 60, 1).presence.rising_nearer == 0);
  CHECK(mab_result({.falling = true}, 60, 1).presence.falling_nearer == 0);
}

TEST_CASE("contradicting signs leave the presence bits' order undecided") {
  const auto supported = [](std::array<std::uint64_t, 2> past_end, std::array<std::uint64_t, 2> nearer) {
    PresenceEvidence presence;
    presence.keys_past_end = past_end;
    presence.nearer = nearer;
    evidence_parts::decide(presence);
    return presence.supported;
  };
  CHECK(supported({2, 20}, {0, 0}) == PresenceOrder::low_bit_first);
  CHECK_FALSE(supported({0, 19}, {0, 0}));
  CHECK_FALSE(supported({3, 29}, {0, 0}));
  CHECK(supported({20, 0}, {0, 0}) == PresenceOrder::high_bit_first);
  CHECK(supported({0, 0}, {300, 200}) == PresenceOrder::low_bit_first);
  CHECK_FALSE(supported({0, 0}, {299, 201}));
  CHECK_FALSE(supported({0, 0}, {499, 0}));
  CHECK_FALSE(supported({0, 20}, {200, 300}));
  CHECK(supported({20, 0}, {200, 300}) == PresenceOrder::high_bit_first);
}

TEST_CASE("a .mab key that its decoder makes a NaN is over unit length") {
  MabSample made;
  Random random(seed);
  Evidence evidence;
  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < 20; ++i) {
    made = make_mab(random);
    const auto clip = read_mab(made.bytes, made.options);
    REQUIRE(clip);
    evidence.add(*clip);
    for_each_key(*clip, PresenceOrder::low_bit_first, [&](std::uint32_t, std::uint32_t, auto key) {
      std::array<std::uint32_t, 4> words{};
      dunia_quat48::decode(key, words);
      for (const std::uint32_t word : words) expected += static_cast<std::uint64_t>(word == dunia_quat48::default_nan);
    });
  }
  const EvidenceResult result = evidence.result();
  const RotationEvidence& row = row_of(result, Game::mab, 0);
  CHECK(expected > 0);
  CHECK(row.over_unit == expected);
  CHECK(row.largest_deviation > 0.1);
  CHECK(bits_of(result, "mab presence bit 7").set > 0);
  CHECK(row.verdict == Verdict::refuted);
}

}  // namespace bitwitness::tests
