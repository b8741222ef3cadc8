#include "tests/bench/bare_host_loop.hpp"

#include "harness/assembler.hpp"
#include "harness/call_room.hpp"
#include "harness/error.hpp"
#include "harness/lane_kind.hpp"
#include "harness/machine.hpp"

#include <cstring>
#include <string_view>

namespace bitwitness::bench {
namespace {

using namespace general_register;

std::string_view signature_of(Form form) {
  if (form == Form::win64_in_out) return "win64(in u8[6], out f32[4])";
  return form == Form::cdecl_in_out ? "cdecl(in u8[6], out f32[4])" : "thiscall(in u8[6], out f32[4])";
}

CallPlan plan_of(const Image& image, Form form) {
  const Signature signature = parse_signature(signature_of(form));
  const bool is_64_bit = form == Form::win64_in_out;
  const CallPlan sizes = plan_call(signature, is_64_bit, 0, image.imports().size(), {});
  return plan_call(signature, is_64_bit, find_base(image, sizes.layout.whole.size), image.imports().size(),
                   filler_of(LaneKind::batch));
}

host::HostCode code_of(const CallPlan& plan, const host::HostLayout& layout, std::uint64_t routine, Form form,
                       bool resets_x87) {
  const bool is_64_bit = plan.is_64_bit;
  Assembler code(layout.code.address, is_64_bit);
  const auto state = [&layout](std::size_t offset) { return at(layout.state.address + offset); };
  const std::uint64_t in = plan.slots[0].region.address;
  const std::uint64_t out = plan.slots[1].region.address;
  host::HostCode loop;
  loop.call_64 = code.here();
  code.bytes({0x0f, 0x05, 0xcc});
  loop.call_32 = code.here();
  code.bytes({0xcd, 0x80, 0xcc});
  loop.enter = code.here();
  code.load_general(esi, state(host::state_value));
  code.load_general(edi, state(host::state_words));
  code.load_general(ebx, state(host::state_left));
  loop.next = code.here();
  if (resets_x87) code.bytes({0xdb, 0xe3});                // fninit
  code.memory({0xd9}, 5, state(host::state_fpcw));         // fldcw
  code.memory({0x0f, 0xae}, 2, state(host::state_mxcsr));  // ldmxcsr
  code.copy(based(esi, 0), at(layout.input_alias(plan, in)), 6);
  if (is_64_bit) {
    code.memory({0x48, 0x8d}, ecx, at(in));   // lea rcx, [in]
    code.memory({0x48, 0x8d}, edx, at(out));  // lea rdx, [out]
  } else {
    code.bytes({0x68});  // push …
    code.word(static_cast<std::uint32_t>(out));
    code.bytes({form == Form::cdecl_in_out ? 0x68U : 0xb9U});  // push …, or mov ecx, …
    code.word(static_cast<std::uint32_t>(in));
  }
  code.branch({0xe8}, routine);
  if (form == Form::cdecl_in_out) code.bytes({0x83, 0xc4, 8});  // add esp, 8
  for (std::size_t i = 0; i < 16; i += 4) {
    code.load_part(eax, at(out + i), 4);
    code.store_part(eax, based(edi, i), 4);
  }
  if (is_64_bit) {
    code.bytes({0x48, 0x83, 0xc6, 6, 0x48, 0x83, 0xc7, 16, 0xff, 0xcb});  // add rsi, 6; add rdi, 16; dec ebx
  } else {
    code.bytes({0x83, 0xc6, 6, 0x83, 0xc7, 16, 0x4b});  // add esi, 6; add edi, 16; dec ebx
  }
  code.branch({0x0f, 0x85}, loop.next);  // jne
  code.bytes({0xcc});
  loop.done = code.here();
  loop.bytes = code.take();
  return loop;
}

}  // namespace

BareHostLoop::BareHostLoop(const Image& image, std::uint64_t routine, Form form, std::size_t values, bool resets_x87)
    : plan_(plan_of(image, form)),
      layout_(host::lay_out_host(plan_, values)),
      code_(code_of(plan_, layout_, routine, form, resets_x87)),
      memory_(std::make_unique<host::HostMemory>(image, plan_, layout_, false, false)) {
  if (layout_.most_values < values) throw Error("the loop has no room for so many values");
  std::memcpy(memory_->at(layout_.code.address), code_.bytes.data(), code_.bytes.size());
  memory_->enter(process_, code_);
}

std::span<std::byte> BareHostLoop::packed() const {
  return {memory_->at(layout_.values.address), layout_.most_values * plan_.packed_size};
}

std::span<const std::uint32_t> BareHostLoop::words() const {
  return {reinterpret_cast<const std::uint32_t*>(memory_->at(layout_.words.address)),
          layout_.most_values * plan_.word_count};
}

void BareHostLoop::run() {
  const auto put = [this](std::size_t offset, std::uint64_t value) {
    std::memcpy(memory_->at(layout_.state.address) + offset, &value, 8);
  };
  put(host::state_value, layout_.values.address);
  put(host::state_words, layout_.words.address);
  put(host::state_mxcsr, Environment().mxcsr);
  put(host::state_fpcw, Environment().fpcw | std::uint64_t{Environment().mxcsr} << 32);
  put(host::state_left, layout_.most_values);
  user_regs_struct registers = process_.fresh_registers(plan_.is_64_bit);
  registers.rip = code_.enter;
  registers.rsp = plan_.entry_sp & ~std::uint64_t{15};
  const host::Stop stop = process_.run(registers);
  if (stop.registers.rip != code_.done) throw Error("the loop did not come to its end");
}

}  // namespace bitwitness::bench
