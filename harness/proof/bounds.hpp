#pragma once
#include "harness/proof/expression.hpp"

namespace bitwitness::proof {

/// Bounds of an expression's value as an unsigned number, both included. They need not be reached.
struct Bounds {
  Bits lowest = 0;
  Bits highest = 0;
};

/// Finds bounds that hold for every packed value, from what the expression says about single bits and from sums and
/// choices; looks at most at `budget` nodes and takes the widest bounds beyond.
Bounds bounds_of(const Store& store, NodeId id, unsigned budget = 256);

}  // namespace bitwitness::proof
