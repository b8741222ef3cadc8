// How integer arithmetic, comparisons and choices are simplified.
#include "harness/proof/expression.hpp"

#include <algorithm>
#include <bit>

namespace bitwitness::proof {
namespace {

bool is_power_of_two(Bits value) {
  return value != 0 && (value & (value - 1)) == 0;
}

unsigned lowest_bit(Bits value) {
  const auto low = static_cast<std::uint64_t>(value);
  if (low != 0) return static_cast<unsigned>(std::countr_zero(low));
  return 64 + static_cast<unsigned>(std::countr_zero(static_cast<std::uint64_t>(value >> 64)));
}

}  // namespace

/// Tells whether at least one of the two is known to be 0 at every bit, so that their sum has no carries.
bool Store::are_disjoint(NodeId a, NodeId b) const {
  const auto zeros = [this](NodeId id) {
    Bits known = 0;
    unsigned at = 0;
    NodeId rest = id;
    std::array<NodeId, max_width> parts{};
    unsigned count = 0;
    while (nodes_[rest].kind == Kind::concat) {
      parts.at(count++) = nodes_[rest].operands[0];
      rest = nodes_[rest].operands[1];
    }
    for (NodeId part = rest;; part = parts.at(--count)) {
      const Node& node = nodes_[part];
      if (node.kind == Kind::constant) known |= (~node.value() & ones(node.width)) << at;
      at += node.width;
      if (count == 0) break;
    }
    return known;
  };
  return (zeros(a) | zeros(b)) == ones(nodes_[a].width);
}

NodeId Store::add(NodeId a, NodeId b) {
  require(width(a) == width(b));
  if (is_constant(a) || (!is_constant(b) && a > b)) std::swap(a, b);
  if (is_constant(b, 0)) return a;
  const Node left = nodes_[a];
  if (is_constant(b) && left.kind == Kind::add && is_constant(left.operands[1])) {
    return add(left.operands[0], add(left.operands[1], b));
  }
  if (!is_constant(a) && are_disjoint(a, b)) return bit_or(a, b);
  const std::array operands = {a, b};
  return make(Kind::add, left.width, operands);
}

NodeId Store::subtract(NodeId a, NodeId b) {
  require(width(a) == width(b));
  const unsigned all = width(a);
  if (a == b) return constant(all, 0);
  if (is_constant(b)) return add(a, constant(all, Bits{0} - nodes_[b].value()));
  if (is_constant(a, 0) && zero_top(b) + 1 == all) return sign_extend(extract(b, 0, 1), all);  // a carry as a mask
  const std::array operands = {a, b};
  return make(Kind::subtract, all, operands);
}

NodeId Store::multiply(NodeId a, NodeId b) {
  require(width(a) == width(b));
  if (is_constant(a) || (!is_constant(b) && a > b)) std::swap(a, b);
  const unsigned all = width(a);
  if (is_constant(b)) {
    const Bits factor = nodes_[b].value();
    if (factor == 0) return b;
    if (is_power_of_two(factor)) return shift_left(a, constant(all, lowest_bit(factor)));
  }
  const std::array operands = {a, b};
  return make(Kind::multiply, all, operands);
}

/// Either of the shifts that bring in zeros.
NodeId Store::shift(Kind kind, NodeId a, NodeId count) {
  const unsigned all = width(a);
  require(width(count) == all);
  if (is_constant(count)) {
    const Bits by = nodes_[count].value();
    if (by == 0) return a;
    if (by >= all) return constant(all, 0);
    const auto bits = static_cast<unsigned>(by);
    const NodeId zeros = constant(bits, 0);
    return kind == Kind::shift_left ? concat(extract(a, 0, all - bits), zeros)
                                    : concat(zeros, extract(a, bits, all - bits));
  }
  if (is_constant(a, 0)) return a;
  const std::array operands = {a, count};
  return make(kind, all, operands);
}

NodeId Store::shift_left(NodeId a, NodeId count) {
  return shift(Kind::shift_left, a, count);
}

NodeId Store::shift_right(NodeId a, NodeId count) {
  return shift(Kind::shift_right, a, count);
}

NodeId Store::shift_right_signed(NodeId a, NodeId count) {
  const unsigned all = width(a);
  require(width(count) == all);
  if (is_constant(count)) {
    const Bits by = nodes_[count].value();
    const unsigned bits = by >= all ? all - 1 : static_cast<unsigned>(by);
    return sign_extend(extract(a, bits, all - bits), all);
  }
  if (is_constant(a, 0) || is_constant(a, ones(all))) return a;
  const std::array operands = {a, count};
  return make(Kind::shift_right_signed, all, operands);
}

NodeId Store::rotate_left(NodeId a, NodeId count) {
  const unsigned all = width(a);
  require(width(count) == all);
  if (is_constant(count)) {
    const auto by = static_cast<unsigned>(nodes_[count].value() % all);
    if (by == 0) return a;
    const NodeId high = extract(a, 0, all - by);
    return concat(high, extract(a, all - by, by));
  }
  const std::array operands = {a, count};
  return make(Kind::rotate_left, all, operands);
}

NodeId Store::equal_to_constant(NodeId a, NodeId known) {
  const Node node = nodes_[a];
  const Bits value = nodes_[known].value();
  if (node.width == 1) return value == 1 ? a : bit_not(a);
  const auto is_known = [this](NodeId id) { return is_constant(id); };
  switch (node.kind) {
    case Kind::add:
      if (is_known(node.operands[1])) return equal(node.operands[0], subtract(known, node.operands[1]));
      break;
    case Kind::bit_xor:
      if (is_known(node.operands[1])) return equal(node.operands[0], bit_xor(known, node.operands[1]));
      break;
    case Kind::bit_not:
      return equal(node.operands[0], bit_not(known));
    case Kind::subtract:
      if (value == 0) return equal(node.operands[0], node.operands[1]);
      break;
    case Kind::sign_extend: {
      const unsigned inner = width(node.operands[0]);
      const NodeId narrow = constant(inner, value);
      return sign_extend(narrow, node.width) == known ? equal(node.operands[0], narrow) : bit(false);
    }
    case Kind::choose:
      if (is_known(node.operands[1]) && is_known(node.operands[2])) {
        const bool first = node.operands[1] == known;
        const bool second = node.operands[2] == known;
        if (first == second) return bit(first);
        return first ? node.operands[0] : bit_not(node.operands[0]);
      }
      break;
    case Kind::concat: {
      Bits rest = value;
      NodeId result = bit(true);
      NodeId at = a;
      unsigned parts = 1;
      for (NodeId i = a; nodes_[i].kind == Kind::concat; i = nodes_[i].operands[1]) ++parts;
      constexpr unsigned most_parts = 8;
      if (parts > most_parts) break;
      while (true) {  // from the top
        const Node piece = nodes_[at];
        const bool is_last = piece.kind != Kind::concat;
        const NodeId part = is_last ? at : piece.operands[0];
        const unsigned below = is_last ? 0 : width(piece.operands[1]);
        result = bit_and(result, equal(part, constant(width(part), rest >> below)));
        if (is_last) return result;
        rest &= ones(below);
        at = piece.operands[1];
      }
    }
    default:
      break;
  }
  const std::array operands = {a, known};
  return make(Kind::equal, 1, operands);
}

NodeId Store::equal(NodeId a, NodeId b) {
  require(width(a) == width(b));
  if (a == b) return bit(true);
  if (is_constant(a) || (!is_constant(b) && a > b)) std::swap(a, b);
  if (is_constant(a)) return bit(false);  // another constant
  if (is_constant(b)) return equal_to_constant(a, b);
  const unsigned zeros = std::min(zero_top(a), zero_top(b));
  if (zeros != 0) {
    const NodeId x = extract(a, 0, width(a) - zeros);
    return equal(x, extract(b, 0, width(b) - zeros));
  }
  const std::array operands = {a, b};
  return make(Kind::equal, 1, operands);
}

NodeId Store::less_unsigned(NodeId a, NodeId b) {
  require(width(a) == width(b));
  const unsigned all = width(a);
  if (a == b || is_constant(b, 0) || is_constant(a, ones(all))) return bit(false);
  if (is_constant(b, 1)) return equal(a, constant(all, 0));
  if (is_constant(a, 0)) return bit_not(equal(b, a));
  const unsigned zeros_a = zero_top(a);
  const unsigned zeros_b = zero_top(b);
  // What has fewer bits than the constant's highest one is below it.
  if (!is_constant(a) && is_constant(b) && zeros_a > zeros_b) return bit(true);
  if (is_constant(a) && !is_constant(b) && zeros_b > zeros_a) return bit(false);
  const unsigned zeros = std::min({zeros_a, zeros_b, all - 1});
  if (zeros != 0) {
    const NodeId x = extract(a, 0, all - zeros);
    return less_unsigned(x, extract(b, 0, all - zeros));
  }
  const std::array operands = {a, b};
  return make(Kind::less_unsigned, 1, operands);
}

NodeId Store::less_signed(NodeId a, NodeId b) {
  require(width(a) == width(b));
  const unsigned all = width(a);
  if (a == b) return bit(false);
  if (is_constant(b, 0)) return extract(a, all - 1, 1);
  if (all > 1 && zero_top(a) != 0 && zero_top(b) != 0) return less_unsigned(a, b);
  const std::array operands = {a, b};
  return make(Kind::less_signed, 1, operands);
}

NodeId Store::choose(NodeId condition, NodeId if_true, NodeId if_false) {
  require(width(condition) == 1 && width(if_true) == width(if_false));
  if (if_true == if_false) return if_true;
  const Node node = nodes_[condition];
  if (node.kind == Kind::constant) return node.value() != 0 ? if_true : if_false;
  if (node.kind == Kind::bit_not) return choose(node.operands[0], if_false, if_true);
  const unsigned all = width(if_true);
  if (is_constant(if_true) && is_constant(if_false)) {
    if (is_constant(if_true, 1) && is_constant(if_false, 0)) return zero_extend(condition, all);
    if (is_constant(if_true, ones(all)) && is_constant(if_false, 0)) return sign_extend(condition, all);
    if (is_constant(if_true, 0) && is_constant(if_false, 1)) return zero_extend(bit_not(condition), all);
    if (is_constant(if_true, 0) && is_constant(if_false, ones(all))) return sign_extend(bit_not(condition), all);
  }
  const std::array operands = {condition, if_true, if_false};
  return make(Kind::choose, all, operands);
}

}  // namespace bitwitness::proof
