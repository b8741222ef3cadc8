#include "decoders/evidence.hpp"

#include "decoders/evidence_counts.hpp"
#include "tests/catch.hpp"
#include "tests/evidence_samples.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace bitwitness::tests {
namespace {

using namespace decoders;

constexpr std::uint64_t seed = 0x5eed5a5a11;

constexpr std::size_t many_tracks = 40;
constexpr std::size_t many_keys = 200;

EvidenceResult result_of(Game game, const Reading& reading = {}, std::size_t tracks = many_tracks,
                         std::size_t keys = many_keys) {
  Random random(seed);
  Evidence evidence;
  add_clip(evidence, random, game, reading, tracks, keys);
  return evidence.result();
}

}  // namespace

TEST_CASE("clips made by the seed's readings support them") {
  for (const Game game : {Game::sws, Game::rr}) {
    INFO(name(game));
    const EvidenceResult result = result_of(game);
    const std::size_t at = game == Game::sws ? 0 : 1;
    const IndexOrderEvidence& index = result.index_orders[at];
    CHECK(index.supported == IndexOrder::word_0_low);
    CHECK(index.same.pairs + index.telling.pairs + index.silent.pairs == many_tracks * (many_keys - 1));
    CHECK(index.telling.pairs >= 200);
    CHECK(index.silent.pairs >= 50);
    CHECK(index.telling.near[0] > index.telling.pairs * 9 / 10);
    CHECK(index.telling.near[1] < index.telling.pairs / 4);
    CHECK(index.silent.near[0] == index.silent.near[1]);
    CHECK(index.same.near[0] == index.same.near[1]);
    CHECK(index.same.near[0] > index.same.pairs * 9 / 10);
    for (const IndexPairs& all : {index.same, index.telling, index.silent}) CHECK(all.near[0] <= all.loose[0]);

    const LayoutEvidence& layout = result.layouts[at];
    CHECK(layout.supported == Quat64Layout::ring);
    CHECK(layout.over_unit[0] == 0);
    CHECK(layout.over_unit[1] > 0);
    CHECK(layout.over_unit[2] > 0);
    CHECK(layout.keys == many_tracks * many_keys);
    CHECK(layout.tracks == many_tracks);
    CHECK(layout.median_smallest_dot[0] > 0.98);
    CHECK(layout.median_smallest_dot[1] < 0.5);
    CHECK(layout.median_smallest_dot[2] < 0.5);

    const auto kinds = game == Game::sws ? std::vector<unsigned>{4, 5, 6} : std::vector<unsigned>{3, 4, 5, 8};
    for (const unsigned kind : kinds) {
      INFO("kind " << kind);
      const RotationEvidence& row = row_of(result, game, kind);
      CHECK(row.verdict == Verdict::supported);
      CHECK(row.tracks == many_tracks);
      CHECK(row.keys == many_tracks * many_keys);
      CHECK(row.over_unit == 0);
      CHECK(row.off_unit == 0);
      CHECK(row.not_finite == 0);
      CHECK(row.largest_deviation < 1e-6);
      CHECK(row.tracks_with_pairs == many_tracks);
      CHECK(row.median_smallest_dot > 0.98);
      CHECK(row.median_smallest_dot < 1);
    }
  }
}

TEST_CASE("clips of the other index order support that one") {
  for (const Game game : {Game::sws, Game::rr}) {
    const EvidenceResult result = result_of(game, {.order = IndexOrder::word_1_low});
    const IndexOrderEvidence& index = result.index_orders[game == Game::sws ? 0 : 1];
    CHECK(index.supported == IndexOrder::word_1_low);
    CHECK(index.telling.near[1] > index.telling.pairs * 9 / 10);
    CHECK(index.telling.near[0] < index.telling.pairs / 4);
  }
}

TEST_CASE("each split of kind 8 is told from the others") {
  for (const TranslationSplit split :
       {TranslationSplit::x11_y11_z10, TranslationSplit::x10_y11_z11, TranslationSplit::x11_y10_z11}) {
    const SplitEvidence found = result_of(Game::sws, {.split = split}).split;
    CHECK(found.supported == split);
    CHECK(found.tracks == many_tracks);
    for (std::size_t i = 0; i < 3; ++i) {
      if (i == static_cast<std::size_t>(split)) {
        CHECK(found.median_steps[i] < 150);
      } else {
        CHECK(found.median_steps[i] > 500);
      }
    }
  }
}

TEST_CASE("each layout of kind 5 is told from the others") {
  for (const Game game : {Game::sws, Game::rr}) {
    for (const Quat64Layout layout : {Quat64Layout::ring, Quat64Layout::low_to_high, Quat64Layout::high_to_low}) {
      const EvidenceResult result = result_of(game, {.layout = layout});
      CHECK(result.layouts[game == Game::sws ? 0 : 1].supported == layout);
      CHECK(result.layouts[game == Game::sws ? 1 : 0].keys == 0);
    }
  }
}

TEST_CASE("few keys leave every question undecided") {
  const std::size_t tracks = 3;
  for (const Game game : {Game::sws, Game::rr}) {
    const EvidenceResult result = result_of(game, {}, tracks, 20);
    const std::size_t at = game == Game::sws ? 0 : 1;
    CHECK(result.index_orders[at].same.pairs > 0);
    CHECK_FALSE(result.index_orders[at].supported);
    CHECK(result.layouts[at].tracks == tracks);
    CHECK_FALSE(result.layouts[at].supported);
    CHECK_FALSE(result.split.supported);
    for (const RotationEvidence& row : result.rotations) CHECK(row.verdict == Verdict::undecided);
    for (const BitsEvidence& row : result.bits) CHECK(row.verdict == Verdict::undecided);
    CHECK(result.times.sws_last_keys == Verdict::undecided);
    CHECK(result.times.rr_last_keys == Verdict::undecided);
    CHECK(result.times.rr_size_words == Verdict::undecided);
  }
  const EvidenceResult nothing = Evidence().result();
  CHECK(nothing.rotations.size() == 9);
  CHECK(nothing.bits.size() == 6);
  CHECK_FALSE(nothing.presence.supported);
}

TEST_CASE("an index order is supported from its least pairs on, and by no contradicted count") {
  IndexOrderEvidence evidence;
  evidence.telling = {200, {0, 0}, {100, 50}};
  CHECK(evidence_parts::supported_order(evidence) == IndexOrder::word_0_low);
  evidence.changes[0][1] = {20, {0, 0}, {4, 5}};
  CHECK_FALSE(evidence_parts::supported_order(evidence));
  evidence.changes[0][1].pairs = 19;
  CHECK(evidence_parts::supported_order(evidence) == IndexOrder::word_0_low);
  evidence.telling.loose = {50, 100};
  CHECK(evidence_parts::supported_order(evidence) == IndexOrder::word_1_low);
  evidence.telling.loose = {51, 100};
  CHECK_FALSE(evidence_parts::supported_order(evidence));
  evidence.telling.loose = {0, 99};
  CHECK_FALSE(evidence_parts::supported_order(evidence));
  evidence.telling = {199, {0, 0}, {0, 199}};
  CHECK_FALSE(evidence_parts::supported_order(evidence));
}

TEST_CASE("medians and bounds decide splits and layouts only where they are clear") {
  SplitEvidence split{.tracks = 30, .median_steps = {16, 32, 33}};
  CHECK(evidence_parts::supported_split(split) == TranslationSplit::x11_y11_z10);
  split.median_steps[1] = 31;
  CHECK_FALSE(evidence_parts::supported_split(split));
  split.median_steps = {0, 0, 9};
  CHECK_FALSE(evidence_parts::supported_split(split));
  split = {.tracks = 29, .median_steps = {99, 1, 99}};
  CHECK_FALSE(evidence_parts::supported_split(split));

  LayoutEvidence layout{.tracks = 30, .over_unit = {0, 0, 3}, .median_smallest_dot = {0.9375, 0.875, 0.5}};
  CHECK(evidence_parts::supported_layout(layout) == Quat64Layout::ring);
  layout.over_unit = {1, 10, 9};
  CHECK_FALSE(evidence_parts::supported_layout(layout));
  layout.over_unit = {1, 10, 10};
  CHECK(evidence_parts::supported_layout(layout) == Quat64Layout::ring);
  layout.median_smallest_dot[1] = 0.876;
  CHECK_FALSE(evidence_parts::supported_layout(layout));
  layout = {.tracks = 29, .over_unit = {0, 5, 5}, .median_smallest_dot = {0.9, 0.1, 0.1}};
  CHECK_FALSE(evidence_parts::supported_layout(layout));
}

TEST_CASE("keys beyond unit length are counted, not the ones that reach it") {
  Store store;
  Bytes quat48(6 * 300);  // three components of -0.707: 1.5 beyond
  Bytes quat_xyz_values;
  const float infinity = std::numeric_limits<float>::infinity();
  for (const std::array<float, 3> xyz : {std::array{1.0F, 0.0F, 0.0F}, std::array{0.6F, 0.8F, 0.01F},
                                         std::array{3.0F, 4.0F, 0.0F}, std::array{0.0F, infinity, 0.0F}}) {
    for (const float value : xyz) append(quat_xyz_values, std::bit_cast<std::uint32_t>(value), 4);
  }
  Evidence evidence;
  add_sws(evidence, sws_head(200),
          {track_of(store, 4, 6, Bytes(quat48.begin(), quat48.begin() + 6 * 200)),
           track_of(store, 6, 12, quat_xyz_values)});
  const EvidenceResult result = evidence.result();
  const RotationEvidence& kind_4 = row_of(result, Game::sws, 4);
  CHECK(kind_4.keys == 200);
  CHECK(kind_4.over_unit == 200);
  CHECK(kind_4.off_unit == 200);
  CHECK(std::abs(kind_4.largest_deviation - (std::sqrt(1.5) - 1)) < 1e-6);
  CHECK(kind_4.verdict == Verdict::refuted);
  const RotationEvidence& kind_6 = row_of(result, Game::sws, 6);
  CHECK(kind_6.keys == 4);
  CHECK(kind_6.over_unit == 2);
  CHECK(kind_6.off_unit == 2);
  CHECK(kind_6.not_finite == 1);
  CHECK(kind_6.largest_deviation == 4.0);
  CHECK(kind_6.verdict == Verdict::refuted);

  RotationEvidence row{.keys = 200, .over_unit = 19};
  CHECK(evidence_parts::unit_length_verdict(row) == Verdict::supported);
  row.not_finite = 1;
  CHECK(evidence_parts::unit_length_verdict(row) == Verdict::refuted);
  row = {.keys = 199};
  CHECK(evidence_parts::unit_length_verdict(row) == Verdict::undecided);
  row.off_unit = 1;
  CHECK(evidence_parts::unit_length_verdict(row) == Verdict::refuted);
}

TEST_CASE("a key that rounding puts past unit length is not off by more than the tolerance") {
  const auto row_with = [](float x) {
    Store store;
    Bytes values;
    for (int key = 0; key < 250; ++key) {
      for (const float value : {key == 0 ? x : 0.6F, 0.0F, 0.0F})
        append(values, std::bit_cast<std::uint32_t>(value), 4);
    }
    Evidence evidence;
    add_sws(evidence, sws_head(250), {track_of(store, 6, 12, values)});
    return row_of(evidence.result(), Game::sws, 6);
  };
  const RotationEvidence rounded = row_with(1.0000005F);
  CHECK(rounded.over_unit == 1);
  CHECK(rounded.off_unit == 0);
  CHECK(rounded.largest_deviation > 4e-7);
  CHECK(rounded.verdict == Verdict::supported);
  const RotationEvidence off = row_with(1.0000015F);
  CHECK(off.over_unit == 1);
  CHECK(off.off_unit == 1);
  CHECK(off.verdict == Verdict::refuted);
}

TEST_CASE("bits that should be zero are counted key by key") {
  Random random(seed);
  Store store;
  Bytes kind_4 = values_of(random, Game::rr, 4, many_keys, {});
  Bytes kind_5 = values_of(random, Game::rr, 5, many_keys, {});
  Bytes kind_7 = values_of(random, Game::rr, 7, many_keys, {});
  const auto result = [&] {
    Evidence evidence;
    add_rr(evidence, rr_head(many_keys),
           {track_of(store, 4, 6, kind_4), track_of(store, 5, 8, kind_5), track_of(store, 7, 2, kind_7)});
    return evidence.result();
  };
  for (const std::string_view name : {"rr kind 4 word two bit 15", "rr kind 5 bits 28-29"}) {
    CHECK(bits_of(result(), name) == BitsEvidence{name, true, many_keys, 0, Verdict::supported});
    CHECK(bits_of(result(), "sws" + std::string(name.substr(2))).checked == 0);
  }
  CHECK(bits_of(result(), "rr kind 7 bit 15").checked == many_keys);
  kind_4[6 * 7 + 5] |= std::byte{0x80};
  kind_5[8 * 9 + 3] |= std::byte{0x10};
  kind_5[8 * 10 + 3] |= std::byte{0x20};
  kind_7[1] |= std::byte{0x80};
  CHECK(bits_of(result(), "rr kind 4 word two bit 15").set == 1);
  CHECK(bits_of(result(), "rr kind 4 word two bit 15").verdict == Verdict::refuted);
  CHECK(bits_of(result(), "rr kind 5 bits 28-29").set == 2);
  CHECK(bits_of(result(), "rr kind 7 bit 15").set == 1);
  CHECK(bits_of(result(), "rr kind 7 bit 15").verdict == Verdict::undecided);
  CHECK(row_of(result(), Game::rr, 7).verdict == Verdict::undecided);
}

TEST_CASE("times and open words are summed over clips") {
  Random random(seed);
  Store store;
  std::vector<Track> tracks;
  for (std::size_t i = 0; i < 30; ++i) tracks.push_back(track_of(store, 8, 4, random.bytes(4 * 5)));
  tracks.push_back(track_of(store, 8, 4, random.bytes(4)));
  Evidence sws;
  SwsAnimation head = sws_head(5);
  add_sws(sws, head, tracks);
  CHECK(sws.result().times.sws_tracks == 30);
  CHECK(sws.result().times.sws_last_keys == Verdict::supported);
  CHECK(sws.result().times.sws_other_layout_words == 0);
  head.layout_word = 5;
  add_sws(sws, head, {track_of(store, 8, 4, random.bytes(4 * 6))});
  CHECK(sws.result().times.sws_clips == 2);
  CHECK(sws.result().times.sws_stray_last_keys == 1);
  CHECK(sws.result().times.sws_other_layout_words == 1);
  CHECK(sws.result().times.sws_last_keys == Verdict::undecided);
  add_sws(sws, head, {track_of(store, 8, 4, random.bytes(4 * 6))});
  CHECK(sws.result().times.sws_last_keys == Verdict::refuted);

  for (Track& track : tracks) {
    track.kind = 16;
    track.width = 1;
    track.values = track.values.first(track.key_count);
  }
  Evidence rr;
  add_rr(rr, rr_head(5), tracks, 3);
  CHECK(rr.result().times.rr_least_size_distance == 3);
  CHECK(rr.result().times.rr_greatest_size_distance == 3);
  CHECK(rr.result().times.rr_last_keys == Verdict::supported);
  CHECK(rr.result().times.rr_size_words == Verdict::supported);
  add_rr(rr, rr_head(2), {tracks[0]}, 9);
  Track mask = tracks[0];
  mask.time_form = TimeForm::mask;
  mask.mask_marker = 0xC1;
  mask.times = store.keep(Bytes{std::byte{0x1F}});
  add_rr(rr, rr_head(9), {mask}, 4);
  add_rr(rr, rr_head(9), {});
  const TimesEvidence times = rr.result().times;
  CHECK(times.rr_clips == 4);
  CHECK(times.rr_tracks == 33);
  CHECK(times.rr_late_last_keys == 1);
  CHECK(times.rr_last_keys == Verdict::refuted);
  CHECK(times.rr_size_words == Verdict::refuted);
  CHECK(times.rr_far_size_words == 1);
  CHECK(times.rr_least_size_distance == 3);
  CHECK(times.rr_greatest_size_distance == 9);
  CHECK(times.rr_mask_marker_tracks == std::array<std::uint64_t, 4>{0, 0, 0, 1});
}

TEST_CASE("a median is the lower one of two") {
  const auto median = [](std::initializer_list<std::size_t> values) {
    evidence_parts::Histogram histogram(10);
    for (const std::size_t value : values) histogram.add(value);
    return histogram.median();
  };
  CHECK(median({}) == 0);
  CHECK(median({7}) == 7);
  CHECK(median({8, 3}) == 3);
  CHECK(median({1, 9, 5}) == 5);
  CHECK(median({1, 2, 4, 9}) == 2);
  CHECK(median({99, 99, 1}) == 9);
}

TEST_CASE("parts merged in any order and grouping give what one gathers alone") {
  constexpr std::size_t count = 6;
  const auto add = [](Evidence& evidence, std::size_t part) {
    Random random(seed + part);
    if (part % 3 == 0) add_clip(evidence, random, Game::sws, {}, 3, 10 + 20 * part);
    if (part % 3 == 1) add_clip(evidence, random, Game::rr, {}, 2, 10 + 20 * part);
    if (part == 0) {
      Store store;
      Bytes values;
      for (int i = 0; i < 3; ++i) append(values, 0x7F800000, 4);
      add_sws(evidence, sws_head(1), {track_of(store, 6, 12, values)});
    }
    if (part % 3 == 2) add_mab(evidence, random, {.falling = part == 5, .whole_group = part == 2}, 5, 4);
    const RrSample rr = make_rr(random);
    evidence.add(*read_rr_animation(rr.bytes));
    const SwsSample sws = make_sws(random);
    evidence.add(*read_sws_animation(sws.bytes));
  };
  Evidence alone;
  for (std::size_t part = 0; part < count; ++part) add(alone, part);
  const EvidenceResult expected = alone.result();
  CHECK(row_of(expected, Game::sws, 6).not_finite > 0);
  CHECK(expected.presence.falling_nearer > 0);
  CHECK(expected.times.rr_least_size_distance < expected.times.rr_greatest_size_distance);

  std::array<std::size_t, count> order{0, 1, 2, 3, 4, 5};
  do {
    Evidence left;
    Evidence right;
    for (std::size_t i = 0; i < count; ++i) add(i % 2 == 0 ? left : right, order[i]);
    Evidence sum = left;
    sum.merge(right);
    right.merge(left);
    CHECK(sum.result() == expected);
    CHECK(right.result() == expected);
  } while (std::next_permutation(order.begin(), order.begin() + 4));
  alone.merge(alone);
  CHECK(alone.result().presence.keys == 2 * expected.presence.keys);
}

}  // namespace bitwitness::tests
