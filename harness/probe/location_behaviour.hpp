#pragma once
#include "harness/probe/location.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

// What candidates do when they are executed. For the location module only.

namespace bitwitness::location {

/// Runs candidates of one wanted routine on the same packed values and compares them with the subject's words.
class Behaviour {
 public:
  /// Draws the values. Throws Error when the subject has no two values with different words.
  Behaviour(const Image& image, const WantedRoutine& wanted, const LocateOptions& options);

  /// Runs a candidate with every signature that a proposer has for it, until one agrees on every value. Returns the
  /// signature that agrees on the largest share, or nothing when none could be run.
  [[nodiscard]] std::optional<TriedSignature> best_of(std::uint64_t address, const SignatureProposer& proposer) const;

 private:
  [[nodiscard]] std::optional<TriedSignature> try_signature(std::uint64_t address, const Signature& signature) const;

  const Image& image_;
  const WantedRoutine& wanted_;
  const LocateOptions& options_;
  std::vector<std::byte> packed_;
  std::vector<std::uint32_t> expected_;
  std::size_t count_ = 0;
};

}  // namespace bitwitness::location
