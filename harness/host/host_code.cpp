#include "harness/host/host_code.hpp"

#include "harness/assembler.hpp"
#include "harness/call_end.hpp"
#include "harness/emulator.hpp"
#include "harness/error.hpp"

#include <algorithm>
#include <cstring>

namespace bitwitness::host {
namespace {

using namespace general_register;

/// More than the longest signature takes.
constexpr std::uint64_t code_size = 12 * page_size;

constexpr std::uint32_t x87_top_step = 0x800;

/// In the status word: the top of the stack, and an unmasked exception.
constexpr std::uint32_t x87_left_over = 0xb880;

/// In the status word behind fxam: the top of the stack, what is there, and an unmasked exception.
constexpr std::uint32_t x87_top_and_class = 0x7d80;
constexpr std::uint32_t x87_nothing_there = 0x4100;

class HostCoder {
 public:
  HostCoder(const CallPlan& plan, const HostLayout& layout, const CallNeeds& needs)
      : plan_(plan), layout_(layout), needs_(needs), code_(layout.code.address, plan.is_64_bit) {}

  HostCode write(std::uint64_t routine) {
    HostCode out;
    out.call_64 = code_.here();
    code_.bytes({0x0f, 0x05, 0xcc});  // syscall; int3
    out.call_32 = code_.here();
    code_.bytes({0xcd, 0x80, 0xcc});  // int 0x80; int3
    out.enter = code_.here();
    code_.bytes({0x68});  // push …
    code_.word(plain_flags);
    code_.bytes({0x9d});  // popf: a tracer cannot set every flag
    out.next = code_.here();
    place_arguments();
    set_state();
    set_registers();
    out.landing = call(routine);
    take_registers();
    take_words();
    add(state_value, plan_.packed_size);
    add(state_record, sizeof(Record));
    out.done = repeat(out.next);
    if (!needs_.is_unruly && (needs_.uses_x87 || !has_x87_result())) write_hurried(out, routine);
    out.bytes = code_.take();
    return out;
  }

 private:
  /// Most of what `write` does for each call costs more than a small routine does, and tells nothing about nearly all
  /// of them.
  void write_hurried(HostCode& out, std::uint64_t routine) {
    out.hurried_enter = code_.here();
    code_.bytes({0x68});  // push …
    code_.word(plain_flags);
    code_.bytes({0x9d});  // popf
    load_control();
    const std::uint64_t next = code_.here();
    place_arguments();
    if (needs_.clear_upper_halves) code_.bytes({0xc5, 0xf8, 0x77});  // vzeroupper
    set_registers();
    call(routine);
    keep_results();
    // sub esp, [what it is to be]; or [odd], esp
    plan_.is_64_bit ? code_.memory({0x48, 0x2b}, esp, state(state_returned))
                    : code_.memory({0x2b}, esp, state(state_returned));
    plan_.is_64_bit ? code_.memory({0x48, 0x09}, esp, state(state_odd)) : code_.memory({0x09}, esp, state(state_odd));
    use_own_stack();
    if (needs_.uses_x87) {
      take_x87_results();
      code_.bytes({0xd9, 0xe5, 0xdf, 0xe0, 0x25});  // fxam; fnstsw ax; and eax, …
      code_.word(x87_top_and_class);
      code_.bytes({0x35});  // xor eax, …
      code_.word(x87_nothing_there);
      code_.memory({0x09}, eax, state(state_odd));
    }
    take_words();
    add(state_value, plan_.packed_size);
    out.hurried_done = repeat(next);
  }

  /// Returns where it comes back to. What comes back elsewhere remains counted.
  std::uint64_t call(std::uint64_t routine) {
    // The return address is in its place already; a call writes it there once more, and the processor expects the
    // return.
    if (plan_.is_64_bit) {
      code_.bytes({0x48, 0x8d, 0x64, 0x24, 8});  // lea rsp, [rsp + 8]
    } else {
      code_.bytes({0x8d, 0x64, 0x24, 4});
    }
    code_.branch({0xe8}, routine);
    const std::uint64_t landing = code_.here();
    code_.memory({0xff}, 1, state(state_away));  // dec dword
    return landing;
  }

  /// Goes on as long as there are values; returns where the breakpoint behind it stops.
  std::uint64_t repeat(std::uint64_t next) {
    code_.memory({0xff}, 1, state(state_left));  // dec dword
    code_.branch({0x0f, 0x85}, next);            // jne
    code_.bytes({0xcc});                         // int3
    return code_.here();
  }

  [[nodiscard]] bool has_x87_result() const {
    return std::ranges::any_of(
        plan_.outputs, [](const OutputElement& output) { return output.source == OutputElement::Source::result_slot; });
  }

  [[nodiscard]] MemoryOperand state(std::size_t offset) const { return at(layout_.state.address + offset); }

  void place_arguments() {
    code_.memory({0xff}, 0, state(state_away));  // inc dword
    code_.load_general(esi, state(state_value));
    for (const Slot& slot : plan_.slots) {
      if (slot.role == Role::out) {
        code_.load_xmm(0, state(state_poison));
        code_.load_part(eax, state(state_poison), 4);
        code_.fill(at(slot.region.address), slot.region.size);
        continue;
      }
      const std::uint64_t to =
          slot.role == Role::in ? layout_.input_alias(plan_, slot.region.address) : slot.region.address;
      if (slot.role == Role::inout && slot.has_gaps()) {
        code_.load_xmm(0, state(state_gap));
        code_.load_part(eax, state(state_gap), 4);
        code_.fill(at(to), slot.region.size);
      }
      std::size_t from = slot.packed_offset;
      for (const Piece& piece : slot.pieces) {
        code_.copy(based(esi, from), at(to + piece.offset), piece.size);
        from += piece.size;
      }
    }
    code_.load_xmm(0, state(state_stack));
    code_.fill(at(plan_.entry_sp - fresh_stack), fresh_stack);
    // What stands above the arguments stays as it is: whether a call has written there shows in the end.
    code_.copy(state(state_frame), at(plan_.entry_sp), plan_.filler_offset);
    for (const Patch& patch : plan_.patches) place(patch);
  }

  void place(const Patch& patch) {
    const MemoryOperand from = based(esi, patch.packed_offset);
    MemoryOperand to = at(plan_.entry_sp + patch.target);
    if (patch.place == Patch::Place::general) to = state(state_general + 8 * patch.target);
    if (patch.place == Patch::Place::xmm) to = state(state_xmm + 16 * patch.target);
    if (patch.width <= patch.size) return code_.copy(from, to, patch.size);
    if (patch.size == 1 || patch.size == 2) {
      code_.load_extended(eax, from, patch.size, patch.is_signed);
    } else if (patch.size == 4) {
      code_.load_part(eax, from, 4);
    } else {                      // bytes that are no number: zeros behind them
      code_.bytes({0x31, 0xc0});  // xor eax, eax
      code_.store_part(eax, to, 4);
      if (patch.width == 8) code_.store_part(eax, to + 4, 4);
      return code_.copy(from, to, patch.size);
    }
    code_.store_part(eax, to, 4);
    if (patch.width != 8) return;
    if (patch.is_signed) {
      code_.bytes({0xc1, 0xf8, 31});  // sar eax, 31
    } else {
      code_.bytes({0x31, 0xc0});
    }
    code_.store_part(eax, to + 4, 4);
  }

  void load_control() {
    code_.memory({0xd9}, 5, state(state_fpcw));         // fldcw
    code_.memory({0x0f, 0xae}, 2, state(state_mxcsr));  // ldmxcsr
  }

  void set_state() {
    // fninit takes longer than most routines: where no instruction looks at sticky flags, only after a call that has
    // left the stack's top elsewhere or an exception pending.
    if (needs_.clear_x87_flags) code_.bytes({0xdb, 0xe2});  // fnclex
    if (needs_.uses_x87) {
      code_.memory({0xf7}, 0, state(state_fpsw), 4);  // test dword [fpsw], …
      code_.word(x87_left_over);
      const std::size_t to_emms = code_.forward_branch({0x0f, 0x84});  // je
      code_.bytes({0xdb, 0xe3});
      code_.land(to_emms);
    }
    if (needs_.clear_upper_halves) code_.bytes({0xc5, 0xf8, 0x77});  // vzeroupper
    code_.bytes({0x0f, 0x77});  // emms: every register is empty; it would raise what is pending
    load_control();
  }

  void set_registers() {
    const unsigned count = plan_.is_64_bit ? 16 : 8;
    for (unsigned reg = 0; reg < count; ++reg) {
      const bool is_patched = std::ranges::any_of(
          plan_.patches, [reg](const Patch& patch) { return patch.place == Patch::Place::xmm && patch.target == reg; });
      const bool is_zero = std::ranges::all_of(plan_.xmm[reg], [](std::uint32_t word) { return word == 0; });
      is_zero && !is_patched ? code_.clear_xmm(reg) : code_.load_xmm(reg, state(state_xmm + 16 * reg));
    }
    code_.bytes({0x31, 0xc0, 0xfc});  // xor eax, eax; cld: flags are ZF and PF, as under the emulator
    for (unsigned reg = 0; reg < count; ++reg) code_.load_general(reg, state(state_general + 8 * reg));
  }

  void keep_results() {
    for (const OutputElement& output : plan_.outputs) {
      const auto reg = static_cast<unsigned>(output.index);
      if (output.source == OutputElement::Source::xmm) code_.store_xmm(reg, state(state_saved_xmm + 16 * reg));
      if (output.source == OutputElement::Source::general) {
        code_.store_general(reg, state(state_saved_general + 8 * reg));
      }
      if (output.source == OutputElement::Source::general_pair) {
        code_.store_part(eax, state(state_pair), 4);
        code_.store_part(edx, state(state_pair + 4), 4);
      }
    }
  }

  void use_own_stack() {
    if (plan_.is_64_bit) {
      code_.memory({0x48, 0x8d}, esp, state(state_size));  // lea rsp, [end of the caller's stack]
    } else {
      code_.bytes({0xbc});  // mov esp, end of the caller's stack
      code_.word(static_cast<std::uint32_t>(layout_.state.address + state_size));
    }
  }

  void take_registers() {
    keep_results();
    code_.store_general(esp, state(state_sp));
    use_own_stack();
    code_.load_general(edi, state(state_record));
    if (needs_.sets_control) note_control();
    code_.load_general(ecx, state(state_sp));
    code_.store_general(ecx, based(edi, offsetof(Record, sp)));
    if (needs_.uses_x87) take_x87();
    code_.load_part(eax, state(state_left), 4);
    code_.memory({0x33}, eax, state(state_seed));  // xor
    code_.store_part(eax, based(edi, offsetof(Record, mark)), 4);
  }

  void note_control() {
    code_.bytes({0x9c, 0x58});  // pushf; pop eax
    code_.store_part(eax, based(edi, offsetof(Record, flags)), 4);
    // Flags beside those that set_registers sets, such as the one that makes misaligned accesses fault.
    code_.bytes({0x35});  // xor eax, …
    code_.word(plain_flags);
    code_.bytes({0xa9});  // test eax, …
    code_.word(~passing_flags);
    const std::size_t to_plain = code_.forward_branch({0x0f, 0x84});  // je
    code_.bytes({0x68});                                              // push …
    code_.word(plain_flags);
    code_.bytes({0x9d});  // popf
    code_.land(to_plain);
    code_.memory({0xd9}, 7, based(edi, offsetof(Record, fpcw)));         // fnstcw
    code_.memory({0x0f, 0xae}, 3, based(edi, offsetof(Record, mxcsr)));  // stmxcsr
  }

  void take_x87() {
    code_.bytes({0xdf, 0xe0});  // fnstsw ax
    code_.store_part(eax, based(edi, offsetof(Record, fpsw)), 2);
    if (has_x87_result()) {
      code_.bytes({0x05});  // add eax, …: the top when the result has been taken
      code_.word(x87_top_step);
    }
    code_.store_part(eax, state(state_fpsw), 2);
    take_x87_results();
  }

  void take_x87_results() {
    for (const OutputElement& output : plan_.outputs) {
      if (output.source != OutputElement::Source::result_slot) continue;
      code_.memory({output.scalar == Scalar::f64 ? 0xddU : 0xd9U}, 3, state(state_result));  // fstp
      code_.bytes({0x9b});  // fwait: an exception that is not masked leaves no result
    }
  }

  void take_words() {
    code_.load_general(edi, state(state_words));
    std::size_t to = 0;
    for (const OutputElement& output : plan_.outputs) {
      const std::size_t size = size_of(output.scalar);
      if (size < 4) {
        code_.load_extended(eax, place_of(output), size, output.scalar == Scalar::i8 || output.scalar == Scalar::i16);
        code_.store_part(eax, based(edi, to), 4);
        to += 4;
        continue;
      }
      // Piece by piece, as they were stored: a wider load would wait until they have reached the cache.
      for (std::size_t done = 0; done < size; done += 4, to += 4)
        code_.copy(place_of(output) + done, based(edi, to), 4);
    }
    add(state_words, 4 * plan_.word_count);
  }

  [[nodiscard]] MemoryOperand place_of(const OutputElement& output) const {
    switch (output.source) {
      case OutputElement::Source::slot:
        return at(plan_.slots[output.index].region.address + output.offset);
      case OutputElement::Source::result_slot:
        return state(state_result);
      case OutputElement::Source::xmm:
        return state(state_saved_xmm + 16 * output.index);
      case OutputElement::Source::general:
        return state(state_saved_general + 8 * output.index);
      case OutputElement::Source::general_pair:
        break;
    }
    return state(state_pair);
  }

  void add(std::size_t offset, std::size_t amount) {
    plan_.is_64_bit ? code_.memory({0x48, 0x81}, 0, state(offset), 4) : code_.memory({0x81}, 0, state(offset), 4);
    code_.word(static_cast<std::uint32_t>(amount));
  }

  const CallPlan& plan_;
  const HostLayout& layout_;
  CallNeeds needs_;
  Assembler code_;
};

}  // namespace

HostLayout lay_out_host(const CallPlan& plan, std::size_t values) {
  const Region& gap = plan.layout.gap;
  std::uint64_t cursor = gap.address;
  const auto take = [&cursor](std::uint64_t bytes) {
    const Region region{cursor, round_up_to_page(bytes)};
    cursor = region.end() + page_size;  // the page between two regions stays unmapped
    return region;
  };
  HostLayout layout;
  layout.state = take(state_size);
  layout.input = take(plan.layout.input.size);
  layout.thread = take(2 * page_size);
  layout.code = take(code_size);
  const std::size_t each = sizeof(Record) + plan.packed_size + 4 * plan.word_count;
  const std::uint64_t room = gap.end() - cursor - 6 * page_size;
  layout.most_values = static_cast<std::size_t>(std::min<std::uint64_t>(values, room / each));
  layout.records = take(layout.most_values * sizeof(Record));
  layout.values = take(layout.most_values * plan.packed_size);
  layout.words = take(layout.most_values * 4 * plan.word_count);
  return layout;
}

std::array<std::uint8_t, 16> gap_bytes(const Filler& filler) {
  std::array<std::uint8_t, 16> bytes{};
  bytes.fill(filler.input_byte);
  return bytes;
}

void put_caller_state(std::byte* state, const CallPlan& plan, const HostLayout& layout, const Filler& filler,
                      const GoStart& start) {
  const auto put = [state](std::size_t offset, const auto& value) {
    std::memcpy(state + offset, &value, sizeof value);
  };
  put(state_general, plan.general);
  put(state_xmm, plan.xmm);
  std::ranges::copy(plan.frame, state + state_frame);
  put(state_value, layout.values.address + start.first * plan.packed_size);
  put(state_words, layout.words.address + start.first * 4 * plan.word_count);
  put(state_record, layout.records.address + start.first * sizeof(Record));
  put(state_sp, std::uint64_t{0});
  put(state_fpsw, std::uint32_t{0xffff});  // whatever the one before left
  put(state_seed, start.seed);
  put(state_odd, std::uint64_t{0});
  put(state_away, std::uint32_t{0});
  put(state_returned, plan.returned_sp);
  put(state_gap, gap_bytes(filler));
  const std::uint32_t word = filler.stack_word;
  put(state_stack, std::array{word, word, word, word});
}

HostCode make_host_code(const CallPlan& plan, const HostLayout& layout, std::uint64_t routine, const CallNeeds& needs) {
  HostCode code = HostCoder(plan, layout, needs).write(routine);
  if (code.bytes.size() > layout.code.size || plan.frame.size() > most_frame) {
    throw Error("--witness host: the signature needs more code for a call than there is room for");
  }
  return code;
}

}  // namespace bitwitness::host
