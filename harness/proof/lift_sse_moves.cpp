// SSE moves and shuffles. Memory operands get their size from the mnemonic: disassemblers mistake it.
#include "harness/proof/lift_state.hpp"

#include <algorithm>

namespace bitwitness::proof {
namespace {

using From = DetailedInstruction;

constexpr unsigned whole = max_width;

bool is_xmm(const Operand& operand) {
  return operand.kind == Operand::Kind::register_part && operand.part.file == RegisterPart::File::xmm;
}

void require(const From& from, std::size_t count) {
  if (from.operands.size() != count) end_at_form();
}

unsigned control_of(const From& from) {
  require(from, 3);
  if (from.operands[2].kind != Operand::Kind::immediate) end_at_form();
  return static_cast<unsigned>(from.operands[2].immediate & 0xff);
}

/// movss, movsd: from memory with zeros above, between registers the lowest alone.
template <unsigned bits>
void lift_scalar_move(LiftState& state, const From& from) {
  require(from, 2);
  const NodeId value = state.read_xmm(from.operands[1], bits);
  if (is_xmm(from.operands[0]) && is_xmm(from.operands[1])) {
    state.write_xmm_low(from.operands[0], value);
  } else {
    state.write_xmm(from.operands[0], value);
  }
}

void lift_unaligned_move(LiftState& state, const From& from) {
  require(from, 2);
  state.write_xmm(from.operands[0], state.read_xmm(from.operands[1], whole));
}

void lift_aligned_move(LiftState& state, const From& from) {
  require(from, 2);
  if (!is_xmm(from.operands[0])) state.read_aligned(from.operands[0]);  // for its check
  state.write_xmm(from.operands[0], state.read_aligned(from.operands[1]));
}

/// movd and movq, also between general and XMM registers.
template <unsigned named_bits>
void lift_word_move(LiftState& state, const From& from) {
  require(from, 2);
  const Operand& to = from.operands[0];
  const Operand& of = from.operands[1];
  // "movd" of a 64-bit register is what some disassemblers write for movq.
  const auto is_wide = [](const Operand& operand) {
    return operand.kind == Operand::Kind::register_part && operand.part.file == RegisterPart::File::general &&
           operand.part.width == 64;
  };
  const unsigned bits = is_wide(to) || is_wide(of) ? 64 : named_bits;
  if (is_xmm(to)) {
    state.write_xmm(to, is_xmm(of) ? state.read_xmm(of, bits) : state.read(of, bits));
  } else if (is_xmm(of)) {
    state.write(to, state.read_xmm(of, bits));
  } else {
    end_at_form();  // MMX
  }
}

/// movlps and movlpd, movhps and movhpd: half a register and memory.
template <bool upper>
void lift_half_move(LiftState& state, const From& from) {
  require(from, 2);
  Store& store = state.store;
  const Operand& to = from.operands[0];
  constexpr unsigned half = whole / 2;
  if (!is_xmm(to)) {
    state.write_xmm(to, store.extract(state.read_xmm(from.operands[1], whole), upper ? half : 0, half));
    return;
  }
  const NodeId value = state.read_xmm(from.operands[1], half);
  const NodeId old = state.read_xmm(to, whole);
  const NodeId kept = store.extract(old, upper ? 0 : half, half);
  state.write_part(to.part, upper ? store.concat(value, kept) : store.concat(kept, value));
}

/// Lanes of both operands, which are numbered on: those of the second begin at `count`.
template <unsigned bits>
class Lanes {
 public:
  static constexpr unsigned count = whole / bits;

  Lanes(LiftState& state, const From& from) : store_(state.store) {
    const NodeId first = state.read_xmm(from.operands[0], whole);
    const NodeId second = state.read_aligned(from.operands[1]);
    for (unsigned i = 0; i < count; ++i) {
      lanes_.at(i) = store_.extract(first, bits * i, bits);
      lanes_.at(count + i) = store_.extract(second, bits * i, bits);
    }
  }
  NodeId operator[](unsigned i) const { return lanes_.at(i); }

  NodeId pick(const std::array<unsigned, count>& which) {
    std::array<NodeId, count> picked{};
    for (unsigned i = 0; i < count; ++i) picked.at(i) = lanes_.at(which.at(i));
    return store_.join(picked);
  }

 private:
  Store& store_;
  std::array<NodeId, 2 * count> lanes_{};
};

template <unsigned bits, bool upper>
void lift_unpack(LiftState& state, const From& from) {
  require(from, 2);
  Lanes<bits> lanes(state, from);
  constexpr unsigned count = Lanes<bits>::count;
  std::array<unsigned, count> which{};
  for (unsigned i = 0; i < count; ++i) which.at(i) = i / 2 + (upper ? count / 2 : 0) + (i % 2 != 0 ? count : 0);
  state.write_part(from.operands[0].part, lanes.pick(which));
}

void lift_shufps(LiftState& state, const From& from) {
  const unsigned control = control_of(from);
  Lanes<32> lanes(state, from);
  const auto two_bits = [control](unsigned i) { return control >> (2 * i) & 3; };
  state.write_part(from.operands[0].part, lanes.pick({two_bits(0), two_bits(1), 4 + two_bits(2), 4 + two_bits(3)}));
}

void lift_shufpd(LiftState& state, const From& from) {
  const unsigned control = control_of(from);
  Lanes<64> lanes(state, from);
  state.write_part(from.operands[0].part, lanes.pick({control & 1, 2 + (control >> 1 & 1)}));
}

void lift_pshufd(LiftState& state, const From& from) {
  const unsigned control = control_of(from);
  Lanes<32> lanes(state, from);
  std::array<unsigned, 4> which{};
  for (unsigned i = 0; i < 4; ++i) which.at(i) = 4 + (control >> (2 * i) & 3);
  state.write_part(from.operands[0].part, lanes.pick(which));
}

template <unsigned first>
void lift_shuffle_words(LiftState& state, const From& from) {
  const unsigned control = control_of(from);
  Lanes<16> lanes(state, from);
  std::array<unsigned, 8> which{};
  for (unsigned i = 0; i < 8; ++i) {
    const bool moves = i >= first && i < first + 4;
    which.at(i) = 8 + (moves ? first + (control >> (2 * (i - first)) & 3) : i);
  }
  state.write_part(from.operands[0].part, lanes.pick(which));
}

template <unsigned to, unsigned of>
void lift_half_to_half(LiftState& state, const From& from) {
  require(from, 2);
  if (!is_xmm(from.operands[1])) end_at_form();
  Lanes<64> lanes(state, from);
  std::array<unsigned, 2> which = {0, 1};
  which.at(to) = 2 + of;
  state.write_part(from.operands[0].part, lanes.pick(which));
}

template <unsigned bits>
void lift_signs(LiftState& state, const From& from) {
  require(from, 2);
  Store& store = state.store;
  const NodeId value = state.read_xmm(from.operands[1], whole);
  std::array<NodeId, whole / bits> signs{};
  for (unsigned i = 0; i < signs.size(); ++i) signs.at(i) = store.extract(value, bits * i + bits - 1, 1);
  state.write(from.operands[0], store.zero_extend(store.join(signs), 8U * from.operands[0].size));
}

void lift_pextrw(LiftState& state, const From& from) {
  const unsigned control = control_of(from) % 8;
  if (!is_xmm(from.operands[1]) || from.operands[0].kind != Operand::Kind::register_part) end_at_form();
  const NodeId word = state.store.extract(state.read_xmm(from.operands[1], whole), 16 * control, 16);
  state.write(from.operands[0], state.store.zero_extend(word, 8U * from.operands[0].size));
}

void lift_pinsrw(LiftState& state, const From& from) {
  const unsigned control = control_of(from) % 8;
  Store& store = state.store;
  const Operand& of = from.operands[1];
  const NodeId word = of.kind == Operand::Kind::memory ? state.read(of, 16) : store.extract(state.read(of), 0, 16);
  const NodeId old = state.read_xmm(from.operands[0], whole);
  std::array<NodeId, 8> words{};
  for (unsigned i = 0; i < 8; ++i) words.at(i) = i == control ? word : store.extract(old, 16 * i, 16);
  state.write_part(from.operands[0].part, store.join(words));
}

void lift_ldmxcsr(LiftState& state, const From& from) {
  require(from, 1);
  constexpr unsigned status_bits = 6;
  const NodeId value = state.read(from.operands[0], 32);
  const NodeId control = state.store.extract(value, status_bits, 16 - status_bits);
  state.mxcsr = static_cast<std::uint32_t>(state.constant(control, "an MXCSR")) << status_bits;
}

void lift_stmxcsr(LiftState& state, const From& from) {
  require(from, 1);
  constexpr unsigned status_bits = 6;
  Store& store = state.store;
  const NodeId status = store.unknown(status_bits, "exception flags of MXCSR");
  state.write(from.operands[0], store.concat(store.constant(32 - status_bits, state.mxcsr >> status_bits), status));
}

constexpr std::array rows = std::to_array<LiftRow>({
    {"movss", lift_scalar_move<32>},
    {"movsd", lift_scalar_move<64>},
    {"movups", lift_unaligned_move},
    {"movupd", lift_unaligned_move},
    {"movdqu", lift_unaligned_move},
    {"lddqu", lift_unaligned_move},
    {"movaps", lift_aligned_move},
    {"movapd", lift_aligned_move},
    {"movdqa", lift_aligned_move},
    {"movd", lift_word_move<32>},
    {"movq", lift_word_move<64>},
    {"movlps", lift_half_move<false>},
    {"movlpd", lift_half_move<false>},
    {"movhps", lift_half_move<true>},
    {"movhpd", lift_half_move<true>},
    {"movhlps", lift_half_to_half<0, 1>},
    {"movlhps", lift_half_to_half<1, 0>},
    {"unpcklps", lift_unpack<32, false>},
    {"unpckhps", lift_unpack<32, true>},
    {"unpcklpd", lift_unpack<64, false>},
    {"unpckhpd", lift_unpack<64, true>},
    {"punpcklbw", lift_unpack<8, false>},
    {"punpcklwd", lift_unpack<16, false>},
    {"punpckldq", lift_unpack<32, false>},
    {"punpcklqdq", lift_unpack<64, false>},
    {"punpckhbw", lift_unpack<8, true>},
    {"punpckhwd", lift_unpack<16, true>},
    {"punpckhdq", lift_unpack<32, true>},
    {"punpckhqdq", lift_unpack<64, true>},
    {"shufps", lift_shufps},
    {"shufpd", lift_shufpd},
    {"pshufd", lift_pshufd},
    {"pshuflw", lift_shuffle_words<0>},
    {"pshufhw", lift_shuffle_words<4>},
    {"movmskps", lift_signs<32>},
    {"movmskpd", lift_signs<64>},
    {"pmovmskb", lift_signs<8>},
    {"pextrw", lift_pextrw},
    {"pinsrw", lift_pinsrw},
    {"ldmxcsr", lift_ldmxcsr},
    {"stmxcsr", lift_stmxcsr},
});

}  // namespace

std::span<const LiftRow> sse_move_rows() {
  return rows;
}

}  // namespace bitwitness::proof
