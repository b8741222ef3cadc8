#pragma once
// Catch2's one owner: version 2 has a single header, version 3 several, and other names for a few things.
#include <string>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#define BITWITNESS_CONTAINS_TEXT Catch::Matchers::ContainsSubstring
#else
#ifndef CATCH_CONFIG_ENABLE_BENCHMARKING
#define CATCH_CONFIG_ENABLE_BENCHMARKING
#endif
#include <catch2/catch.hpp>
#define BITWITNESS_CONTAINS_TEXT Catch::Matchers::Contains
#endif

namespace bitwitness::tests {

/// Matches a text that has another one in it.
inline auto contains_text(const std::string& text) {
  return BITWITNESS_CONTAINS_TEXT(text);
}

/// Says that something could not be tried here, and why. A program that has said so and has not failed counts as
/// skipped.
void skip(const std::string& why);

/// Which tests a program can run here; all of them when there is nothing to say why not.
struct Restriction {
  std::string why;
  std::string filter;  ///< of those that it can run; empty when it can run none
};

/// Has a program ask, before its tests, which of them it can run. For variables of namespace scope.
struct RestrictTests {
  explicit RestrictTests(Restriction (*ask)());
};

}  // namespace bitwitness::tests
