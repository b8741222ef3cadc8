// Every routine of the compiled matrix is recognised as what it is, every pair of them is told apart, and the stand-ins
// and their broken twins are named for what they do.

#include "decoders/quat48_family.hpp"
#include "harness/cli/rule_sets.hpp"
#include "harness/probe/recognition.hpp"
#include "harness/value_generators.hpp"
#include "tests/catch.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

using namespace bitwitness;
using namespace bitwitness::decoders::quat_family;
using decoders::quat48_family::Quat48Rule;
using decoders::quat48_family::Spare;

namespace {

const Signature one_key = parse_signature("cdecl(in u8[6], out f32[4])");
constexpr std::size_t key_bytes = 6;

cli::KnownRules& rules_of(const std::string& signature) {
  static std::map<std::string, cli::KnownRules> made;
  if (!made.contains(signature)) made.emplace(signature, cli::known_rules(parse_signature(signature)));
  return made.at(signature);
}

const cli::KnownRules& key_rules() {
  return rules_of("cdecl(in u8[6], out f32[4])");
}

/// Few values: what is tested is that they are the right ones.
RecognitionOptions quick(const cli::KnownRules& known) {
  RecognitionOptions options = known.options;
  options.values = 256;
  options.confirmations = 512;
  options.search = 400'000;
  options.nearest = 0;
  options.bases = 0;
  options.sample = 0;
  return options;
}

Image family(const std::string& kind) {
  return Image::load(BITWITNESS_FIXTURES_DIR "/family_" + kind + ".dll");
}

template <typename Value>
Value choice(const std::map<std::string, Value>& choices, const std::string& text) {
  INFO(text);
  REQUIRE(choices.contains(text));
  return choices.at(text);
}

/// What the name of an exported routine says.
Quat48Rule rule_of(const std::string& name) {
  std::istringstream parts(name);
  const auto next = [&parts] {
    std::string part;
    REQUIRE(std::getline(parts, part, '_'));
    return part;
  };
  Quat48Rule rule;
  rule.component.scale = choice<Scale>({{"step", Scale::step_f32},
                                        {"step64", Scale::step_f64},
                                        {"power", Scale::step_power},
                                        {"quotient", Scale::centred_quotient},
                                        {"product", Scale::centred_product},
                                        {"centre", Scale::centred_power},
                                        {"exact", Scale::exact}},
                                       next());
  rule.component.half = choice<Half>({{"f3", Half::below}, {"f4", Half::above}, {"wide", Half::f64}}, next());
  rule.spare = choice<Spare>({{"masked", Spare::masked},
                              {"signed16", Spare::is_signed},
                              {"unsigned16", Spare::is_wide},
                              {"negates", Spare::negates}},
                             next());
  rule.lanes = choice<Lanes>({{"insert", Lanes::insert}, {"rotate", Lanes::rotate}}, next());
  const std::string index = next();
  rule.low_word = static_cast<std::uint8_t>(index.at(0) - '0');
  rule.high_word = static_cast<std::uint8_t>(index.at(1) - '0');
  rule.root.negative = choice<Negative>({{"zero", Negative::zero},
                                         {"nan", Negative::nan},
                                         {"absolute", Negative::absolute},
                                         {"refused", Negative::refused}},
                                        next());
  rule.root.sum = choice<Sum>({{"minus", Sum::minus_abc},
                               {"minuscba", Sum::minus_cba},
                               {"plus", Sum::of_abc},
                               {"plusbca", Sum::of_bca},
                               {"plusacb", Sum::of_acb}},
                              next());
  const std::string arithmetic = next();
  const bool wide_components = arithmetic == "doubled" || arithmetic == "kept";
  rule.component.width = wide_components ? Width::f64 : Width::f32;
  rule.component.kept = arithmetic == "kept";
  rule.root.width = arithmetic == "single" ? Width::f32 : Width::f64;
  rule.root.narrowed = arithmetic == "late";
  rule.root.root = choice<Root>({{"root", Root::sqrt}, {"reciprocal", Root::reciprocal}}, next());
  return rule;
}

/// Routines that compute another one's function: their sums are exact in double, in any order.
const std::map<std::string, std::string> equivalents = {
    {"step_f3_masked_insert_01_zero_plus_mixed_root", "step_f3_masked_insert_01_zero_minus_mixed_root"},
    {"step_f3_masked_insert_01_zero_minuscba_mixed_root", "step_f3_masked_insert_01_zero_minus_mixed_root"},
    {"step_f3_masked_insert_01_zero_plusacb_late_root", "step_f3_masked_insert_01_zero_minus_late_root"},
};

/// Routines of which the order or the width of the sum is left open: from components that are f32 numbers, few values
/// in a million tell these apart in double.
const std::set<std::string> open_sums = {
    "quotient_f3_masked_insert_01_zero_plus_mixed_root",
    "centre_f4_masked_insert_01_zero_minus_mixed_root",
    "centre_f4_negates_insert_10_zero_minus_late_root",
};

/// A rule's name without the order and the width of its sum.
std::string without_sum(const std::string& name) {
  return name.substr(0, name.find('.', name.rfind('/')));
}

/// The rules' name of what a routine computes.
std::string listed_name(const std::string& routine) {
  const auto same = equivalents.find(routine);
  const Quat48Rule rule = rule_of(same == equivalents.end() ? routine : same->second);
  if (rule == decoders::quat48_family::seed_rule) return "packed_quat48";
  if (rule == decoders::quat48_family::dunia_rule) return "dunia_quat48";
  return name_of(rule);
}

std::vector<std::string> matrix(const Image& image) {
  std::vector<std::string> names;
  for (const NamedAddress& exported : image.exports()) {
    if (!exported.name.starts_with("q32_") && !exported.name.starts_with("xyz_")) names.push_back(exported.name);
  }
  return names;
}

Routine routine(const Image& image, const std::string& name, const Signature& signature) {
  return {name, image.resolve("export:" + name), signature};
}

std::string names_of(const Recognition& found, const RuleSet& rules) {
  std::string names;
  for (const RuleStanding& match : found.matches) names += (names.empty() ? "" : " | ") + rules.name(match.rule);
  return names;
}

Recognition recognized(const Image& image, const std::string& name, const std::string& signature,
                       const Environment& environment = {}) {
  const cli::KnownRules& known = rules_of(signature);
  return recognize(image, routine(image, name, parse_signature(signature)), environment, *known.rules, quick(known));
}

/// The place of each named rule in the set.
std::map<std::string, std::size_t> places(const RuleSet& rules, const std::vector<std::string>& names) {
  std::map<std::string, std::size_t> found;
  for (const std::string& name : names) found[name] = rules.size();
  for (std::size_t rule = 0; rule < rules.size(); ++rule) {
    const auto place = found.find(rules.name(rule));
    if (place != found.end()) place->second = rule;
  }
  return found;
}

/// Runs values one by one in a routine's order: outcome and words.
std::vector<std::vector<std::uint32_t>> words_of(const Image& image, const std::string& name,
                                                 std::span<const std::byte> values) {
  const auto machine = make_unicorn_machine(image, routine(image, name, one_key));
  Batch batch;
  machine->run(batch, values, {});
  std::vector<std::vector<std::uint32_t>> all;
  for (std::size_t i = 0; i < batch.outcomes.size(); ++i) {
    std::vector<std::uint32_t>& words = all.emplace_back();
    if (batch.outcomes[i] != OutcomeKind::returned) continue;
    words.assign(batch.words.begin() + static_cast<std::ptrdiff_t>(4 * i),
                 batch.words.begin() + static_cast<std::ptrdiff_t>(4 * i + 4));
  }
  return all;
}

/// Recognises the whole matrix, and has every pair told apart by a value that separates one's routine from the other's
/// rule.
void check_matrix(const std::string& kind) {
  const Image image = family(kind);
  const std::vector<std::string> names = matrix(image);
  CHECK(names.size() >= 60);
  const RuleSet& rules = *key_rules().rules;
  std::vector<std::string> listed;
  for (const std::string& name : names) listed.push_back(listed_name(name));
  const auto place = places(rules, listed);
  CHECK(place.size() == names.size() - equivalents.size());
  for (const auto& [name, rule] : place) {
    INFO(name << " is a rule");
    CHECK(rule < rules.size());
  }
  // For each routine i the values that separate it from another one's rule, and the same again for that other one.
  std::vector<std::vector<std::byte>> own(names.size());
  std::vector<std::vector<std::byte>> others(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    INFO(names[i]);
    const Recognition found = recognize(image, routine(image, names[i], one_key), {}, rules, quick(key_rules()));
    if (open_sums.contains(names[i])) {
      CHECK(found.verdict == RecognitionVerdict::several);
      CHECK(std::ranges::any_of(found.matches, [&](const auto& match) { return rules.name(match.rule) == listed[i]; }));
      for (const RuleStanding& match : found.matches) {
        const std::string name = rules.name(match.rule);
        CHECK(without_sum(name) == without_sum(listed[i]));
        CHECK((name.ends_with(".f64") || name.ends_with(".f64_then_f32") || name.ends_with(".x87")));
      }
    } else {
      CHECK(found.verdict == RecognitionVerdict::one);
      CHECK(names_of(found, rules) == listed[i]);
    }
    CHECK(found.failed == 0);
    for (std::size_t j = 0; j < names.size(); ++j) {
      if (listed[i] == listed[j]) continue;
      const auto first = found.first_difference.at(place.at(listed[j]));
      INFO("against " << names[j]);
      REQUIRE(first);
      const auto value = std::span(found.values).subspan(*first * key_bytes, key_bytes);
      own[i].insert(own[i].end(), value.begin(), value.end());
      others[j].insert(others[j].end(), value.begin(), value.end());
    }
  }
  // The value comes from the other's rule; here the other's routine is run on it. Pairs come in the same order, so that
  // the k-th value of others[j] was found for the k-th routine that is another function than j.
  std::vector<std::size_t> next(names.size());
  std::vector<std::vector<std::vector<std::uint32_t>>> words_of_others;
  for (std::size_t j = 0; j < names.size(); ++j) words_of_others.push_back(words_of(image, names[j], others[j]));
  std::size_t pairs = 0;
  std::size_t same = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto words = words_of(image, names[i], own[i]);
    std::size_t at = 0;
    for (std::size_t j = 0; j < names.size(); ++j) {
      if (listed[i] == listed[j]) continue;
      same += static_cast<std::size_t>(words.at(at++) == words_of_others[j].at(next[j]++));
      ++pairs;
    }
  }
  CHECK(pairs > 60 * 59);
  CHECK(same == 0);
}

struct Twin {
  std::string image;
  std::string signature;
};

const std::vector<std::pair<std::string, Twin>> one_key_forms = {
    {"x87", {"stand_in_x87", "cdecl(in u8[6], out f32[4])"}},
    {"sse2", {"stand_in_sse2", "thiscall(in u8[6], out f32[4])"}}};

Recognition recognized_at(const std::string& path, std::uint64_t address, const std::string& signature,
                          const Environment& environment = {}, std::size_t nearest = 0) {
  const Image image = Image::load(path);
  const cli::KnownRules& known =
      signature.find("12]") == std::string::npos && signature.find(", in") == std::string::npos
          ? key_rules()
          : rules_of("cdecl(in u8[12], out f32[8])");
  RecognitionOptions options = quick(known);
  options.nearest = nearest;
  return recognize(image, {"routine", address, parse_signature(signature)}, environment, *known.rules, options);
}

Recognition twin(const std::string& kind, const std::string& mistake, std::size_t nearest = 0) {
  return recognized_at(BITWITNESS_FIXTURES_DIR "/broken_" + kind + "_" + mistake + ".exe", 0x103f1d0,
                       kind == "x87" ? one_key_forms[0].second.signature : one_key_forms[1].second.signature, {},
                       nearest);
}

std::string twin_name(const std::string& kind, const std::string& mistake) {
  const Recognition found = twin(kind, mistake);
  // The seed's rule is one of those that a value was found against.
  const auto seed = places(*key_rules().rules, {"packed_quat48"}).at("packed_quat48");
  CHECK(found.first_difference.at(seed));
  return names_of(found, *key_rules().rules);
}

}  // namespace

TEST_CASE("every x87 routine of the matrix is recognised, every pair told apart", "[x87]") {
  check_matrix("x87");
}

TEST_CASE("every SSE2 routine of the matrix is recognised, every pair told apart") {
  check_matrix("sse2");
}

TEST_CASE("relatives: ten bits with maximum 1023 or 1024, floats with an index in their lowest bits") {
  const std::map<std::string, std::string> expected = {
      {"q32_1023", "packed_quat32"},
      {"q32_1024", "quat32/step_power.3f3504f3.f32/insert/index30/cba/zero.minus_abc.f64"},
      {"q32_1024_low_index", "quat32/step_power.3f3504f3.f32/insert/index0/cba/zero.minus_abc.f64"},
      {"q32_1023_first_low", "quat32/step_f32.3f3504f3.f32/insert/index30/abc/zero.minus_abc.f64"},
      {"q32_1024_rotated", "quat32/step_power.3f3504f3.f32/rotate/index0/abc/zero.minus_abc.f32"},
      {"xyz_w", "quat_xyz"},
      {"xyz_w_single", "quat_xyz/always_w/insert/zero.minus_abc.f32"},
      {"xyz_low_bits", "quat_xyz/low_first/insert/zero.minus_abc.f64"},
      {"xyz_low_bits_cleared", "quat_xyz/low_first_cleared/insert/zero.minus_abc.f64"},
      {"xyz_low_bits_swapped", "quat_xyz/high_first/insert/zero.minus_abc.f64"},
      {"xyz_low_bits_rotated", "quat_xyz/low_first_cleared/rotate/zero.minus_abc.f32"},
  };
  for (const std::string kind : {"x87", "sse2"}) {
    const Image image = family(kind);
    for (const auto& [name, rule] : expected) {
      INFO(kind << ' ' << name);
      const std::string signature =
          name.starts_with("q32_") ? "cdecl(in u8[4], out f32[4])" : "cdecl(in u8[12], out f32[4])";
      CHECK(names_of(recognized(image, name, signature), *rules_of(signature).rules) == rule);
    }
  }
}

TEST_CASE("a routine with w first or with the conjugate is told by the order of its words") {
  const Image image = family("sse2");
  const std::string signature = "cdecl(in u8[4], out f32[4])";
  const std::map<std::string, std::vector<MappedWord>> expected = {
      {"q32_w_first", {{3, false}, {0, false}, {1, false}, {2, false}}},
      {"q32_conjugate", {{0, true}, {1, true}, {2, true}, {3, false}}},
  };
  for (const auto& [name, order] : expected) {
    INFO(name);
    const Recognition found = recognized(image, name, signature);
    CHECK(names_of(found, *rules_of(signature).rules) == "packed_quat32");
    REQUIRE(found.matches.size() == 1);
    CHECK(found.matches[0].order == order);
  }
}

TEST_CASE("both forms of both stand-ins follow the seed's rule") {
  const std::string x87 = BITWITNESS_STAND_INS_DIR "/stand_in_x87.exe";
  const std::string sse2 = BITWITNESS_STAND_INS_DIR "/stand_in_sse2.exe";
  for (const std::string& path : {x87, sse2}) {
    const std::string& signature = one_key_forms[path == x87 ? 0 : 1].second.signature;
    const Recognition found = recognized_at(path, 0x103f1d0, signature);
    CHECK(found.verdict == RecognitionVerdict::one);
    CHECK(names_of(found, *key_rules().rules) == "packed_quat48");
    CHECK(found.matches.at(0).order.empty());
  }
  const RuleSet& pairs = *rules_of("cdecl(in u8[12], out f32[8])").rules;
  CHECK(names_of(recognized_at(x87, 0x103f340, "stdcall(in u8[6], in u8[6], out f32[4], out f32[4])"), pairs) ==
        "packed_quat48_pair");
  CHECK(names_of(recognized_at(sse2, 0x103f340, "fastcall(in u8[12], out f32[8])"), pairs) == "packed_quat48_pair");
}

TEST_CASE("at 24 bits of precision the x87 stand-in follows the f32 rule, never the seed's") {
  const std::string x87 = BITWITNESS_STAND_INS_DIR "/stand_in_x87.exe";
  const std::string& signature = one_key_forms[0].second.signature;
  const RuleSet& rules = *key_rules().rules;
  CHECK(names_of(recognized_at(x87, 0x103f1d0, signature, {0x007f, 0x1f80}), rules) ==
        "quat48/step_f32.3f3504f3.f32/masked/insert/index01/zero.minus_abc.f32");
  // With 64 bits it is the seed's again: its sums are exact in 53 already.
  CHECK(names_of(recognized_at(x87, 0x103f1d0, signature, {0x037f, 0x1f80}), rules) == "packed_quat48");
}

TEST_CASE("a twin whose mistake is a rule of the family is recognised as that rule") {
  for (const std::string kind : {"x87", "sse2"}) {
    INFO(kind);
    CHECK(twin_name(kind, "lanes_rotated") == "quat48/step_f32.3f3504f3.f32/masked/rotate/index01/zero.minus_abc.f64");
    CHECK(twin_name(kind, "no_clamp") == "quat48/step_f32.3f3504f3.f32/masked/insert/index01/nan.minus_abc.f64");
    CHECK(twin_name(kind, "radicand_f32") == "quat48/step_f32.3f3504f3.f32/masked/insert/index01/zero.minus_abc.f32");
    CHECK(twin_name(kind, "word_two_unmasked") ==
          "quat48/step_f32.3f3504f3.f32/signed/insert/index01/zero.minus_abc.f64");
  }
}

TEST_CASE("the two-key form of a twin is recognised as its rule on both keys") {
  const Recognition found = recognized_at(BITWITNESS_FIXTURES_DIR "/broken_x87_no_clamp.exe", 0x103f340,
                                          "stdcall(in u8[6], in u8[6], out f32[4], out f32[4])");
  CHECK(names_of(found, *rules_of("cdecl(in u8[12], out f32[8])").rules) ==
        "pair/quat48/step_f32.3f3504f3.f32/masked/insert/index01/nan.minus_abc.f64");
}

TEST_CASE("a twin with a constant of its own follows no rule; the nearest are told") {
  for (const std::string kind : {"x87", "sse2"}) {
    INFO(kind);
    const Recognition found = twin(kind, "constant_bit", 3);
    CHECK(found.verdict == RecognitionVerdict::none);
    REQUIRE(found.nearest.size() == 3);
    // Everything but the scale is right.
    const std::string name = key_rules().rules->name(found.nearest[0].rule);
    CHECK(name.find("/masked/insert/index01/zero.minus_abc.f64") != std::string::npos);
    CHECK(found.nearest[0].agreed < found.compared / 5);
    CHECK(found.nearest[0].words_close > found.compared * 3);
    REQUIRE(found.nearest[0].first);
    const Separation& first = *found.nearest[0].first;
    CHECK(first.value.size() == key_bytes);
    CHECK(first.routine.size() == 4);
    CHECK(first.rule.size() == 4);
    CHECK(first.routine != first.rule);
  }
}
