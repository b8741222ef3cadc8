#pragma once
#include <filesystem>

namespace bitwitness::cli {

/// Returns the path of the stand-in that is used without --image: beside the program as built or installed. Throws
/// Error.
std::filesystem::path find_stand_in();

}  // namespace bitwitness::cli
