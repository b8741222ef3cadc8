#pragma once
#include "harness/machine.hpp"
#include "harness/proof/expression.hpp"
#include "harness/proof/program.hpp"
#include "harness/signature.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bitwitness::proof {

/// Limits of one lift.
struct LiftOptions {
  std::uint64_t max_instructions = 100'000;  ///< executed ones; each repetition of a repeated one counts
  std::size_t max_nodes = 1'000'000;         ///< that the lift may add to the store
  std::uint64_t max_table_bytes = 65'536;    ///< of read-only data from which one instruction may pick
};

/// Something on which the way through a routine depends: its expressions hold for all values of which every condition
/// of the path is what it says.
struct PathCondition {
  enum class Kind : std::uint8_t {
    branch,       ///< a conditional jump, or an instruction that does nothing in some cases
    jump_target,  ///< `subject` is where an indirect jump, call or return goes
    address       ///< `subject` is an address that is read or written
  };
  Kind kind = Kind::branch;
  NodeId condition = 0;       ///< a bit
  bool taken = false;         ///< what it is
  std::uint64_t address = 0;  ///< of the instruction
  NodeId subject = 0;         ///< jump_target, address: the condition is that this equals `concrete`
  std::uint64_t concrete = 0;
};

/// What one lift gave.
struct Lift {
  bool lifted = false;
  std::string reason;                       ///< why not, one line without the place
  std::uint64_t address = 0;                ///< of the instruction that ended it; 0 when none did
  std::string instruction;                  ///< its text
  std::vector<NodeId> words;                ///< when lifted: one expression of width 32 per output word
  std::vector<PathCondition> path;          ///< in order of execution, each condition once
  std::uint64_t executed = 0;               ///< instructions
  std::vector<std::uint64_t> addresses;     ///< those executed, rising, each once
  std::vector<std::string> writable_reads;  ///< sections whose writable bytes were taken as the file gives them
  Environment environment;                  ///< at entry
};

/// Executes a routine symbolically. Whatever decides about the way it goes is decided as for one packed value, the
/// guide, and recorded as a path condition; everything else stays an expression over all values.
///
/// What the signature leaves open (other registers, the stack above the arguments, bytes behind the input, results
/// before they are written, flags) is unknown: a lift ends with a reason when a result, a condition or an address
/// depends on it. So it does at an instruction it does not know, at one whose result no manual defines, at accesses
/// outside what a witness maps, and at its limits. Two things it takes as given: addresses of the surroundings count as
/// constants, and writable sections hold what the file gives them (`writable_reads` says where that mattered).
/// Exceptions must be masked in both control words.
class Lifter {
 public:
  /// Throws Error when the signature cannot be called. Store and program must outlive the lifter; several lifters may
  /// share a store, so that equal expressions of several paths and codes have equal ids.
  Lifter(Store& store, const Program& program, std::uint64_t entry, const Signature& signature,
         const LiftOptions& options = {});
  ~Lifter();
  Lifter(Lifter&&) noexcept;
  Lifter& operator=(Lifter&&) = delete;

  /// Lifts the path of one packed value. Throws Error when the value has another size than the signature's.
  Lift run(std::span<const std::byte> guide, const Environment& environment);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bitwitness::proof
