#pragma once
#include "harness/image.hpp"
#include "harness/machine.hpp"
#include "harness/signature.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bitwitness {

enum class Confidence : std::uint8_t {
  /// Every observation fits and nothing else that was considered does: all that the code was seen to read before it
  /// writes is accounted for, results are where conventions have them, and no code was left out that could tell more.
  certain,
  likely,   ///< fits, but so does something else, or a part of it is a convention of reading
  possible  ///< contradicted by some of the calls
};

std::string_view to_string(Confidence confidence);

/// A signature that a routine may have.
struct Candidate {
  Signature signature;
  Confidence confidence = Confidence::certain;
  std::vector<std::string> support;   ///< what was observed, one clause each
  std::vector<std::string> doubts{};  ///< of these, why it is not certain by itself
};

struct InferenceOptions {
  Environment environment;
  std::uint64_t seed = 1;         ///< of the contents that the routine is called with
  std::uint64_t budget = 50'000;  ///< instructions of one call
};

/// What executing a routine tells of its signature.
struct Inference {
  std::vector<Candidate> candidates;  ///< best first; several certain ones never
  std::vector<std::string> seen;      ///< one sentence each: what no signature expresses, and why there is none
  /// Of the first candidate: [output word][bit of the packed value], whether flipping the bit changed the word.
  std::vector<std::vector<bool>> dependencies;
  std::size_t calls = 0;  ///< made in all

  /// The first candidate when it is certain, otherwise null.
  [[nodiscard]] const Candidate* certain() const;
};

/// Executes the code at an address many times and infers its signature. Takes up to a second or two. Code that faults
/// on everything, never returns, gives nothing or asks for an import yields no candidate, and `seen` says so. Throws
/// Error when the address is not in executable memory.
Inference infer(const Image& image, std::uint64_t address, const InferenceOptions& options = {});

}  // namespace bitwitness
