// SSE on integers and on bits.
#include "harness/proof/lift_state.hpp"

namespace bitwitness::proof {
namespace {

using From = DetailedInstruction;

constexpr unsigned whole = max_width;

void require(const From& from, std::size_t count) {
  if (from.operands.size() != count) end_at_form();
}

template <NodeId (*combine)(Store&, NodeId, NodeId)>
void lift_bits(LiftState& state, const From& from) {
  require(from, 2);
  const NodeId x = state.read_xmm(from.operands[0], whole);
  state.write_part(from.operands[0].part, combine(state.store, x, state.read_aligned(from.operands[1])));
}

/// Lane by lane.
template <unsigned bits, NodeId (*combine)(Store&, NodeId, NodeId)>
void lift_lanes(LiftState& state, const From& from) {
  require(from, 2);
  Store& store = state.store;
  const NodeId x = state.read_xmm(from.operands[0], whole);
  const NodeId y = state.read_aligned(from.operands[1]);
  std::array<NodeId, whole / bits> results{};
  for (unsigned i = 0; i < results.size(); ++i) {
    const NodeId lane = store.extract(x, bits * i, bits);
    results.at(i) = combine(store, lane, store.extract(y, bits * i, bits));
  }
  state.write_part(from.operands[0].part, store.join(results));
}

NodeId sum(Store& store, NodeId x, NodeId y) {
  return store.add(x, y);
}
NodeId difference(Store& store, NodeId x, NodeId y) {
  return store.subtract(x, y);
}
NodeId product(Store& store, NodeId x, NodeId y) {
  return store.multiply(x, y);
}
NodeId both(Store& store, NodeId x, NodeId y) {
  return store.bit_and(x, y);
}
NodeId either(Store& store, NodeId x, NodeId y) {
  return store.bit_or(x, y);
}
NodeId unlike(Store& store, NodeId x, NodeId y) {
  return store.bit_xor(x, y);
}
NodeId not_and(Store& store, NodeId x, NodeId y) {
  return store.bit_and(store.bit_not(x), y);
}
NodeId equal(Store& store, NodeId x, NodeId y) {
  return store.sign_extend(store.equal(x, y), store.width(x));
}
NodeId greater(Store& store, NodeId x, NodeId y) {
  return store.sign_extend(store.less_signed(y, x), store.width(x));
}
template <bool is_signed>
NodeId upper_product(Store& store, NodeId x, NodeId y) {
  const unsigned bits = store.width(x);
  const auto widen = [&](NodeId id) {
    return is_signed ? store.sign_extend(id, 2 * bits) : store.zero_extend(id, 2 * bits);
  };
  const NodeId wide = widen(x);
  return store.extract(store.multiply(wide, widen(y)), bits, bits);
}
/// pmuludq: the lower halves of each lane.
NodeId product_of_halves(Store& store, NodeId x, NodeId y) {
  const unsigned bits = store.width(x);
  const NodeId low = store.zero_extend(store.extract(x, 0, bits / 2), bits);
  return store.multiply(low, store.zero_extend(store.extract(y, 0, bits / 2), bits));
}
/// pmaddwd: the sum of two products.
NodeId sum_of_products(Store& store, NodeId x, NodeId y) {
  const unsigned bits = store.width(x);
  const auto at = [&](NodeId id, unsigned i) {
    return store.sign_extend(store.extract(id, i * bits / 2, bits / 2), bits);
  };
  const NodeId low = store.multiply(at(x, 0), at(y, 0));
  return store.add(low, store.multiply(at(x, 1), at(y, 1)));
}
template <bool is_signed, bool greatest>
NodeId extreme(Store& store, NodeId x, NodeId y) {
  const NodeId less = is_signed ? store.less_signed(x, y) : store.less_unsigned(x, y);
  return greatest ? store.choose(less, y, x) : store.choose(less, x, y);
}

enum class Shift : std::uint8_t { left, right, right_signed };

template <unsigned bits, Shift shift>
void lift_lane_shift(LiftState& state, const From& from) {
  require(from, 2);
  Store& store = state.store;
  const Operand& by = from.operands[1];
  const NodeId amount = by.kind == Operand::Kind::immediate ? store.constant(64, by.immediate & 0xff)
                                                            : store.extract(state.read_aligned(by), 0, 64);
  const Bits known = state.constant(amount, "a count of a shift of lanes");
  const NodeId count = store.constant(bits, known >= bits ? bits : known);
  const NodeId x = state.read_xmm(from.operands[0], whole);
  std::array<NodeId, whole / bits> results{};
  for (unsigned i = 0; i < results.size(); ++i) {
    const NodeId lane = store.extract(x, bits * i, bits);
    results.at(i) = shift == Shift::left    ? store.shift_left(lane, count)
                    : shift == Shift::right ? store.shift_right(lane, count)
                                            : store.shift_right_signed(lane, count);
  }
  state.write_part(from.operands[0].part, store.join(results));
}

template <bool left>
void lift_byte_shift(LiftState& state, const From& from) {
  require(from, 2);
  if (from.operands[1].kind != Operand::Kind::immediate) end_at_form();
  Store& store = state.store;
  const NodeId count = store.constant(whole, 8 * (from.operands[1].immediate & 0xff));
  const NodeId x = state.read_xmm(from.operands[0], whole);
  state.write_part(from.operands[0].part, left ? store.shift_left(x, count) : store.shift_right(x, count));
}

/// pmovzx and pmovsx: the lowest lanes, widened.
template <unsigned narrow, unsigned wide, bool is_signed>
void lift_widen_lanes(LiftState& state, const From& from) {
  require(from, 2);
  Store& store = state.store;
  constexpr unsigned count = whole / wide;
  const NodeId x = state.read_xmm(from.operands[1], count * narrow);
  std::array<NodeId, count> results{};
  for (unsigned i = 0; i < count; ++i) {
    const NodeId lane = store.extract(x, narrow * i, narrow);
    results.at(i) = is_signed ? store.sign_extend(lane, wide) : store.zero_extend(lane, wide);
  }
  state.write_part(from.operands[0].part, store.join(results));
}

/// Packs: the lanes of both operands, narrowed to the nearest number that fits.
template <unsigned wide, bool to_signed>
void lift_pack(LiftState& state, const From& from) {
  require(from, 2);
  Store& store = state.store;
  constexpr unsigned narrow = wide / 2;
  constexpr unsigned count = whole / wide;
  const NodeId most = store.constant(wide, ones(to_signed ? narrow - 1 : narrow));
  const NodeId least = to_signed ? store.bit_not(most) : store.constant(wide, 0);
  const NodeId x = state.read_xmm(from.operands[0], whole);
  const NodeId y = state.read_aligned(from.operands[1]);
  std::array<NodeId, 2 * count> results{};
  for (unsigned i = 0; i < 2 * count; ++i) {
    const NodeId lane = store.extract(i < count ? x : y, wide * (i % count), wide);
    const NodeId capped = store.choose(store.less_signed(most, lane), most, lane);
    const NodeId fitting = store.choose(store.less_signed(lane, least), least, capped);
    results.at(i) = store.extract(fitting, 0, narrow);
  }
  state.write_part(from.operands[0].part, store.join(results));
}

constexpr std::array rows = std::to_array<LiftRow>({
    {"pand", lift_bits<both>},
    {"pandn", lift_bits<not_and>},
    {"por", lift_bits<either>},
    {"pxor", lift_bits<unlike>},
    {"andps", lift_lanes<32, both>},
    {"andpd", lift_lanes<64, both>},
    {"andnps", lift_lanes<32, not_and>},
    {"andnpd", lift_lanes<64, not_and>},
    {"orps", lift_lanes<32, either>},
    {"orpd", lift_lanes<64, either>},
    {"xorps", lift_lanes<32, unlike>},
    {"xorpd", lift_lanes<64, unlike>},
    {"paddb", lift_lanes<8, sum>},
    {"paddw", lift_lanes<16, sum>},
    {"paddd", lift_lanes<32, sum>},
    {"paddq", lift_lanes<64, sum>},
    {"psubb", lift_lanes<8, difference>},
    {"psubw", lift_lanes<16, difference>},
    {"psubd", lift_lanes<32, difference>},
    {"psubq", lift_lanes<64, difference>},
    {"pmullw", lift_lanes<16, product>},
    {"pmulld", lift_lanes<32, product>},
    {"pmulhw", lift_lanes<16, upper_product<true>>},
    {"pmulhuw", lift_lanes<16, upper_product<false>>},
    {"pmuludq", lift_lanes<64, product_of_halves>},
    {"pmaddwd", lift_lanes<32, sum_of_products>},
    {"pcmpeqb", lift_lanes<8, equal>},
    {"pcmpeqw", lift_lanes<16, equal>},
    {"pcmpeqd", lift_lanes<32, equal>},
    {"pcmpgtb", lift_lanes<8, greater>},
    {"pcmpgtw", lift_lanes<16, greater>},
    {"pcmpgtd", lift_lanes<32, greater>},
    {"pminsw", lift_lanes<16, extreme<true, false>>},
    {"pmaxsw", lift_lanes<16, extreme<true, true>>},
    {"pminub", lift_lanes<8, extreme<false, false>>},
    {"pmaxub", lift_lanes<8, extreme<false, true>>},
    {"psllw", lift_lane_shift<16, Shift::left>},
    {"pslld", lift_lane_shift<32, Shift::left>},
    {"psllq", lift_lane_shift<64, Shift::left>},
    {"psrlw", lift_lane_shift<16, Shift::right>},
    {"psrld", lift_lane_shift<32, Shift::right>},
    {"psrlq", lift_lane_shift<64, Shift::right>},
    {"psraw", lift_lane_shift<16, Shift::right_signed>},
    {"psrad", lift_lane_shift<32, Shift::right_signed>},
    {"pslldq", lift_byte_shift<true>},
    {"psrldq", lift_byte_shift<false>},
    {"packsswb", lift_pack<16, true>},
    {"packuswb", lift_pack<16, false>},
    {"packssdw", lift_pack<32, true>},
    {"packusdw", lift_pack<32, false>},
    {"pmovzxbw", lift_widen_lanes<8, 16, false>},
    {"pmovzxbd", lift_widen_lanes<8, 32, false>},
    {"pmovzxbq", lift_widen_lanes<8, 64, false>},
    {"pmovzxwd", lift_widen_lanes<16, 32, false>},
    {"pmovzxwq", lift_widen_lanes<16, 64, false>},
    {"pmovzxdq", lift_widen_lanes<32, 64, false>},
    {"pmovsxbw", lift_widen_lanes<8, 16, true>},
    {"pmovsxbd", lift_widen_lanes<8, 32, true>},
    {"pmovsxbq", lift_widen_lanes<8, 64, true>},
    {"pmovsxwd", lift_widen_lanes<16, 32, true>},
    {"pmovsxwq", lift_widen_lanes<16, 64, true>},
    {"pmovsxdq", lift_widen_lanes<32, 64, true>},
});

}  // namespace

std::span<const LiftRow> sse_integer_rows() {
  return rows;
}

}  // namespace bitwitness::proof
