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

}  // namespace bitwitness::tests
