#pragma once
#include "harness/disassembly.hpp"
#include "harness/proof/evaluate.hpp"
#include "harness/proof/lift_flags.hpp"
#include "harness/proof/lift_memory.hpp"
#include "harness/proof/lifter.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace bitwitness::proof {

/// The x87 unit. Registers hold expressions of 80 bits.
class X87 {
 public:
  std::uint16_t control = 0;
  NodeId c0 = 0;  ///< bits of the status word
  NodeId c1 = 0;
  NodeId c2 = 0;
  NodeId c3 = 0;

  /// Ends the lift when the register is empty, the stack full.
  [[nodiscard]] NodeId read(unsigned index) const;
  void write(unsigned index, NodeId value);
  void push(NodeId value);
  NodeId pop();
  void free(unsigned index) { at(index).reset(); }
  void clear();
  void rotate(unsigned by) { top_ = (top_ + by) % 8; }
  [[nodiscard]] bool is_empty(unsigned index) const { return !registers_.at((top_ + index) % 8); }
  [[nodiscard]] unsigned top() const { return top_; }

 private:
  std::optional<NodeId>& at(unsigned index) { return registers_.at((top_ + index) % 8); }

  std::array<std::optional<NodeId>, 8> registers_{};
  unsigned top_ = 0;
};

/// What a processor holds while a routine is lifted, and what instructions do with it.
class LiftState {
 public:
  LiftState(Store& store_, const Program& program, const LiftOptions& options_, std::span<const std::byte> guide);

  Store& store;
  const LiftOptions& options;
  LiftMemory memory;
  Flags flags;
  X87 x87;
  std::array<NodeId, 16> general{};  ///< of the program's width
  std::array<NodeId, 16> xmm{};      ///< of 128 bits
  std::uint32_t mxcsr = 0;           ///< control bits; status bits are unknown
  std::uint64_t pc = 0;              ///< of the next instruction
  std::uint64_t current = 0;         ///< of this one
  std::uint64_t executed = 0;
  std::uint64_t thread_block = 0;  ///< where fs (32-bit) or gs (64-bit) leads
  bool is_64_bit = false;
  unsigned word = 32;  ///< width of addresses and of `general`
  std::vector<PathCondition> path;

  // ---- operands
  NodeId read(const Operand& operand);                 ///< of the operand's size
  NodeId read(const Operand& operand, unsigned bits);  ///< memory and immediates of that size; registers must have it
  void write(const Operand& operand, NodeId value);
  NodeId read_part(const RegisterPart& part);
  void write_part(const RegisterPart& part, NodeId value);
  NodeId address_of(const Operand& memory);  ///< expression of the program's width
  NodeId load(NodeId address, unsigned bits);
  void store_to(NodeId address, NodeId value);
  void push(NodeId value);
  NodeId pop(unsigned bits);

  // ---- XMM registers
  /// The lowest bits of a register, or that many of memory.
  NodeId read_xmm(const Operand& operand, unsigned bits);
  /// Replaces the lowest bits and leaves the rest.
  void write_xmm_low(const Operand& operand, NodeId value);
  /// Stores, or replaces the whole register with zeros above.
  void write_xmm(const Operand& operand, NodeId value);
  /// As read_xmm of 128 bits, but ends the lift when memory is not aligned, as processors fault.
  NodeId read_aligned(const Operand& operand);

  // ---- what depends on the value
  /// Whether a bit is set, by the guide; a path condition when it depends on the value.
  bool decide(NodeId bit);
  /// A number that must be one: the guide's, with a path condition when it depends on the value.
  std::uint64_t concrete(NodeId id, PathCondition::Kind kind);
  /// A constant, or the end of the lift, which says what was to be constant.
  Bits constant(NodeId id, std::string_view what) const;

  // ---- modes
  [[nodiscard]] FloatMode x87_mode() const;
  [[nodiscard]] FloatMode sse_mode(Format format) const;

 private:
  void record(PathCondition condition);
  [[noreturn]] void end_at_unknown(NodeId id, std::string_view what) const;
  std::optional<NodeId> look_up(NodeId address, unsigned bytes);

  const Program& program_;
  GuideValues guide_;
  std::unordered_set<NodeId> recorded_;
};

/// One instruction's meaning.
using Lifting = void (*)(LiftState&, const DetailedInstruction&);
struct LiftRow {
  std::string_view mnemonic;
  Lifting lift;
};

/// What each family knows. Rows of all families differ in their mnemonic.
std::span<const LiftRow> integer_rows();
std::span<const LiftRow> shift_rows();
std::span<const LiftRow> flow_rows();
std::span<const LiftRow> sse_move_rows();
std::span<const LiftRow> sse_integer_rows();
std::span<const LiftRow> sse_number_rows();

/// Lifts an instruction whose opcode is d8 … df; false when it is not known.
bool lift_x87(LiftState& state, const DetailedInstruction& from);
/// Whether it is one: the place of its opcode.
std::optional<std::size_t> x87_opcode(const DetailedInstruction& from, bool is_64_bit);

/// The x87 status word; which exceptions were met is unknown.
NodeId x87_status_word(LiftState& state);
/// fnstenv and fldenv with the 28 bytes of 32- and 64-bit code.
void save_x87_environment(LiftState& state, NodeId address);
void load_x87_environment(LiftState& state, NodeId address);

/// Ends a lift at an instruction of which only this form is not known.
[[noreturn]] void end_at_form();

/// Reads "ne" in "cmovne" behind a prefix.
std::optional<Condition> condition_behind(std::string_view mnemonic, std::string_view prefix);

}  // namespace bitwitness::proof
