#pragma once
#include "harness/findings.hpp"
#include "harness/values.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace bitwitness {

/// The run that a state is of.
struct RunStateShape {
  std::size_t environments = 1;
  std::size_t limit = 0;       ///< differences and failures to keep
  std::size_t word_count = 0;  ///< output words
  const ValueSet& values;
};

/// Returns a state, whose digests are kept, as bytes (vectors/README.md has the layout).
std::string to_bytes(const RunState& state);

/// Bytes with where they are from, for messages.
struct PlacedBytes {
  std::span<const std::byte> bytes;
  std::uint64_t offset = 0;  ///< in the file
  std::string_view file;
};

/// Reads a state back. Strict: throws Error "FILE: offset N: …" for bytes that to_bytes does not give of a run of that
/// shape: counts that do not add up, findings of values that are not the run's, another number of digests.
RunState read_run_state(const PlacedBytes& placed, const RunStateShape& shape);

}  // namespace bitwitness
