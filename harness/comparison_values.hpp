#pragma once
#include "harness/comparison.hpp"

#include <cstddef>
#include <map>
#include <vector>

// What a comparison tells of single values. Not for other modules.

namespace bitwitness::comparison_parts {

/// Orders values as little-endian integers.
struct RisingValues {
  bool operator()(const std::vector<std::byte>& a, const std::vector<std::byte>& b) const;
};

/// The differing values that a report lists: the smallest ones. Of a value beyond the last of an incomplete list, or of
/// one that an interruption may have left out, nothing is known. Refers to the run.
class Listed {
 public:
  explicit Listed(const RunReport& run);

  /// Returns the listed difference of a value, or null.
  [[nodiscard]] const Difference* find(const std::vector<std::byte>& value) const;

  /// Tells that a value which is not in the list did not differ.
  [[nodiscard]] bool excludes(const std::vector<std::byte>& value) const;

  [[nodiscard]] const std::map<std::vector<std::byte>, const Difference*, RisingValues>& all() const {
    return by_value_;
  }

 private:
  std::map<std::vector<std::byte>, const Difference*, RisingValues> by_value_;
  bool is_complete_ = true;
  bool ran_all_ = true;
};

/// Adds a value: what the old report says of it, what the new one says, at least one of them.
void add_change(RunComparison& out, Change change, const Difference* before, const Difference* after);

/// Adds every listed value of which both reports tell.
void tell_values(RunComparison& out, const RunReport& before, const RunReport& after);

}  // namespace bitwitness::comparison_parts
