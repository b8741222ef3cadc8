#pragma once
#include "harness/call_plan.hpp"
#include "harness/proof/expression.hpp"
#include "harness/proof/program.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace bitwitness::proof {

/// Ends a lift; its text is the reason.
struct LiftStop {
  std::string reason;
};

/// Memory of a lift, by byte: the program's, and areas around it. Accesses to anything else end the lift.
class LiftMemory {
 public:
  LiftMemory(Store& store, const Program& program) : store_(store), program_(program) {}

  /// Maps an area; `what` says what its bytes are before something is stored there: unknown.
  void add_area(const Region& region, bool writable, std::string what);

  /// Places an expression, whatever may be written there.
  void place(std::uint64_t address, NodeId value);

  /// Loads or stores whole bytes at a constant address.
  NodeId load(std::uint64_t address, unsigned bytes);
  void store(std::uint64_t address, NodeId value);

  /// The program's read-only bytes from one address up to and including another; empty when they are not all that, or
  /// when functions of other libraries are named among them.
  [[nodiscard]] std::span<const std::byte> read_only(std::uint64_t first, std::uint64_t last) const;

  /// Tells whether one of so many bytes was placed or stored.
  [[nodiscard]] bool was_written(std::uint64_t address, std::size_t bytes) const;

  /// Sections whose writable bytes were loaded as the program gives them.
  [[nodiscard]] const std::set<std::string>& writable_reads() const { return writable_reads_; }

 private:
  struct Area {
    Region region;
    bool writable = false;
    std::string what;
  };
  struct Cell {
    NodeId node = 0;
    unsigned first_bit = 0;
  };

  [[nodiscard]] const Area* area_of(std::uint64_t address) const;
  Cell cell_at(std::uint64_t address, std::uint64_t from, unsigned bytes);

  Store& store_;
  const Program& program_;
  std::vector<Area> areas_;
  std::unordered_map<std::uint64_t, Cell> cells_;
  std::set<std::string> writable_reads_;
};

}  // namespace bitwitness::proof
