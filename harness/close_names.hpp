#pragma once
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace bitwitness {

/// Returns up to `limit` of the known names that a person who wrote `wanted` may have meant, closest first: names that
/// contain it, and names within a few edits.
std::vector<std::string_view> close_names(std::string_view wanted, std::span<const std::string_view> known,
                                          std::size_t limit = 3);

}  // namespace bitwitness
