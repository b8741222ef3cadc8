#include "harness/stub.hpp"

#include "harness/assembler.hpp"

#include <algorithm>

namespace bitwitness {
namespace {

bool is_patched(const CallPlan& plan, unsigned xmm) {
  return std::ranges::any_of(
      plan.patches, [xmm](const Patch& patch) { return patch.place == Patch::Place::xmm && patch.target == xmm; });
}

bool takes_accumulator(const CallPlan& plan) {
  return std::ranges::any_of(plan.outputs, [](const OutputElement& output) {
    return output.source == OutputElement::Source::general_pair ||
           (output.source == OutputElement::Source::general && output.index == 0);
  });
}

}  // namespace

Stub make_stub(const CallPlan& plan, std::uint64_t routine, const Handover& handover) {
  Assembler code(plan.layout.code.address, plan.is_64_bit);
  const std::uint64_t control = plan.layout.control.address;
  Stub stub;

  stub.landing = code.here();
  for (const OutputElement& output : plan.outputs) {
    if (output.source != OutputElement::Source::result_slot) continue;
    code.memory({output.scalar == Scalar::f64 ? 0xddU : 0xd9U}, 3, at(plan.layout.result.address));  // fstp
  }
  if (takes_accumulator(plan)) {
    if (plan.is_64_bit) code.bytes({0x48});
    code.bytes({0x89, 0xc1});  // mov ecx, eax
  }
  code.bytes({0xb8});  // mov eax, token
  code.word(handover.token);
  code.bytes({0xe7, handover.port});                      // out port, eax
  code.memory({0x83}, 7, at(control + control_stop), 1);  // cmp dword [stop], 0
  code.bytes({0});
  const std::size_t to_halt = code.forward_branch({0x0f, 0x85});  // jne

  stub.enter = code.here();
  code.bytes({0xdb, 0xe3});                                   // fninit
  code.memory({0xd9}, 5, at(control + control_fpcw));         // fldcw
  code.memory({0x0f, 0xae}, 2, at(control + control_mxcsr));  // ldmxcsr
  for (unsigned reg = 0; reg < (plan.is_64_bit ? 16U : 8U); ++reg) {
    const bool zero = std::ranges::all_of(plan.xmm[reg], [](std::uint32_t word) { return word == 0; });
    if (zero && !is_patched(plan, reg)) {
      code.clear_xmm(reg);
    } else {
      code.load_xmm(reg, at(control + control_xmm + 16 * reg));
    }
  }
  code.bytes({0x31, 0xc0});  // xor eax, eax: flags are ZF and PF
  code.bytes({0xfc});        // cld
  for (unsigned reg = 0; reg < (plan.is_64_bit ? 16U : 8U); ++reg) {
    code.load_general(reg, at(control + control_general + 8 * reg));
  }
  code.branch({0xe9}, routine);  // jmp
  code.land(to_halt);
  code.bytes({0xf4});  // hlt
  stub.code = code.take();
  return stub;
}

}  // namespace bitwitness
