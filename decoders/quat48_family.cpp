#include "decoders/quat48_family.hpp"

#include "decoders/bytes.hpp"

#include <array>
#include <bit>

namespace bitwitness::decoders::quat48_family {

namespace {

using quat_family::Lanes;

constexpr unsigned word_bit = 15;
constexpr std::uint32_t sign_bit = 0x80000000u;

unsigned spare_word(const Quat48Rule& rule) {
  return 3u - rule.low_word - rule.high_word;
}

int code_of(std::uint16_t word, bool is_spare, Spare spare) {
  if (is_spare && spare == Spare::is_signed) return static_cast<std::int16_t>(word);
  if (is_spare && spare == Spare::is_wide) return word;
  return word & maximum;
}

std::string_view name_of(Spare spare) {
  switch (spare) {
    case Spare::masked:
      return "masked";
    case Spare::is_signed:
      return "signed";
    case Spare::is_wide:
      return "unsigned";
    case Spare::negates:
      break;
  }
  return "negates";
}

std::string sentence_of(Spare spare, unsigned word) {
  const std::string text = "word " + std::to_string(word);
  switch (spare) {
    case Spare::masked:
      return text + " masked";
    case Spare::is_signed:
      return text + " signed and unmasked";
    case Spare::is_wide:
      return text + " unsigned and unmasked";
    case Spare::negates:
      break;
  }
  return text + "'s bit 15 the sign of the omitted one";
}

/// The range of codes that a treatment gives.
std::array<int, 2> codes_of(Spare spare) {
  if (spare == Spare::is_signed) return {-maximum - 1, maximum};
  if (spare == Spare::is_wide) return {0, 2 * maximum + 1};
  return {0, maximum};
}

}  // namespace

bool decode(const Quat48Rule& rule, std::span<const std::byte> packed, std::span<std::uint32_t> words) {
  const std::array<std::uint16_t, 3> stored = {load_u16(packed, 0), load_u16(packed, 2), load_u16(packed, 4)};
  const unsigned spare = spare_word(rule);
  std::array<quat_family::Widest, 3> kept{};
  std::array<std::uint32_t, 3> kept_words{};
  for (unsigned i = 0; i < stored.size(); ++i) {
    kept[i] = quat_family::component(rule.component, maximum, code_of(stored[i], i == spare, rule.spare));
    kept_words[i] = quat_family::word_of(kept[i]);
  }
  auto omitted = quat_family::rebuild(rule.root, kept[0], kept[1], kept[2]);
  if (!omitted) return false;
  if (rule.spare == Spare::negates && stored[spare] >> word_bit != 0) *omitted ^= sign_bit;
  const unsigned index = static_cast<unsigned>(stored[rule.low_word] >> word_bit) |
                         static_cast<unsigned>(stored[rule.high_word] >> word_bit) << 1;
  quat_family::place(words, rule.lanes, index, *omitted, kept_words);
  return true;
}

std::vector<Quat48Rule> enumerate() {
  std::vector<Quat48Rule> rules;
  for (const Spare spare : {Spare::masked, Spare::is_signed, Spare::is_wide, Spare::negates}) {
    const auto [low, high] = codes_of(spare);
    for (const quat_family::ComponentRule& component : quat_family::distinct_components(maximum, low, high)) {
      const bool exact = quat_family::sums_exactly(component, maximum, low, high);
      for (const quat_family::RootRule& root : quat_family::roots_for(component, exact)) {
        for (const Lanes lanes : {Lanes::insert, Lanes::rotate}) {
          for (unsigned pair = 0; pair < 9; ++pair) {
            const auto low_word = static_cast<std::uint8_t>(pair / 3);
            const auto high_word = static_cast<std::uint8_t>(pair % 3);
            if (low_word != high_word) rules.push_back({component, root, spare, lanes, low_word, high_word});
          }
        }
      }
    }
  }
  return rules;
}

std::string name_of(const Quat48Rule& rule) {
  return "quat48/" + quat_family::name_of(rule.component) + '/' + std::string(name_of(rule.spare)) + '/' +
         std::string(quat_family::name_of(rule.lanes)) + "/index" + std::to_string(rule.low_word) +
         std::to_string(rule.high_word) + '/' + quat_family::name_of(rule.root);
}

std::string sentence_of(const Quat48Rule& rule) {
  const auto [low, high] = codes_of(rule.spare);
  const bool exact = quat_family::sums_exactly(rule.component, maximum, low, high);
  return "three 15-bit words; " + quat_family::sentence_of(rule.component, maximum) + "; " +
         sentence_of(rule.spare, spare_word(rule)) + "; index low bit in word " + std::to_string(rule.low_word) +
         ", high bit in word " + std::to_string(rule.high_word) + "; " + quat_family::sentence_of(rule.root, exact) +
         ", " + std::string(quat_family::sentence_of(rule.lanes));
}

void draw_near_unit(const Quat48Rule& rule, std::uint64_t random, std::span<std::byte> packed) {
  const auto codes = quat_family::codes_near_unit(rule.component, maximum, random);
  const std::uint64_t bits = std::rotr(random, 29) * 0x9E3779B97F4A7C15u >> 61;
  const bool spare_is_code = rule.spare == Spare::is_signed || rule.spare == Spare::is_wide;
  for (unsigned i = 0; i < codes.size(); ++i) {
    const bool is_set = (bits >> i & 1) != 0 && !(spare_is_code && i == spare_word(rule));
    const unsigned word = codes[i] | static_cast<unsigned>(is_set) << word_bit;
    packed[2 * i] = static_cast<std::byte>(word);
    packed[2 * i + 1] = static_cast<std::byte>(word >> 8);
  }
}

}  // namespace bitwitness::decoders::quat48_family
