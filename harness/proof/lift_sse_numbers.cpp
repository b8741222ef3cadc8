// SSE on floating-point numbers: arithmetic, comparisons and conversions, in the lowest lane or in all.
#include "harness/proof/lift_state.hpp"

#include <algorithm>

namespace bitwitness::proof {
namespace {

using From = DetailedInstruction;

constexpr unsigned whole = max_width;

void require(const From& from, std::size_t count) {
  if (from.operands.size() != count) end_at_form();
}

/// Applies something to the lowest lane, or to each.
template <typename Combine>
void each_lane(LiftState& state, const From& from, unsigned bits, bool is_scalar, Combine combine) {
  require(from, 2);
  Store& store = state.store;
  const NodeId x = state.read_xmm(from.operands[0], whole);
  if (is_scalar) {
    const NodeId y = state.read_xmm(from.operands[1], bits);
    state.write_xmm_low(from.operands[0], combine(store.extract(x, 0, bits), y));
    return;
  }
  const NodeId y = state.read_aligned(from.operands[1]);
  std::array<NodeId, 4> results{};
  const unsigned count = whole / bits;
  for (unsigned i = 0; i < count; ++i) {
    const NodeId lane = store.extract(x, bits * i, bits);
    results.at(i) = combine(lane, store.extract(y, bits * i, bits));
  }
  state.write_part(from.operands[0].part, store.join(std::span(results).first(count)));
}

template <Kind kind, Format format, bool is_scalar>
void lift_arithmetic(LiftState& state, const From& from) {
  const FloatMode mode = state.sse_mode(format);
  each_lane(state, from, width_of(format), is_scalar, [&](NodeId x, NodeId y) {
    return kind == Kind::float_sqrt ? state.store.float_sqrt(y, mode) : state.store.float_binary(kind, x, y, mode);
  });
}

enum class Predicate : std::uint8_t { eq, lt, le, unord, neq, nlt, nle, ord };

template <Predicate predicate, Format format, bool is_scalar>
void lift_mask(LiftState& state, const From& from) {
  Store& store = state.store;
  const FloatMode mode = state.sse_mode(format);
  each_lane(state, from, width_of(format), is_scalar, [&](NodeId x, NodeId y) {
    const auto is = [&](Kind kind) { return store.float_compare(kind, x, y, mode); };
    NodeId bit = 0;
    switch (static_cast<Predicate>(static_cast<unsigned>(predicate) & 3)) {
      case Predicate::eq:
        bit = is(Kind::float_equal);
        break;
      case Predicate::lt:
        bit = is(Kind::float_less);
        break;
      case Predicate::le:
        bit = store.bit_or(is(Kind::float_less), is(Kind::float_equal));
        break;
      default:
        bit = is(Kind::float_unordered);
        break;
    }
    if (predicate >= Predicate::neq) bit = store.bit_not(bit);
    return store.sign_extend(bit, width_of(format));
  });
}

template <Format format>
void lift_compare(LiftState& state, const From& from) {
  require(from, 2);
  const NodeId x = state.read_xmm(from.operands[0], width_of(format));
  const NodeId y = state.read_xmm(from.operands[1], width_of(format));
  state.flags.set_comparison(state.store, x, y, state.sse_mode(format));
}

// ---- conversions

template <Format format>
void lift_from_integer(LiftState& state, const From& from) {
  require(from, 2);
  const unsigned bits = from.operands[1].size == 8 ? 64 : 32;
  const NodeId integer = state.read(from.operands[1], bits);
  state.write_xmm_low(from.operands[0], state.store.float_from_integer(integer, state.sse_mode(format)));
}

template <Format format, bool truncates>
void lift_to_integer(LiftState& state, const From& from) {
  require(from, 2);
  FloatMode mode = state.sse_mode(format);
  if (truncates) mode.rounding = Rounding::zero;
  const NodeId number = state.read_xmm(from.operands[1], width_of(format));
  state.write(from.operands[0], state.store.float_to_integer(number, mode, 8U * from.operands[0].size));
}

template <Format source, Format format>
void lift_convert(LiftState& state, const From& from) {
  require(from, 2);
  const NodeId number = state.read_xmm(from.operands[1], width_of(source));
  state.write_xmm_low(from.operands[0], state.store.float_convert(number, source, state.sse_mode(format)));
}

/// Lanes of one width from as many of another: two when either has 64 bits. The rest of the register becomes 0.
template <unsigned source_bits, unsigned bits, typename Convert>
void convert_lanes(LiftState& state, const From& from, Convert convert) {
  require(from, 2);
  Store& store = state.store;
  constexpr unsigned count = whole / std::max(source_bits, bits);
  const NodeId x = count * source_bits == whole ? state.read_aligned(from.operands[1])
                                                : state.read_xmm(from.operands[1], count * source_bits);
  std::array<NodeId, count> results{};
  for (unsigned i = 0; i < count; ++i) results.at(i) = convert(store.extract(x, source_bits * i, source_bits));
  state.write_xmm(from.operands[0], store.join(results));
}

template <Format format>
void lift_from_integers(LiftState& state, const From& from) {
  const FloatMode mode = state.sse_mode(format);
  convert_lanes<32, width_of(format)>(state, from,
                                      [&](NodeId lane) { return state.store.float_from_integer(lane, mode); });
}

template <Format format, bool truncates>
void lift_to_integers(LiftState& state, const From& from) {
  FloatMode mode = state.sse_mode(format);
  if (truncates) mode.rounding = Rounding::zero;
  convert_lanes<width_of(format), 32>(state, from,
                                      [&](NodeId lane) { return state.store.float_to_integer(lane, mode, 32); });
}

template <Format source, Format format>
void lift_convert_lanes(LiftState& state, const From& from) {
  const FloatMode mode = state.sse_mode(format);
  convert_lanes<width_of(source), width_of(format)>(
      state, from, [&](NodeId lane) { return state.store.float_convert(lane, source, mode); });
}

constexpr std::array rows = std::to_array<LiftRow>({
    {"addss", lift_arithmetic<Kind::float_add, Format::f32, true>},
    {"addsd", lift_arithmetic<Kind::float_add, Format::f64, true>},
    {"addps", lift_arithmetic<Kind::float_add, Format::f32, false>},
    {"addpd", lift_arithmetic<Kind::float_add, Format::f64, false>},
    {"subss", lift_arithmetic<Kind::float_subtract, Format::f32, true>},
    {"subsd", lift_arithmetic<Kind::float_subtract, Format::f64, true>},
    {"subps", lift_arithmetic<Kind::float_subtract, Format::f32, false>},
    {"subpd", lift_arithmetic<Kind::float_subtract, Format::f64, false>},
    {"mulss", lift_arithmetic<Kind::float_multiply, Format::f32, true>},
    {"mulsd", lift_arithmetic<Kind::float_multiply, Format::f64, true>},
    {"mulps", lift_arithmetic<Kind::float_multiply, Format::f32, false>},
    {"mulpd", lift_arithmetic<Kind::float_multiply, Format::f64, false>},
    {"divss", lift_arithmetic<Kind::float_divide, Format::f32, true>},
    {"divsd", lift_arithmetic<Kind::float_divide, Format::f64, true>},
    {"divps", lift_arithmetic<Kind::float_divide, Format::f32, false>},
    {"divpd", lift_arithmetic<Kind::float_divide, Format::f64, false>},
    {"minss", lift_arithmetic<Kind::float_min, Format::f32, true>},
    {"minsd", lift_arithmetic<Kind::float_min, Format::f64, true>},
    {"minps", lift_arithmetic<Kind::float_min, Format::f32, false>},
    {"minpd", lift_arithmetic<Kind::float_min, Format::f64, false>},
    {"maxss", lift_arithmetic<Kind::float_max, Format::f32, true>},
    {"maxsd", lift_arithmetic<Kind::float_max, Format::f64, true>},
    {"maxps", lift_arithmetic<Kind::float_max, Format::f32, false>},
    {"maxpd", lift_arithmetic<Kind::float_max, Format::f64, false>},
    {"sqrtss", lift_arithmetic<Kind::float_sqrt, Format::f32, true>},
    {"sqrtsd", lift_arithmetic<Kind::float_sqrt, Format::f64, true>},
    {"sqrtps", lift_arithmetic<Kind::float_sqrt, Format::f32, false>},
    {"sqrtpd", lift_arithmetic<Kind::float_sqrt, Format::f64, false>},
    {"cmpeqss", lift_mask<Predicate::eq, Format::f32, true>},
    {"cmpeqsd", lift_mask<Predicate::eq, Format::f64, true>},
    {"cmpeqps", lift_mask<Predicate::eq, Format::f32, false>},
    {"cmpeqpd", lift_mask<Predicate::eq, Format::f64, false>},
    {"cmpltss", lift_mask<Predicate::lt, Format::f32, true>},
    {"cmpltsd", lift_mask<Predicate::lt, Format::f64, true>},
    {"cmpltps", lift_mask<Predicate::lt, Format::f32, false>},
    {"cmpltpd", lift_mask<Predicate::lt, Format::f64, false>},
    {"cmpless", lift_mask<Predicate::le, Format::f32, true>},
    {"cmplesd", lift_mask<Predicate::le, Format::f64, true>},
    {"cmpleps", lift_mask<Predicate::le, Format::f32, false>},
    {"cmplepd", lift_mask<Predicate::le, Format::f64, false>},
    {"cmpunordss", lift_mask<Predicate::unord, Format::f32, true>},
    {"cmpunordsd", lift_mask<Predicate::unord, Format::f64, true>},
    {"cmpunordps", lift_mask<Predicate::unord, Format::f32, false>},
    {"cmpunordpd", lift_mask<Predicate::unord, Format::f64, false>},
    {"cmpneqss", lift_mask<Predicate::neq, Format::f32, true>},
    {"cmpneqsd", lift_mask<Predicate::neq, Format::f64, true>},
    {"cmpneqps", lift_mask<Predicate::neq, Format::f32, false>},
    {"cmpneqpd", lift_mask<Predicate::neq, Format::f64, false>},
    {"cmpnltss", lift_mask<Predicate::nlt, Format::f32, true>},
    {"cmpnltsd", lift_mask<Predicate::nlt, Format::f64, true>},
    {"cmpnltps", lift_mask<Predicate::nlt, Format::f32, false>},
    {"cmpnltpd", lift_mask<Predicate::nlt, Format::f64, false>},
    {"cmpnless", lift_mask<Predicate::nle, Format::f32, true>},
    {"cmpnlesd", lift_mask<Predicate::nle, Format::f64, true>},
    {"cmpnleps", lift_mask<Predicate::nle, Format::f32, false>},
    {"cmpnlepd", lift_mask<Predicate::nle, Format::f64, false>},
    {"cmpordss", lift_mask<Predicate::ord, Format::f32, true>},
    {"cmpordsd", lift_mask<Predicate::ord, Format::f64, true>},
    {"cmpordps", lift_mask<Predicate::ord, Format::f32, false>},
    {"cmpordpd", lift_mask<Predicate::ord, Format::f64, false>},
    {"ucomiss", lift_compare<Format::f32>},
    {"ucomisd", lift_compare<Format::f64>},
    {"comiss", lift_compare<Format::f32>},
    {"comisd", lift_compare<Format::f64>},
    {"cvtsi2ss", lift_from_integer<Format::f32>},
    {"cvtsi2sd", lift_from_integer<Format::f64>},
    {"cvtss2si", lift_to_integer<Format::f32, false>},
    {"cvtsd2si", lift_to_integer<Format::f64, false>},
    {"cvttss2si", lift_to_integer<Format::f32, true>},
    {"cvttsd2si", lift_to_integer<Format::f64, true>},
    {"cvtss2sd", lift_convert<Format::f32, Format::f64>},
    {"cvtsd2ss", lift_convert<Format::f64, Format::f32>},
    {"cvtdq2ps", lift_from_integers<Format::f32>},
    {"cvtdq2pd", lift_from_integers<Format::f64>},
    {"cvtps2dq", lift_to_integers<Format::f32, false>},
    {"cvttps2dq", lift_to_integers<Format::f32, true>},
    {"cvtpd2dq", lift_to_integers<Format::f64, false>},
    {"cvttpd2dq", lift_to_integers<Format::f64, true>},
    {"cvtps2pd", lift_convert_lanes<Format::f32, Format::f64>},
    {"cvtpd2ps", lift_convert_lanes<Format::f64, Format::f32>},
});

}  // namespace

std::span<const LiftRow> sse_number_rows() {
  return rows;
}

}  // namespace bitwitness::proof
