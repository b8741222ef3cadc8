#include "harness/proof/expression.hpp"

#include "harness/proof/evaluate.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include <fmt/format.h>

namespace bitwitness::proof {
namespace {

constexpr NodeId no_node = std::numeric_limits<NodeId>::max();
constexpr std::size_t first_slots = 1024;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

std::uint64_t hash_of(const Node& node) {
  std::uint64_t hash = mixed(
      0, static_cast<std::uint64_t>(node.kind) | std::uint64_t{node.width} << 8 |
             static_cast<std::uint64_t>(node.mode.format) << 16 | std::uint64_t{node.mode.precision} << 24 |
             static_cast<std::uint64_t>(node.mode.rounding) << 32 | static_cast<std::uint64_t>(node.source) << 40 |
             std::uint64_t{node.mode.denormals_are_zero} << 48 | std::uint64_t{node.mode.flush_to_zero} << 49);
  for (const NodeId operand : node.parts()) hash = mixed(hash, operand);
  return mixed(mixed(hash, node.low), node.high);
}

bool is_same(const Node& a, const Node& b) {
  return a.kind == b.kind && a.width == b.width && a.operand_count == b.operand_count && a.operands == b.operands &&
         a.low == b.low && a.high == b.high && a.mode == b.mode && a.source == b.source;
}

constexpr std::array kind_names = std::to_array<std::string_view>({"constant",
                                                                   "input",
                                                                   "unknown",
                                                                   "concat",
                                                                   "extract",
                                                                   "sign_extend",
                                                                   "bit_and",
                                                                   "bit_or",
                                                                   "bit_xor",
                                                                   "bit_not",
                                                                   "add",
                                                                   "subtract",
                                                                   "multiply",
                                                                   "shift_left",
                                                                   "shift_right",
                                                                   "shift_right_signed",
                                                                   "rotate_left",
                                                                   "equal",
                                                                   "less_unsigned",
                                                                   "less_signed",
                                                                   "choose",
                                                                   "table",
                                                                   "float_add",
                                                                   "float_subtract",
                                                                   "float_multiply",
                                                                   "float_divide",
                                                                   "float_sqrt",
                                                                   "float_min",
                                                                   "float_max",
                                                                   "float_convert",
                                                                   "float_widen",
                                                                   "float_from_integer",
                                                                   "float_to_integer",
                                                                   "float_round",
                                                                   "float_unordered",
                                                                   "float_less",
                                                                   "float_equal"});
static_assert(kind_names.size() == static_cast<std::size_t>(Kind::float_equal) + 1);

std::string mode_text(const Node& node) {
  constexpr std::array formats = std::to_array<std::string_view>({"f32", "f64", "x80"});
  constexpr std::array roundings = std::to_array<std::string_view>({"", " down", " up", " to zero"});
  std::string text(formats.at(static_cast<std::size_t>(node.mode.format)));
  if (node.mode.format == Format::x80) text += fmt::format(":{}", node.mode.precision);
  if (node.kind == Kind::float_convert || node.kind == Kind::float_widen) {
    text += fmt::format(" from {}", formats.at(static_cast<std::size_t>(node.source)));
  }
  text += roundings.at(static_cast<std::size_t>(node.mode.rounding));
  if (node.mode.denormals_are_zero) text += " daz";
  if (node.mode.flush_to_zero) text += " ftz";
  return text;
}

bool is_float(Kind kind) {
  return kind >= Kind::float_add;
}

}  // namespace

std::string_view to_string(Kind kind) {
  return kind_names.at(static_cast<std::size_t>(kind));
}

Store::Store() {
  slots_.assign(first_slots, no_node);
}

void Store::grow() {
  slots_.assign(slots_.size() * 2, no_node);
  const std::size_t mask = slots_.size() - 1;
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    std::size_t slot = hash_of(nodes_[id]) & mask;
    while (slots_[slot] != no_node) slot = (slot + 1) & mask;
    slots_[slot] = id;
  }
}

NodeId Store::add_node(Node node) {
  require(node.width >= 1 && node.width <= max_width);
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash_of(node) & mask;
  for (; slots_[slot] != no_node; slot = (slot + 1) & mask) {
    if (is_same(nodes_[slots_[slot]], node)) return slots_[slot];
  }
  node.has_input = node.kind == Kind::input;
  node.has_unknown = node.kind == Kind::unknown;
  for (const NodeId operand : node.parts()) {
    node.has_input |= nodes_[operand].has_input;
    node.has_unknown |= nodes_[operand].has_unknown;
  }
  const auto id = static_cast<NodeId>(nodes_.size());
  nodes_.push_back(node);
  slots_[slot] = id;
  if (nodes_.size() * 2 > slots_.size()) grow();
  return id;
}

NodeId Store::add_folded(Node node) {
  std::array<Bits, 3> values{};
  for (std::size_t i = 0; i < node.operand_count; ++i) {
    const Node& operand = nodes_[node.operands.at(i)];
    if (operand.kind != Kind::constant) return add_node(node);
    values.at(i) = operand.value();
  }
  return constant(node.width, compute(*this, node, values));
}

Node Store::node_of(Kind kind, unsigned width, std::span<const NodeId> operands) {
  Node node;
  node.kind = kind;
  node.width = static_cast<std::uint8_t>(width);
  node.operand_count = static_cast<std::uint8_t>(operands.size());
  std::ranges::copy(operands, node.operands.begin());
  return node;
}

NodeId Store::make(Kind kind, unsigned width, std::span<const NodeId> operands, std::uint64_t low) {
  Node node = node_of(kind, width, operands);
  node.low = low;
  return add_folded(node);
}

NodeId Store::constant(unsigned width, Bits value) {
  Node node;
  node.width = static_cast<std::uint8_t>(width);
  value &= ones(width);
  node.low = static_cast<std::uint64_t>(value);
  node.high = static_cast<std::uint64_t>(value >> 64);
  return add_node(node);
}

NodeId Store::input(std::size_t first_bit, unsigned width) {
  Node node;
  node.kind = Kind::input;
  node.width = static_cast<std::uint8_t>(width);
  node.low = first_bit;
  return add_node(node);
}

NodeId Store::unknown(unsigned width, std::string reason) {
  Node node;
  node.kind = Kind::unknown;
  node.width = static_cast<std::uint8_t>(width);
  node.low = unknown_reasons_.size();
  unknown_reasons_.push_back(std::move(reason));
  return add_node(node);
}

std::size_t Store::add_table(std::uint64_t address, std::span<const std::byte> bytes) {
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    if (tables_[i].address == address && std::ranges::equal(tables_[i].bytes, bytes)) return i;
  }
  tables_.push_back({address, {bytes.begin(), bytes.end()}});
  return tables_.size() - 1;
}

NodeId Store::look_up(NodeId address, std::size_t table, unsigned bytes) {
  require(bytes >= 1 && bytes <= max_width / 8 && table < tables_.size());
  return make(Kind::table, 8 * bytes, std::span(&address, 1), table);
}

NodeId Store::rebuild(const Node& node, std::span<const NodeId> o) {
  switch (node.kind) {
    case Kind::constant:
    case Kind::input:
    case Kind::unknown:
      return add_node(node);
    case Kind::concat:
      return concat(o[0], o[1]);
    case Kind::extract:
      return extract(o[0], static_cast<unsigned>(node.low), node.width);
    case Kind::sign_extend:
      return sign_extend(o[0], node.width);
    case Kind::bit_and:
    case Kind::bit_or:
    case Kind::bit_xor:
      return bitwise(node.kind, o[0], o[1]);
    case Kind::bit_not:
      return bit_not(o[0]);
    case Kind::add:
      return add(o[0], o[1]);
    case Kind::subtract:
      return subtract(o[0], o[1]);
    case Kind::multiply:
      return multiply(o[0], o[1]);
    case Kind::shift_left:
      return shift_left(o[0], o[1]);
    case Kind::shift_right:
      return shift_right(o[0], o[1]);
    case Kind::shift_right_signed:
      return shift_right_signed(o[0], o[1]);
    case Kind::rotate_left:
      return rotate_left(o[0], o[1]);
    case Kind::equal:
      return equal(o[0], o[1]);
    case Kind::less_unsigned:
      return less_unsigned(o[0], o[1]);
    case Kind::less_signed:
      return less_signed(o[0], o[1]);
    case Kind::choose:
      return choose(o[0], o[1], o[2]);
    case Kind::table:
      return look_up(o[0], node.low, node.width / 8U);
    case Kind::float_sqrt:
      return float_sqrt(o[0], node.mode);
    case Kind::float_convert:
      return float_convert(o[0], node.source, node.mode);
    case Kind::float_widen:
      return float_widen(o[0], node.source);
    case Kind::float_from_integer:
      return float_from_integer(o[0], node.mode);
    case Kind::float_to_integer:
      return float_to_integer(o[0], node.mode, node.width);
    case Kind::float_round:
      return float_round(o[0], node.mode);
    case Kind::float_unordered:
    case Kind::float_less:
    case Kind::float_equal:
      return float_compare(node.kind, o[0], o[1], node.mode);
    default:
      return float_binary(node.kind, o[0], o[1], node.mode);
  }
}

std::string to_text(const Store& store, NodeId id, unsigned depth) {
  const Node& node = store[id];
  switch (node.kind) {
    case Kind::constant:
      if (node.high != 0) return fmt::format("0x{:x}{:016x}:{}", node.high, node.low, node.width);
      return fmt::format("0x{:x}:{}", node.low, node.width);
    case Kind::input:
      return fmt::format("in[{}]:{}", node.low, node.width);
    case Kind::unknown:
      return fmt::format("unknown({})", store.unknown_reason(id));
    default:
      break;
  }
  if (depth == 0) return "…";
  std::string text = fmt::format("({}", to_string(node.kind));
  if (is_float(node.kind)) {
    text += fmt::format("<{}>", mode_text(node));
  } else if (node.kind == Kind::table) {
    text += fmt::format("[0x{:x}]", store.table(node.low).address);
  } else if (node.kind == Kind::extract) {
    text += fmt::format("[{}]", node.low);
  }
  if (node.kind == Kind::extract || node.kind == Kind::sign_extend || node.kind == Kind::table) {
    text += fmt::format(":{}", node.width);
  }
  for (const NodeId operand : node.parts()) text += " " + to_text(store, operand, depth - 1);
  return text + ")";
}

std::vector<NodeId> reachable(const Store& store, std::span<const NodeId> roots) {
  std::vector<NodeId> found;
  if (roots.empty()) return found;
  std::vector<bool> is_found(std::size_t{*std::ranges::max_element(roots)} + 1);
  for (const NodeId root : roots) is_found[root] = true;
  for (std::size_t id = is_found.size(); id-- > 0;) {
    if (!is_found[id]) continue;
    found.push_back(static_cast<NodeId>(id));
    for (const NodeId operand : store[static_cast<NodeId>(id)].parts()) is_found[operand] = true;
  }
  std::ranges::reverse(found);
  return found;
}

}  // namespace bitwitness::proof
