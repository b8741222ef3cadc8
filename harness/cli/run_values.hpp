#pragma once
#include "harness/cli/options.hpp"
#include "harness/cli/selection.hpp"
#include "harness/image.hpp"
#include "harness/subject.hpp"
#include "harness/values.hpp"

#include <cstddef>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace bitwitness::cli {

/// Builds the values of that size and those fields for a routine, from the sources that the options name; says on
/// standard error how far a corpus is. Throws Error that names the routine.
ValueSet build_values(const SelectedRoutine& selected, std::size_t packed_size, std::span<const BitField> fields,
                      const ValueArguments& arguments, unsigned jobs, const std::stop_token& stop);

/// Returns the notes that a run begins with: what the target and the values' sources say, and what the environment
/// means.
std::vector<std::string> first_notes(const SelectedRoutine& selected, const ValueSet& values,
                                     const Environment& environment, std::string_view witness);

/// Returns the files that a run reads.
std::vector<std::string> files_read(const Image& image, const ImageArguments& image_arguments,
                                    const RoutineArguments& routine, const ValueArguments& values);

}  // namespace bitwitness::cli
