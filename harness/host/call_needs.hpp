#pragma once
#include "harness/host/host_code.hpp"
#include "harness/image.hpp"

#include <cstdint>

// Inside of harness/host/ only.

namespace bitwitness::host {

/// Reads off a routine's code, and that of what it calls, what a caller must set and look at anew for each call. All of
/// it where the code cannot be followed to its ends.
CallNeeds needs_of(const Image& image, std::uint64_t address);

/// The same of a caller that looks at everything.
CallNeeds all_needs(const Image& image, std::uint64_t address);

}  // namespace bitwitness::host
