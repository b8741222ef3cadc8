#pragma once
#include "harness/image.hpp"
#include "harness/signature.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bitwitness {

/// A routine that a target file names.
struct TargetRoutine {
  std::string name;
  std::string at;                      ///< location text for Image::resolve
  std::string decoder;                 ///< registry name of its native decoder
  std::optional<Signature> signature;  ///< absent when the file has none or says "auto": nobody has written it down
  std::string note;
};

enum class AnchorKind : std::uint8_t {
  code,      ///< `at` lies in executable memory and decodes as code
  call,      ///< a direct call to `to` starts at `at` or returns to it
  constant,  ///< the routine at `at` references one of `bits`
};

/// Something that must hold of an image before anything runs (`required`), or that is noted when it does not.
struct Anchor {
  AnchorKind kind = AnchorKind::code;
  bool required = false;
  std::string at;
  std::string to;                 ///< call: location of the callee
  std::vector<std::string> bits;  ///< constant: hex of an f32 (8 digits) or f64 (16 digits)
  std::string says;               ///< what the source says, for messages
};

/// What is known of one executable. File format: vectors/README.md.
struct Target {
  std::string name;
  std::string description;
  std::vector<TargetRoutine> routines;
  std::vector<Anchor> anchors;
};

/// Parses a target file's text. Strict: an unknown key, a wrong type or a missing key throws Error with `origin` and
/// the line.
Target parse_target(std::string_view text, std::string_view origin);

/// Loads a target by file path, or by the name of one that the program carries. Throws Error that lists the known
/// names.
Target load_target(std::string_view name_or_path);

/// Names of the targets that the program carries.
std::vector<std::string> known_targets();

struct AnchorResult {
  Anchor anchor;
  bool holds = false;
  bool is_open = false;  ///< it holds only as far as the file tells: the callee is known when the call runs
  std::string found;     ///< what is there, in words
};

/// Checks every anchor against an image.
std::vector<AnchorResult> check_anchors(const Target& target, const Image& image);

}  // namespace bitwitness
