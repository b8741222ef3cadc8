#include "decoders/quat_xyz_family.hpp"

#include "decoders/bytes.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace bitwitness::decoders::quat_xyz_family {

namespace {

using quat_family::Lanes;

constexpr unsigned w_lane = 3;

std::string_view name_of(Index index) {
  switch (index) {
    case Index::always_w:
      return "always_w";
    case Index::low_first:
      return "low_first";
    case Index::high_first:
      break;
  }
  return "high_first";
}

/// Turns random bits into a number of -1 … 1.
float number_of(std::uint64_t random, unsigned shift) {
  return static_cast<float>(static_cast<double>(random >> shift & 0xFFFFF) / 0x80000 - 1.0);
}

void store(std::span<std::byte> packed, unsigned i, std::uint32_t word) {
  for (unsigned byte = 0; byte < 4; ++byte) packed[4 * i + byte] = static_cast<std::byte>(word >> 8 * byte);
}

/// Scrambles the lowest bits, which hold the index and which plain numbers leave 0.
std::uint32_t scrambled(float number, std::uint64_t random, unsigned i) {
  const auto bits = static_cast<std::uint32_t>(std::rotr(random, 17) * 0x9E3779B97F4A7C15u >> (40 + 8 * i));
  return std::bit_cast<std::uint32_t>(number) ^ (bits & 0xFF);
}

}  // namespace

bool decode(const QuatXyzRule& rule, std::span<const std::byte> packed, std::span<std::uint32_t> words) {
  std::array<std::uint32_t, 3> kept = {load_u32(packed, 0), load_u32(packed, 4), load_u32(packed, 8)};
  unsigned index = w_lane;
  if (rule.index == Index::low_first) index = (kept[0] & 1) | (kept[1] & 1) << 1;
  if (rule.index == Index::high_first) index = (kept[1] & 1) | (kept[0] & 1) << 1;
  if (rule.cleared) {
    kept[0] &= ~1u;
    kept[1] &= ~1u;
  }
  const auto omitted = quat_family::rebuild(rule.root, quat_family::Widest{std::bit_cast<float>(kept[0])},
                                            quat_family::Widest{std::bit_cast<float>(kept[1])},
                                            quat_family::Widest{std::bit_cast<float>(kept[2])});
  if (!omitted) return false;
  quat_family::place(words, rule.lanes, index, *omitted, kept);
  return true;
}

std::vector<QuatXyzRule> enumerate() {
  std::vector<QuatXyzRule> rules;
  for (const quat_family::RootRule& root : quat_family::roots_for({}, false)) {
    rules.push_back({root});
    for (const Index index : {Index::low_first, Index::high_first}) {
      for (const bool cleared : {false, true}) {
        for (const Lanes lanes : {Lanes::insert, Lanes::rotate}) rules.push_back({root, index, cleared, lanes});
      }
    }
  }
  return rules;
}

std::string name_of(const QuatXyzRule& rule) {
  return "quat_xyz/" + std::string(name_of(rule.index)) + (rule.cleared ? "_cleared/" : "/") +
         std::string(quat_family::name_of(rule.lanes)) + '/' + quat_family::name_of(rule.root);
}

std::string sentence_of(const QuatXyzRule& rule) {
  std::string text = "three f32; ";
  if (rule.index == Index::always_w) {
    text += "w omitted";
  } else {
    const bool low_first = rule.index == Index::low_first;
    text += std::string("index low bit the lowest bit of float ") + (low_first ? "0" : "1") + ", high bit of float " +
            (low_first ? "1" : "0") + (rule.cleared ? ", both cleared" : ", both left in place");
  }
  text += "; " + quat_family::sentence_of(rule.root, false);
  if (rule.index != Index::always_w) text += ", " + std::string(quat_family::sentence_of(rule.lanes));
  return text;
}

void draw_finite(std::uint64_t random, std::span<std::byte> packed) {
  for (unsigned i = 0; i < 3; ++i) store(packed, i, scrambled(number_of(random, 20 * i), random, i));
}

void draw_near_unit(const QuatXyzRule& /*rule*/, std::uint64_t random, std::span<std::byte> packed) {
  const auto a = static_cast<double>(number_of(random, 0));
  const double b = static_cast<double>(number_of(random, 20)) * std::sqrt(std::max(0.0, 1.0 - a * a));
  // What is left goes into the third, a little more or less; with random low bits it stays near 1 or lies above.
  const double c = std::sqrt(std::max(0.0, 1.0 - a * a - b * b));
  const std::array<double, 3> numbers = {a, b, (random >> 40 & 1) != 0 ? c : -c};
  const auto turn = static_cast<unsigned>(random >> 41) % 3;
  for (unsigned i = 0; i < 3; ++i) {
    const auto number = static_cast<float>(numbers[(i + turn) % 3]);
    const bool exact = (random >> 44 & 7) != 0;
    store(packed, i,
          exact ? std::bit_cast<std::uint32_t>(number) ^ static_cast<std::uint32_t>(random >> (50 + 2 * i) & 1)
                : scrambled(number, random, i));
  }
}

}  // namespace bitwitness::decoders::quat_xyz_family
