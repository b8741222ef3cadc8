#include "harness/proof/evaluate.hpp"

#include "harness/error.hpp"
#include "harness/proof/processor.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace bitwitness::proof {
namespace {

__extension__ typedef __int128 SignedBits;

SignedBits as_signed(Bits value, unsigned width) {
  const unsigned unused = max_width - width;
  return static_cast<SignedBits>(value << unused) >> unused;
}

Bits look_up(const Store& store, const Node& node, Bits address) {
  const Table& table = store.table(node.low);
  const std::size_t count = node.width / 8U;
  const Bits offset = address - table.address;
  if (address < table.address || offset > table.bytes.size() || table.bytes.size() - offset < count) return 0;
  Bits value = 0;
  for (std::size_t i = count; i-- > 0;) {
    value = value << 8 | static_cast<unsigned>(table.bytes[static_cast<std::size_t>(offset) + i]);
  }
  return value;
}

}  // namespace

Bits input_bits(std::span<const std::byte> packed, std::uint64_t first_bit, unsigned width) {
  const std::uint64_t first = first_bit / 8;
  const std::uint64_t end = (first_bit + width + 7) / 8;
  if (end > packed.size()) {
    throw Error(fmt::format("an expression reads byte {} of a packed value of {} bytes", end - 1, packed.size()));
  }
  const auto shift = static_cast<unsigned>(first_bit % 8);
  Bits value = 0;
  for (std::uint64_t i = first; i < end; ++i) {
    const Bits byte = static_cast<unsigned>(packed[i]);
    const auto at = static_cast<unsigned>(8 * (i - first));
    value |= at >= shift ? byte << (at - shift) : byte >> (shift - at);
  }
  return value & ones(width);
}

Bits compute(const Store& store, const Node& node, const std::array<Bits, 3>& operands) {
  const auto [a, b, c] = operands;
  const unsigned width = node.width;
  const Bits mask = ones(width);
  const auto operand_width = [&](std::size_t i) { return store.width(node.operands.at(i)); };
  switch (node.kind) {
    case Kind::constant:
      return node.value();
    case Kind::input:
    case Kind::unknown:
      throw Error(fmt::format("{} cannot be computed from operands", to_string(node.kind)));
    case Kind::concat:
      return a << operand_width(1) | b;
    case Kind::extract:
      return a >> node.low & mask;
    case Kind::sign_extend:
      return static_cast<Bits>(as_signed(a, operand_width(0))) & mask;
    case Kind::bit_and:
      return a & b;
    case Kind::bit_or:
      return a | b;
    case Kind::bit_xor:
      return a ^ b;
    case Kind::bit_not:
      return ~a & mask;
    case Kind::add:
      return (a + b) & mask;
    case Kind::subtract:
      return (a - b) & mask;
    case Kind::multiply:
      return a * b & mask;
    case Kind::shift_left:
      return b >= width ? 0 : a << static_cast<unsigned>(b) & mask;
    case Kind::shift_right:
      return b >= width ? 0 : a >> static_cast<unsigned>(b);
    case Kind::shift_right_signed:
      return static_cast<Bits>(as_signed(a, width) >> static_cast<unsigned>(b >= width ? width - 1 : b)) & mask;
    case Kind::rotate_left: {
      const auto by = static_cast<unsigned>(b % width);
      return by == 0 ? a : (a << by | a >> (width - by)) & mask;
    }
    case Kind::equal:
      return a == b ? 1 : 0;
    case Kind::less_unsigned:
      return a < b ? 1 : 0;
    case Kind::less_signed:
      return as_signed(a, operand_width(0)) < as_signed(b, operand_width(0)) ? 1 : 0;
    case Kind::choose:
      return a != 0 ? b : c;
    case Kind::table:
      return look_up(store, node, a);
    case Kind::float_convert:
      return processor_convert(node.source, node.mode, a);
    case Kind::float_widen:
      return processor_widen(node.source, a);
    case Kind::float_from_integer:
      return processor_from_integer(node.mode, operand_width(0), a);
    case Kind::float_to_integer:
      return processor_to_integer(node.mode, width, a);
    case Kind::float_unordered:
    case Kind::float_less:
    case Kind::float_equal:
      return processor_compare(node.kind, node.mode, a, b) ? 1 : 0;
    default:
      return processor_arithmetic(node.kind, node.mode, a, b);
  }
}

Evaluation::Evaluation(const Store& store, std::span<const NodeId> roots) : store_(store) {
  for (const NodeId root : roots) {
    if (store[root].has_unknown) throw Error("an expression depends on what has no value: " + to_text(store, root, 3));
  }
  const std::vector<NodeId> order = reachable(store, roots);
  const auto place_of = [&order](NodeId id) {
    return static_cast<std::uint32_t>(std::ranges::lower_bound(order, id) - order.begin());
  };
  values_.resize(order.size());
  for (const NodeId id : order) {
    const Node& node = store[id];
    if (node.kind == Kind::constant) {  // set once
      values_[place_of(id)] = node.value();
      continue;
    }
    Step step{id, place_of(id), {}};
    for (std::size_t i = 0; i < node.operand_count; ++i) step.operands.at(i) = place_of(node.operands.at(i));
    steps_.push_back(step);
  }
  for (const NodeId root : roots) roots_.push_back(place_of(root));
}

void Evaluation::run(std::span<const std::byte> packed) {
  for (const Step& step : steps_) {
    const Node& node = store_[step.node];
    Bits& out = values_[step.result];
    if (node.kind == Kind::input) {
      out = input_bits(packed, node.low, node.width);
      continue;
    }
    out = compute(store_, node, {values_[step.operands[0]], values_[step.operands[1]], values_[step.operands[2]]});
  }
}

std::optional<Bits> GuideValues::operator()(NodeId id) {
  if (store_[id].has_unknown) return std::nullopt;
  if (values_.size() <= id) {
    values_.resize(store_.size());
    is_known_.resize(store_.size());
  }
  if (is_known_[id]) return values_[id];
  std::vector<NodeId> pending{id};
  while (!pending.empty()) {
    const NodeId at = pending.back();
    const Node& node = store_[at];
    bool is_ready = true;
    std::array<Bits, 3> operands{};
    for (std::size_t i = 0; i < node.operand_count; ++i) {
      const NodeId operand = node.operands.at(i);
      if (!is_known_[operand]) {
        pending.push_back(operand);
        is_ready = false;
      }
      operands.at(i) = values_[operand];
    }
    if (!is_ready) continue;
    pending.pop_back();
    if (is_known_[at]) continue;
    values_[at] =
        node.kind == Kind::input ? input_bits(packed_, node.low, node.width) : compute(store_, node, operands);
    is_known_[at] = true;
  }
  return values_[id];
}

}  // namespace bitwitness::proof
