// Shifts, rotations and single bits.
#include "harness/proof/lift_state.hpp"

namespace bitwitness::proof {
namespace {

using From = DetailedInstruction;

/// A shift's count as processors take it: modulo 32, or 64 for operands of 64 bits.
struct Count {
  bool is_constant = false;
  unsigned bits = 0;  // when it is one
  NodeId node = 0;    // of the operand's width
};

Count count_of(LiftState& state, const From& from, std::size_t index, unsigned bits) {
  Store& store = state.store;
  NodeId raw = store.constant(8, 1);  // "shl eax" of older disassemblers shifts by one
  if (index < from.operands.size()) {
    raw = state.read(from.operands[index], 8);
  }
  const NodeId masked = store.bit_and(raw, store.constant(8, bits == 64 ? 63 : 31));
  Count count;
  count.is_constant = store.is_constant(masked);
  if (count.is_constant) count.bits = static_cast<unsigned>(store[masked].value());
  count.node = bits == 8 ? masked : store.zero_extend(masked, bits);
  return count;
}

/// With a count that may be 0, flags may stay what they were: nothing that has been met asks for them.
void set_variable_flags(LiftState& state) {
  state.flags.set_all_undefined("a flag after a shift by a count that depends on the value");
}

enum class Shift : std::uint8_t { left, right, right_signed };

template <Shift shift>
void lift_shift(LiftState& state, const From& from) {
  if (from.operands.empty() || from.operands.size() > 2) end_at_form();
  Store& store = state.store;
  const NodeId x = state.read(from.operands[0]);
  const unsigned bits = store.width(x);
  const Count count = count_of(state, from, 1, bits);
  const NodeId result = shift == Shift::left    ? store.shift_left(x, count.node)
                        : shift == Shift::right ? store.shift_right(x, count.node)
                                                : store.shift_right_signed(x, count.node);
  if (!count.is_constant) {
    state.write(from.operands[0], result);
    set_variable_flags(state);
    return;
  }
  state.write(from.operands[0], result);  // by 0 too: the upper half of a 64-bit register becomes 0
  if (count.bits == 0) return;
  state.flags.set_result(result);
  state.flags.set_undefined(Flag::overflow, "OF after a shift by more than one");
  const NodeId sign = store.extract(x, bits - 1, 1);
  if (count.bits >= bits) {
    state.flags.set(Flag::carry, sign);
    if (shift != Shift::right_signed) state.flags.set_undefined(Flag::carry, "CF after a shift by the width or more");
    return;
  }
  const NodeId last = store.extract(x, shift == Shift::left ? bits - count.bits : count.bits - 1, 1);
  state.flags.set(Flag::carry, last);
  if (count.bits != 1) return;
  if constexpr (shift == Shift::left) {
    state.flags.set(Flag::overflow, store.bit_xor(last, store.extract(result, bits - 1, 1)));
  } else {
    state.flags.set(Flag::overflow, shift == Shift::right ? sign : store.bit(false));
  }
}

template <bool left>
void lift_rotate(LiftState& state, const From& from) {
  if (from.operands.empty() || from.operands.size() > 2) end_at_form();
  Store& store = state.store;
  const NodeId x = state.read(from.operands[0]);
  const unsigned bits = store.width(x);
  const Count count = count_of(state, from, 1, bits);
  const NodeId by = left ? count.node : store.subtract(store.constant(bits, 0), count.node);
  // Modulo a power of two that the width is, so the negated count is as good.
  const NodeId result = store.rotate_left(x, by);
  state.write(from.operands[0], result);
  if (!count.is_constant) {
    state.flags.set_undefined(Flag::carry, "CF after a rotation by a count that depends on the value");
    state.flags.set_undefined(Flag::overflow, "OF after a rotation by a count that depends on the value");
    return;
  }
  if (count.bits == 0) return;
  state.flags.set(Flag::carry, store.extract(result, left ? 0 : bits - 1, 1));
  state.flags.set_undefined(Flag::overflow, "OF after a rotation");
}

/// shld and shrd: bits of the second operand come in.
template <bool left>
void lift_double_shift(LiftState& state, const From& from) {
  if (from.operands.size() != 3) end_at_form();
  Store& store = state.store;
  const NodeId x = state.read(from.operands[0]);
  const NodeId y = state.read(from.operands[1]);
  const unsigned bits = store.width(x);
  const Count count = count_of(state, from, 2, bits);
  if (bits == 16 && (!count.is_constant || count.bits > bits)) end_at_form();  // no manual defines the result
  const NodeId wide = left ? store.concat(x, y) : store.concat(y, x);
  const NodeId by = store.zero_extend(count.node, 2 * bits);
  const NodeId shifted = left ? store.shift_left(wide, by) : store.shift_right(wide, by);
  const NodeId result = store.extract(shifted, left ? bits : 0, bits);
  state.write(from.operands[0], result);
  if (!count.is_constant) {
    set_variable_flags(state);
    return;
  }
  if (count.bits == 0) return;
  state.flags.set_result(result);
  state.flags.set(Flag::carry, store.extract(x, left ? bits - count.bits : count.bits - 1, 1));
  state.flags.set_undefined(Flag::overflow, "OF after a shift of two words");
}

enum class BitChange : std::uint8_t { none, set, reset, complement };

template <BitChange change>
void lift_bit(LiftState& state, const From& from) {
  if (from.operands.size() != 2) end_at_form();
  Store& store = state.store;
  const Operand& where = from.operands[0];
  const unsigned bits = 8U * where.size;
  // With a register for the bit's number, memory is a string of bits of any length.
  if (where.kind == Operand::Kind::memory && from.operands[1].kind != Operand::Kind::immediate) end_at_form();
  const NodeId x = state.read(where);
  const NodeId index = state.read(from.operands[1], bits);
  const NodeId by = store.bit_and(index, store.constant(bits, bits - 1));
  const NodeId one = store.shift_left(store.constant(bits, 1), by);
  if constexpr (change == BitChange::set) state.write(where, store.bit_or(x, one));
  if constexpr (change == BitChange::reset) state.write(where, store.bit_and(x, store.bit_not(one)));
  if constexpr (change == BitChange::complement) state.write(where, store.bit_xor(x, one));
  for (const Flag flag : {Flag::overflow, Flag::sign, Flag::parity, Flag::adjust}) {
    state.flags.set_undefined(flag, "a flag that " + from.mnemonic + " leaves undefined");
  }
  state.flags.set(Flag::carry, store.extract(store.shift_right(x, by), 0, 1));
}

/// bsf and bsr. Of 0 no manual of both makers defines a result: whether it is 0 is a condition of the path.
template <bool highest>
void lift_scan(LiftState& state, const From& from) {
  if (from.operands.size() != 2) end_at_form();
  Store& store = state.store;
  const NodeId x = state.read(from.operands[1]);
  const unsigned bits = store.width(x);
  if (state.decide(store.equal(x, store.constant(bits, 0)))) throw LiftStop{"looks for a bit in 0"};
  NodeId found = store.constant(bits, highest ? 0 : bits - 1);
  for (unsigned i = 1; i < bits; ++i) {
    const unsigned at = highest ? i : bits - 1 - i;
    found = store.choose(store.extract(x, at, 1), store.constant(bits, at), found);
  }
  state.write(from.operands[0], found);
  state.flags.set_all_undefined("a flag that " + from.mnemonic + " leaves undefined");
  state.flags.set(Flag::zero, store.bit(false));
}

constexpr std::array rows = std::to_array<LiftRow>({
    {"shl", lift_shift<Shift::left>},
    {"sal", lift_shift<Shift::left>},
    {"shr", lift_shift<Shift::right>},
    {"sar", lift_shift<Shift::right_signed>},
    {"rol", lift_rotate<true>},
    {"ror", lift_rotate<false>},
    {"shld", lift_double_shift<true>},
    {"shrd", lift_double_shift<false>},
    {"bt", lift_bit<BitChange::none>},
    {"bts", lift_bit<BitChange::set>},
    {"btr", lift_bit<BitChange::reset>},
    {"btc", lift_bit<BitChange::complement>},
    {"bsf", lift_scan<false>},
    {"bsr", lift_scan<true>},
});

}  // namespace

std::span<const LiftRow> shift_rows() {
  return rows;
}

}  // namespace bitwitness::proof
