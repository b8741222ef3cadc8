#pragma once
#include "harness/machine.hpp"
#include "harness/probe/recognition.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

// What the parts of recognition share. Not for other modules.

namespace bitwitness::recognition {

/// The values that a routine was run on, each once, and what it gave.
class Trials {
 public:
  Trials(Machine& machine, const Signature& signature, const Environment& environment);

  /// Runs the values that were not tried before; returns how many those were.
  std::size_t run(std::span<const std::byte> packed);

  [[nodiscard]] std::size_t size() const { return outcomes_.size(); }
  [[nodiscard]] OutcomeKind outcome(std::size_t i) const { return outcomes_[i]; }
  [[nodiscard]] std::span<const std::byte> value(std::size_t i) const;
  [[nodiscard]] std::span<const std::uint32_t> words(std::size_t i) const;
  [[nodiscard]] std::span<const std::byte> values() const { return values_; }
  [[nodiscard]] std::size_t packed_size() const { return packed_size_; }
  [[nodiscard]] std::size_t word_count() const { return word_count_; }

  /// Tells whether a value can be compared: the routine came back.
  [[nodiscard]] bool came_back(std::size_t i) const;

  /// Counts outcomes, runs the first values again alone, and adds what the machine saw.
  void describe(Recognition& found, std::size_t sample);

  /// Flips each bit of the first values that returned.
  void flip_bits(Recognition& found, std::size_t bases);

 private:
  Machine& machine_;
  Environment environment_;
  std::size_t packed_size_;
  std::size_t word_count_;
  std::vector<std::byte> values_;
  std::vector<OutcomeKind> outcomes_;
  std::vector<std::uint32_t> words_;
  std::vector<std::byte> failed_value_;
  std::string failure_;
  std::unordered_set<std::string> known_;
};

/// The values tried first, then those on which what is left is confirmed. Rules are separated fastest by random values,
/// so those come first.
std::vector<std::byte> first_values(std::size_t packed_size, const RecognitionOptions& options);
std::vector<std::byte> confirming_values(std::size_t packed_size, const RecognitionOptions& options);

/// A rule, and how the routine's words are its words; no order means as they stand.
struct Candidate {
  std::size_t rule = 0;
  std::vector<MappedWord> order;
};

/// How many trials and words agree with a candidate.
struct Score {
  std::uint64_t agreed = 0;
  std::uint64_t words_agreed = 0;
  std::uint64_t words_close = 0;
};

/// Compares rules with trials.
class Comparison {
 public:
  Comparison(const Trials& trials, const RuleSet& rules);

  /// Decodes a value by a rule, in the routine's order of words. Returns false when the rule gives no result.
  bool decode(const Candidate& candidate, std::span<const std::byte> value, std::span<std::uint32_t> words);

  /// Tells whether a rule agrees with the routine on trial `i`, which came back.
  bool agrees(const Candidate& candidate, std::size_t i);

  /// Counts over the first `count` trials.
  Score measure(const Candidate& candidate, std::size_t count);

  /// Counts over all trials, and finds the first difference.
  RuleStanding describe(const Candidate& candidate);

  /// Finds the order of a rule's words that gives the routine's words on trial `i`, which has distinct ones. Returns
  /// false when there is none but the order as it stands.
  bool map_words(Candidate& candidate, std::size_t i);

  /// Tells whether trial `i` tells every order of words apart.
  [[nodiscard]] bool has_distinct_words(std::size_t i) const;

 private:
  /// Compares trial `i`, which came back; adds to the score and tells whether all words agree.
  bool add(Score& score, const Candidate& candidate, std::size_t i);
  [[nodiscard]] std::uint32_t magnitude(std::uint32_t word) const;

  const Trials& trials_;
  const RuleSet& rules_;
  WordKind kind_;
  std::vector<std::uint32_t> plain_;
  std::vector<std::uint32_t> mapped_;
};

/// Returns the rules that come nearest and are not among the matches, best first.
std::vector<RuleStanding> rank_nearest(const Trials& trials, const RuleSet& rules, const Recognition& found,
                                       std::size_t count);

}  // namespace bitwitness::recognition
