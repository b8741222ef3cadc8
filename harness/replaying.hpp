#pragma once
#include "harness/known_differences.hpp"
#include "harness/report.hpp"
#include "harness/subject.hpp"
#include "harness/vectors/vector_file.hpp"
#include "harness/witness_run.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace bitwitness {

/// What a replay may be told.
struct ReplayOptions {
  unsigned jobs = 1;                                ///< threads
  std::size_t limit = 20;                           ///< differences and failures to keep; counts are never capped
  std::vector<std::vector<std::byte>> only{};       ///< values to check; all of the file's when empty
  std::vector<std::vector<std::byte>> known{};      ///< values on which the decoder is known to differ
  std::function<void(const Progress&)> progress{};  ///< called from one thread at a time, a few times a second
  std::stop_token stop{};                           ///< when requested, what was done is reported
};

/// What a replay showed.
struct Replay {
  RunReport report;
  std::vector<KnownState> known;  ///< one per value of ReplayOptions::known
};

/// Checks a decoder against a vector file; each block's digests are verified before its words are used. Of a file of
/// digests, all values of a group that differs count as differing, and notes name the groups. The report does not
/// depend on the number of threads. Throws Error for a damaged block, a decoder of other sizes, a value of `only` that
/// the file has not, and for `only` or `known` with a file of digests.
Replay replay(const VectorFile& file, const Subject& subject, const ReplayOptions& options = {});

}  // namespace bitwitness
