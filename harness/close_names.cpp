#include "harness/close_names.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace bitwitness {
namespace {

/// Longer texts are not compared letter by letter: nobody mistypes them.
constexpr std::size_t max_compared = 128;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_letter(char a, char b) {
  return lower(a) == lower(b);
}

/// Letters to insert, remove or replace to turn one text into the other, capitals aside.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (same_letter(a[i - 1], b[j - 1]) ? 0U : 1U);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

bool contains(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same_letter) != text.end();
}

}  // namespace

std::vector<std::string_view> close_names(std::string_view wanted, std::span<const std::string_view> known,
                                          std::size_t limit) {
  if (wanted.empty() || wanted.size() > max_compared) return {};
  const std::size_t tolerance = std::max<std::size_t>(2, wanted.size() / 4);
  std::vector<std::pair<std::size_t, std::string_view>> found;
  for (const std::string_view name : known) {
    std::size_t distance = std::max(name.size(), wanted.size()) - std::min(name.size(), wanted.size());
    bool likely = wanted.size() >= 4 && contains(name, wanted);
    if (!likely && distance <= tolerance && name.size() <= max_compared) {
      distance = edits(wanted, name);
      likely = distance <= tolerance && distance < wanted.size();
    }
    if (likely) found.emplace_back(distance, name);
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<std::string_view> names;
  for (const auto& [distance, name] : found) {
    if (names.size() == limit) break;
    names.push_back(name);
  }
  return names;
}

}  // namespace bitwitness
