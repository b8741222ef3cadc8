#include "harness/probe/recognition_trials.hpp"

#include "harness/report_parts.hpp"
#include "harness/value_generators.hpp"

#include <algorithm>
#include <iterator>

namespace bitwitness::recognition {

namespace {

constexpr std::uint64_t first_seed = 1;
constexpr std::uint64_t confirming_seed = 2;
constexpr std::size_t max_boundaries = 4096;

void append(std::vector<std::byte>& values, ValueRows& rows) {
  const std::size_t count = rows.size();
  const std::size_t bytes = count * rows.packed_size();
  const auto packed = rows.release_packed(0, count);
  values.insert(values.end(), packed.get(), packed.get() + bytes);
}

std::vector<std::byte> drawn(std::size_t packed_size, const RecognitionOptions& options, std::size_t count,
                             std::uint64_t seed) {
  std::vector<std::byte> values;
  if (options.any_bits) {
    ValueRows rows(packed_size);
    append_random(rows, checked_fields(packed_size, options.fields), count, seed);
    append(values, rows);
  }
  RandomWords random(seed);
  std::vector<std::byte> value(packed_size);
  for (const ValueDraw& draw : options.draws) {
    for (std::size_t i = 0; i < count; ++i) {
      draw(random.next(), value);
      values.insert(values.end(), value.begin(), value.end());
    }
  }
  return values;
}

}  // namespace

std::vector<std::byte> first_values(std::size_t packed_size, const RecognitionOptions& options) {
  std::vector<std::byte> values = drawn(packed_size, options, options.values, first_seed);
  if (!options.any_bits) return values;
  std::vector<BitField> fields = checked_fields(packed_size, options.fields);
  SpecialPlan plan = plan_special(std::move(fields));
  while (plan.count > max_boundaries && plan.detail > 0) {
    --plan.detail;
    plan.count = 1;
    for (const BitField& field : plan.fields) plan.count *= boundary_codes(field.width, plan.detail).size();
  }
  if (plan.count > max_boundaries) return values;
  ValueRows rows(packed_size);
  append_special(rows, plan);
  append(values, rows);
  return values;
}

std::vector<std::byte> confirming_values(std::size_t packed_size, const RecognitionOptions& options) {
  return drawn(packed_size, options, options.confirmations, confirming_seed);
}

Trials::Trials(Machine& machine, const Signature& signature, const Environment& environment)
    : machine_(machine),
      environment_(environment),
      packed_size_(signature.packed_size()),
      word_count_(signature.word_count()) {}

std::span<const std::byte> Trials::value(std::size_t i) const {
  return std::span(values_).subspan(i * packed_size_, packed_size_);
}

std::span<const std::uint32_t> Trials::words(std::size_t i) const {
  return std::span(words_).subspan(i * word_count_, word_count_);
}

bool Trials::came_back(std::size_t i) const {
  return outcomes_[i] == OutcomeKind::returned || outcomes_[i] == OutcomeKind::unwritten;
}

std::size_t Trials::run(std::span<const std::byte> packed) {
  std::vector<std::byte> fresh;
  for (std::size_t at = 0; at < packed.size(); at += packed_size_) {
    const auto value = packed.subspan(at, packed_size_);
    std::string key(packed_size_, '\0');
    std::ranges::transform(value, key.begin(), [](std::byte byte) { return static_cast<char>(byte); });
    if (known_.insert(std::move(key)).second) fresh.insert(fresh.end(), value.begin(), value.end());
  }
  if (fresh.empty()) return 0;
  Batch batch;
  machine_.run(batch, fresh, environment_);
  if (failure_.empty()) {
    const auto failed = std::ranges::find_if(
        batch.incidents, [](const Incident& incident) { return incident.kind != OutcomeKind::unwritten; });
    if (failed != batch.incidents.end()) {
      const auto value = std::span(fresh).subspan(failed->index * packed_size_, packed_size_);
      failed_value_.assign(value.begin(), value.end());
      failure_ = report_parts::failure_text(
          {failed_value_, failed->kind, failed->address, failed->instruction, failed->reason});
    }
  }
  values_.insert(values_.end(), fresh.begin(), fresh.end());
  outcomes_.insert(outcomes_.end(), batch.outcomes.begin(), batch.outcomes.end());
  words_.insert(words_.end(), batch.words.begin(), batch.words.end());
  return fresh.size() / packed_size_;
}

void Trials::describe(Recognition& found, std::size_t sample) {
  found.tried = size();
  found.failed_value = failed_value_;
  found.failure = failure_;
  found.values = values_;
  for (std::size_t i = 0; i < size(); ++i) {
    if (outcomes_[i] == OutcomeKind::unwritten) ++found.unwritten;
    ++(came_back(i) ? found.compared : found.failed);
  }
  for (std::size_t i = 0; i < std::min(sample, size()); ++i) {
    Batch alone;
    machine_.run_alone(alone, value(i), environment_);
    ++found.sampled;
    const bool same_words = outcomes_[i] != OutcomeKind::returned ||
                            std::ranges::equal(std::span(alone.words).first(word_count_), words(i));
    if (alone.outcomes.at(0) != outcomes_[i] || !same_words) ++found.unstable;
  }
  for (const auto& [what, seen] : machine_.observations()) {
    found.observations.push_back(std::to_string(seen.values) + " x " + what);
  }
}

void Trials::flip_bits(Recognition& found, std::size_t bases) {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < size() && chosen.size() < bases; ++i) {
    if (outcomes_[i] == OutcomeKind::returned) chosen.push_back(i);
  }
  found.bases = chosen.size();
  if (chosen.empty()) return;
  std::vector<std::byte> flipped;
  for (std::size_t bit = 0; bit < 8 * packed_size_; ++bit) {
    for (const std::size_t base : chosen) {
      const auto from = value(base);
      flipped.insert(flipped.end(), from.begin(), from.end());
      flipped[flipped.size() - packed_size_ + bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    }
  }
  Batch batch;
  machine_.run(batch, flipped, environment_);
  for (std::size_t bit = 0; bit < 8 * packed_size_; ++bit) {
    BitUse use;
    std::vector<bool> changes(word_count_);
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      const std::size_t at = bit * chosen.size() + k;
      bool changed = batch.outcomes[at] != OutcomeKind::returned;
      for (std::size_t word = 0; !changed && word < word_count_; ++word) {
        changed = batch.words[at * word_count_ + word] != words(chosen[k])[word];
      }
      if (!changed) continue;
      ++use.changed;
      if (batch.outcomes[at] != OutcomeKind::returned) continue;
      for (std::size_t word = 0; word < word_count_; ++word) {
        if (batch.words[at * word_count_ + word] != words(chosen[k])[word]) changes[word] = true;
      }
    }
    for (std::size_t word = 0; word < word_count_; ++word) {
      if (changes[word]) use.words.push_back(word);
    }
    found.bits.push_back(std::move(use));
  }
}

}  // namespace bitwitness::recognition
