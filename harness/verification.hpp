#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>

#include "harness/image.hpp"
#include "harness/machine.hpp"
#include "harness/report.hpp"
#include "harness/subject.hpp"
#include "harness/values.hpp"

namespace bitwitness {

/// How far a run is.
struct Progress {
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  std::uint64_t differed = 0;  ///< values that differ or gave no result, so far
};

/// Makes the witness of one thread.
using MachineFactory = std::function<std::unique_ptr<Machine>(const Image&, const Routine&, const MachineOptions&)>;

/// What a run may be told besides its subject.
struct VerifyOptions {
  unsigned jobs = 1;            ///< threads, one machine each
  std::size_t limit = 20;       ///< differences and failures to keep; counts are never capped
  std::size_t sample = 1024;     ///< values to run again alone
  MachineOptions machine;
  MachineFactory make_machine = [](const Image& image, const Routine& routine, const MachineOptions& options) {
    return make_unicorn_machine(image, routine, options);
  };
  std::function<void(const Progress&)> progress;  ///< called from one thread at a time, a few times a second
  std::stop_token stop;                           ///< when requested, what was done is reported
};

/// Runs a routine and a native decoder on every value and compares their words bit for bit. The report does not depend on
/// the number of threads. Throws Error when signature and decoder disagree on sizes or the routine cannot be called.
RunReport verify(const Image& image, const Routine& routine, const Subject& subject, const Environment& environment,
                 const ValueSet& values, const VerifyOptions& options = {});

}  // namespace bitwitness
