#pragma once
#include "decoders/registry.hpp"
#include "harness/cli/options.hpp"
#include "harness/image.hpp"
#include "harness/machine.hpp"

#include <string>
#include <vector>

namespace bitwitness::cli {

/// Loads the image that the options name, or the built stand-in. Throws Error.
Image load_image(const ImageArguments& arguments);

/// A routine and the decoder it is compared with; their sizes match.
struct SelectedRoutine {
  Routine routine;
  const decoders::Decoder* decoder = nullptr;
  std::string note;  ///< what the target has reports say of it
};

struct Selection {
  std::vector<SelectedRoutine> routines;
  std::vector<std::string> notes;  ///< expected anchors that do not hold, required ones that were to be ignored
};

/// Finds the routines that the options name and checks all that must hold before one runs: that code is at each
/// address, the target's anchors, that signatures can be called and fit the decoders. Throws Error.
Selection select_routines(const Image& image, const RoutineArguments& arguments);

}  // namespace bitwitness::cli
