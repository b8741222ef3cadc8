#pragma once
#include "harness/probe/exploration.hpp"
#include "harness/probe/inference.hpp"
#include "harness/probe/usage.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bitwitness {

/// Support of a reading that takes a word beside packed bytes for more of them.
inline constexpr std::string_view open_word_clause =
    "whether a word beside the packed bytes is data or a setting cannot be told";

/// Signatures that fit what was observed, not yet tried.
struct Drafts {
  std::vector<Candidate> candidates;  ///< best first
  std::vector<std::string> seen;
};

/// Puts observations into signatures.
Drafts draft(const Usage& usage, std::span<const Place> places, bool is_64_bit);

/// Names the registers and stack words of a routine's arguments and what was done with each, one clause each.
std::vector<std::string> describe(const Usage& usage, std::span<const Place> places, bool is_64_bit);

}  // namespace bitwitness
