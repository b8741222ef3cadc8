#pragma once
#include "harness/report.hpp"

namespace bitwitness::cli {

/// Returns the versions of the libraries in use and the name of this machine's processor.
Engine this_engine();

}  // namespace bitwitness::cli
