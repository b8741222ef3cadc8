#include "decoders/quat32_family.hpp"

#include "decoders/bytes.hpp"

#include <array>
#include <bit>

namespace bitwitness::decoders::quat32_family {

namespace {

using quat_family::Lanes;

constexpr unsigned component_bits = 10;
constexpr unsigned index_bits = 2;
constexpr unsigned top_index = 3 * component_bits;

/// The lowest bit of component 0, 1 or 2.
unsigned offset_of(const Quat32Rule& rule, unsigned i) {
  return (rule.index_on_top ? 0 : index_bits) + component_bits * (rule.a_on_top ? 2 - i : i);
}

}  // namespace

bool decode(const Quat32Rule& rule, std::span<const std::byte> packed, std::span<std::uint32_t> words) {
  const std::uint32_t bits = load_u32(packed, 0);
  std::array<quat_family::Widest, 3> kept{};
  std::array<std::uint32_t, 3> kept_words{};
  for (unsigned i = 0; i < kept.size(); ++i) {
    const auto code = static_cast<int>(bits >> offset_of(rule, i) & maximum);
    kept[i] = quat_family::component(rule.component, maximum, code);
    kept_words[i] = quat_family::word_of(kept[i]);
  }
  const auto omitted = quat_family::rebuild(rule.root, kept[0], kept[1], kept[2]);
  if (!omitted) return false;
  quat_family::place(words, rule.lanes, rule.index_on_top ? bits >> top_index : bits & 3, *omitted, kept_words);
  return true;
}

std::vector<Quat32Rule> enumerate() {
  std::vector<Quat32Rule> rules;
  for (const quat_family::ComponentRule& component : quat_family::distinct_components(maximum, 0, maximum)) {
    const bool exact = quat_family::sums_exactly(component, maximum, 0, maximum);
    for (const quat_family::RootRule& root : quat_family::roots_for(component, exact)) {
      for (const Lanes lanes : {Lanes::insert, Lanes::rotate}) {
        for (const bool index_on_top : {true, false}) {
          for (const bool a_on_top : {true, false}) rules.push_back({component, root, lanes, index_on_top, a_on_top});
        }
      }
    }
  }
  return rules;
}

std::string name_of(const Quat32Rule& rule) {
  return "quat32/" + quat_family::name_of(rule.component) + '/' + std::string(quat_family::name_of(rule.lanes)) +
         (rule.index_on_top ? "/index30/" : "/index0/") + (rule.a_on_top ? "cba/" : "abc/") +
         quat_family::name_of(rule.root);
}

std::string sentence_of(const Quat32Rule& rule) {
  const bool exact = quat_family::sums_exactly(rule.component, maximum, 0, maximum);
  return "three 10-bit fields, a " + std::string(rule.a_on_top ? "highest" : "lowest") + "; " +
         quat_family::sentence_of(rule.component, maximum) + "; index in bits " +
         (rule.index_on_top ? "30 and 31" : "0 and 1") + "; " + quat_family::sentence_of(rule.root, exact) + ", " +
         std::string(quat_family::sentence_of(rule.lanes));
}

void draw_near_unit(const Quat32Rule& rule, std::uint64_t random, std::span<std::byte> packed) {
  const auto codes = quat_family::codes_near_unit(rule.component, maximum, random);
  const auto index = static_cast<std::uint32_t>(std::rotr(random, 29) * 0x9E3779B97F4A7C15u >> 62);
  std::uint32_t bits = index << (rule.index_on_top ? top_index : 0);
  for (unsigned i = 0; i < codes.size(); ++i) bits |= std::uint32_t{codes[i]} << offset_of(rule, i);
  for (unsigned i = 0; i < packed_size; ++i) packed[i] = static_cast<std::byte>(bits >> 8 * i);
}

}  // namespace bitwitness::decoders::quat32_family
