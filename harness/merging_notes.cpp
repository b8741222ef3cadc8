#include "harness/merging_notes.hpp"

#include "harness/error.hpp"
#include "harness/report_parts.hpp"
#include "harness/values.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <optional>

namespace bitwitness::merging_parts {

namespace {

constexpr std::string_view path_start = "on the first value (";
constexpr std::string_view failure_start = "no result for ";

std::size_t common_notes(std::span<const ShardNotes> shards) {
  const std::vector<std::string>& first = shards.front().notes;
  std::size_t common = first.size();
  for (const ShardNotes& shard : shards) {
    const auto [at, other] = std::ranges::mismatch(first, shard.notes);
    common = std::min(common, static_cast<std::size_t>(at - first.begin()));
  }
  return common;
}

bool take_text(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

/// Reads "on 12 values the routine WHAT (first: 34 12)", as report_parts::fact_notes prints it.
std::optional<Fact> read_fact(const std::string& note) {
  std::string_view rest = note;
  Fact fact;
  if (!take_text(rest, "on ")) return std::nullopt;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), fact.values);
  if (error != std::errc()) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  if (!take_text(rest, fact.values == 1 ? " value the routine " : " values the routine ")) return std::nullopt;
  constexpr std::string_view before_value = " (first: ";
  const std::size_t at = rest.rfind(before_value);
  if (at == std::string_view::npos || !rest.ends_with(')')) return std::nullopt;
  fact.what = rest.substr(0, at);
  rest.remove_prefix(at + before_value.size());
  rest.remove_suffix(1);
  try {
    fact.first_value = parse_hex(rest);
  } catch (const Error&) {
    return std::nullopt;
  }
  if (report_parts::fact_notes(std::span(&fact, 1)).front() != note) return std::nullopt;
  return fact;
}

/// What one shard's notes say beside those that all shards have.
struct OwnNotes {
  std::vector<std::string> path;
  std::vector<Fact> facts;
  std::vector<std::string> failures;
  std::vector<std::string> others;
};

OwnNotes read_own(std::span<const std::string> notes) {
  OwnNotes own;
  for (const std::string& note : notes) {
    if (note.starts_with(path_start)) {
      own.path.push_back(note);
    } else if (std::optional<Fact> fact = read_fact(note)) {
      own.facts.push_back(std::move(*fact));
    } else if (note.starts_with(failure_start)) {
      own.failures.push_back(note);
    } else {
      own.others.push_back(note);
    }
  }
  return own;
}

}  // namespace

std::vector<std::string> merge_notes(std::span<const ShardNotes> shards) {
  if (shards.empty()) return {};
  const std::size_t common = common_notes(shards);
  std::vector<std::string> out(shards.front().notes.begin(),
                               shards.front().notes.begin() + static_cast<std::ptrdiff_t>(common));
  std::vector<std::string> path;
  std::map<std::string, Fact> facts;
  std::vector<std::string> failures;
  std::vector<std::string> others;
  bool is_first = true;
  for (const ShardNotes& shard : shards) {
    OwnNotes own = read_own(std::span(shard.notes).subspan(common));
    if (is_first) path = std::move(own.path);
    is_first = is_first && shard.is_empty;
    for (Fact& fact : own.facts) {
      const auto [known, is_new] = facts.try_emplace(fact.what, fact);
      if (is_new) continue;
      known->second.values += fact.values;
      if (is_less(fact.first_value, known->second.first_value)) known->second.first_value = fact.first_value;
    }
    failures.insert(failures.end(), own.failures.begin(), own.failures.end());
    for (const std::string& note : own.others) others.push_back("shard " + shard.shard + ": " + note);
  }
  std::vector<Fact> sorted;
  for (auto& [what, fact] : facts) sorted.push_back(std::move(fact));
  std::vector<std::string> said = report_parts::fact_notes(sorted);
  for (auto* const notes : {&path, &said, &failures, &others}) {
    out.insert(out.end(), std::make_move_iterator(notes->begin()), std::make_move_iterator(notes->end()));
  }
  return out;
}

}  // namespace bitwitness::merging_parts
