#pragma once
#include "harness/chunk_digests.hpp"
#include "harness/facts.hpp"
#include "harness/report.hpp"
#include "harness/tally.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// What runs of a witness find, chunk by chunk.

namespace bitwitness {

/// What running a sample again alone showed.
struct Sampled {
  std::uint64_t count = 0;
  std::uint64_t unstable = 0;
  Smallest<std::vector<std::byte>> first{1};
};

/// What was found in one environment: of a chunk, or in all.
struct EnvironmentFindings {
  EnvironmentFindings(std::size_t limit, std::size_t word_count) : tally(limit, word_count) {}

  void merge(EnvironmentFindings&& other);

  Tally tally;
  Sampled sampled;
  FactSum facts;
  double seconds = 0;
};

/// What was found in all environments.
struct Findings {
  /// Nothing yet; what is kept is bounded as a Tally bounds it.
  Findings(std::size_t environments, std::size_t limit, std::size_t word_count);

  void merge(Findings&& other);

  std::vector<EnvironmentFindings> each;  ///< one per environment
  EnvironmentEffects effects;
};

/// All that a run has found of the chunks that it has done; a chunk counts in every environment or in none. With this
/// another run can go on.
struct RunState {
  RunState(std::size_t environments, std::size_t limit, std::size_t word_count, bool keep_digests)
      : found(environments, limit, word_count), digests(environments, keep_digests), paths(environments) {}

  Findings found;
  ChunkDigests digests;                         ///< of the chunks done
  std::string witness;                          ///< its name; empty before the first chunk
  std::vector<std::vector<std::string>> paths;  ///< per environment: notes about the first value
  bool is_complete = false;                     ///< every chunk is done, and all is said of what was found
};

}  // namespace bitwitness
