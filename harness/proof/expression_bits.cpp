// How expressions that place bits or combine them bit by bit are simplified. A node may move whenever another is made:
// what is read of one is read before.
#include "harness/proof/expression.hpp"

#include <algorithm>

namespace bitwitness::proof {
namespace {

// An extract is pushed through so many operations below it, so that shared operands are not visited again and again.
constexpr unsigned push_depth = 6;

// A mask with more changes between 0 and 1 stays a mask.
constexpr unsigned max_runs = 9;

unsigned run_count(Bits value, unsigned width) {
  unsigned runs = 1;
  for (unsigned i = 1; i < width; ++i) runs += ((value >> i) & 1) != ((value >> (i - 1)) & 1) ? 1 : 0;
  return runs;
}

}  // namespace

/// What a concat consists of, lowest first.
struct Store::Parts {
  std::array<NodeId, max_width> ids{};
  unsigned count = 0;

  void add(NodeId id) { ids.at(count++) = id; }
  [[nodiscard]] std::span<const NodeId> all() const { return std::span(ids).first(count); }
};

void Store::collect_parts(Parts& parts, NodeId from) const {
  Parts high;  // a concat's first operand is none itself
  for (; nodes_[from].kind == Kind::concat; from = nodes_[from].operands[1]) high.add(nodes_[from].operands[0]);
  parts.add(from);
  for (unsigned i = high.count; i-- > 0;) parts.add(high.ids.at(i));
}

/// One node for two adjacent parts, neither a concat, if there is one; otherwise `high` itself.
NodeId Store::merge(NodeId high, NodeId low) {
  const Node a = nodes_[high];
  const Node b = nodes_[low];
  const unsigned width = unsigned{a.width} + b.width;
  if (a.kind == Kind::constant && b.kind == Kind::constant) return constant(width, a.value() << b.width | b.value());
  if (a.kind == Kind::input && b.kind == Kind::input && b.low + b.width == a.low) {
    return input(static_cast<std::size_t>(b.low), width);
  }
  const auto is_sign_of_low = [&](NodeId bit) {
    const Node sign = nodes_[bit];
    if (b.kind == Kind::input) return sign.kind == Kind::input && sign.width == 1 && sign.low == b.low + b.width - 1;
    if (sign.kind != Kind::extract || sign.width != 1) return false;
    if (b.kind == Kind::extract) return sign.operands[0] == b.operands[0] && sign.low == b.low + b.width - 1;
    return sign.operands[0] == low && sign.low + 1U == b.width;
  };
  if (a.kind == Kind::sign_extend && nodes_[a.operands[0]].width == 1 && is_sign_of_low(a.operands[0])) {
    return sign_extend(low, width);
  }
  if (a.kind != Kind::extract || b.kind != Kind::extract || a.operands[0] != b.operands[0]) return high;
  if (b.low + b.width != a.low) return high;
  // Made as it is: extract might give a concat.
  if (width == nodes_[a.operands[0]].width) return a.operands[0];
  return make(Kind::extract, width, std::span(a.operands).first(1), b.low);
}

NodeId Store::join(std::span<const NodeId> given) {
  Parts flat;
  for (const NodeId part : given) collect_parts(flat, part);
  Parts merged;
  for (const NodeId part : flat.all()) {
    if (merged.count != 0) {
      NodeId& last = merged.ids.at(merged.count - 1);
      const NodeId one = merge(part, last);
      if (one != part) {
        last = one;
        continue;
      }
    }
    merged.add(part);
  }
  NodeId joined = merged.ids[0];
  for (unsigned i = 1; i < merged.count; ++i) {
    const std::array operands = {merged.ids.at(i), joined};
    joined = make(Kind::concat, width(operands[0]) + width(operands[1]), operands);
  }
  return joined;
}

NodeId Store::concat(NodeId high, NodeId low) {
  const std::array parts = {low, high};
  return join(parts);
}

NodeId Store::extract(NodeId from, unsigned first_bit, unsigned width) {
  return extract_from(from, first_bit, width, push_depth);
}

NodeId Store::extract_from(NodeId from, unsigned first_bit, unsigned width, unsigned depth) {
  const Node node = nodes_[from];
  require(width >= 1 && first_bit + width <= node.width);
  if (width == node.width) return from;
  const auto again = [&](NodeId operand, unsigned first) { return extract_from(operand, first, width, depth - 1); };
  switch (node.kind) {
    case Kind::constant:
      return constant(width, node.value() >> first_bit);
    case Kind::input:
      return input(static_cast<std::size_t>(node.low) + first_bit, width);
    case Kind::extract:
      return extract_from(node.operands[0], static_cast<unsigned>(node.low) + first_bit, width, depth);
    case Kind::concat: {
      Parts all;
      collect_parts(all, from);
      Parts taken;
      unsigned at = 0;
      for (const NodeId part : all.all()) {
        const unsigned end = at + nodes_[part].width;
        const unsigned first = std::max(at, first_bit);
        const unsigned last = std::min(end, first_bit + width);
        if (first < last) taken.add(extract_from(part, first - at, last - first, depth));
        at = end;
      }
      return join(taken.all());
    }
    case Kind::sign_extend: {
      const unsigned inner = nodes_[node.operands[0]].width;
      if (first_bit + width <= inner) return extract_from(node.operands[0], first_bit, width, depth);
      const unsigned first = std::min(first_bit, inner - 1);
      return sign_extend(extract_from(node.operands[0], first, inner - first, depth), width);
    }
    case Kind::bit_and:
    case Kind::bit_or:
    case Kind::bit_xor: {
      // A number whose sign is changed stays recognisable when its bytes are put together again.
      if (depth == 0 || nodes_[node.operands[0]].kind >= Kind::float_add) break;
      const NodeId a = again(node.operands[0], first_bit);
      return bitwise(node.kind, a, again(node.operands[1], first_bit));
    }
    case Kind::bit_not:
      if (depth == 0) break;
      return bit_not(again(node.operands[0], first_bit));
    case Kind::add:
    case Kind::subtract:
    case Kind::multiply: {
      if (depth == 0 || first_bit != 0) break;
      const NodeId a = again(node.operands[0], 0);
      const NodeId b = again(node.operands[1], 0);
      if (node.kind == Kind::add) return add(a, b);
      return node.kind == Kind::subtract ? subtract(a, b) : multiply(a, b);
    }
    case Kind::choose: {
      const bool is_cheap = is_constant(node.operands[1]) || is_constant(node.operands[2]);
      if (depth == 0 || !is_cheap) break;
      const NodeId b = again(node.operands[1], first_bit);
      return choose(node.operands[0], b, again(node.operands[2], first_bit));
    }
    default:
      break;
  }
  return make(Kind::extract, width, std::span(&from, 1), first_bit);
}

NodeId Store::zero_extend(NodeId from, unsigned to) {
  require(to >= width(from));
  if (to == width(from)) return from;
  return concat(constant(to - width(from), 0), from);
}

NodeId Store::sign_extend(NodeId from, unsigned to) {
  const Node node = nodes_[from];
  require(to >= node.width);
  if (to == node.width) return from;
  if (node.kind == Kind::sign_extend) return sign_extend(node.operands[0], to);
  if (node.kind == Kind::concat && nodes_[node.operands[0]].kind == Kind::constant) {
    const NodeId top = node.operands[0];
    return concat(sign_extend(top, to - nodes_[node.operands[1]].width), node.operands[1]);
  }
  return make(Kind::sign_extend, to, std::span(&from, 1));
}

unsigned Store::zero_top(NodeId id) const {
  const Node& node = nodes_[id];
  if (node.kind == Kind::concat) {
    const Node& top = nodes_[node.operands[0]];
    return top.kind == Kind::constant && top.value() == 0 ? top.width : 0;
  }
  if (node.kind != Kind::constant) return 0;
  unsigned zeros = 0;
  while (zeros < node.width && ((node.value() >> (node.width - 1 - zeros)) & 1) == 0) ++zeros;
  return zeros;
}

/// Combines part by part where that lets bits go or become known. Nothing is gained when no part has a known side.
std::optional<NodeId> Store::bitwise_by_parts(Kind kind, NodeId a, NodeId b) {
  const unsigned all = width(a);
  std::array<bool, max_width + 1> is_border{};
  for (const NodeId side : {a, b}) {
    Parts parts;
    collect_parts(parts, side);
    unsigned at = 0;
    for (const NodeId part : parts.all()) is_border.at(at += nodes_[part].width) = true;
    if (kind == Kind::bit_xor) continue;
    at = 0;
    for (const NodeId part : parts.all()) {
      const Node node = nodes_[part];
      if (node.kind == Kind::constant && run_count(node.value(), node.width) <= max_runs) {
        for (unsigned i = 1; i < node.width; ++i) {
          if (((node.value() >> i) & 1) != ((node.value() >> (i - 1)) & 1)) is_border.at(at + i) = true;
        }
      }
      at += node.width;
    }
  }
  is_border.at(all) = true;
  Parts results;
  bool is_simpler = false;
  unsigned first = 0;
  for (unsigned end = 1; end <= all; ++end) {
    if (!is_border.at(end)) continue;
    const NodeId x = extract(a, first, end - first);
    const NodeId y = extract(b, first, end - first);
    is_simpler |= is_constant(x) || is_constant(y) || x == y;
    if (first == 0 && end == all) return std::nullopt;  // one part: nothing to split
    results.add(bitwise(kind, x, y));
    first = end;
  }
  if (!is_simpler) return std::nullopt;
  return join(results.all());
}

NodeId Store::bitwise(Kind kind, NodeId a, NodeId b) {
  require(width(a) == width(b));
  if (is_constant(a) || (!is_constant(b) && a > b)) std::swap(a, b);
  const unsigned all = width(a);
  if (a == b) return kind == Kind::bit_xor ? constant(all, 0) : a;
  if (is_constant(b)) {
    const Bits mask = nodes_[b].value();
    if (mask == 0) return kind == Kind::bit_and ? b : a;
    if (mask == ones(all)) return kind == Kind::bit_and ? a : kind == Kind::bit_or ? b : bit_not(a);
  }
  const auto is_not_of = [this](NodeId x, NodeId y) {
    return nodes_[x].kind == Kind::bit_not && nodes_[x].operands[0] == y;
  };
  if (is_not_of(a, b) || is_not_of(b, a)) return constant(all, kind == Kind::bit_and ? Bits{0} : ones(all));
  const bool has_parts = nodes_[a].kind == Kind::concat || nodes_[b].kind == Kind::concat;
  const bool is_mask = is_constant(b) && kind != Kind::bit_xor && run_count(nodes_[b].value(), all) <= max_runs;
  if (!is_constant(a) && (has_parts || is_mask)) {
    if (const auto split = bitwise_by_parts(kind, a, b)) return *split;
  }
  const Node left = nodes_[a];
  if (is_constant(b) && left.kind == kind && is_constant(left.operands[1])) {  // (x op c) op d
    const NodeId both = bitwise(kind, left.operands[1], b);
    return bitwise(kind, left.operands[0], both);
  }
  const std::array operands = {a, b};
  return make(kind, all, operands);
}

NodeId Store::bit_and(NodeId a, NodeId b) {
  return bitwise(Kind::bit_and, a, b);
}

NodeId Store::bit_or(NodeId a, NodeId b) {
  return bitwise(Kind::bit_or, a, b);
}

NodeId Store::bit_xor(NodeId a, NodeId b) {
  return bitwise(Kind::bit_xor, a, b);
}

NodeId Store::bit_not(NodeId a) {
  const Node node = nodes_[a];
  if (node.kind == Kind::bit_not) return node.operands[0];
  if (node.kind == Kind::concat) {
    Parts parts;
    collect_parts(parts, a);
    for (unsigned i = 0; i < parts.count; ++i) parts.ids.at(i) = bit_not(parts.ids.at(i));
    return join(parts.all());
  }
  return make(Kind::bit_not, node.width, std::span(&a, 1));
}

}  // namespace bitwitness::proof
