#include "harness/comparison_values.hpp"

#include "harness/values.hpp"

#include <algorithm>

namespace bitwitness::comparison_parts {

namespace {

/// How many words of a difference differ, and how far the farthest.
struct Extent {
  std::size_t words = 0;
  std::uint64_t distance = 0;

  bool operator==(const Extent&) const = default;
};

Extent extent_of(const Difference& difference, WordKind kind) {
  Extent extent;
  for (std::size_t i = 0; i < difference.reference.size(); ++i) {
    const std::uint64_t distance = ulp_distance(difference.reference[i], difference.subject[i], kind);
    if (distance != 0) ++extent.words;
    extent.distance = std::max(extent.distance, distance);
  }
  return extent;
}

Change change_between(const Difference& before, const Difference& after, WordKind kind) {
  if (before.subject == after.subject) return Change::unchanged;
  const Extent old_extent = extent_of(before, kind);
  const Extent new_extent = extent_of(after, kind);
  if (new_extent.words > old_extent.words || new_extent.distance > old_extent.distance) return Change::worse;
  return new_extent == old_extent ? Change::changed : Change::better;
}

}  // namespace

bool RisingValues::operator()(const std::vector<std::byte>& a, const std::vector<std::byte>& b) const {
  return is_less(a, b);
}

Listed::Listed(const RunReport& run) {
  for (const Difference& difference : run.differences) by_value_.emplace(difference.value, &difference);
  is_complete_ = run.differences.size() == run.counts.differed;
  // Values that are declared to differ are in no list.
  ran_all_ = run.counts.not_run == 0 && run.counts.known == 0;
}

const Difference* Listed::find(const std::vector<std::byte>& value) const {
  const auto found = by_value_.find(value);
  return found == by_value_.end() ? nullptr : found->second;
}

bool Listed::excludes(const std::vector<std::byte>& value) const {
  return ran_all_ && (is_complete_ || (!by_value_.empty() && is_less(value, by_value_.rbegin()->first)));
}

void add_change(RunComparison& out, Change change, const Difference* before, const Difference* after) {
  const Difference& known = before != nullptr ? *before : *after;
  ++out.told[static_cast<std::size_t>(change)];
  if (before != nullptr) --out.before.untold;
  if (after != nullptr) --out.after.untold;
  out.changes.push_back({change, known.value, known.reference,
                         before != nullptr ? before->subject : std::vector<std::uint32_t>(),
                         after != nullptr ? after->subject : std::vector<std::uint32_t>()});
}

void tell_values(RunComparison& out, const RunReport& before, const RunReport& after) {
  const Listed old_list(before);
  const Listed new_list(after);
  for (const auto& [value, old_difference] : old_list.all()) {
    if (const Difference* now = new_list.find(value)) {
      add_change(out, change_between(*old_difference, *now, out.word_kind), old_difference, now);
    } else if (after.counts.run == 0) {
      add_change(out, Change::gone, old_difference, nullptr);
    } else if (new_list.excludes(value)) {
      add_change(out, Change::fixed, old_difference, nullptr);
    }
  }
  for (const auto& [value, new_difference] : new_list.all()) {
    if (old_list.find(value) == nullptr && old_list.excludes(value)) {
      add_change(out, Change::appeared, nullptr, new_difference);
    }
  }
  std::ranges::sort(out.changes, [](const ValueChange& a, const ValueChange& b) { return is_less(a.value, b.value); });
}

}  // namespace bitwitness::comparison_parts
