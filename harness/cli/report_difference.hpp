#pragma once
#include "harness/machine.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bitwitness::cli {

/// A value on which routine and decoder differed, with all it takes to run it again.
struct ReportedDifference {
  Routine routine;
  std::string decoder;
  Environment environment;
  std::vector<std::byte> value;
  std::vector<std::uint32_t> reference;
  std::vector<std::uint32_t> subject;
};

/// What a report of `verify` has for a trace.
struct DifferenceSearch {
  std::string image_name;
  std::string image_sha256;
  std::optional<ReportedDifference> first;  ///< of the first run that lists one
  std::uint64_t differed = 0;               ///< values that differed in all runs, listed or not
};

/// Reads a JSON report "bitwitness-report/1". Throws Error that names the file and what in it is missing, of another
/// type or not to be read.
DifferenceSearch find_difference(const std::string& path);

}  // namespace bitwitness::cli
