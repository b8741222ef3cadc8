#pragma once
#include "harness/report.hpp"
#include "harness/tally.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bitwitness {

/// Compares what a chunk of values gave in several environments with what it gave in the first of them: outcomes, and
/// the words of those that returned.
class ChunkComparison {
 public:
  /// Takes what the first environment gave; copies it.
  void begin(const ReferenceChunk& first);

  /// Returns how many values gave something else in another environment.
  std::uint64_t compare(const ReferenceChunk& other);

  /// Returns how many values gave something else in any environment so far.
  [[nodiscard]] std::uint64_t depending() const;

 private:
  std::vector<OutcomeKind> outcomes_;
  std::vector<std::uint32_t> words_;
  std::vector<bool> depends_;  ///< per value
};

/// Adds what other values showed in the same environments.
void add_effects(EnvironmentEffects& into, const EnvironmentEffects& more);

/// One line of a table of environments.
struct EnvironmentRow {
  Environment environment;
  std::string name;   ///< empty when it has none
  std::string group;  ///< "A", "B", …: one letter per digest, in the order of the runs; empty when interrupted
  std::uint64_t agreed = 0;
  std::uint64_t differed = 0;  ///< those that are known to differ included
  std::uint64_t no_result = 0;
  std::uint64_t changed = 0;  ///< values with other words, or another outcome, than in the first environment
};

/// Returns a line for each environment. The runs that it is about must be there.
std::vector<EnvironmentRow> environment_rows(const Report& report, const EnvironmentEffects& effects);

}  // namespace bitwitness
