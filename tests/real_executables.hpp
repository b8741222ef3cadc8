#pragma once
#include "tests/catch.hpp"

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace bitwitness::tests {

enum class Width { bits_32, bits_64 };

/// Finds a DLL that the MinGW packages ship, by the folders that CMake found. When it is missing the test is skipped
/// with a line that CTest recognises, or fails if BITWITNESS_REQUIRE_FIXTURES is set in the environment: a skip is
/// never a pass.
inline std::optional<std::filesystem::path> mingw_dll(Width width, const std::string& name) {
  const std::string folder = width == Width::bits_32 ? BITWITNESS_MINGW32_DLL_DIR : BITWITNESS_MINGW64_DLL_DIR;
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  if (!folder.empty() && std::filesystem::exists(path)) return path;
  const char* package =
      width == Width::bits_32 ? "gcc-mingw-w64-i686-win32-runtime" : "gcc-mingw-w64-x86-64-win32-runtime";
  if (std::getenv("BITWITNESS_REQUIRE_FIXTURES") != nullptr) {
    FAIL(name << " is missing: install " << package);
  }
  skip(std::string(name) + " is missing (package " + package + ")");
  return std::nullopt;
}

}  // namespace bitwitness::tests
