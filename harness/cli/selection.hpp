#pragma once
#include "decoders/registry.hpp"
#include "harness/cli/options.hpp"
#include "harness/image.hpp"
#include "harness/machine.hpp"
#include "harness/subject.hpp"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace bitwitness::cli {

/// Loads the image that the options name, or the built stand-in. Throws Error.
Image load_image(const ImageArguments& arguments);

/// Whether a routine at an address must come with a decoder. A target's routines always do.
enum class DecoderUse : std::uint8_t { required, optional };

/// A routine and the decoder it is compared with; their sizes match. Without a decoder both are empty.
struct SelectedRoutine {
  Routine routine;
  std::optional<Subject> subject;
  /// The registered decoder of these values: the subject, or beside an external one what the target has for the
  /// routine, where that fits.
  const decoders::Decoder* decoder = nullptr;
  std::string note;          ///< what the target has reports say of it, and how its signature was found
  bool is_inferred = false;  ///< the signature is what executing the routine told
};

struct Selection {
  std::vector<SelectedRoutine> routines;
  std::vector<std::string> notes;  ///< expected anchors that do not hold, required ones that were to be ignored
};

/// Finds the routines that the options name and checks all that must hold before one runs: that code is at each
/// address, the target's anchors, that signatures can be called and fit the decoders. A signature that is open ("auto",
/// or neither given nor in the target) is inferred by executing the routine. Throws Error, also when that leaves it
/// open. A decoder outside of this program is started, which `stop` interrupts.
Selection select_routines(const Image& image, const RoutineArguments& arguments, DecoderUse use = DecoderUse::required,
                          const std::stop_token& stop = {});

/// A routine that is read and not called.
struct SelectedPlace {
  std::string name;
  std::uint64_t address = 0;
  std::string note;  ///< what the target has reports say of it
};

struct PlaceSelection {
  std::vector<SelectedPlace> places;
  std::vector<std::string> notes;  ///< as of a Selection
};

/// Finds the routines that the options name as select_routines does, without signatures and decoders. Throws Error.
PlaceSelection select_places(const Image& image, const RoutineArguments& arguments);

}  // namespace bitwitness::cli
