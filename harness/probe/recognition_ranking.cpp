#include "harness/probe/recognition_trials.hpp"
#include "harness/report.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

namespace bitwitness::recognition {

namespace {

constexpr std::uint32_t sign_bit = 0x80000000u;

/// Rules are measured on more and more values, and fewer and fewer of them.
struct Round {
  std::size_t values;
  std::size_t kept;
};
constexpr std::array<Round, 3> rounds = {{{16, 20'000}, {64, 2'000}, {256, 64}}};

struct Ranked {
  Candidate candidate;
  Score score;
};

bool is_nearer(const Ranked& a, const Ranked& b) {
  return std::tuple(a.score.agreed, a.score.words_agreed, a.score.words_close, b.candidate.rule) >
         std::tuple(b.score.agreed, b.score.words_agreed, b.score.words_close, a.candidate.rule);
}

/// The rules that agreed longest with the words as they stand, without the matches.
std::vector<Ranked> longest(const Recognition& found, std::size_t count) {
  std::vector<std::size_t> rules;
  for (std::size_t rule = 0; rule < found.first_difference.size(); ++rule) {
    const bool matches = std::ranges::find(found.matches, rule, &RuleStanding::rule) != found.matches.end();
    if (found.first_difference[rule] && !matches) rules.push_back(rule);
  }
  std::ranges::stable_sort(
      rules, [&](std::size_t a, std::size_t b) { return *found.first_difference[a] > *found.first_difference[b]; });
  std::vector<Ranked> ranked;
  for (const std::size_t rule : std::span(rules).first(std::min(count, rules.size())))
    ranked.push_back({{rule, {}}, {}});
  return ranked;
}

}  // namespace

Comparison::Comparison(const Trials& trials, const RuleSet& rules)
    : trials_(trials),
      rules_(rules),
      kind_(rules.word_kind()),
      plain_(trials.word_count()),
      mapped_(trials.word_count()) {}

bool Comparison::decode(const Candidate& candidate, std::span<const std::byte> value, std::span<std::uint32_t> words) {
  if (candidate.order.empty()) return rules_.decode(candidate.rule, value, words);
  if (!rules_.decode(candidate.rule, value, plain_)) return false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const MappedWord& from = candidate.order[i];
    words[i] = plain_[from.from] ^ (from.negated ? sign_bit : 0);
  }
  return true;
}

bool Comparison::agrees(const Candidate& candidate, std::size_t i) {
  const bool gives = decode(candidate, trials_.value(i), mapped_);
  if (trials_.outcome(i) != OutcomeKind::returned) return !gives;
  return gives && std::ranges::equal(mapped_, trials_.words(i));
}

bool Comparison::add(Score& score, const Candidate& candidate, std::size_t i) {
  const bool gives = decode(candidate, trials_.value(i), mapped_);
  const bool returned = trials_.outcome(i) == OutcomeKind::returned;
  const std::uint64_t all = trials_.word_count();
  std::uint64_t agreed = returned || gives ? 0 : all;
  std::uint64_t close = agreed;
  for (std::size_t word = 0; returned && gives && word < all; ++word) {
    const std::uint32_t theirs = trials_.words(i)[word];
    agreed += static_cast<std::uint64_t>(mapped_[word] == theirs);
    close += static_cast<std::uint64_t>(ulp_distance(mapped_[word], theirs, kind_) <= close_ulps);
  }
  score.words_agreed += agreed;
  score.words_close += close;
  score.agreed += static_cast<std::uint64_t>(agreed == all);
  return agreed == all;
}

Score Comparison::measure(const Candidate& candidate, std::size_t count) {
  Score score;
  for (std::size_t i = 0; i < count; ++i) {
    if (trials_.came_back(i)) add(score, candidate, i);
  }
  return score;
}

RuleStanding Comparison::describe(const Candidate& candidate) {
  RuleStanding standing{candidate.rule, candidate.order, 0, 0, 0, {}};
  Score score;
  for (std::size_t i = 0; i < trials_.size(); ++i) {
    if (!trials_.came_back(i) || add(score, candidate, i) || standing.first) continue;
    Separation& first = standing.first.emplace();
    first.value.assign(trials_.value(i).begin(), trials_.value(i).end());
    first.outcome = trials_.outcome(i);
    if (first.outcome == OutcomeKind::returned) first.routine.assign(trials_.words(i).begin(), trials_.words(i).end());
    if (decode(candidate, trials_.value(i), mapped_)) first.rule = mapped_;
  }
  standing.agreed = score.agreed;
  standing.words_agreed = score.words_agreed;
  standing.words_close = score.words_close;
  return standing;
}

std::uint32_t Comparison::magnitude(std::uint32_t word) const {
  return kind_ == WordKind::f32 ? word & ~sign_bit : word;
}

bool Comparison::has_distinct_words(std::size_t i) const {
  if (trials_.outcome(i) != OutcomeKind::returned) return false;
  std::vector<std::uint32_t> sorted(trials_.words(i).begin(), trials_.words(i).end());
  for (std::uint32_t& word : sorted) word = magnitude(word);
  std::ranges::sort(sorted);
  return sorted.front() != 0 && std::ranges::adjacent_find(sorted) == sorted.end();
}

bool Comparison::map_words(Candidate& candidate, std::size_t i) {
  if (!rules_.decode(candidate.rule, trials_.value(i), plain_)) return false;
  const auto words = trials_.words(i);
  candidate.order.resize(words.size());
  bool moved = false;
  for (std::size_t word = 0; word < words.size(); ++word) {
    const auto found =
        std::ranges::find_if(plain_, [&](std::uint32_t other) { return magnitude(other) == magnitude(words[word]); });
    if (found == plain_.end()) return false;
    const auto from = static_cast<std::size_t>(found - plain_.begin());
    candidate.order[word] = {from, *found != words[word]};
    moved = moved || from != word || *found != words[word];
  }
  return moved;
}

std::vector<RuleStanding> rank_nearest(const Trials& trials, const RuleSet& rules, const Recognition& found,
                                       std::size_t count) {
  if (count == 0) return {};
  const bool fits = !found.matches.empty();
  std::vector<Ranked> ranked = longest(found, fits ? rounds.back().kept : found.first_difference.size());
  Comparison comparison(trials, rules);
  const auto keep = [&](std::size_t values, std::size_t kept) {
    for (Ranked& entry : ranked) entry.score = comparison.measure(entry.candidate, std::min(values, trials.size()));
    const auto end = ranked.begin() + static_cast<std::ptrdiff_t>(std::min(kept, ranked.size()));
    std::partial_sort(ranked.begin(), end, ranked.end(), is_nearer);
    ranked.erase(end, ranked.end());
  };
  if (!fits) {
    for (const Round& round : rounds) keep(round.values, round.kept);
  }
  keep(trials.size(), count);
  std::vector<RuleStanding> nearest;
  for (const Ranked& entry : ranked) nearest.push_back(comparison.describe(entry.candidate));
  return nearest;
}

}  // namespace bitwitness::recognition
