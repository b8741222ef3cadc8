// Jumps, calls, repeated copies, and what does nothing.
#include "harness/proof/lift_state.hpp"

#include <fmt/format.h>

namespace bitwitness::proof {
namespace {

using From = DetailedInstruction;

constexpr std::size_t ecx = 1;
constexpr std::size_t esp = 4;
constexpr std::size_t ebp = 5;
constexpr std::size_t esi = 6;
constexpr std::size_t edi = 7;

/// Where a jump or call goes.
std::uint64_t target_of(LiftState& state, const From& from) {
  if (from.instruction.target) return *from.instruction.target;
  if (from.operands.size() != 1) end_at_form();
  return state.concrete(state.read(from.operands[0], state.word), PathCondition::Kind::jump_target);
}

void lift_jmp(LiftState& state, const From& from) {
  state.pc = target_of(state, from);
}

void lift_call(LiftState& state, const From& from) {
  const std::uint64_t target = target_of(state, from);
  state.push(state.store.constant(state.word, state.pc));
  state.pc = target;
}

void lift_ret(LiftState& state, const From& from) {
  const NodeId target = state.pop(state.word);
  if (!from.operands.empty()) {
    const NodeId bytes = state.store.constant(state.word, from.operands[0].immediate & 0xffff);
    state.general.at(esp) = state.store.add(state.general.at(esp), bytes);
  }
  state.pc = state.concrete(target, PathCondition::Kind::jump_target);
}

template <Condition condition>
void lift_jcc(LiftState& state, const From& from) {
  if (!from.instruction.target) end_at_form();
  if (state.decide(state.flags.condition(state.store, condition))) state.pc = *from.instruction.target;
}

void lift_leave(LiftState& state, const From&) {
  state.general.at(esp) = state.general.at(ebp);
  state.general.at(ebp) = state.pop(state.word);
}

void lift_nothing(LiftState&, const From&) {}

void lift_sahf(LiftState& state, const From&) {
  const NodeId ah = state.read_part({RegisterPart::File::general, 0, 8, 8});
  constexpr std::array<std::pair<Flag, unsigned>, 5> places = {
      {{Flag::sign, 7}, {Flag::zero, 6}, {Flag::adjust, 4}, {Flag::parity, 2}, {Flag::carry, 0}}};
  for (const auto& [flag, at] : places) state.flags.set(flag, state.store.extract(ah, at, 1));
}

template <bool value>
void lift_carry(LiftState& state, const From&) {
  state.flags.set(Flag::carry, state.store.bit(value));
}

void lift_complement_carry(LiftState& state, const From&) {
  state.flags.set(Flag::carry, state.store.bit_not(state.flags.get(state.store, Flag::carry)));
}

void advance(LiftState& state, std::size_t reg, unsigned bytes) {
  state.general.at(reg) = state.store.add(state.general.at(reg), state.store.constant(state.word, bytes));
}

/// movs and stos, once or ecx times. The direction flag is clear, as conventions demand: nothing known sets it.
template <bool copies, unsigned bytes>
void lift_string(LiftState& state, const From& from) {
  const bool has_prefix = from.prefix == "rep";
  if (!from.prefix.empty() && !has_prefix) end_at_form();
  for (const Operand& operand : from.operands) {  // fs or gs before esi, or 16- or 32-bit addresses
    if (operand.kind != Operand::Kind::memory) continue;
    if (operand.base.file == RegisterPart::File::general && operand.base.width != state.word) end_at_form();
    if (operand.segment.file == RegisterPart::File::segment && operand.segment.number >= 4) end_at_form();
  }
  std::uint64_t count = 1;
  if (has_prefix) {
    count = state.concrete(state.general.at(ecx), PathCondition::Kind::address);
    if (count > state.options.max_instructions - state.executed) {
      throw LiftStop{fmt::format("repeats {} times, more than may be executed", count)};
    }
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const NodeId value = copies ? state.load(state.general.at(esi), 8 * bytes)
                                : state.read_part({RegisterPart::File::general, 0, 0, 8 * bytes});
    state.store_to(state.general.at(edi), value);
    if constexpr (copies) advance(state, esi, bytes);
    advance(state, edi, bytes);
  }
  if (!has_prefix) return;
  state.executed += count > 0 ? count - 1 : 0;
  state.general.at(ecx) = state.store.constant(state.word, 0);
}

/// "movsd" is a copy of four bytes here; as an SSE move it has an XMM register and never comes here.
constexpr std::array rows = std::to_array<LiftRow>({
    {"jmp", lift_jmp},
    {"call", lift_call},
    {"ret", lift_ret},
    {"leave", lift_leave},
    {"nop", lift_nothing},
    {"endbr32", lift_nothing},
    {"endbr64", lift_nothing},
    {"pause", lift_nothing},
    {"wait", lift_nothing},
    {"fwait", lift_nothing},
    {"cld", lift_nothing},
    {"sahf", lift_sahf},
    {"clc", lift_carry<false>},
    {"stc", lift_carry<true>},
    {"cmc", lift_complement_carry},
    {"movsb", lift_string<true, 1>},
    {"movsw", lift_string<true, 2>},
    {"movs dword", lift_string<true, 4>},
    {"movsq", lift_string<true, 8>},
    {"stosb", lift_string<false, 1>},
    {"stosw", lift_string<false, 2>},
    {"stosd", lift_string<false, 4>},
    {"stosq", lift_string<false, 8>},
    {"jo", lift_jcc<Condition::o>},
    {"jno", lift_jcc<Condition::no>},
    {"jb", lift_jcc<Condition::b>},
    {"jae", lift_jcc<Condition::ae>},
    {"je", lift_jcc<Condition::e>},
    {"jne", lift_jcc<Condition::ne>},
    {"jbe", lift_jcc<Condition::be>},
    {"ja", lift_jcc<Condition::a>},
    {"js", lift_jcc<Condition::s>},
    {"jns", lift_jcc<Condition::ns>},
    {"jp", lift_jcc<Condition::p>},
    {"jnp", lift_jcc<Condition::np>},
    {"jl", lift_jcc<Condition::l>},
    {"jge", lift_jcc<Condition::ge>},
    {"jle", lift_jcc<Condition::le>},
    {"jg", lift_jcc<Condition::g>},
});

}  // namespace

std::span<const LiftRow> flow_rows() {
  return rows;
}

}  // namespace bitwitness::proof
