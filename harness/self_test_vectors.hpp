#pragma once
#include "harness/self_test.hpp"

// The vectors of the self-test, by what they are about. Not for other modules.

namespace bitwitness::self_test_vectors {

std::span<const SelfTestGroup> x87_groups();
std::span<const SelfTestGroup> sse_groups();

/// Groups whose vectors Unicorn 2.0.1 answers otherwise, every one of them.
std::span<const SelfTestGroup> quirk_groups();

}  // namespace bitwitness::self_test_vectors
