#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

// Copies of decoders/packed_quat48.hpp with one change each, which make_mutants writes.

namespace bitwitness::tests {

/// Words by index; a changed index that lies outside is brought inside, so that every mutant can be run.
class MutantWords {
 public:
  explicit constexpr MutantWords(std::span<std::uint32_t> words) : words_(words) {}
  constexpr std::uint32_t& operator[](std::size_t index) const { return words_[index % words_.size()]; }

 private:
  std::span<std::uint32_t> words_;
};

struct Mutant {
  const char* change;
  void (*decode)(std::span<const std::byte> packed, MutantWords words);
};

/// Returns all of them; the first has no change.
std::span<const Mutant> mutants();

}  // namespace bitwitness::tests
