#pragma once
#include "harness/machine.hpp"
#include "harness/report.hpp"
#include "harness/subject.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

namespace bitwitness {

/// The findings with the smallest positions, at most `limit` of them.
template <typename Finding>
class Smallest {
 public:
  explicit Smallest(std::size_t limit) : limit_(limit) {}

  [[nodiscard]] bool wants(std::uint64_t position) const {
    return limit_ != 0 && (kept_.size() < limit_ || position < kept_.rbegin()->first);
  }

  void add(std::uint64_t position, Finding finding) {
    kept_.emplace(position, std::move(finding));
    if (kept_.size() > limit_) kept_.erase(std::prev(kept_.end()));
  }

  void merge(Smallest&& other) {
    for (auto& [position, finding] : other.kept_) {
      if (wants(position)) add(position, std::move(finding));
    }
  }

  /// Lets each finding be changed.
  template <typename Change>
  void change(const Change& change_one) {
    for (auto& [position, finding] : kept_) change_one(finding);
  }

  /// Returns the findings by position.
  [[nodiscard]] const std::map<std::uint64_t, Finding>& by_position() const { return kept_; }

  std::vector<Finding> take() {
    std::vector<Finding> all;
    for (auto& [position, finding] : kept_) all.push_back(std::move(finding));
    return all;
  }

 private:
  std::size_t limit_;
  std::map<std::uint64_t, Finding> kept_;
};

/// Consecutive values with the words that a reference gave for them; words of a value that did not return are 0.
struct ReferenceChunk {
  std::uint64_t first = 0;  ///< position of the first value among all
  std::span<const std::byte> packed;
  std::span<const OutcomeKind> outcomes;
  std::span<const std::uint32_t> words;
};

/// Values on which a decoder is known to differ.
class KnownValues {
 public:
  KnownValues() = default;

  /// Takes distinct values of one size.
  explicit KnownValues(std::vector<std::vector<std::byte>> values);

  /// Returns the index of a value among those given, or `size()`.
  [[nodiscard]] std::size_t find(std::span<const std::byte> value) const;

  [[nodiscard]] std::size_t size() const { return by_value_.size(); }

 private:
  std::map<std::vector<std::byte>, std::size_t> by_value_;
};

/// What was found of some values. The tallies of all of them merged are the same however the values were shared out.
struct Tally {
  /// Keeps `limit` differences and as many failures, of values with so many words.
  Tally(std::size_t limit, std::size_t word_count) : differences(limit), failures(limit), differing(word_count, 0) {}

  /// Counts the values of a chunk, and those that gave no result by kind. Of the latter, `incidents` may say more: one
  /// each, by rising index, or none at all.
  void add_outcomes(const ReferenceChunk& chunk, std::span<const Incident> incidents);

  /// Decodes the values that returned and compares bit for bit; those that are known to differ are told apart. Returns
  /// false when a stop was requested meanwhile: nothing has been added then. Throws what the decoder throws.
  bool compare(const ReferenceChunk& chunk, const Subject& subject, const std::stop_token& stop,
               const KnownValues& known = {});

  /// Returns those values of a chunk that returned, one behind the other; valid until the next call. `size` is that of
  /// one value in bytes.
  std::span<const std::byte> returned_values(const ReferenceChunk& chunk, std::size_t size);

  void merge(Tally&& other);

  /// Returns how many values differed or gave no result.
  [[nodiscard]] std::uint64_t wrong() const;

  Counts counts;
  Smallest<Difference> differences;
  Smallest<Failure> failures;
  std::vector<std::uint64_t> differing;  ///< per word
  std::uint64_t max_ulp = 0;
  std::vector<bool> known_held;  ///< per known value: it was there and differed; empty when none did

 private:
  void add_difference(std::uint64_t position, std::span<const std::byte> value,
                      std::span<const std::uint32_t> reference, std::span<const std::uint32_t> words,
                      const Subject& subject, const KnownValues& known);

  std::vector<std::uint32_t> words_;  // of one value, or of all that returned when the decoder takes whole batches
  std::vector<std::byte> returned_;
};

}  // namespace bitwitness
