#include "harness/proof/call_entry.hpp"

#include "harness/error.hpp"
#include "harness/proof/lift_state.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace bitwitness::proof {
namespace {

// Any place will do that a 32-bit address reaches and where the program is not.
constexpr std::uint64_t first_base = 0x10000000;
constexpr std::uint64_t base_step = 0x1000000;

CallPlan plan_apart(const Program& program, const Signature& signature, const Filler& filler) {
  for (std::uint64_t base = first_base; base < 0x70000000; base += base_step) {
    CallPlan plan = plan_call(signature, program.is_64_bit, base, program.imports.size(), filler);
    const Region& whole = plan.layout.whole;
    const auto overlaps = [&](const ProgramRange& range) {
      return range.address < whole.end() && whole.address < range.address + range.bytes.size();
    };
    if (std::ranges::none_of(program.ranges, overlaps)) return plan;
  }
  throw Error("the program leaves no room for a call's stack and buffers");
}

std::string register_text(std::size_t number, bool is_64_bit) {
  return to_string(Register{RegisterClass::general, static_cast<std::uint8_t>(number)}, is_64_bit);
}

}  // namespace

CallEntry::CallEntry(const Program& program, const Signature& signature)
    : program_(program),
      signature_(signature),
      plan_(plan_apart(program, signature, {0x11000000, 0x13000000, 0, 0x15151515})),
      other_(plan_apart(program, signature, {0x22000000, 0x24000000, 0, 0x26262626})) {}

std::string CallEntry::import_at(std::uint64_t address) const {
  const Region& traps = plan_.layout.traps;
  const std::uint64_t index = (address - traps.address) / trap_stride;
  return address >= traps.address && index < program_.imports.size() ? program_.imports[index].name : std::string();
}

void CallEntry::place_buffers(LiftState& state) const {
  const CallLayout& layout = plan_.layout;
  state.memory.add_area(layout.input, false, "behind the input");
  for (const Slot& slot : plan_.slots) {
    if (slot.role != Role::in) {
      const std::uint64_t page = slot.region.address & ~(page_size - 1);
      state.memory.add_area({page, round_up_to_page(slot.region.end() - page)}, true,
                            "of a result before it is written");
    }
    if (slot.role == Role::out) continue;
    std::size_t packed = slot.packed_offset;
    for (const Piece& piece : slot.pieces) {
      for (std::size_t i = 0; i < piece.size; ++i) {
        state.memory.place(slot.region.address + piece.offset + i, state.store.input(8 * packed++, 8));
      }
    }
  }
}

void CallEntry::place_frame(LiftState& state) const {
  const std::size_t pointer = plan_.is_64_bit ? 8 : 4;
  state.memory.add_area(plan_.layout.stack, true, "of the stack before it is written");
  state.memory.place(plan_.entry_sp, state.store.constant(state.word, return_address()));
  for (std::size_t at = pointer; at < plan_.frame.size(); at += pointer) {
    const std::size_t size = std::min(pointer, plan_.frame.size() - at);
    std::uint64_t bits = 0;
    std::uint64_t other_bits = 0;
    std::memcpy(&bits, plan_.frame.data() + at, size);
    std::memcpy(&other_bits, other_.frame.data() + at, size);
    if (bits != other_bits) continue;  // filler stays unknown
    state.memory.place(plan_.entry_sp + at, state.store.constant(static_cast<unsigned>(8 * size), bits));
  }
}

void CallEntry::place_registers(LiftState& state) const {
  Store& store = state.store;
  for (std::size_t i = 0; i < state.general.size(); ++i) {
    state.general.at(i) = plan_.general.at(i) == other_.general.at(i)
                              ? store.constant(state.word, plan_.general.at(i))
                              : store.unknown(state.word, register_text(i, plan_.is_64_bit) + " at entry");
    Bits value = 0;
    for (std::size_t lane = 4; lane-- > 0;) value = value << 32 | plan_.xmm.at(i).at(lane);
    state.xmm.at(i) = plan_.xmm.at(i) == other_.xmm.at(i) ? store.constant(max_width, value)
                                                          : store.unknown(max_width, fmt::format("xmm{} at entry", i));
  }
}

void CallEntry::apply_patches(LiftState& state) const {
  Store& store = state.store;
  for (const Patch& patch : plan_.patches) {
    // An argument may be longer than an expression: it goes to the stack by bytes, then.
    if (patch.place == Patch::Place::stack && patch.width == patch.size) {
      for (std::size_t i = 0; i < patch.size; ++i) {
        state.memory.place(plan_.entry_sp + patch.target + i, store.input(8 * (patch.packed_offset + i), 8));
      }
      continue;
    }
    const NodeId bits = store.input(8 * patch.packed_offset, static_cast<unsigned>(8 * patch.size));
    const auto width = static_cast<unsigned>(8 * patch.width);
    const NodeId value = patch.is_signed ? store.sign_extend(bits, width) : store.zero_extend(bits, width);
    switch (patch.place) {
      case Patch::Place::stack:
        state.memory.place(plan_.entry_sp + patch.target, value);
        break;
      case Patch::Place::general:
        state.general.at(patch.target) = store.zero_extend(value, state.word);
        break;
      case Patch::Place::xmm:
        state.xmm.at(patch.target) = store.zero_extend(value, max_width);
        break;
    }
  }
}

void CallEntry::enter(LiftState& state, const Environment& environment) const {
  place_buffers(state);
  place_frame(state);
  place_registers(state);
  apply_patches(state);
  // Handlers of exceptions link themselves into it and out again.
  state.thread_block = plan_.layout.gap.address;
  state.memory.add_area({state.thread_block, page_size}, true, "of the thread's block");
  for (std::size_t i = 0; i < program_.imports.size(); ++i) {
    const std::uint64_t trap = plan_.layout.traps.address + i * trap_stride;
    state.memory.place(program_.imports[i].slot, state.store.constant(state.word, trap));
  }
  const NodeId clear = state.store.bit(false);
  state.x87.control = environment.fpcw;
  state.x87.c0 = state.x87.c1 = state.x87.c2 = state.x87.c3 = clear;
  state.mxcsr = environment.mxcsr;
}

void CallEntry::add_words(std::vector<NodeId>& words, LiftState& state, const OutputElement& element) const {
  Store& store = state.store;
  const auto bits = static_cast<unsigned>(8 * size_of(element.scalar));
  NodeId value = 0;
  switch (element.source) {
    case OutputElement::Source::slot:
      value = state.memory.load(plan_.slots[element.index].region.address + element.offset, bits / 8);
      break;
    case OutputElement::Source::result_slot: {
      FloatMode mode = state.x87_mode();
      mode.format = element.scalar == Scalar::f64 ? Format::f64 : Format::f32;
      value = store.float_convert(state.x87.read(0), Format::x80, mode);
      break;
    }
    case OutputElement::Source::general:
      value = store.extract(state.general.at(element.index), 0, bits);
      break;
    case OutputElement::Source::general_pair:
      value = store.concat(state.general[2], state.general[0]);
      break;
    case OutputElement::Source::xmm:
      value = store.extract(state.xmm.at(element.index), 0, bits);
      break;
  }
  if (bits == 64) {
    words.push_back(store.extract(value, 0, 32));
    words.push_back(store.extract(value, 32, 32));
    return;
  }
  const bool is_signed = element.scalar == Scalar::i8 || element.scalar == Scalar::i16;
  words.push_back(is_signed ? store.sign_extend(value, 32) : store.zero_extend(value, 32));
}

std::vector<NodeId> CallEntry::leave(LiftState& state) const {
  const Store& store = state.store;
  if (!store.is_constant(state.general[4], plan_.returned_sp)) {
    throw LiftStop{"comes back with the stack pointer elsewhere than its convention says"};
  }
  std::vector<NodeId> words;
  for (const OutputElement& element : plan_.outputs) add_words(words, state, element);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!store[words[i]].has_unknown) continue;
    const std::array roots = {words[i]};
    const std::vector<NodeId> parts = reachable(store, roots);
    const auto is_unknown = [&](NodeId id) { return store[id].kind == Kind::unknown; };
    throw LiftStop{fmt::format("output word {} ({}) depends on something unknown: {}", i,
                               describe_output(signature_, i),
                               store.unknown_reason(*std::ranges::find_if(parts, is_unknown)))};
  }
  return words;
}

}  // namespace bitwitness::proof
