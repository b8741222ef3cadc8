#pragma once
#include "harness/image.hpp"
#include "harness/machine.hpp"
#include "harness/report.hpp"
#include "harness/subject.hpp"
#include "harness/values.hpp"
#include "harness/witness_run.hpp"

#include <span>
#include <vector>

namespace bitwitness {

/// What a run may be told besides its subject.
using VerifyOptions = RunOptions;

/// Runs a routine and a native decoder on every value and compares their words bit for bit. The report does not depend
/// on the number of threads. Throws Error when signature and decoder disagree on sizes or the routine cannot be called.
RunReport verify(const Image& image, const Routine& routine, const Subject& subject, const Environment& environment,
                 const ValueSet& values, const VerifyOptions& options = {});

/// One routine in several environments.
struct EnvironmentReports {
  std::vector<RunReport> runs;  ///< one per environment, each as `verify` gives it
  EnvironmentEffects effects;   ///< over these runs
  std::vector<double> shares;   ///< per environment, of the time that the values took; their sum is 1
};

/// Does what `verify` does in several environments, of which there must be one, in one pass over the values.
EnvironmentReports verify_environments(const Image& image, const Routine& routine, const Subject& subject,
                                       std::span<const Environment> environments, const ValueSet& values,
                                       const VerifyOptions& options = {});

}  // namespace bitwitness
