#pragma once
#include "harness/probe/recognition.hpp"
#include "harness/signature.hpp"

#include <memory>

namespace bitwitness::cli {

/// The known rules of some sizes and the values that tell them apart.
struct KnownRules {
  std::unique_ptr<RuleSet> rules;  ///< null when there are none of these sizes
  RecognitionOptions options;
};

/// Returns every registered decoder with a signature's sizes, and the families of rules with them: three 15-bit
/// components (one key or two), three 10-bit ones, three f32. A registered decoder that is a member of a family stands
/// for it.
KnownRules known_rules(const Signature& signature);

}  // namespace bitwitness::cli
