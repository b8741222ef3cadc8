#include "harness/tally.hpp"

#include <algorithm>
#include <string>

namespace bitwitness {
namespace {

std::uint64_t& count_of(Counts& counts, OutcomeKind kind) {
  switch (kind) {
    case OutcomeKind::out_of_budget:
      return counts.out_of_budget;
    case OutcomeKind::unwritten:
      return counts.unwritten;
    case OutcomeKind::disputed:
      return counts.disputed;
    case OutcomeKind::faulted:
    case OutcomeKind::returned:
      break;
  }
  return counts.faulted;
}

template <typename T>
std::vector<T> copy_of(std::span<const T> items) {
  return {items.begin(), items.end()};
}

}  // namespace

KnownValues::KnownValues(std::vector<std::vector<std::byte>> values) {
  for (std::size_t i = 0; i < values.size(); ++i) by_value_.emplace(std::move(values[i]), i);
}

std::size_t KnownValues::find(std::span<const std::byte> value) const {
  if (by_value_.empty()) return 0;
  const auto found = by_value_.find(copy_of(value));
  return found == by_value_.end() ? size() : found->second;
}

void Tally::add_outcomes(const ReferenceChunk& chunk, std::span<const Incident> incidents) {
  const std::size_t count = chunk.outcomes.size();
  counts.run += count;
  std::size_t incident = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const OutcomeKind kind = chunk.outcomes[i];
    if (kind == OutcomeKind::returned) continue;
    ++count_of(counts, kind);
    const Incident* what = incidents.empty() ? nullptr : &incidents[incident++];
    if (!failures.wants(chunk.first + i)) continue;
    const std::size_t size = chunk.packed.size() / count;
    Failure failure;
    failure.value = copy_of(chunk.packed.subspan(i * size, size));
    failure.kind = kind;
    if (what != nullptr) {
      failure.address = what->address;
      failure.instruction = what->instruction;
      failure.reason = what->reason;
    }
    failures.add(chunk.first + i, std::move(failure));
  }
}

std::span<const std::byte> Tally::returned_values(const ReferenceChunk& chunk, std::size_t size) {
  if (std::ranges::all_of(chunk.outcomes, [](OutcomeKind kind) { return kind == OutcomeKind::returned; })) {
    return chunk.packed;
  }
  returned_.clear();
  for (std::size_t i = 0; i < chunk.outcomes.size(); ++i) {
    if (chunk.outcomes[i] != OutcomeKind::returned) continue;
    const auto value = chunk.packed.subspan(i * size, size);
    returned_.insert(returned_.end(), value.begin(), value.end());
  }
  return returned_;
}

bool Tally::compare(const ReferenceChunk& chunk, const Subject& subject, const std::stop_token& stop,
                    const KnownValues& known) {
  const std::size_t size = subject.packed_size;
  const std::size_t word_count = subject.word_names.size();
  const bool in_batches = static_cast<bool>(subject.decode_batch);
  if (in_batches) {
    const auto packed = returned_values(chunk, size);
    words_.resize(packed.size() / size * word_count);
    if (!packed.empty() && !subject.decode_batch(packed, words_, stop)) return false;
  } else {
    words_.resize(word_count);
  }
  std::size_t next_word = 0;
  for (std::size_t i = 0; i < chunk.outcomes.size(); ++i) {
    if (chunk.outcomes[i] != OutcomeKind::returned) continue;
    const auto value = chunk.packed.subspan(i * size, size);
    const auto reference = chunk.words.subspan(i * word_count, word_count);
    const auto words = std::span(words_).subspan(next_word, word_count);
    if (in_batches) {
      next_word += word_count;
    } else {
      subject.decode(value, words);
    }
    if (std::ranges::equal(reference, words)) {
      ++counts.agreed;
    } else {
      add_difference(chunk.first + i, value, reference, words, subject, known);
    }
  }
  return true;
}

void Tally::add_difference(std::uint64_t position, std::span<const std::byte> value,
                           std::span<const std::uint32_t> reference, std::span<const std::uint32_t> words,
                           const Subject& subject, const KnownValues& known) {
  if (const std::size_t index = known.find(value); index < known.size()) {
    ++counts.known;
    known_held.resize(known.size());
    known_held[index] = true;
    return;
  }
  ++counts.differed;
  for (std::size_t word = 0; word < reference.size(); ++word) {
    if (reference[word] == words[word]) continue;
    ++differing[word];
    max_ulp = std::max(max_ulp, ulp_distance(reference[word], words[word], subject.word_kind));
  }
  if (differences.wants(position)) differences.add(position, {copy_of(value), copy_of(reference), copy_of(words)});
}

void Tally::merge(Tally&& other) {
  counts.run += other.counts.run;
  counts.agreed += other.counts.agreed;
  counts.differed += other.counts.differed;
  counts.known += other.counts.known;
  counts.faulted += other.counts.faulted;
  counts.out_of_budget += other.counts.out_of_budget;
  counts.unwritten += other.counts.unwritten;
  counts.disputed += other.counts.disputed;
  differences.merge(std::move(other.differences));
  failures.merge(std::move(other.failures));
  for (std::size_t word = 0; word < differing.size(); ++word) differing[word] += other.differing[word];
  max_ulp = std::max(max_ulp, other.max_ulp);
  known_held.resize(std::max(known_held.size(), other.known_held.size()));
  for (std::size_t i = 0; i < other.known_held.size(); ++i) {
    if (other.known_held[i]) known_held[i] = true;
  }
}

std::uint64_t Tally::wrong() const {
  return counts.differed + counts.without_result();
}

}  // namespace bitwitness
