#pragma once
#include "harness/probe/location.hpp"
#include "harness/probe/location_functions.hpp"
#include "harness/probe/location_scan.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

// Code worth running, before any of it is run. For the location module only.

namespace bitwitness::location {

/// Why code is worth a look, most promising first.
enum class Lead : std::uint8_t {
  same_bytes,         ///< has the instructions of the like routine
  decisive,           ///< refers to a decisive constant
  caller,             ///< calls such code
  alike,              ///< has most of the like routine's instructions
  another_start,      ///< a less likely start of a function that refers to a decisive constant
  constants_together  ///< has several kinds of other constants
};

/// A possible start of a wanted routine.
struct Suspect {
  std::uint64_t address = 0;
  Lead lead = Lead::constants_together;
  unsigned weight = 0;  ///< of the function start
  std::vector<std::string> reasons;
  std::optional<double> alike;
};

/// Suspects by address; one that is found twice keeps its better lead and both reasons.
class Suspects {
 public:
  void add(const Suspect& suspect);

  [[nodiscard]] bool contains(std::uint64_t address) const { return rows_.contains(address); }

  /// Most promising first.
  [[nodiscard]] std::vector<Suspect> in_order() const;

 private:
  std::map<std::uint64_t, Suspect> rows_;
};

/// Collects suspects from the references to constants and from the calls of those.
class SuspectSearch {
 public:
  SuspectSearch(const CodeMap& map, std::span<const KnownConstant> constants);

  [[nodiscard]] const Suspects& suspects() const { return suspects_; }
  [[nodiscard]] std::size_t decisive_references() const { return decisive_references_; }
  [[nodiscard]] std::span<const std::string> notes() const { return notes_; }

  /// Says which constants the code at an address holds or names, one sentence each.
  [[nodiscard]] std::vector<std::string> constants_in(std::uint64_t address) const;

 private:
  void collect_decisive();
  void collect_callers();
  void collect_together();
  std::optional<std::string> named_by(const Instruction& instruction, const Reference& reference) const;

  const CodeMap& map_;
  std::span<const KnownConstant> constants_;
  std::vector<Reference> references_;
  std::size_t decisive_references_ = 0;
  Suspects suspects_;
  std::vector<std::string> notes_;
};

/// Returns the direct calls and tail jumps that end up at an address, also through one jump that stands alone, by
/// rising address. Bytes that are no instruction may look like one. `thunks` takes the addresses of the jumps between.
std::vector<DirectJump> calls_of(const CodeMap& map, std::uint64_t address,
                                 std::vector<std::uint64_t>* thunks = nullptr);

}  // namespace bitwitness::location
