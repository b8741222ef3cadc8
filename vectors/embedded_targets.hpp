#pragma once
#include <span>
#include <string_view>

namespace bitwitness {

/// A target file that the program carries: targets/NAME.toml, byte for byte.
struct EmbeddedTarget {
  std::string_view name;  ///< of the file, without its extension
  std::string_view text;
};

/// Every file that vectors/CMakeLists.txt lists, in that order. Lives as long as the program.
std::span<const EmbeddedTarget> embedded_targets();

}  // namespace bitwitness
