#pragma once
#include "harness/report.hpp"

#include <map>
#include <string>
#include <vector>

namespace bitwitness {

/// Adds up what threads or shards say of one run.
class FactSum {
 public:
  void add(const Fact& fact);
  void add(const std::vector<Fact>& facts);

  /// Returns the sums, sorted by what they say.
  [[nodiscard]] std::vector<Fact> all() const;

  /// Returns them and leaves none.
  std::vector<Fact> take();

 private:
  std::map<std::string, Fact> facts_;
};

/// Adds what another part of a run, of larger values, showed of values that ran alone.
void add_isolation(Isolation& into, const Isolation& later);

}  // namespace bitwitness
