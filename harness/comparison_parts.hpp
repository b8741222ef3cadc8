#pragma once
#include "harness/comparison.hpp"

#include <string>

// What the writers of comparisons share. Not for other modules.

namespace bitwitness::comparison_parts {

/// Changes in the order that a reader wants them: what is wrong first.
inline constexpr std::array reading_order = {Change::appeared, Change::worse,   Change::gone,     Change::fixed,
                                             Change::better,   Change::changed, Change::unchanged};

/// Prints how many values there are of each change, of those that can be told: "new 1, worse 0, …".
std::string told_text(const RunComparison& run);

/// Says what the lists do not tell, and what follows from the counts all the same; empty when they tell everything.
std::string untold_text(const RunComparison& run);

/// Says in one line what the comparison came to.
std::string verdict_text(const Comparison& comparison);

/// Prints how a decoder's words differ from the reference: "x 1, w nan" with the distances; "agrees", or "not run".
std::string distances_text(const RunComparison& run, const ValueChange& change, bool is_after);

}  // namespace bitwitness::comparison_parts
