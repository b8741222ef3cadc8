#pragma once
#include "harness/cli/options.hpp"
#include "harness/image.hpp"

#include <string>
#include <vector>

namespace bitwitness::cli {

/// Returns an image with what --with-dll and --memory put around it, and its C library's functions bound to code of our
/// own unless --no-runtime is given. Throws Error that names the option.
Image with_surroundings(Image image, const ImageArguments& arguments);

/// The files that these options read, besides the image.
std::vector<std::string> surrounding_files(const ImageArguments& arguments);

/// The options as a command line repeats them.
std::vector<std::string> surrounding_options(const ImageArguments& arguments);

}  // namespace bitwitness::cli
