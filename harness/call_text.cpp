#include "harness/call_text.hpp"

#include "harness/disassembly.hpp"
#include "harness/refused_code.hpp"

#include <fmt/format.h>

namespace bitwitness {
namespace {

std::string bytes(std::uint64_t count) {
  return fmt::format("{} byte{}", count, count == 1 ? "" : "s");
}

/// A processor does not tell how wide an access was.
std::string extent(const Trap& trap) {
  return trap.size == 0 ? "memory" : bytes(trap.size);
}

std::string interrupt(unsigned vector) {
  switch (vector) {
    case 0:
      return "divides by zero, or its quotient overflows (exception 0)";
    case 1:
      return "raises the debug exception (1)";
    case 3:
      return "raises the breakpoint exception (3)";
    case 4:
      return "raises the overflow exception (4)";
    case 5:
      return "raises the bound range exception (5)";
    case 6:
      return "raises the invalid opcode exception (6)";
    case 13:
      return "raises the general protection exception (13)";
    case 16:
      return "raises the x87 exception (16)";
    case 17:
      return "raises the alignment exception (17)";
    case 19:
      return "raises the SIMD exception (19)";
    default:
      return fmt::format("raises interrupt {:#x}", vector);
  }
}

}  // namespace

std::string CallText::import(const CallContext& lane, std::uint64_t address) const {
  const Region& traps = lane.plan.layout.traps;
  const std::uint64_t index = (address - traps.address) / trap_stride;
  if (!traps.contains(address) || index >= image_.imports().size()) return {};
  const Import& found = image_.imports()[index];
  return fmt::format("{}!{}", found.library, found.name);
}

std::string CallText::place(const CallContext& lane, std::uint64_t address) const {
  const CallPlan& plan = lane.plan;
  if (const Segment* segment = image_.find(address)) {
    return segment->name.empty() ? "in the image" : fmt::format("in {}", segment->name);
  }
  const auto near = [address](std::uint64_t to, std::uint64_t reach) { return address - to < reach; };
  for (const Slot& slot : plan.slots) {
    const std::string name =
        fmt::format("argument {} ({})", slot.argument + 1,
                    slot.role == Role::in ? "in " + to_string(slot.type)
                                          : (slot.role == Role::out ? "out " : "inout ") + to_string(slot.type));
    if (slot.region.contains(address)) return "in " + name;
    if (address == slot.region.end()) return "just past the end of " + name;
    if (near(slot.region.end(), page_size)) {
      return fmt::format("{} past the end of {}", bytes(address - slot.region.end()), name);
    }
    if (slot.role != Role::in && near(slot.region.address - page_size, page_size)) {
      return fmt::format("{} before {}", bytes(slot.region.address - address), name);
    }
  }
  const CallLayout& layout = plan.layout;
  if (lane.thread_block && lane.thread_block->contains(address)) {
    return fmt::format("{}:[{:#x}] in the thread's block", plan.is_64_bit ? "gs" : "fs",
                       address - lane.thread_block->address);
  }
  if (layout.stack.contains(address)) return "on the stack";
  if (near(layout.stack.address - page_size, page_size)) return "where the stack is exhausted";
  if (near(layout.stack.end(), page_size)) return "above the stack";
  if (layout.input.contains(address)) return "beside the input";
  if (layout.code.contains(address) || layout.control.contains(address) || layout.result.contains(address) ||
      layout.gap.contains(address)) {
    return "in the code that calls the routine";
  }
  return "where nothing is mapped";
}

std::string CallText::filler(const CallContext& lane, std::uint64_t address) const {
  const CallPlan& plan = lane.plan;
  const Filler& filler = lane.filler;
  const unsigned registers = plan.is_64_bit ? 16 : 8;
  if (address - filler.general < registers * filler_stride) {
    const auto number = static_cast<std::uint8_t>((address - filler.general) / filler_stride);
    const std::string name = to_string(Register{RegisterClass::general, number}, plan.is_64_bit);
    const std::uint64_t holds = filler.general + number * filler_stride + filler_stride / 2;
    const auto offset = static_cast<std::int64_t>(address - holds);
    return fmt::format("at {} {} {:#x}, and the signature gives {} no value", name, offset < 0 ? '-' : '+',
                       offset < 0 ? -offset : offset, name);
  }
  const std::uint64_t home_words = plan.is_64_bit ? win64_home_words : 0;
  const std::uint64_t offset = address - filler.stack_word;
  if (offset >= (home_words + filler_words) * filler_stride) return {};
  if (offset < filler_stride / 4) return "through a stack word that nothing has been written to";
  const std::uint64_t word = offset / filler_stride;
  if (word < home_words) {
    return fmt::format("through the stack word kept for register argument {}, which its caller leaves open", word + 1);
  }
  return fmt::format("through stack argument {}, which the signature does not have",
                     plan.argument_bytes / (plan.is_64_bit ? 8 : 4) + word - home_words + 1);
}

std::string CallText::where(const CallContext& lane, std::uint64_t address) const {
  // What a register held by chance says nothing; which register it was does.
  const std::string known = filler(lane, address);
  return known.empty() ? fmt::format("at {:#x}, {}", address, place(lane, address)) : known;
}

std::string CallText::trap(const CallContext& lane, const CallEnd& end) const {
  const Trap& trap = end.trap;
  switch (trap.kind) {
    case Trap::Kind::unmapped:
      if (const std::string name = import(lane, trap.address); !name.empty()) {
        return trap.access == Access::execute ? fmt::format("calls the import {}", name)
                                              : fmt::format("{} the imported variable {}", verb(trap.access), name);
      }
      if (trap.access == Access::execute) return fmt::format("jumps to code {}", where(lane, trap.address));
      return fmt::format("{} {} {}", verb(trap.access), extent(trap), where(lane, trap.address));
    case Trap::Kind::forbidden:
      if (trap.access == Access::execute) {
        return fmt::format("jumps to code {}, which is not executable", where(lane, trap.address));
      }
      return fmt::format("{} {} {}, which is read-only", verb(trap.access), extent(trap), where(lane, trap.address));
    case Trap::Kind::interrupt:
      return interrupt(trap.vector);
    case Trap::Kind::invalid:
      return fmt::format("is not an instruction that {} has", lane.processor);
    case Trap::Kind::halt:
      return "halts the CPU";
    case Trap::Kind::port:
      return fmt::format("{} I/O port {:#x}", trap.access == Access::read ? "reads" : "writes", trap.address);
    case Trap::Kind::system_call:
      return "calls the operating system";
    case Trap::Kind::stopped:
      return "upsets the memory of its caller";
    case Trap::Kind::none:
    case Trap::Kind::engine:
      break;
  }
  if (trap.vector == Trap::broke_off) {
    return fmt::format("leads to the code at {:#x}, on which the emulator breaks off", trap.address);
  }
  return fmt::format("stops the emulator with its error {}", trap.vector);
}

std::string CallText::stack_out_of_order(const CallContext& lane, const CallEnd& end) const {
  const std::string_view convention = to_string(routine_.signature.convention);
  const auto arguments = static_cast<std::int64_t>(lane.plan.argument_bytes);
  if (end.sp_offset > 0 && end.sp_offset == arguments) {
    return fmt::format("removes its {} of arguments, which {} leaves to the caller: stdcall, thiscall or fastcall?",
                       bytes(lane.plan.argument_bytes), convention);
  }
  if (end.sp_offset < 0 && -end.sp_offset == arguments) {
    return fmt::format("leaves its {} of arguments on the stack, which {} removes: cdecl?",
                       bytes(lane.plan.argument_bytes), convention);
  }
  return fmt::format("returns with the stack pointer {} {} where {} leaves it",
                     bytes(static_cast<std::uint64_t>(end.sp_offset < 0 ? -end.sp_offset : end.sp_offset)),
                     end.sp_offset < 0 ? "below" : "above", convention);
}

Incident CallText::incident(const CallContext& lane, const CallEnd& end, std::span<const std::byte> outside) const {
  Incident incident;
  incident.address = end.instruction;
  const std::optional<Instruction> instruction = executed_instruction(image_, end.instruction);
  if (instruction) {
    incident.instruction = instruction->text;
  } else if (const auto beside = disassemble_one(outside, end.instruction, lane.plan.is_64_bit)) {
    incident.instruction = beside->text;
  }
  incident.kind = OutcomeKind::faulted;
  if (end.over_budget) {
    incident.kind = OutcomeKind::out_of_budget;
    incident.reason = lane.over_budget;
  } else if (const auto why = instruction ? why_refused(image_, *instruction) : std::string_view();
             !why.empty() && (end.refused || end.trap.vector == Trap::broke_off)) {
    incident.reason = why;
  } else if (end.trap.kind != Trap::Kind::none) {
    incident.reason = trap(lane, end);
  } else if (end.sp_offset != 0) {
    incident.reason = stack_out_of_order(lane, end);
  } else if (end.unwritten_word) {
    incident.kind = OutcomeKind::unwritten;
    incident.reason = fmt::format("returns without having written all of output word {} ({})", *end.unwritten_word,
                                  describe_output(routine_.signature, *end.unwritten_word));
  } else {
    incident.kind = OutcomeKind::returned;
  }
  return incident;
}

std::string CallText::trait(const CallContext& lane, const Trait& trait) const {
  switch (trait.kind) {
    case Trait::Kind::writes_image:
      return fmt::format("writes to {:#x}, {}", trait.detail, place(lane, trait.detail));
    case Trait::Kind::writes_input:
    case Trait::Kind::writes_beside_output: {
      const std::string where = place(lane, trait.detail);
      return fmt::format("writes {}{}", where.starts_with("in ") ? "to its input, " : "", where);
    }
    case Trait::Kind::fpcw:
      return fmt::format("returns with the x87 control word {:04x}", trait.detail);
    case Trait::Kind::mxcsr:
      return fmt::format("returns with the MXCSR control bits {:04x}", trait.detail);
    case Trait::Kind::direction_flag:
      return "returns with the direction flag set";
    case Trait::Kind::writes_above_arguments:
      return "writes to the stack above its arguments";
    case Trait::Kind::x87_values:
      return fmt::format("leaves {} value{} on the x87 stack", trait.detail, trait.detail == 1 ? "" : "s");
    case Trait::Kind::x87_pops:
      return fmt::format("takes {} value{} from an empty x87 stack", trait.detail, trait.detail == 1 ? "" : "s");
  }
  return {};
}

}  // namespace bitwitness
