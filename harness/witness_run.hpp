#pragma once
#include "harness/findings.hpp"
#include "harness/image.hpp"
#include "harness/machine.hpp"
#include "harness/report.hpp"
#include "harness/tally.hpp"
#include "harness/values.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace bitwitness {

/// How far a run is. A value counts once in each environment.
struct Progress {
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  std::uint64_t differed = 0;  ///< values that differ or gave no result, so far
  std::uint64_t resumed = 0;   ///< of `done`, those that an earlier run had done
};

/// How a run is kept, so that another one can go on where it ends.
struct RunKeeping {
  std::optional<RunState> from;               ///< what is done already, with its digests; taken by the run
  std::function<bool()> is_due;               ///< asked after each chunk whether to keep what is done by now
  std::function<void(const RunState&)> keep;  ///< called when it is due, and when a run ends or is stopped
};

/// Makes the witness of one thread.
using MachineFactory = std::function<std::unique_ptr<Machine>(const Image&, const Routine&, const MachineOptions&)>;

/// What a run may be told besides what it runs.
struct RunOptions {
  unsigned jobs = 1;          ///< threads, one machine each
  std::size_t limit = 20;     ///< differences and failures to keep; counts are never capped
  std::size_t sample = 1024;  ///< values to run again alone
  MachineOptions machine;
  MachineFactory make_machine = [](const Image& image, const Routine& routine, const MachineOptions& options) {
    return make_unicorn_machine(image, routine, options);
  };
  std::function<void(const Progress&)> progress;  ///< called from one thread at a time, a few times a second
  std::stop_token stop;                           ///< when requested, what was done is reported
  RunKeeping* keeping = nullptr;                  ///< its functions are called from one thread at a time
};

/// Takes chunk `number` (of values_per_chunk values, the last of what is left) as soon as the witness has run it, and
/// adds to the tally of that chunk. Called from several threads at once and in no order. Returns false when the run is
/// to end without this chunk.
using ChunkTaker = std::function<bool(Tally& tally, std::uint64_t number, const ReferenceChunk& chunk)>;

/// The same of a run in several environments, of which `environment` is an index.
using EnvironmentChunkTaker =
    std::function<bool(Tally& tally, std::size_t environment, std::uint64_t number, const ReferenceChunk& chunk)>;

/// What a run showed besides what was made of its chunks.
struct WitnessResult {
  std::string witness;
  std::vector<std::string> path;  ///< notes about the path of the first value
  Tally tally;                    ///< of all threads
  Isolation isolation;
  std::vector<Fact> facts;  ///< sorted
  double seconds = 0;       ///< that the threads took for it, added up
};

/// What a run in several environments showed.
struct WitnessResults {
  std::vector<WitnessResult> each;  ///< one per environment
  EnvironmentEffects effects;
  std::vector<std::string> digests;              ///< per environment, what RunReport::digest is; of what was done
  std::vector<std::vector<std::string>> chunks;  ///< per environment, what they are over; where that was asked for
};

/// Which digests of a run's chunks are wanted.
enum class ChunkDigesting : std::uint8_t { none, chained, kept };

/// Runs a routine on every value, and a sample of them again alone. The result does not depend on the number of
/// threads. Throws Error when the routine cannot be called, and what `take` throws.
WitnessResult run_witness(const Image& image, const Routine& routine, const Environment& environment,
                          const ValueSet& values, const ChunkTaker& take, const RunOptions& options);

/// Does the same in several environments, of which there must be one, in one pass over the values: every chunk is run
/// in all of them. What is said of each is what run_witness says; after an interruption all have run the same values.
/// `end` is called after the last chunk unless a stop was requested, and what it throws is thrown on. A run that is
/// kept has digests. When all was done before, nothing is executed.
WitnessResults run_witness_environments(const Image& image, const Routine& routine,
                                        std::span<const Environment> environments, const ValueSet& values,
                                        const EnvironmentChunkTaker& take, const RunOptions& options,
                                        ChunkDigesting digesting = ChunkDigesting::none,
                                        const std::function<void()>& end = {});

}  // namespace bitwitness
