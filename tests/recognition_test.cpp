// Recognition on machines and rules made here: verdicts, what is counted, and what is told of rules that do not fit.

#include "harness/probe/recognition.hpp"

#include "harness/error.hpp"
#include "harness/values.hpp"
#include "tests/catch.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace bitwitness;

namespace {

using Bytes = std::span<const std::byte>;
using Words = std::span<std::uint32_t>;

std::uint32_t half_word(Bytes packed, std::size_t at) {
  return std::to_integer<std::uint32_t>(packed[at]) | std::to_integer<std::uint32_t>(packed[at + 1]) << 8;
}

/// A routine written here: how one value ends.
using Code = std::function<OutcomeKind(Bytes packed, Words words)>;

class FakeMachine final : public Machine {
 public:
  explicit FakeMachine(Code code, Code alone = {}) : code_(std::move(code)), alone_(alone ? std::move(alone) : code_) {}

  void run(Batch& out, Bytes packed, const Environment&) override { run_with(code_, out, packed); }
  void run_alone(Batch& out, Bytes packed, const Environment&) override { run_with(alone_, out, packed); }
  [[nodiscard]] const std::map<std::string, Observation>& observations() const override { return observations_; }
  void forget_observations() override { observations_.clear(); }
  [[nodiscard]] std::string_view witness() const override { return "fake"; }

  std::map<std::string, Observation> observations_;
  std::size_t runs_ = 0;  ///< values

 private:
  void run_with(const Code& code, Batch& out, Bytes packed) {
    out = {};
    for (std::size_t at = 0; at < packed.size(); at += 4, ++runs_) {
      std::array<std::uint32_t, 3> words{};
      const OutcomeKind kind = code(packed.subspan(at, 4), words);
      if (kind != OutcomeKind::returned) out.incidents.push_back({at / 4, kind, 0x1000, "ud2", "stops there"});
      out.outcomes.push_back(kind);
      out.words.insert(out.words.end(), words.begin(), words.end());
    }
  }

  Code code_;
  Code alone_;
};

/// A rule written here; returns false where it gives no result.
using Rule = std::function<bool(Bytes packed, Words words)>;

class FakeRules final : public RuleSet {
 public:
  explicit FakeRules(std::vector<std::pair<std::string, Rule>> rules) : rules_(std::move(rules)) {}
  [[nodiscard]] std::size_t size() const override { return rules_.size(); }
  [[nodiscard]] std::size_t packed_size() const override { return 4; }
  [[nodiscard]] std::vector<std::string> word_names() const override { return {"a", "b", "c"}; }
  [[nodiscard]] WordKind word_kind() const override { return WordKind::f32; }
  [[nodiscard]] std::string name(std::size_t rule) const override { return rules_[rule].first; }
  [[nodiscard]] std::string sentence(std::size_t rule) const override { return "rule " + rules_[rule].first; }
  bool decode(std::size_t rule, Bytes packed, Words words) const override { return rules_[rule].second(packed, words); }

 private:
  std::vector<std::pair<std::string, Rule>> rules_;
};

/// The rule that the routines below follow: two halves and a sum. Bits 14 and 15 of the first half are not used.
bool plain(Bytes packed, Words words) {
  words[0] = 0x1000000 + (half_word(packed, 0) & 0x3FFF);
  words[1] = 0x2000000 + half_word(packed, 2);
  words[2] = 0x3000000 + (half_word(packed, 0) & 0x3FFF) * 7 + half_word(packed, 2);
  return true;
}

/// Otherwise on one value in 2^22: no random value will find it.
bool rare(Bytes packed, Words words) {
  plain(packed, words);
  if ((half_word(packed, 0) & 0x3FFF) == 0x1A2B && (half_word(packed, 2) & 0xFF) == 0x3C) ++words[2];
  return true;
}

/// Otherwise in one word of a quarter of the values.
bool near_miss(Bytes packed, Words words) {
  plain(packed, words);
  if ((half_word(packed, 2) & 3) == 3) words[1] += 5;
  return true;
}

bool far_off(Bytes packed, Words words) {
  plain(packed, words);
  for (std::uint32_t& word : words) word += 0x100000;
  return true;
}

bool refusing(Bytes packed, Words words) {
  return half_word(packed, 2) < 0x8000 && plain(packed, words);
}

Code routine(Rule rule) {
  return [rule = std::move(rule)](Bytes packed, Words words) {
    return rule(packed, words) ? OutcomeKind::returned : OutcomeKind::unwritten;
  };
}

const Signature signature = parse_signature("cdecl(in u8[4], out u32[3])");

RecognitionOptions small() {
  RecognitionOptions options;
  options.values = 500;
  options.confirmations = 1000;
  options.search = 100'000;
  return options;
}

Recognition recognized(Machine& machine, const FakeRules& rules, const RecognitionOptions& options = small()) {
  return recognize(machine, signature, {}, rules, options);
}

Recognition recognized(Code code, const FakeRules& rules, const RecognitionOptions& options = small()) {
  FakeMachine machine(std::move(code));
  return recognized(machine, rules, options);
}

}  // namespace

TEST_CASE("the one rule that agrees on every value is found, and the others are ranked") {
  const FakeRules rules({{"far", far_off}, {"near", near_miss}, {"plain", plain}});
  const Recognition found = recognized(routine(plain), rules);
  CHECK(found.verdict == RecognitionVerdict::one);
  REQUIRE(found.matches.size() == 1);
  CHECK(found.matches[0].rule == 2);
  CHECK(found.matches[0].order.empty());
  CHECK(found.matches[0].agreed == found.compared);
  CHECK_FALSE(found.matches[0].first);
  CHECK(found.rules == 3);
  CHECK(found.tried > 1000);
  CHECK(found.tried == found.compared);
  CHECK(found.values.size() == 4 * found.tried);
  CHECK(found.failed == 0);
  CHECK(found.unstable == 0);
  CHECK(found.sampled == 64);

  REQUIRE(found.nearest.size() == 2);
  CHECK(found.nearest[0].rule == 1);
  CHECK(found.nearest[0].agreed > found.compared / 2);
  CHECK(found.nearest[0].agreed < found.compared);
  CHECK(found.nearest[0].words_agreed == 2 * found.compared + found.nearest[0].agreed);
  CHECK(found.nearest[0].words_close == 3 * found.compared);
  CHECK(found.nearest[1].rule == 0);
  CHECK(found.nearest[1].agreed == 0);
  CHECK(found.nearest[1].words_close == 0);
  REQUIRE(found.nearest[0].first);
  const Separation& first = *found.nearest[0].first;
  CHECK((half_word(first.value, 2) & 3) == 3);
  CHECK(first.outcome == OutcomeKind::returned);
  REQUIRE(first.routine.size() == 3);
  CHECK(first.rule == std::vector<std::uint32_t>{first.routine[0], first.routine[1] + 5, first.routine[2]});

  REQUIRE(found.first_difference.size() == 3);
  CHECK_FALSE(found.first_difference[2]);
  CHECK(found.first_difference[0] == 0U);
  REQUIRE(found.first_difference[1]);
  CHECK(std::ranges::equal(first.value, std::span(found.values).subspan(4 * *found.first_difference[1], 4)));
}

TEST_CASE("a value that separates the rules left is searched for where the caller says") {
  const FakeRules rules({{"plain", plain}, {"rare", rare}});
  RecognitionOptions options = small();
  // Random values do not tell the two apart …
  Recognition found = recognized(routine(rare), rules, options);
  CHECK(found.verdict == RecognitionVerdict::several);
  CHECK(found.matches.size() == 2);
  CHECK(found.searched >= options.search);
  // … values of the caller's do, though not one of the first few.
  options.draws = {[](std::uint64_t random, std::span<std::byte> packed) {
    std::ranges::fill(packed, std::byte{0});
    const std::uint64_t low = random % 4096 == 5 ? 0x1A2B : random & 0xFF;
    packed[0] = static_cast<std::byte>(low);
    packed[1] = static_cast<std::byte>(low >> 8);
    packed[2] = std::byte{0x3C};
  }};
  options.values = 10;
  options.confirmations = 10;
  for (const bool is_rare : {true, false}) {
    found = recognized(routine(is_rare ? rare : plain), rules, options);
    CHECK(found.verdict == RecognitionVerdict::one);
    REQUIRE(found.matches.size() == 1);
    CHECK(found.matches[0].rule == (is_rare ? 1U : 0U));
  }
}

TEST_CASE("rules that nothing separates are all named") {
  const FakeRules rules({{"plain", plain}, {"far", far_off}, {"again", plain}});
  const Recognition found = recognized(routine(plain), rules);
  CHECK(found.verdict == RecognitionVerdict::several);
  REQUIRE(found.matches.size() == 2);
  CHECK(found.matches[0].rule == 0);
  CHECK(found.matches[1].rule == 2);
  REQUIRE(found.nearest.size() == 1);
  CHECK(found.nearest[0].rule == 1);
}

TEST_CASE("when no rule fits, the nearest come first with what separates them") {
  const FakeRules rules({{"far", far_off}, {"plain", plain}, {"rare", rare}});
  const Recognition found = recognized(routine(near_miss), rules);
  CHECK(found.verdict == RecognitionVerdict::none);
  CHECK(found.matches.empty());
  REQUIRE(found.nearest.size() == 3);
  CHECK(found.nearest[0].rule == 1);
  CHECK(found.nearest[2].rule == 0);
  for (const RuleStanding& near : found.nearest) {
    REQUIRE(near.first);
    CHECK(near.first->routine != near.first->rule);
  }
}

TEST_CASE("words in another order or with other signs are told") {
  const Code turned = [](Bytes packed, Words words) {
    std::array<std::uint32_t, 3> own{};
    plain(packed, own);
    words[0] = own[2];
    words[1] = own[0] ^ 0x80000000U;
    words[2] = own[1];
    return OutcomeKind::returned;
  };
  const FakeRules rules({{"far", far_off}, {"near", near_miss}, {"plain", plain}});
  const Recognition found = recognized(turned, rules);
  CHECK(found.verdict == RecognitionVerdict::one);
  REQUIRE(found.matches.size() == 1);
  CHECK(found.matches[0].rule == 2);
  CHECK(found.matches[0].agreed == found.compared);
  CHECK(found.matches[0].order == std::vector<MappedWord>{{2, false}, {0, true}, {1, false}});
  CHECK(std::ranges::none_of(found.nearest, [](const RuleStanding& near) { return near.rule == 2; }));
}

TEST_CASE("a value without a result agrees with a rule that refuses it, and with no other") {
  const FakeRules rules({{"plain", plain}, {"refusing", refusing}});
  Recognition found = recognized(routine(refusing), rules);
  CHECK(found.verdict == RecognitionVerdict::one);
  REQUIRE(found.matches.size() == 1);
  CHECK(found.matches[0].rule == 1);
  CHECK(found.unwritten > found.tried / 3);
  CHECK(found.compared == found.tried);
  REQUIRE(found.nearest.size() == 1);
  REQUIRE(found.nearest[0].first);
  CHECK(found.nearest[0].first->outcome == OutcomeKind::unwritten);
  CHECK(found.nearest[0].first->routine.empty());
  CHECK(found.nearest[0].first->rule.size() == 3);

  found = recognized(routine(plain), rules);
  REQUIRE(found.matches.size() == 1);
  CHECK(found.matches[0].rule == 0);
  REQUIRE(found.nearest.size() == 1);
  REQUIRE(found.nearest[0].first);
  CHECK(found.nearest[0].first->rule.empty());
}

TEST_CASE("values that fail are compared with nothing and told") {
  const Code failing = [](Bytes packed, Words words) {
    if ((half_word(packed, 2) & 7) == 2) return OutcomeKind::faulted;
    return plain(packed, words) ? OutcomeKind::returned : OutcomeKind::faulted;
  };
  const FakeRules rules({{"plain", plain}, {"near", near_miss}});
  const Recognition found = recognized(failing, rules);
  CHECK(found.verdict == RecognitionVerdict::one);
  CHECK(found.failed > 100);
  CHECK(found.compared + found.failed == found.tried);
  CHECK((half_word(found.failed_value, 2) & 7) == 2);
  CHECK(found.failure.find("stops there") != std::string::npos);
}

TEST_CASE("a routine that fails on whatever would separate two rules leaves both") {
  const auto even_only = [](Bytes packed, Words words) {
    return (half_word(packed, 2) & 1) == 0 && plain(packed, words);
  };
  const Code failing = [&](Bytes packed, Words words) {
    return even_only(packed, words) ? OutcomeKind::returned : OutcomeKind::faulted;
  };
  const Recognition found = recognized(failing, FakeRules({{"plain", plain}, {"even", even_only}}));
  CHECK(found.verdict == RecognitionVerdict::several);
  CHECK(found.matches.size() == 2);
  CHECK(found.failed > 0);
}

TEST_CASE("a routine that never gives a result costs few runs and matches nothing") {
  const FakeRules rules({{"plain", plain}, {"never", [](Bytes, Words) { return false; }}});
  for (const OutcomeKind kind : {OutcomeKind::faulted, OutcomeKind::out_of_budget, OutcomeKind::unwritten}) {
    FakeMachine machine([kind](Bytes, Words) { return kind; });
    const Recognition found = recognized(machine, rules);
    CHECK(found.verdict == RecognitionVerdict::nothing);
    CHECK(found.matches.empty());
    if (kind != OutcomeKind::unwritten) CHECK(machine.runs_ <= 200);
  }
}

TEST_CASE("the bits that a routine uses") {
  const FakeRules rules({{"plain", plain}});
  const Recognition found = recognized(routine(plain), rules);
  CHECK(found.bases == 32);
  REQUIRE(found.bits.size() == 32);
  for (std::size_t bit = 0; bit < 32; ++bit) {
    INFO(bit);
    const bool is_used = bit < 14 || bit > 15;
    CHECK(found.bits[bit].changed == (is_used ? 32U : 0U));
    const std::vector<std::size_t> words =
        !is_used ? std::vector<std::size_t>{} : std::vector<std::size_t>{bit / 16, 2};
    CHECK(found.bits[bit].words == words);
  }
}

TEST_CASE("words that depend on earlier values, and what the machine saw, are told") {
  const Code other = [](Bytes packed, Words words) {
    plain(packed, words);
    words[0] += half_word(packed, 0) & 1;
    return OutcomeKind::returned;
  };
  FakeMachine machine(routine(plain), other);
  machine.observations_["writes to its own memory"] = {7, {}};
  const FakeRules rules({{"plain", plain}});
  const Recognition found = recognized(machine, rules);
  CHECK(found.unstable > 10);
  CHECK(found.unstable < found.sampled);
  CHECK(found.observations == std::vector<std::string>{"7 x writes to its own memory"});
}

TEST_CASE("equal runs give equal results, and no value is run twice") {
  const FakeRules rules({{"far", far_off}, {"near", near_miss}, {"plain", plain}});
  const Recognition first = recognized(routine(plain), rules);
  const Recognition second = recognized(routine(plain), rules);
  CHECK(first.values == second.values);
  CHECK(first.first_difference == second.first_difference);
  std::vector<std::string> values;
  for (std::size_t at = 0; at < first.values.size(); at += 4) {
    values.push_back(to_hex(std::span(first.values).subspan(at, 4)));
  }
  std::ranges::sort(values);
  CHECK(std::ranges::adjacent_find(values) == values.end());
}

TEST_CASE("rules of other sizes are refused") {
  const FakeRules rules({{"plain", plain}});
  FakeMachine machine(routine(plain));
  CHECK_THROWS_AS(recognize(machine, parse_signature("cdecl(in u8[4], out u32[4])"), {}, rules), Error);
  CHECK_THROWS_AS(recognize(machine, parse_signature("cdecl(in u8[6], out u32[3])"), {}, rules), Error);
}
