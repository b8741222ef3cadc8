#pragma once
#include "harness/proof/expression.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace bitwitness::proof {

/// Computes one node from the values of its operands; of a leaf only constants. Floating-point kinds are computed by
/// this computer's own instructions under the node's mode. Throws Error for them on processors other than x86-64, and
/// for inputs and unknowns.
Bits compute(const Store& store, const Node& node, const std::array<Bits, 3>& operands);

/// Evaluates some expressions on many packed values. What they depend on is ordered once. The store must outlive it;
/// expressions made meanwhile do not matter.
class Evaluation {
 public:
  /// Throws Error when a root depends on something unknown.
  Evaluation(const Store& store, std::span<const NodeId> roots);

  /// Evaluates on one packed value, in which every input bit must lie.
  void run(std::span<const std::byte> packed);

  /// Value of root `index` on the value that was run last.
  [[nodiscard]] Bits operator[](std::size_t index) const { return values_[roots_[index]]; }

  /// Nodes that a run evaluates.
  [[nodiscard]] std::size_t steps() const { return steps_.size(); }

 private:
  struct Step {
    NodeId node;
    std::uint32_t result;                   // place among the values
    std::array<std::uint32_t, 3> operands;  // theirs
  };

  const Store& store_;
  std::vector<Step> steps_;
  std::vector<std::uint32_t> roots_;
  std::vector<Bits> values_;
};

/// Evaluates expressions of a growing store on one packed value, each node once.
class GuideValues {
 public:
  GuideValues(const Store& store, std::span<const std::byte> packed) : store_(store), packed_(packed) {}

  /// Value of an expression, or nothing when it depends on something unknown. `packed` must still be there.
  std::optional<Bits> operator()(NodeId id);

 private:
  const Store& store_;
  std::span<const std::byte> packed_;
  std::vector<Bits> values_;
  std::vector<bool> is_known_;
};

/// Reads bits of a packed value, as input nodes name them. Throws Error when they lie outside.
Bits input_bits(std::span<const std::byte> packed, std::uint64_t first_bit, unsigned width);

}  // namespace bitwitness::proof
