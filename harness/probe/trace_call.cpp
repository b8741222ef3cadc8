#include "harness/probe/trace_call.hpp"

#include "harness/call_room.hpp"
#include "harness/lane_kind.hpp"
#include "harness/refused_code.hpp"

#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace bitwitness {
namespace {

/// Fixed, so that equal runs are equal.
constexpr Handover handover{0xf5, 0x93d6b1f7};

/// What an output holds before it is written, again and again: the same as when the machine runs a value alone, so that
/// a routine that reads it gives the same words.
constexpr std::array<std::uint8_t, 4> unwritten = {0xa4, 0x5b, 0x5c, 0x7f};

/// Plans the call where the machine makes it when a value runs alone: then both show the same addresses.
CallPlan plan_alone(const Image& image, const Routine& routine) {
  const bool is_64_bit = image.format() == ImageFormat::pe32_plus;
  const std::size_t imports = image.imports().size();
  const std::uint64_t size = plan_call(routine.signature, is_64_bit, 0, imports, {}).layout.whole.size;
  const std::uint64_t base = find_base(image, 2 * size) + size;
  return plan_call(routine.signature, is_64_bit, base, imports, filler_of(LaneKind::alone));
}

}  // namespace

TracedCall::TracedCall(const Image& image, const Routine& routine, const TraceOptions& options)
    : image_(image),
      options_(options),
      plan_(plan_alone(image, routine)),
      emulator_(plan_.is_64_bit, *this),
      memory_(emulator_, image, plan_, true, uses_thread_block(image, routine.address)),
      stub_(make_stub(plan_, routine.address, handover)) {
  std::memcpy(memory_.host(plan_.layout.code.address), stub_.code.data(), stub_.code.size());
  std::memcpy(plan_.frame.data(), &stub_.landing, plan_.is_64_bit ? 8 : 4);
  emulator_.watch_reads();
  emulator_.watch_writes();
  emulator_.watch_instructions(1, 0);  // all
}

void TracedCall::run(Trace& out, std::span<const std::byte> packed, const Environment& environment) {
  out_ = &out;
  prepare(packed, environment);
  const Trap trap = emulator_.start(stub_.enter);
  if (came_back_) return;
  const bool went_nowhere =
      trap.access == Access::execute && (trap.kind == Trap::Kind::unmapped || trap.kind == Trap::Kind::forbidden);
  if (went_nowhere) {
    end_step(trap.address);
  } else {
    // The emulator reports an access that it refuses as a trap alone.
    const bool was_refused = trap.kind == Trap::Kind::unmapped || trap.kind == Trap::Kind::forbidden;
    if (was_refused && current_ != nullptr) {
      out.steps.back().memory.push_back({trap.access,
                                         trap.address,
                                         where(trap.address),
                                         reading_of(current_->text, trap.size),
                                         bytes_at(trap.address, trap.size),
                                         {},
                                         trap.size});
    }
    abandon_step();
  }
}

void TracedCall::prepare(std::span<const std::byte> packed, const Environment& environment) {
  const Filler& filler = filler_of(LaneKind::alone);
  const CallLayout& layout = plan_.layout;
  std::byte* stack = memory_.host(layout.stack.address);
  for (std::size_t at = 0; at < layout.stack.size; at += 4) std::memcpy(stack + at, &filler.stack_word, 4);
  std::memcpy(memory_.host(plan_.entry_sp), plan_.frame.data(), plan_.frame.size());
  std::memset(memory_.host(layout.input.address), filler.input_byte, layout.input.size);

  std::byte* control = memory_.host(layout.control.address);
  const std::uint32_t fpcw = environment.fpcw;
  const std::uint32_t stop = 1;  // there is but one call
  std::memcpy(control + control_fpcw, &fpcw, 4);
  std::memcpy(control + control_mxcsr, &environment.mxcsr, 4);
  std::memcpy(control + control_stop, &stop, 4);
  std::memcpy(control + control_general, plan_.general.data(), sizeof plan_.general);
  std::memcpy(control + control_xmm, plan_.xmm.data(), sizeof plan_.xmm);
  place(packed);
}

void TracedCall::place(std::span<const std::byte> packed) {
  for (const Slot& slot : plan_.slots) {
    std::byte* to = memory_.host(slot.region.address);
    if (slot.role == Role::out) {
      for (std::size_t i = 0; i < slot.region.size; ++i) to[i] = static_cast<std::byte>(unwritten.at(i % 4));
    } else {
      auto from = packed.subspan(slot.packed_offset);
      for (const Piece& piece : slot.pieces) {
        std::memcpy(to + piece.offset, from.data(), piece.size);
        from = from.subspan(piece.size);
      }
    }
  }
  std::byte* control = memory_.host(plan_.layout.control.address);
  for (const Patch& patch : plan_.patches) {
    std::byte* to = memory_.host(plan_.entry_sp) + patch.target;
    if (patch.place == Patch::Place::general) to = control + control_general + 8 * patch.target;
    if (patch.place == Patch::Place::xmm) to = control + control_xmm + 16 * patch.target;
    const auto from = packed.subspan(patch.packed_offset, patch.size);
    std::memcpy(to, from.data(), patch.size);
    const bool is_negative = patch.is_signed && (from.back() & std::byte{0x80}) != std::byte{0};
    if (patch.width > patch.size) std::memset(to + patch.size, is_negative ? 0xff : 0, patch.width - patch.size);
  }
}

bool TracedCall::on_port_write(std::uint32_t port, std::uint32_t value) {
  if (port != handover.port || value != handover.token) {
    is_over_ = true;
    return false;
  }
  came_back_ = true;
  gather(emulator_.call_state());
  return true;
}

bool TracedCall::on_instruction(std::uint64_t address) {
  if (is_over_ || came_back_) return true;  // the rest of what was translated
  end_step(address);
  if (plan_.layout.code.contains(address)) return true;
  last_instruction_ = address;
  const Known& instruction = known(address);
  if (!instruction.is_refused && (out_->instructions == options_.budget || options_.stop.stop_requested())) {
    is_over_ = true;
    return false;
  }
  ++out_->instructions;
  if (out_->steps.size() < options_.limit) begin_step(address, instruction);
  if (!instruction.is_refused) return true;
  abandon_step();
  is_over_ = true;
  return false;
}

const TracedCall::Known& TracedCall::known(std::uint64_t address) {
  const auto [entry, is_new] = known_.try_emplace(address);
  Known& known = entry->second;
  if (!is_new) return known;
  const std::optional<Instruction> instruction = executed_instruction(image_, address);
  if (!instruction) {
    known.text.assign(1, '?');
    return known;
  }
  known.text = instruction->text;
  known.size = instruction->size;
  known.flow = instruction->flow;
  known.operands = operands_of(instruction->text);
  known.is_refused = !why_refused(image_, *instruction).empty();
  return known;
}

void TracedCall::begin_step(std::uint64_t address, const Known& instruction) {
  before_ = state_of(emulator_, plan_.is_64_bit);
  current_ = &instruction;
  TraceStep& step = out_->steps.emplace_back();
  step.address = address;
  step.text = instruction.text;
}

void TracedCall::end_step(std::uint64_t next) {
  if (current_ == nullptr) return;
  TraceStep& step = out_->steps.back();
  const std::uint64_t behind = step.address + current_->size;
  step.next = next;
  step.is_sequential = next == behind;
  if (current_->flow == Flow::conditional_jump) step.taken = !step.is_sequential;
  for (MemoryAccess& access : step.memory) {
    if (access.access == Access::write) access.after = bytes_at(access.address, access.size);
  }
  describe_change(step, current_->operands, before_, state_of(emulator_, plan_.is_64_bit));
  current_ = nullptr;
}

void TracedCall::abandon_step() {
  if (current_ == nullptr) return;
  TraceStep& step = out_->steps.back();
  step.is_completed = false;
  step.is_sequential = false;
  describe_change(step, current_->operands, before_, before_);
  current_ = nullptr;
}

void TracedCall::on_read(std::uint64_t address, unsigned size) {
  add_access(Access::read, address, size);
}

void TracedCall::on_write(std::uint64_t address, unsigned size) {
  memory_.before_write(address, size);
  add_access(Access::write, address, size);
}

void TracedCall::add_access(Access access, std::uint64_t address, unsigned size) {
  if (current_ == nullptr || is_over_) return;
  TraceStep& step = out_->steps.back();
  std::vector<std::byte> bytes = bytes_at(address, size);
  if (current_->operands.is_floating_point && !step.memory.empty() && !bytes.empty()) {
    MemoryAccess& last = step.memory.back();
    if (last.access == access && last.address + last.size == address && !last.before.empty()) {
      last.size += size;
      last.before.insert(last.before.end(), bytes.begin(), bytes.end());
      last.reading = reading_of(current_->text, last.size);
      return;
    }
  }
  step.memory.push_back(
      {access, address, where(address), reading_of(current_->text, size), std::move(bytes), {}, size});
}

std::vector<std::byte> TracedCall::bytes_at(std::uint64_t address, std::size_t size) const {
  std::vector<std::byte> bytes(size);
  if (!emulator_.read_memory(address, bytes)) bytes.clear();
  return bytes;
}

std::string TracedCall::where(std::uint64_t address) const {
  if (const Segment* segment = image_.find(address)) return segment->name;
  for (const Slot& slot : plan_.slots) {
    if (slot.region.contains(address)) return fmt::format("argument {}", slot.argument + 1);
  }
  return plan_.layout.stack.contains(address) ? "stack" : "";
}

void TracedCall::gather(const CallState& state) {
  for (const OutputElement& output : plan_.outputs) {
    const std::size_t size = size_of(output.scalar);
    std::uint64_t bits = 0;
    switch (output.source) {
      case OutputElement::Source::slot:
        std::memcpy(&bits, memory_.host(plan_.slots[output.index].region.address) + output.offset, size);
        break;
      case OutputElement::Source::result_slot:
        std::memcpy(&bits, memory_.host(plan_.layout.result.address), size);
        break;
      case OutputElement::Source::general:  // the stub has moved eax to ecx
        bits = output.index == 0 ? state.cx : emulator_.general(static_cast<unsigned>(output.index));
        break;
      case OutputElement::Source::general_pair:
        bits = state.dx << 32 | (state.cx & 0xffffffff);
        break;
      case OutputElement::Source::xmm:
        std::memcpy(&bits, emulator_.xmm(static_cast<unsigned>(output.index)).data(), size);
        break;
    }
    if (output.scalar == Scalar::i8) bits = static_cast<std::uint64_t>(std::int64_t{static_cast<std::int8_t>(bits)});
    if (output.scalar == Scalar::i16) bits = static_cast<std::uint64_t>(std::int64_t{static_cast<std::int16_t>(bits)});
    words_.push_back(static_cast<std::uint32_t>(bits));
    if (size == 8) words_.push_back(static_cast<std::uint32_t>(bits >> 32));
  }
}

}  // namespace bitwitness
