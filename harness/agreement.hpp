#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace bitwitness {

/// Whether a decoder agrees with a vector file.
struct Agreement {
  bool agrees = false;  ///< every value of the file has words, was decoded, and gave these words
  std::string text;     ///< the report, or why the file cannot be used
};

/// Decodes one packed value. Called from several threads at once; must not throw.
using DecodeOne = std::function<void(std::span<const std::byte> packed, std::span<std::uint32_t> words)>;

/// Checks a decoder against a vector file. Never throws Error: a file that cannot be used is no agreement.
Agreement check_agreement(const std::string& path, const DecodeOne& decode);

}  // namespace bitwitness

/// Says in a Catch2 test (version 2 or 3, whose header is included before) that a decoder agrees with a vector file.
#define BITWITNESS_CHECK_AGREES(path, decode)                                      \
  do {                                                                             \
    const auto bitwitness_agreement = ::bitwitness::check_agreement(path, decode); \
    INFO(bitwitness_agreement.text);                                               \
    CHECK(bitwitness_agreement.agrees);                                            \
  } while (false)
