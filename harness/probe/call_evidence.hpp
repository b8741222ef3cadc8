#pragma once
#include "harness/probe/call_sites.hpp"
#include "harness/probe/exploration.hpp"
#include "harness/probe/inference.hpp"
#include "harness/probe/usage.hpp"

#include <span>

namespace bitwitness {

/// What candidates are held against: the calls of the routine and what executing it told of its words.
struct CallEvidence {
  const DirectCalls& calls;
  const Usage& usage;
  std::span<const Place> places;
  bool is_64_bit = false;
};

/// Takes an argument to which every call gives the same immediate for a constant: the reading of the candidates that
/// says so comes before the one that takes it for packed bytes, and constants of which any value does get that one.
void settle_constants(std::vector<Candidate>& candidates, const CallEvidence& evidence);

/// Puts the reading of a result first that the callers share, where there are two.
void order_results(std::vector<Candidate>& candidates, const CallEvidence& evidence);

/// Says of each candidate how many calls fit it. One that more calls contradict than fit is at most likely, and `seen`
/// says why. Calls never make a candidate certain.
void weigh_calls(Inference& inference, const CallEvidence& evidence);

}  // namespace bitwitness
