#pragma once
#include "harness/report.hpp"

#include <string_view>

namespace bitwitness::cli {

/// Returns the versions of the libraries in use and the name of this machine's processor.
Engine this_engine();

/// Returns the same with what comes of the self-test, for a witness that is or has the emulator. The test is run once.
Engine this_engine(std::string_view witness);

}  // namespace bitwitness::cli
