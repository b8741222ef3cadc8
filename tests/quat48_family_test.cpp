// The families of rules: their named members are the decoders, and each choice does what its name says.

#include "decoders/quat48_family.hpp"

#include "decoders/dunia_quat48.hpp"
#include "decoders/packed_quat32.hpp"
#include "decoders/packed_quat48.hpp"
#include "decoders/quat32_family.hpp"
#include "decoders/quat_xyz.hpp"
#include "decoders/quat_xyz_family.hpp"
#include "tests/catch.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <set>
#include <string>
#include <vector>

using namespace bitwitness::decoders;
using namespace bitwitness::decoders::quat_family;
using quat48_family::Quat48Rule;
using quat48_family::Spare;

namespace {

using Words = std::array<std::uint32_t, 4>;
constexpr Words untouched = {0x11111111, 0x22222222, 0x33333333, 0x44444444};

/// The n-th of a fixed sequence of numbers.
std::uint64_t mixed(std::uint64_t n) {
  n *= 0x9E3779B97F4A7C15u;
  n = (n ^ (n >> 30)) * 0xBF58476D1CE4E5B9u;
  n = (n ^ (n >> 27)) * 0x94D049BB133111EBu;
  return n ^ (n >> 31);
}

template <std::size_t Size>
std::array<std::byte, Size> bytes_of(std::uint64_t low, std::uint64_t high = 0) {
  std::array<std::byte, Size> bytes{};
  for (std::size_t i = 0; i < Size; ++i)
    bytes[i] = static_cast<std::byte>((i < 8 ? low >> 8 * i : high >> 8 * (i - 8)));
  return bytes;
}

std::array<std::byte, 6> key(unsigned first, unsigned second, unsigned third) {
  return bytes_of<6>(first | std::uint64_t{second} << 16 | std::uint64_t{third} << 32);
}

/// What a rule gives; the words are untouched where it refuses.
Words decoded(const Quat48Rule& rule, std::span<const std::byte> packed) {
  Words words = untouched;
  const bool gives = quat48_family::decode(rule, packed, words);
  if (gives != (words != untouched)) FAIL("a result, and the words untouched, or the other way round");
  return words;
}

float f32(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}

/// Counts the values near the unit sphere on which two rules differ.
unsigned count_differing(const Quat48Rule& a, const Quat48Rule& b, unsigned draws) {
  std::array<std::byte, 6> packed{};
  unsigned differing = 0;
  for (unsigned i = 0; i < draws; ++i) {
    quat48_family::draw_near_unit(a, mixed(i), packed);
    Words first = untouched;
    Words second = untouched;
    quat48_family::decode(a, packed, first);
    quat48_family::decode(b, packed, second);
    if (first != second) ++differing;
  }
  return differing;
}

/// Members that differ in how the omitted component is rebuilt.
Quat48Rule rebuilt_by(const ComponentRule& component, const RootRule& root) {
  Quat48Rule rule;
  rule.component = component;
  rule.root = root;
  return rule;
}

/// Compares a rule with a decoder on random values and on values near the unit sphere.
template <std::size_t Size, typename Rule, typename Decode, typename Draw>
std::size_t count_differences(const Rule& rule, Decode decode_natively, Draw draw, bool any_bits) {
  std::size_t differences = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    std::array<std::byte, Size> packed = bytes_of<Size>(mixed(2 * i), mixed(2 * i + 1));
    if (!any_bits || i % 2 == 0) draw(mixed(i), packed);
    Words own = untouched;
    Words native = untouched;
    if (!decode(rule, packed, own)) ++differences;
    decode_natively(packed, native);
    differences += static_cast<std::size_t>(own != native);
  }
  return differences;
}

}  // namespace

TEST_CASE("the seeds' rules are the decoders, bit for bit") {
  const auto near48 = [](std::uint64_t random, std::span<std::byte> packed) {
    quat48_family::draw_near_unit(quat48_family::seed_rule, random, packed);
  };
  const auto near32 = [](std::uint64_t random, std::span<std::byte> packed) {
    quat32_family::draw_near_unit(quat32_family::seed_rule, random, packed);
  };
  const auto near_xyz = [](std::uint64_t random, std::span<std::byte> packed) {
    quat_xyz_family::draw_near_unit(quat_xyz_family::seed_rule, random, packed);
  };
  CHECK(count_differences<6>(quat48_family::seed_rule, packed_quat48::decode, near48, true) == 0);
  CHECK(count_differences<6>(quat48_family::dunia_rule, dunia_quat48::decode, near48, true) == 0);
  CHECK(count_differences<4>(quat32_family::seed_rule, packed_quat32::decode, near32, true) == 0);
  CHECK(count_differences<12>(quat_xyz_family::seed_rule, quat_xyz::decode, near_xyz, false) == 0);
  CHECK(count_differences<12>(quat_xyz_family::seed_rule, quat_xyz::decode, quat_xyz_family::draw_finite, false) == 0);
  std::size_t differences = 0;
  for (unsigned code = 0; code < 0x10000; ++code) {
    const auto packed = key(code, 0x4000, code);
    Words native{};
    packed_quat48::decode(packed, native);
    differences += static_cast<std::size_t>(native != decoded(quat48_family::seed_rule, packed));
    dunia_quat48::decode(packed, native);
    differences += static_cast<std::size_t>(native != decoded(quat48_family::dunia_rule, packed));
  }
  CHECK(differences == 0);
}

TEST_CASE("the index inserts or rotates, from any two words") {
  constexpr std::uint32_t a = 0xBF018814;  // 1234
  constexpr std::uint32_t b = 0x3E7E3C18;  // 5678
  constexpr std::uint32_t c = 0xBEA2849B;  // 2345
  constexpr std::uint32_t r = 0x3F433AF1;
  const Quat48Rule insert;
  Quat48Rule rotate;
  rotate.lanes = Lanes::rotate;
  const std::array packed = {key(0x1234, 0x5678, 0x2345), key(0x9234, 0x5678, 0x2345), key(0x1234, 0xD678, 0x2345),
                             key(0x9234, 0xD678, 0x2345)};
  const std::array<Words, 4> inserted = {{{r, a, b, c}, {a, r, b, c}, {a, b, r, c}, {a, b, c, r}}};
  const std::array<Words, 4> rotated = {{{r, a, b, c}, {c, r, a, b}, {b, c, r, a}, {a, b, c, r}}};
  for (std::size_t i = 0; i < packed.size(); ++i) {
    CHECK(decoded(insert, packed[i]) == inserted[i]);
    CHECK(decoded(rotate, packed[i]) == rotated[i]);
  }
  // With the low bit in `low` alone set, the omitted one is y; with the high bit alone, z.
  for (unsigned low = 0; low < 3; ++low) {
    for (unsigned high = 0; high < 3; ++high) {
      if (low == high) continue;
      Quat48Rule rule;
      rule.low_word = static_cast<std::uint8_t>(low);
      rule.high_word = static_cast<std::uint8_t>(high);
      std::array<unsigned, 3> words = {0x1234, 0x5678, 0x2345};
      words[low] |= 0x8000;
      CHECK(decoded(rule, key(words[0], words[1], words[2])) == inserted[1]);
      words[low] ^= 0x8000;
      words[high] |= 0x8000;
      CHECK(decoded(rule, key(words[0], words[1], words[2])) == inserted[2]);
      words[3 - low - high] |= 0x8000;  // the spare word is masked
      CHECK(decoded(rule, key(words[0], words[1], words[2])) == inserted[2]);
    }
  }
}

TEST_CASE("the spare word's bit 15 is masked, part of the code, or a sign") {
  Quat48Rule rule;
  const auto plain = key(0x1234, 0x5678, 0x2345);
  const auto marked = key(0x1234, 0x5678, 0xA345);
  CHECK(decoded(rule, marked) == decoded(rule, plain));
  rule.spare = Spare::negates;
  const Words positive = decoded(rule, plain);
  CHECK(decoded(rule, marked) == Words{positive[0] ^ 0x80000000, positive[1], positive[2], positive[3]});
  rule.spare = Spare::is_signed;
  CHECK(decoded(rule, plain) == positive);
  CHECK(f32(decoded(rule, key(0x1234, 0x5678, 0xFFFF))[3]) == -1 * packed_quat48::component(0) * -1 - 0x1.6a0cbap-15f);
  rule.spare = Spare::is_wide;
  CHECK(f32(decoded(rule, marked)[3]) == packed_quat48::component(0xA345));
}

TEST_CASE("squares above 1 give 0, NaN, the root of the absolute value, or no result") {
  const auto packed = key(0, 0, 0);  // 1 - 3/2
  Quat48Rule rule;
  CHECK(decoded(rule, packed)[0] == 0);
  rule.root.negative = Negative::nan;
  CHECK(decoded(rule, packed)[0] == 0xFFC00000);
  rule.root.negative = Negative::absolute;
  CHECK(std::fabs(f32(decoded(rule, packed)[0]) - 0.70710678F) < 1e-6F);
  rule.root.negative = Negative::refused;
  CHECK(decoded(rule, packed) == untouched);
  rule.root.negative = Negative::nan;
  rule.spare = Spare::negates;
  CHECK(decoded(rule, key(0, 0, 0x8000))[0] == 0x7FC00000);
}

TEST_CASE("scales and constants") {
  const auto bits = [](Scale scale, Half half, Width width, int code, int maximum = 32767) {
    return word_of(component({scale, half, width, false}, maximum, code));
  };
  // Worked out with other tools: code 0 is minus the half range; the middle and the end tell the steps apart.
  CHECK(bits(Scale::step_f32, Half::below, Width::f32, 0) == 0xBF3504F3);
  CHECK(bits(Scale::step_f32, Half::above, Width::f32, 0) == 0xBF3504F4);
  CHECK(bits(Scale::step_f32, Half::f64, Width::f64, 0) == 0xBF3504F3);
  CHECK(bits(Scale::step_f32, Half::below, Width::f32, 0x1234) == 0xBF018814);
  for (const Scale centred : {Scale::centred_quotient, Scale::centred_product, Scale::centred_power}) {
    CHECK(bits(centred, Half::below, Width::f32, 16383) == 0);
  }
  CHECK(bits(Scale::centred_quotient, Half::below, Width::f64, 0) == 0xBF3504F3);
  CHECK(f32(bits(Scale::step_power, Half::below, Width::f32, 32767)) < 0.70709F);
  CHECK(f32(bits(Scale::step_f32, Half::below, Width::f32, 32767)) > 0.7071F);
  CHECK(f32(bits(Scale::centred_power, Half::below, Width::f32, 32767)) == 16384 * 0x1.6a09e6p-15F);
  CHECK(bits(Scale::exact, Half::f64, Width::f64, 32767) == 0x3F3504F3);
  CHECK(bits(Scale::step_f32, Half::below, Width::f32, 512, 1023) ==
        std::bit_cast<std::uint32_t>(packed_quat32::component(512)));
  // A step of sqrt(2)/1024 (0x3AB504F3) times 512 is half the range exactly.
  CHECK(bits(Scale::step_power, Half::below, Width::f32, 512, 1023) == 0);
  // Product in double and rounded, or in f32: the same for a step that is an f32, not for one in double.
  CHECK(bits(Scale::step_f64, Half::below, Width::f32, 0x7FFF) ==
        word_of(static_cast<Widest>(static_cast<float>(32767 * (0x1.6a09e667f3bcdp0 / 32767)) - 0x1.6a09e6p-1F)));
}

TEST_CASE("f32 steps of the seed sum exactly: no order or width of the sum differs") {
  const ComponentRule seed;
  CHECK(sums_exactly(seed, 32767, -32768, 65535));
  CHECK_FALSE(sums_exactly({Scale::centred_quotient, Half::below, Width::f32, false}, 32767, 0, 32767));
  CHECK_FALSE(sums_exactly({Scale::step_f32, Half::below, Width::f64, true}, 32767, 0, 32767));
  for (const RootRule& root : roots_for(seed, false)) {
    if (root.negative != Negative::zero || root.width == Width::f32 || root.narrowed) continue;
    INFO(name_of(root));
    CHECK(count_differing(quat48_family::seed_rule, rebuilt_by(seed, root), 20'000) == 0);
  }
}

TEST_CASE("every way of rebuilding that is enumerated is a function of its own") {
  for (const ComponentRule& component :
       {ComponentRule{}, ComponentRule{Scale::step_f32, Half::below, Width::f64, true}}) {
    std::vector<RootRule> roots;
    for (const RootRule& root : roots_for(component, sums_exactly(component, 32767, 0, 32767))) {
      if (root.negative == Negative::zero) roots.push_back(root);
    }
    REQUIRE(roots.size() > 10);
    for (std::size_t i = 0; i < roots.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        INFO(name_of(roots[i]) << " and " << name_of(roots[j]));
        CHECK(count_differing(rebuilt_by(component, roots[i]), rebuilt_by(component, roots[j]), 4'000) > 0);
      }
    }
  }
}

TEST_CASE("what is enumerated is distinct, named and complete") {
  const std::vector<Quat48Rule> rules = quat48_family::enumerate();
  CHECK(rules.size() > 100'000);
  CHECK(std::ranges::count(rules, quat48_family::seed_rule) == 1);
  CHECK(std::ranges::count(rules, quat48_family::dunia_rule) == 1);
  std::set<std::string> names;
  std::set<std::string> sentences;
  const std::vector<ComponentRule> all_components = distinct_components(32767, 0, 32767);
  for (const ComponentRule& component : all_components) {
    names.insert(name_of(component));
    sentences.insert(sentence_of(component, 32767));
  }
  CHECK(names.size() == all_components.size());
  CHECK(sentences.size() == all_components.size());
  names.clear();
  sentences.clear();
  for (const RootRule& root : roots_for({}, false)) {
    names.insert(name_of(root));
    sentences.insert(sentence_of(root, false));
  }
  CHECK(names.size() == roots_for({}, false).size());
  CHECK(sentences.size() == names.size());
  names.clear();
  sentences.clear();
  for (std::size_t i = 0; i < rules.size(); i += 97) {
    names.insert(quat48_family::name_of(rules[i]));
    sentences.insert(quat48_family::sentence_of(rules[i]));
  }
  CHECK(names.size() == (rules.size() + 96) / 97);
  CHECK(sentences.size() == names.size());
  CHECK(quat48_family::name_of(quat48_family::seed_rule) ==
        "quat48/step_f32.3f3504f3.f32/masked/insert/index01/zero.minus_abc.f64");
  CHECK(quat48_family::sentence_of(quat48_family::dunia_rule) ==
        "three 15-bit words; components v * f32(sqrt2/32767) - 3f3504f3 in f32; word 2 signed and unmasked; index low "
        "bit in word 0, high bit in word 1; omitted one the root of 1-aa-bb-cc, exact in any order, in double, NaN "
        "where that is "
        "negative, inserted at its index");
  CHECK(std::ranges::count(quat32_family::enumerate(), quat32_family::seed_rule) == 1);
  CHECK(std::ranges::count(quat_xyz_family::enumerate(), quat_xyz_family::seed_rule) == 1);

  // Rules that give every code the same component are one: centred_power in double is exact, as in f32.
  const std::vector<ComponentRule> components = distinct_components(32767, 0, 32767);
  CHECK(std::ranges::count(components, ComponentRule{Scale::centred_power, Half::below, Width::f32, false}) == 1);
  CHECK(std::ranges::count(components, ComponentRule{Scale::centred_power, Half::below, Width::f64, false}) == 0);
  for (std::size_t i = 0; i < components.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (components[i].kept || components[j].kept) continue;
      bool apart = false;
      for (int code = 0; !apart && code <= 32767; ++code) {
        apart = component(components[i], 32767, code) != component(components[j], 32767, code);
      }
      CHECK(apart);
    }
  }
}

TEST_CASE("members of the families of 10-bit components and of floats") {
  const auto ten = [](const quat32_family::Quat32Rule& rule, std::uint32_t bits) {
    Words words = untouched;
    REQUIRE(quat32_family::decode(rule, bytes_of<4>(bits), words));
    return words;
  };
  const auto component_of = [](int code) { return std::bit_cast<std::uint32_t>(packed_quat32::component(code)); };
  const std::uint32_t fields = 300U << 20 | 400U << 10 | 500U;
  const Words high = ten({}, fields | 1U << 30);
  CHECK(high[0] == component_of(300));
  CHECK(high[2] == component_of(400));
  CHECK(high[3] == component_of(500));
  quat32_family::Quat32Rule lowest;
  lowest.index_on_top = false;
  lowest.a_on_top = false;
  const Words low = ten(lowest, fields << 2 | 1U);
  CHECK(low == Words{high[3], low[1], high[2], high[0]});

  quat_xyz_family::QuatXyzRule rule;
  const auto three = [&rule](std::uint32_t x, std::uint32_t y, std::uint32_t z) {
    Words words = untouched;
    REQUIRE(quat_xyz_family::decode(rule, bytes_of<12>(x | std::uint64_t{y} << 32, z), words));
    return words;
  };
  constexpr std::uint32_t half = 0x3F000000;
  CHECK(three(half, half, half) == Words{half, half, half, half});
  rule.index = quat_xyz_family::Index::low_first;
  CHECK(three(half | 1, half, 0)[0] == (half | 1));
  CHECK(three(half | 1, half, 0)[2] == half);
  CHECK(three(half, half | 1, 0)[1] == (half | 1));
  CHECK(three(half, half | 1, 0)[3] == 0);
  rule.cleared = true;
  CHECK(three(half, half | 1, 0)[1] == half);
  rule.index = quat_xyz_family::Index::high_first;
  CHECK(three(half, half | 1, 0) == Words{half, three(half, half | 1, 0)[1], half, 0});
}
