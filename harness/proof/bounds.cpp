#include "harness/proof/bounds.hpp"

#include <algorithm>

namespace bitwitness::proof {
namespace {

class Search {
 public:
  Search(const Store& store, unsigned budget) : store_(store), budget_(budget) {}

  Bounds of(NodeId id) {
    const Node& node = store_[id];
    const Bounds any{0, ones(node.width)};
    if (node.kind == Kind::constant) return {node.value(), node.value()};
    if (budget_ == 0) return any;
    --budget_;
    switch (node.kind) {
      case Kind::concat: {
        const Bounds high = of(node.operands[0]);
        const Bounds low = of(node.operands[1]);
        const unsigned shift = store_.width(node.operands[1]);
        return {high.lowest << shift | low.lowest, high.highest << shift | low.highest};
      }
      case Kind::sign_extend: {
        const Bounds inner = of(node.operands[0]);
        return inner.highest >> (store_.width(node.operands[0]) - 1) == 0 ? inner : any;
      }
      case Kind::bit_and: {
        const Bounds a = of(node.operands[0]);
        const Bounds b = of(node.operands[1]);
        return {0, std::min(a.highest, b.highest)};
      }
      case Kind::bit_or:
      case Kind::bit_xor: {
        const Bounds a = of(node.operands[0]);
        const Bounds b = of(node.operands[1]);
        Bits most = a.highest | b.highest;
        for (unsigned i = 1; i < node.width; i *= 2) most |= most >> i;
        return {node.kind == Kind::bit_or ? std::max(a.lowest, b.lowest) : 0, most};
      }
      case Kind::add: {
        const Bounds a = of(node.operands[0]);
        const Bounds b = of(node.operands[1]);
        if (node.width == max_width) return any;
        const Bits lowest = a.lowest + b.lowest;
        const Bits highest = a.highest + b.highest;
        // Both wrap round, or none does.
        if (lowest >> node.width != highest >> node.width) return any;
        return {lowest & any.highest, highest & any.highest};
      }
      case Kind::multiply: {
        const Bounds a = of(node.operands[0]);
        const Bounds b = of(node.operands[1]);
        if (a.highest >> 63 != 0 || b.highest >> 63 != 0 || a.highest * b.highest > any.highest) return any;
        return {a.lowest * b.lowest, a.highest * b.highest};
      }
      case Kind::choose: {
        const Bounds b = of(node.operands[1]);
        const Bounds c = of(node.operands[2]);
        return {std::min(b.lowest, c.lowest), std::max(b.highest, c.highest)};
      }
      default:
        return any;
    }
  }

 private:
  const Store& store_;
  unsigned budget_;
};

}  // namespace

Bounds bounds_of(const Store& store, NodeId id, unsigned budget) {
  return Search(store, budget).of(id);
}

}  // namespace bitwitness::proof
