// Floating-point expressions: which parts of a mode matter to which operation, and what is exactly the same.
#include "harness/proof/expression.hpp"

#include <algorithm>

namespace bitwitness::proof {
namespace {

/// Equal operations are to have equal modes: what cannot matter is set to one value.
FloatMode normalized(FloatMode mode) {
  if (mode.format != Format::x80) {
    mode.precision = precision_of(mode.format);
  } else {
    mode.denormals_are_zero = false;  // x87 knows no such thing
    mode.flush_to_zero = false;
  }
  return mode;
}

FloatMode without_rounding(FloatMode mode) {
  mode = normalized(mode);
  mode.precision = precision_of(mode.format);
  mode.rounding = Rounding::nearest;
  mode.flush_to_zero = false;
  return mode;
}

}  // namespace

NodeId Store::make_float(Kind kind, unsigned width, std::span<const NodeId> operands, const FloatMode& mode,
                         Format source) {
  Node node = node_of(kind, width, operands);
  node.mode = mode;
  node.source = source;
  return add_folded(node);
}

NodeId Store::float_binary(Kind kind, NodeId a, NodeId b, const FloatMode& mode) {
  require(width(a) == width_of(mode.format) && width(b) == width(a));
  const bool picks_one = kind == Kind::float_min || kind == Kind::float_max;
  require(!picks_one || mode.format != Format::x80);
  const std::array operands = {a, b};
  return make_float(kind, width(a), operands, picks_one ? without_rounding(mode) : normalized(mode));
}

NodeId Store::float_sqrt(NodeId a, const FloatMode& mode) {
  require(width(a) == width_of(mode.format));
  FloatMode used = normalized(mode);
  used.flush_to_zero = false;  // no root is a denormal
  return make_float(Kind::float_sqrt, width(a), std::span(&a, 1), used);
}

NodeId Store::float_round(NodeId a, const FloatMode& mode) {
  require(mode.format == Format::x80 && width(a) == width_of(mode.format));
  FloatMode used = without_rounding(mode);
  used.rounding = mode.rounding;
  return make_float(Kind::float_round, width(a), std::span(&a, 1), used);
}

NodeId Store::float_convert(NodeId a, Format source, const FloatMode& mode) {
  require(width(a) == width_of(source) && source != mode.format);
  FloatMode used = normalized(mode);
  used.precision = precision_of(mode.format);  // it is the format that a conversion rounds to
  const bool is_x87 = source == Format::x80 || mode.format == Format::x80;
  if (is_x87) {
    used.denormals_are_zero = false;
    used.flush_to_zero = false;
  }
  if (source < mode.format) {  // exact
    used.rounding = Rounding::nearest;
    used.flush_to_zero = false;
  }
  // There and back, and no sNaN that would have become quiet, no denormal that would have been flushed.
  const Node node = nodes_[a];
  const bool is_back = node.kind == Kind::float_convert && node.source == mode.format && mode.format < source;
  const bool flushes = used.flush_to_zero || used.denormals_are_zero || node.mode.denormals_are_zero;
  if (is_back && !flushes && is_never_signalling(node.operands[0], mode.format)) return node.operands[0];
  return make_float(Kind::float_convert, width_of(mode.format), std::span(&a, 1), used, source);
}

/// Arithmetic and conversions give quiet NaNs. min, max and moves may hand on a signalling one.
bool Store::is_never_signalling(NodeId id, Format format) const {
  const Node& node = nodes_[id];
  switch (node.kind) {
    case Kind::float_add:
    case Kind::float_subtract:
    case Kind::float_multiply:
    case Kind::float_divide:
    case Kind::float_sqrt:
    case Kind::float_convert:
    case Kind::float_from_integer:
    case Kind::float_round:
      return node.mode.format == format;
    default:
      return false;
  }
}

NodeId Store::float_widen(NodeId a, Format source) {
  require(width(a) == width_of(source) && source != Format::x80);
  const FloatMode mode{Format::x80, precision_of(Format::x80), Rounding::nearest, false, false};
  if (is_never_signalling(a, source)) return float_convert(a, source, mode);
  return make_float(Kind::float_widen, width_of(Format::x80), std::span(&a, 1), mode, source);
}

NodeId Store::float_from_integer(NodeId a, const FloatMode& mode) {
  FloatMode used = without_rounding(mode);
  used.denormals_are_zero = false;
  if (width(a) > precision_of(mode.format)) used.rounding = mode.rounding;
  require(width(a) == 16 || width(a) == 32 || width(a) == 64);
  return make_float(Kind::float_from_integer, width_of(mode.format), std::span(&a, 1), used);
}

NodeId Store::float_to_integer(NodeId a, const FloatMode& mode, unsigned to) {
  require(width(a) == width_of(mode.format) && (to == 16 || to == 32 || to == 64));
  const Node node = nodes_[a];
  if (node.kind == Kind::float_from_integer && width(node.operands[0]) <= precision_of(mode.format) &&
      width(node.operands[0]) <= to) {
    return sign_extend(node.operands[0], to);
  }
  FloatMode used = without_rounding(mode);
  used.rounding = mode.rounding;
  return make_float(Kind::float_to_integer, to, std::span(&a, 1), used);
}

NodeId Store::float_compare(Kind kind, NodeId a, NodeId b, const FloatMode& mode) {
  require(width(a) == width_of(mode.format) && width(b) == width(a));
  FloatMode used = without_rounding(mode);
  if (kind == Kind::float_unordered) used.denormals_are_zero = false;
  if (kind != Kind::float_less && a > b) std::swap(a, b);
  if (kind == Kind::float_less && a == b) return bit(false);
  const std::array operands = {a, b};
  return make_float(kind, 1, operands, used);
}

}  // namespace bitwitness::proof
