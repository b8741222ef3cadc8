// Moves, integer arithmetic and logic.
#include "harness/proof/lift_state.hpp"

namespace bitwitness::proof {
namespace {

using From = DetailedInstruction;

unsigned bits_of(const Operand& operand) {
  return 8U * operand.size;
}

void require_operands(const From& from, std::size_t count) {
  if (from.operands.size() != count) end_at_form();
}

/// The second operand, an immediate widened to the first one's size.
NodeId second(LiftState& state, const From& from) {
  require_operands(from, 2);
  return state.read(from.operands[1], bits_of(from.operands[0]));
}

void lift_mov(LiftState& state, const From& from) {
  state.write(from.operands[0], second(state, from));
}

void lift_movzx(LiftState& state, const From& from) {
  require_operands(from, 2);
  state.write(from.operands[0], state.store.zero_extend(state.read(from.operands[1]), bits_of(from.operands[0])));
}

void lift_movsx(LiftState& state, const From& from) {
  require_operands(from, 2);
  state.write(from.operands[0], state.store.sign_extend(state.read(from.operands[1]), bits_of(from.operands[0])));
}

void lift_lea(LiftState& state, const From& from) {
  require_operands(from, 2);
  Operand place = from.operands[1];
  place.segment = {};
  const NodeId address = state.address_of(place);
  state.write(from.operands[0], state.store.extract(address, 0, bits_of(from.operands[0])));
}

void lift_push(LiftState& state, const From& from) {
  require_operands(from, 1);
  const Operand& what = from.operands[0];
  // An immediate is pushed as a whole word; what the disassembler says of its size differs.
  const bool is_word = what.kind == Operand::Kind::immediate;
  if (!is_word && bits_of(what) != state.word && bits_of(what) != 16) end_at_form();
  if (is_word && from.bytes.front() == std::byte{0x66}) end_at_form();
  state.push(state.read(what, is_word ? state.word : bits_of(what)));
}

void lift_pop(LiftState& state, const From& from) {
  require_operands(from, 1);
  const NodeId value = state.pop(bits_of(from.operands[0]));
  state.write(from.operands[0], value);
}

void lift_xchg(LiftState& state, const From& from) {
  require_operands(from, 2);
  const NodeId first = state.read(from.operands[0]);
  const NodeId other = state.read(from.operands[1]);
  state.write(from.operands[0], other);
  state.write(from.operands[1], first);
}

void lift_add(LiftState& state, const From& from) {
  const NodeId y = second(state, from);
  const NodeId x = state.read(from.operands[0]);
  const NodeId sum = state.store.add(x, y);
  state.write(from.operands[0], sum);
  state.flags.set_sum(x, y, sum);
}

void lift_sub(LiftState& state, const From& from) {
  const NodeId y = second(state, from);
  const NodeId x = state.read(from.operands[0]);
  const NodeId difference = state.store.subtract(x, y);
  state.write(from.operands[0], difference);
  state.flags.set_difference(x, y, difference);
}

void lift_cmp(LiftState& state, const From& from) {
  const NodeId y = second(state, from);
  const NodeId x = state.read(from.operands[0]);
  state.flags.set_difference(x, y, state.store.subtract(x, y));
}

/// adc and sbb, with the carry in one bit more than the operands have.
void lift_with_carry(LiftState& state, const From& from, bool subtracts) {
  Store& store = state.store;
  const NodeId y = second(state, from);
  const NodeId x = state.read(from.operands[0]);
  const unsigned bits = store.width(x);
  const NodeId carry = state.flags.get(store, Flag::carry);
  const auto combine = [&](NodeId a, NodeId b, unsigned width) {
    const NodeId c = store.zero_extend(carry, width);
    return subtracts ? store.subtract(store.subtract(a, b), c) : store.add(store.add(a, b), c);
  };
  const NodeId result = combine(x, y, bits);
  const NodeId wide_x = store.zero_extend(x, bits + 1);
  const NodeId wide = combine(wide_x, store.zero_extend(y, bits + 1), bits + 1);
  state.write(from.operands[0], result);
  if (subtracts) {
    state.flags.set_difference(x, y, result);
  } else {
    state.flags.set_sum(x, y, result);
  }
  // Of what was set, zero and sign go by the result and overflow by the signs; the carry does not, nor do comparisons.
  state.flags.set(Flag::carry, store.extract(wide, bits, 1));
}

void lift_adc(LiftState& state, const From& from) {
  lift_with_carry(state, from, false);
}

void lift_sbb(LiftState& state, const From& from) {
  lift_with_carry(state, from, true);
}

template <bool subtracts>
void lift_step(LiftState& state, const From& from) {
  require_operands(from, 1);
  Store& store = state.store;
  const NodeId x = state.read(from.operands[0]);
  const NodeId one = store.constant(store.width(x), 1);
  const NodeId result = subtracts ? store.subtract(x, one) : store.add(x, one);
  state.write(from.operands[0], result);
  constexpr bool keeps_carry = true;
  if constexpr (subtracts) {
    state.flags.set_difference(x, one, result, keeps_carry);
  } else {
    state.flags.set_sum(x, one, result, keeps_carry);
  }
}

void lift_neg(LiftState& state, const From& from) {
  require_operands(from, 1);
  const NodeId x = state.read(from.operands[0]);
  const NodeId zero = state.store.constant(state.store.width(x), 0);
  const NodeId negated = state.store.subtract(zero, x);
  state.write(from.operands[0], negated);
  state.flags.set_difference(zero, x, negated);
}

void lift_not(LiftState& state, const From& from) {
  require_operands(from, 1);
  state.write(from.operands[0], state.store.bit_not(state.read(from.operands[0])));
}

template <NodeId (Store::*combine)(NodeId, NodeId), bool writes>
void lift_logic(LiftState& state, const From& from) {
  const NodeId y = second(state, from);
  const NodeId x = state.read(from.operands[0]);
  const NodeId result = (state.store.*combine)(x, y);
  if constexpr (writes) state.write(from.operands[0], result);
  state.flags.set_logic(result);
}

/// What multiplications leave in the flags: whether the upper half is more than an extension of the lower one.
void set_product_flags(LiftState& state, NodeId overflows, const From& from) {
  state.flags.set_all_undefined("a flag that " + from.mnemonic + " leaves undefined");
  state.flags.set(Flag::carry, overflows);
  state.flags.set(Flag::overflow, overflows);
}

void lift_imul(LiftState& state, const From& from) {
  Store& store = state.store;
  if (from.operands.empty()) end_at_form();
  const unsigned bits = bits_of(from.operands[0]);
  const auto whole_product = [&](NodeId x, NodeId y) {
    return store.multiply(store.sign_extend(x, 2 * bits), store.sign_extend(y, 2 * bits));
  };
  const auto overflows = [&](NodeId whole) {
    return store.bit_not(store.equal(store.sign_extend(store.extract(whole, 0, bits), 2 * bits), whole));
  };
  if (from.operands.size() == 1) {
    const RegisterPart low{RegisterPart::File::general, 0, 0, static_cast<std::uint16_t>(bits)};
    const RegisterPart high{RegisterPart::File::general, 2, 0, static_cast<std::uint16_t>(bits)};
    const NodeId whole = whole_product(state.read_part(low), state.read(from.operands[0]));
    if (bits == 8) {
      state.write_part({RegisterPart::File::general, 0, 0, 16}, whole);
    } else {
      state.write_part(low, store.extract(whole, 0, bits));
      state.write_part(high, store.extract(whole, bits, bits));
    }
    set_product_flags(state, overflows(whole), from);
    return;
  }
  const NodeId x = state.read(from.operands[from.operands.size() - 2]);
  const NodeId y = state.read(from.operands.back(), bits);
  state.write(from.operands[0], store.multiply(x, y));
  set_product_flags(state, overflows(whole_product(x, y)), from);
}

void lift_mul(LiftState& state, const From& from) {
  Store& store = state.store;
  require_operands(from, 1);
  const unsigned bits = bits_of(from.operands[0]);
  const RegisterPart low{RegisterPart::File::general, 0, 0, static_cast<std::uint16_t>(bits)};
  const NodeId x = store.zero_extend(state.read_part(low), 2 * bits);
  const NodeId whole = store.multiply(x, store.zero_extend(state.read(from.operands[0]), 2 * bits));
  const NodeId high = store.extract(whole, bits, bits);
  if (bits == 8) {
    state.write_part({RegisterPart::File::general, 0, 0, 16}, whole);
  } else {
    state.write_part(low, store.extract(whole, 0, bits));
    state.write_part({RegisterPart::File::general, 2, 0, low.width}, high);
  }
  set_product_flags(state, store.bit_not(store.equal(high, store.constant(bits, 0))), from);
}

/// cbw, cwde, cdqe: the accumulator from its lower half.
template <std::uint16_t bits>
void lift_widen(LiftState& state, const From&) {
  const NodeId half = state.read_part({RegisterPart::File::general, 0, 0, bits / 2});
  state.write_part({RegisterPart::File::general, 0, 0, bits}, state.store.sign_extend(half, bits));
}

/// cwd, cdq, cqo: the accumulator's sign into edx.
template <std::uint16_t bits>
void lift_sign(LiftState& state, const From&) {
  const NodeId sign = state.store.extract(state.general[0], bits - 1, 1);
  state.write_part({RegisterPart::File::general, 2, 0, bits}, state.store.sign_extend(sign, bits));
}

void lift_bswap(LiftState& state, const From& from) {
  require_operands(from, 1);
  const NodeId x = state.read(from.operands[0]);
  const unsigned bytes = from.operands[0].size;
  if (bytes < 4) end_at_form();
  std::array<NodeId, 8> swapped{};
  for (unsigned i = 0; i < bytes; ++i) swapped.at(bytes - 1 - i) = state.store.extract(x, 8 * i, 8);
  state.write(from.operands[0], state.store.join(std::span(swapped).first(bytes)));
}

template <Condition condition>
void lift_setcc(LiftState& state, const From& from) {
  require_operands(from, 1);
  state.write(from.operands[0], state.store.zero_extend(state.flags.condition(state.store, condition), 8));
}

template <Condition condition>
void lift_cmov(LiftState& state, const From& from) {
  const NodeId other = second(state, from);
  const NodeId old = state.read(from.operands[0]);
  const NodeId bit = state.flags.condition(state.store, condition);
  state.write(from.operands[0], state.store.choose(bit, other, old));  // clears the upper half in any case
}

constexpr std::array rows = std::to_array<LiftRow>({
    {"mov", lift_mov},
    {"movabs", lift_mov},
    {"movzx", lift_movzx},
    {"movsx", lift_movsx},
    {"movsxd", lift_movsx},
    {"lea", lift_lea},
    {"push", lift_push},
    {"pop", lift_pop},
    {"xchg", lift_xchg},
    {"add", lift_add},
    {"sub", lift_sub},
    {"cmp", lift_cmp},
    {"adc", lift_adc},
    {"sbb", lift_sbb},
    {"inc", lift_step<false>},
    {"dec", lift_step<true>},
    {"neg", lift_neg},
    {"not", lift_not},
    {"and", lift_logic<&Store::bit_and, true>},
    {"or", lift_logic<&Store::bit_or, true>},
    {"xor", lift_logic<&Store::bit_xor, true>},
    {"test", lift_logic<&Store::bit_and, false>},
    {"imul", lift_imul},
    {"mul", lift_mul},
    {"cbw", lift_widen<16>},
    {"cwde", lift_widen<32>},
    {"cdqe", lift_widen<64>},
    {"cwd", lift_sign<16>},
    {"cdq", lift_sign<32>},
    {"cqo", lift_sign<64>},
    {"bswap", lift_bswap},
    {"seto", lift_setcc<Condition::o>},
    {"setno", lift_setcc<Condition::no>},
    {"setb", lift_setcc<Condition::b>},
    {"setae", lift_setcc<Condition::ae>},
    {"sete", lift_setcc<Condition::e>},
    {"setne", lift_setcc<Condition::ne>},
    {"setbe", lift_setcc<Condition::be>},
    {"seta", lift_setcc<Condition::a>},
    {"sets", lift_setcc<Condition::s>},
    {"setns", lift_setcc<Condition::ns>},
    {"setp", lift_setcc<Condition::p>},
    {"setnp", lift_setcc<Condition::np>},
    {"setl", lift_setcc<Condition::l>},
    {"setge", lift_setcc<Condition::ge>},
    {"setle", lift_setcc<Condition::le>},
    {"setg", lift_setcc<Condition::g>},
    {"cmovo", lift_cmov<Condition::o>},
    {"cmovno", lift_cmov<Condition::no>},
    {"cmovb", lift_cmov<Condition::b>},
    {"cmovae", lift_cmov<Condition::ae>},
    {"cmove", lift_cmov<Condition::e>},
    {"cmovne", lift_cmov<Condition::ne>},
    {"cmovbe", lift_cmov<Condition::be>},
    {"cmova", lift_cmov<Condition::a>},
    {"cmovs", lift_cmov<Condition::s>},
    {"cmovns", lift_cmov<Condition::ns>},
    {"cmovp", lift_cmov<Condition::p>},
    {"cmovnp", lift_cmov<Condition::np>},
    {"cmovl", lift_cmov<Condition::l>},
    {"cmovge", lift_cmov<Condition::ge>},
    {"cmovle", lift_cmov<Condition::le>},
    {"cmovg", lift_cmov<Condition::g>},
});

}  // namespace

std::span<const LiftRow> integer_rows() {
  return rows;
}

}  // namespace bitwitness::proof
