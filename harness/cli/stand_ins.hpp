#pragma once
#include "harness/image.hpp"

#include <filesystem>
#include <optional>
#include <string_view>

namespace bitwitness::cli {

/// Returns the path of the stand-in that is used without --image: beside the program as built or installed. Throws
/// Error.
std::filesystem::path find_stand_in();

/// Returns the signature of a routine of one of this project's own stand-in executables, or nothing for any other
/// image.
std::optional<std::string_view> stand_in_signature(const Image& image, std::string_view routine);

}  // namespace bitwitness::cli
