#pragma once
#include "harness/cli/census.hpp"

#include <span>
#include <string>

namespace bitwitness::cli {

/// Writes a census as JSON, schema "bitwitness-census/1". `files` are the ones that it was taken of.
std::string to_json(const Census& census, std::span<const std::string> files);

/// Writes a census for people.
std::string to_text(const Census& census, std::span<const std::string> files);

}  // namespace bitwitness::cli
