#include "harness/proof/lift_state.hpp"

#include "harness/proof/bounds.hpp"

#include <fmt/format.h>

namespace bitwitness::proof {

void end_at_form() {
  throw LiftStop{"has operands with which lifts do not know it"};
}

std::optional<Condition> condition_behind(std::string_view mnemonic, std::string_view prefix) {
  static constexpr std::array<std::string_view, 16> names = {"o", "no", "b", "ae", "e", "ne", "be", "a",
                                                             "s", "ns", "p", "np", "l", "ge", "le", "g"};
  if (!mnemonic.starts_with(prefix)) return std::nullopt;
  mnemonic.remove_prefix(prefix.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names.at(i) == mnemonic) return static_cast<Condition>(i);
  }
  return std::nullopt;
}

// ---- x87

NodeId X87::read(unsigned index) const {
  const auto& value = registers_.at((top_ + index) % 8);
  if (!value) throw LiftStop{fmt::format("takes st({}), which is empty", index)};
  return *value;
}

void X87::write(unsigned index, NodeId value) {
  at(index) = value;
}

void X87::push(NodeId value) {
  top_ = (top_ + 7) % 8;
  if (at(0)) throw LiftStop{"loads a ninth number onto the x87 stack"};
  at(0) = value;
}

NodeId X87::pop() {
  const NodeId value = read(0);
  at(0).reset();
  top_ = (top_ + 1) % 8;
  return value;
}

void X87::clear() {
  registers_.fill(std::nullopt);
  top_ = 0;
}

// ---- operands

LiftState::LiftState(Store& store_, const Program& program, const LiftOptions& options_,
                     std::span<const std::byte> guide)
    : store(store_),
      options(options_),
      memory(store_, program),
      is_64_bit(program.is_64_bit),
      word(program.is_64_bit ? 64 : 32),
      program_(program),
      guide_(store_, guide) {}

NodeId LiftState::read_part(const RegisterPart& part) {
  if (part.file == RegisterPart::File::general) return store.extract(general.at(part.number), part.low, part.width);
  if (part.file == RegisterPart::File::xmm && part.number < xmm.size()) return xmm.at(part.number);
  end_at_form();
}

void LiftState::write_part(const RegisterPart& part, NodeId value) {
  if (part.file == RegisterPart::File::xmm && part.number < xmm.size()) {
    xmm.at(part.number) = value;
    return;
  }
  if (part.file != RegisterPart::File::general) end_at_form();
  NodeId& whole = general.at(part.number);
  if (part.width >= 32) {  // the upper half of a 64-bit register becomes 0
    whole = store.zero_extend(value, word);
    return;
  }
  const unsigned end = unsigned{part.low} + part.width;
  NodeId changed = store.concat(store.extract(whole, end, word - end), value);
  if (part.low != 0) changed = store.concat(changed, store.extract(whole, 0, part.low));
  whole = changed;
}

NodeId LiftState::address_of(const Operand& place) {
  using File = RegisterPart::File;
  NodeId sum = store.constant(word, static_cast<std::uint64_t>(place.displacement));
  unsigned width = word;
  const auto add = [&](const RegisterPart& part, unsigned scale) {
    if (part.file == File::none) return;
    if (part.file == File::instruction_pointer) {
      sum = store.add(sum, store.constant(word, pc));
      return;
    }
    if (part.file != File::general) end_at_form();
    width = part.width;
    const NodeId scaled = store.multiply(read_part(part), store.constant(part.width, scale));
    sum = store.add(store.extract(sum, 0, width), scaled);
  };
  add(place.base, 1);
  if (store.width(sum) != word && place.index.file == File::none) sum = store.zero_extend(sum, word);
  add(place.index, place.scale);
  sum = store.zero_extend(sum, word);
  if (place.segment.file != File::segment) return sum;
  constexpr std::uint8_t fs = 4;
  constexpr std::uint8_t gs = 5;
  if (place.segment.number < fs) return sum;
  if (place.segment.number != (is_64_bit ? gs : fs)) throw LiftStop{"uses a segment register that leads nowhere"};
  return store.add(sum, store.constant(word, thread_block));
}

NodeId LiftState::read(const Operand& operand) {
  return read(operand, 8U * operand.size);
}

NodeId LiftState::read(const Operand& operand, unsigned bits) {
  if (operand.kind == Operand::Kind::immediate) return store.constant(bits, operand.immediate);
  if (operand.kind == Operand::Kind::memory) return load(address_of(operand), bits);
  const NodeId value = read_part(operand.part);
  if (store.width(value) != bits) end_at_form();
  return value;
}

void LiftState::write(const Operand& operand, NodeId value) {
  if (operand.kind == Operand::Kind::memory) {
    store_to(address_of(operand), value);
  } else if (operand.kind == Operand::Kind::register_part) {
    if (operand.part.width != store.width(value)) end_at_form();
    write_part(operand.part, value);
  } else {
    end_at_form();
  }
}

NodeId LiftState::load(NodeId address, unsigned bits) {
  if (!store.is_constant(address)) {
    if (const auto found = look_up(address, bits / 8)) return *found;
  }
  return memory.load(concrete(address, PathCondition::Kind::address), bits / 8);
}

std::optional<NodeId> LiftState::look_up(NodeId address, unsigned bytes) {
  if (store[address].has_unknown) return std::nullopt;
  const Bounds bounds = bounds_of(store, address);
  if (bounds.highest - bounds.lowest + bytes > options.max_table_bytes) return std::nullopt;
  const auto first = static_cast<std::uint64_t>(bounds.lowest);
  const auto data = memory.read_only(first, static_cast<std::uint64_t>(bounds.highest) + bytes - 1);
  if (data.empty()) return std::nullopt;
  return store.look_up(address, store.add_table(first, data), bytes);
}

void LiftState::store_to(NodeId address, NodeId value) {
  memory.store(concrete(address, PathCondition::Kind::address), value);
}

void LiftState::push(NodeId value) {
  constexpr std::size_t sp = 4;
  general.at(sp) = store.subtract(general.at(sp), store.constant(word, store.width(value) / 8));
  store_to(general.at(sp), value);
}

NodeId LiftState::pop(unsigned bits) {
  constexpr std::size_t sp = 4;
  const NodeId value = load(general.at(sp), bits);
  general.at(sp) = store.add(general.at(sp), store.constant(word, bits / 8));
  return value;
}

// ---- XMM registers

NodeId LiftState::read_xmm(const Operand& operand, unsigned bits) {
  if (operand.kind == Operand::Kind::memory) return load(address_of(operand), bits);
  if (operand.kind != Operand::Kind::register_part || operand.part.file != RegisterPart::File::xmm) end_at_form();
  return store.extract(read_part(operand.part), 0, bits);
}

void LiftState::write_xmm_low(const Operand& operand, NodeId value) {
  const unsigned bits = store.width(value);
  const NodeId old = read_xmm(operand, max_width);
  write_part(operand.part, bits == max_width ? value : store.concat(store.extract(old, bits, max_width - bits), value));
}

void LiftState::write_xmm(const Operand& operand, NodeId value) {
  if (operand.kind == Operand::Kind::memory) {
    store_to(address_of(operand), value);
  } else {
    if (operand.part.file != RegisterPart::File::xmm) end_at_form();
    write_part(operand.part, store.zero_extend(value, max_width));
  }
}

NodeId LiftState::read_aligned(const Operand& operand) {
  if (operand.kind == Operand::Kind::memory) {
    const std::uint64_t address = concrete(address_of(operand), PathCondition::Kind::address);
    if (address % 16 != 0) throw LiftStop{fmt::format("accesses 16 bytes at 0x{:x}, which is not aligned", address)};
  }
  return read_xmm(operand, max_width);
}

// ---- what depends on the value

void LiftState::end_at_unknown(NodeId id, std::string_view what) const {
  const std::array roots = {id};
  for (const NodeId part : reachable(store, roots)) {
    if (store[part].kind != Kind::unknown) continue;
    throw LiftStop{fmt::format("{} depends on something unknown: {}", what, store.unknown_reason(part))};
  }
  throw LiftStop{fmt::format("{} depends on something unknown", what)};
}

void LiftState::record(PathCondition condition) {
  if (recorded_.insert(condition.condition).second) path.push_back(condition);
}

bool LiftState::decide(NodeId bit) {
  if (store.is_constant(bit)) return store[bit].value() != 0;
  const auto value = guide_(bit);
  if (!value) end_at_unknown(bit, "its condition");
  const bool taken = *value != 0;
  // One spelling of a condition and its negation.
  const bool is_negated = store[bit].kind == Kind::bit_not;
  const NodeId condition = is_negated ? store[bit].operands[0] : bit;
  record({PathCondition::Kind::branch, condition, taken != is_negated, current, condition, 0});
  return taken;
}

std::uint64_t LiftState::concrete(NodeId id, PathCondition::Kind kind) {
  if (store.is_constant(id)) return static_cast<std::uint64_t>(store[id].value());
  const auto value = guide_(id);
  if (!value) end_at_unknown(id, kind == PathCondition::Kind::address ? "an address of it" : "its target");
  const auto number = static_cast<std::uint64_t>(*value);
  const NodeId condition = store.equal(id, store.constant(store.width(id), number));
  if (!store.is_constant(condition)) record({kind, condition, true, current, id, number});
  return number;
}

Bits LiftState::constant(NodeId id, std::string_view what) const {
  if (!store.is_constant(id)) throw LiftStop{fmt::format("takes {} that is no constant", what)};
  return store[id].value();
}

// ---- modes

FloatMode LiftState::x87_mode() const {
  static constexpr std::array<std::uint8_t, 4> precisions = {24, 0, 53, 64};
  const std::uint8_t precision = precisions.at(x87.control >> 8 & 3);
  if (precision == 0) throw LiftStop{"runs under a control word whose precision no manual defines"};
  if ((x87.control & 0x3f) != 0x3f) throw LiftStop{"runs with x87 exceptions that are not masked"};
  return {Format::x80, precision, static_cast<Rounding>(x87.control >> 10 & 3), false, false};
}

FloatMode LiftState::sse_mode(Format format) const {
  if ((mxcsr & 0x1f80) != 0x1f80) throw LiftStop{"runs with SSE exceptions that are not masked"};
  return {format, precision_of(format), static_cast<Rounding>(mxcsr >> 13 & 3), (mxcsr & 0x40) != 0,
          (mxcsr & 0x8000) != 0};
}

}  // namespace bitwitness::proof
