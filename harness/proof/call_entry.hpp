#pragma once
#include "harness/call_plan.hpp"
#include "harness/machine.hpp"
#include "harness/proof/expression.hpp"
#include "harness/proof/program.hpp"
#include "harness/signature.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace bitwitness::proof {

class LiftState;

/// How a call of a signature begins and ends, for a lift: the call plan with the packed value's bits as expressions and
/// with everything unknown that the signature leaves open.
class CallEntry {
 public:
  /// The program must outlive it. Precondition: require_callable passed.
  CallEntry(const Program& program, const Signature& signature);

  /// Sets registers, memory and control words to what they are at the first instruction.
  void enter(LiftState& state, const Environment& environment) const;

  /// Returns the output words after the return. Throws LiftStop when the stack is out of order or a word is unknown.
  [[nodiscard]] std::vector<NodeId> leave(LiftState& state) const;

  /// Where a call comes back to.
  [[nodiscard]] std::uint64_t return_address() const { return plan_.layout.code.address; }

  /// Name of the function of another library that an address stands for; empty when it stands for none.
  [[nodiscard]] std::string import_at(std::uint64_t address) const;

 private:
  void place_buffers(LiftState& state) const;
  void place_frame(LiftState& state) const;
  void place_registers(LiftState& state) const;
  void apply_patches(LiftState& state) const;
  void add_words(std::vector<NodeId>& words, LiftState& state, const OutputElement& element) const;

  const Program& program_;
  Signature signature_;
  CallPlan plan_;
  CallPlan other_;  // with another filler: what differs has no value
};

}  // namespace bitwitness::proof
