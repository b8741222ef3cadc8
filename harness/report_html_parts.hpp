#pragma once
#include "harness/report.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

// The pieces of the HTML report. For its writers only.

namespace bitwitness::report_html {

/// Returns text fit for an element or an attribute in quotes: printable, and without markup.
std::string escaped(std::string_view text);

/// Returns the first characters of a text, escaped, with an ellipsis where it is longer.
std::string shortened(std::string_view text, std::size_t most);

/// Returns the name of an output word, not escaped.
std::string word_name(const RunReport& run, std::size_t word);

/// Returns the code that a field has in a value; nothing when the field is wider than 64 bits or beyond the value.
std::optional<std::uint64_t> field_code(std::span<const std::byte> value, const BitField& field);

/// The page's style sheet.
std::string_view style();

/// Draws the share of values that agree in each output word. `id` is unique in the page, here and below.
std::string agreement_chart(const RunReport& run, std::string_view id);

/// Draws how many words of the listed differences are how far off, in bins that double.
std::string distance_histogram(const RunReport& run, std::string_view id);

/// Draws the distance of each listed difference over the code of each field of at least 8 bits.
std::string code_plots(const RunReport& run, std::string_view id);

/// Writes one listed difference: the value's bits by field, both sides' bits, and the command that repeats it.
std::string difference_block(const Report& report, const RunReport& run, std::size_t index);

}  // namespace bitwitness::report_html
