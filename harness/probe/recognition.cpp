#include "harness/probe/recognition.hpp"

#include "harness/error.hpp"
#include "harness/probe/recognition_trials.hpp"
#include "harness/value_generators.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace bitwitness {

namespace {

using recognition::Candidate;
using recognition::Comparison;
using recognition::Trials;

constexpr std::uint64_t search_seed = 3;
constexpr std::size_t first_look = 64;      ///< values: when none of them comes back, no more are run
constexpr std::uint64_t patience = 64;      ///< part of the search after which values found are run
constexpr std::size_t max_separating = 64;  ///< found values that are run together

/// Drops rules until no value is found on which those left differ.
class Elimination {
 public:
  Elimination(Trials& trials, const RuleSet& rules, const RecognitionOptions& options)
      : trials_(trials), rules_(rules), options_(options), comparison_(trials, rules), random_(search_seed) {}

  void run(Recognition& found) {
    const std::vector<std::byte> values = recognition::first_values(trials_.packed_size(), options_);
    trials_.run(std::span(values).first(std::min(values.size(), first_look * trials_.packed_size())));
    if (!any_came_back()) return;
    trials_.run(values);
    found.first_difference.resize(rules_.size());
    for (std::size_t rule = 0; rule < rules_.size(); ++rule) alive_.emplace_back().rule = rule;
    settle(found);
    if (!alive_.empty()) return;
    map_all();
    settle(found);
  }

  [[nodiscard]] const std::vector<Candidate>& alive() const { return alive_; }
  [[nodiscard]] std::uint64_t searched() const { return searched_; }

 private:
  [[nodiscard]] bool any_came_back() const {
    std::size_t i = 0;
    while (i < trials_.size() && !trials_.came_back(i)) ++i;
    return i < trials_.size();
  }

  /// Compares what is left with every value tried, and tries more values as long as it helps.
  void settle(Recognition& found) {
    done_ = 0;
    drop(found);
    separate_all(found);
    if (alive_.empty()) return;
    if (!confirmed_) trials_.run(recognition::confirming_values(trials_.packed_size(), options_));
    confirmed_ = true;
    drop(found);
    separate_all(found);
  }

  /// Goes on while it helps: a routine may fail on just those values that would separate rules.
  void separate_all(Recognition& found) {
    std::size_t before = alive_.size() + 1;
    while (alive_.size() < before && separate()) {
      before = alive_.size();
      drop(found);
    }
  }

  void drop(Recognition& found) {
    for (; done_ < trials_.size() && !alive_.empty(); ++done_) {
      if (!trials_.came_back(done_)) continue;
      std::erase_if(alive_, [&](const Candidate& candidate) {
        if (comparison_.agrees(candidate, done_)) return false;
        if (candidate.order.empty()) found.first_difference[candidate.rule] = static_cast<std::uint32_t>(done_);
        return true;
      });
    }
  }

  /// Looks for values on which the rules left differ, and runs them. Returns false when there are none.
  bool separate() {
    if (alive_.size() < 2) return false;
    std::vector<std::byte> found;
    std::vector<std::byte> value(trials_.packed_size());
    const std::uint64_t end = searched_ + options_.search;
    const std::size_t kinds = options_.draws.size() + (options_.any_bits ? 1 : 0);
    // What is found is run soon: fewer rules left are compared faster.
    const std::uint64_t enough = searched_ + options_.search / patience;
    for (std::size_t drawn = 0; searched_ < end && found.size() < max_separating * value.size(); ++drawn) {
      if (!found.empty() && searched_ >= enough) break;
      // The rules left are mostly much alike: of two values, one is such that they may differ.
      const bool by_rule = drawn % 2 == 0 && rules_.draw(alive_[drawn / 2 % alive_.size()].rule, random_.next(), value);
      if (!by_rule && kinds == 0) return false;
      if (!by_rule) draw(drawn / 2 % kinds, value);
      if (separates(value)) found.insert(found.end(), value.begin(), value.end());
    }
    return trials_.run(found) > 0;
  }

  void draw(std::size_t kind, std::span<std::byte> value) {
    if (kind < options_.draws.size()) {
      options_.draws[kind](random_.next(), value);
      return;
    }
    for (std::byte& byte : value) byte = static_cast<std::byte>(random_.next());
  }

  bool separates(std::span<const std::byte> value) {
    std::vector<std::uint32_t>& first = first_words_;
    std::vector<std::uint32_t>& other = other_words_;
    first.resize(trials_.word_count());
    other.resize(trials_.word_count());
    const bool gives = comparison_.decode(alive_.front(), value, first);
    ++searched_;
    for (std::size_t i = 1; i < alive_.size(); ++i) {
      ++searched_;
      if (comparison_.decode(alive_[i], value, other) != gives || (gives && other != first)) return true;
    }
    return false;
  }

  /// Takes every rule whose words, in some order and with some signs, are the routine's on a value with distinct words.
  void map_all() {
    std::size_t anchor = 0;
    while (anchor < trials_.size() && !comparison_.has_distinct_words(anchor)) ++anchor;
    if (anchor == trials_.size()) return;
    for (std::size_t rule = 0; rule < rules_.size(); ++rule) {
      Candidate candidate;
      candidate.rule = rule;
      if (comparison_.map_words(candidate, anchor)) alive_.push_back(std::move(candidate));
    }
  }

  Trials& trials_;
  const RuleSet& rules_;
  const RecognitionOptions& options_;
  Comparison comparison_;
  RandomWords random_;
  std::vector<Candidate> alive_;
  std::vector<std::uint32_t> first_words_;
  std::vector<std::uint32_t> other_words_;
  std::size_t done_ = 0;
  bool confirmed_ = false;
  std::uint64_t searched_ = 0;
};

RecognitionVerdict verdict_of(const Recognition& found) {
  if (found.compared == found.unwritten) return RecognitionVerdict::nothing;
  if (found.matches.empty()) return RecognitionVerdict::none;
  return found.matches.size() == 1 ? RecognitionVerdict::one : RecognitionVerdict::several;
}

}  // namespace

std::string_view to_string(RecognitionVerdict verdict) {
  switch (verdict) {
    case RecognitionVerdict::one:
      return "one";
    case RecognitionVerdict::several:
      return "several";
    case RecognitionVerdict::none:
      return "none";
    case RecognitionVerdict::nothing:
      break;
  }
  return "nothing";
}

Recognition recognize(Machine& machine, const Signature& signature, const Environment& environment,
                      const RuleSet& rules, const RecognitionOptions& options) {
  const std::size_t words = rules.word_names().size();
  if (signature.packed_size() != rules.packed_size() || signature.word_count() != words) {
    throw Error(fmt::format("signature {} takes {} bytes and gives {} words, the rules take {} and give {}",
                            to_string(signature), signature.packed_size(), signature.word_count(), rules.packed_size(),
                            words));
  }
  Recognition found;
  found.rules = rules.size();
  Trials trials(machine, signature, environment);
  Elimination elimination(trials, rules, options);
  elimination.run(found);
  found.searched = elimination.searched();
  trials.flip_bits(found, options.bases);
  trials.describe(found, options.sample);
  if (found.compared == found.unwritten) return found;
  Comparison comparison(trials, rules);
  for (const Candidate& match : elimination.alive()) found.matches.push_back(comparison.describe(match));
  found.nearest = recognition::rank_nearest(trials, rules, found, options.nearest);
  found.verdict = verdict_of(found);
  return found;
}

Recognition recognize(const Image& image, const Routine& routine, const Environment& environment, const RuleSet& rules,
                      const RecognitionOptions& options, const MachineOptions& machine) {
  const auto made = make_unicorn_machine(image, routine, machine);
  return recognize(*made, routine.signature, environment, rules, options);
}

}  // namespace bitwitness
