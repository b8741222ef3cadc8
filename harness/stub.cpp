#include "harness/stub.hpp"

#include <algorithm>
#include <initializer_list>

namespace bitwitness {
namespace {


class Assembler {
 public:
  Assembler(std::uint64_t origin, bool is_64_bit) : origin_(origin), is_64_bit_(is_64_bit) {}

  [[nodiscard]] std::uint64_t here() const { return origin_ + code_.size(); }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(code_); }

  void bytes(std::initializer_list<unsigned> list) {
    for (const unsigned byte : list) code_.push_back(static_cast<std::byte>(byte));
  }

  void word(std::uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) code_.push_back(static_cast<std::byte>(value >> shift & 0xff));
  }

  /// Emits an opcode with a memory operand at a fixed address: disp32 in 32-bit code, RIP-relative in 64-bit code, where
  /// the displacement counts from the end of the instruction, `immediate_bytes` behind it.
  void memory(std::initializer_list<unsigned> opcode, unsigned reg, std::uint64_t address, unsigned immediate_bytes = 0) {
    bytes(opcode);
    bytes({(reg & 7) << 3 | 5});
    word(static_cast<std::uint32_t>(is_64_bit_ ? address - (here() + 4 + immediate_bytes) : address));
  }

  void branch(std::initializer_list<unsigned> opcode, std::uint64_t target) {
    bytes(opcode);
    word(static_cast<std::uint32_t>(target - (here() + 4)));
  }

  /// Emits a forward branch and returns where its displacement stands.
  std::size_t forward_branch(std::initializer_list<unsigned> opcode) {
    bytes(opcode);
    word(0);
    return code_.size() - 4;
  }

  void land(std::size_t displacement) {
    const auto distance = static_cast<std::uint32_t>(code_.size() - (displacement + 4));
    for (unsigned i = 0; i < 4; ++i) code_[displacement + i] = static_cast<std::byte>(distance >> 8 * i & 0xff);
  }

  void load_general(unsigned reg, std::uint64_t address) {
    if (is_64_bit_) {
      memory({0x48U | (reg >= 8 ? 4U : 0U), 0x8b}, reg, address);
    } else {
      memory({0x8b}, reg, address);
    }
  }

  void load_xmm(unsigned reg, std::uint64_t address) {  // movups
    if (reg >= 8) {
      memory({0x44, 0x0f, 0x10}, reg, address);
    } else {
      memory({0x0f, 0x10}, reg, address);
    }
  }

  void clear_xmm(unsigned reg) {  // pxor
    if (reg >= 8) {
      bytes({0x66, 0x45, 0x0f, 0xef, 0xc0 | (reg & 7) << 3 | (reg & 7)});
    } else {
      bytes({0x66, 0x0f, 0xef, 0xc0 | reg << 3 | reg});
    }
  }

 private:
  std::uint64_t origin_;
  bool is_64_bit_;
  std::vector<std::byte> code_;
};

bool is_patched(const CallPlan& plan, unsigned xmm) {
  return std::ranges::any_of(plan.patches, [xmm](const Patch& patch) {
    return patch.place == Patch::Place::xmm && patch.target == xmm;
  });
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
    code.memory({output.scalar == Scalar::f64 ? 0xddU : 0xd9U}, 3, plan.layout.result.address);  // fstp
  }
  if (takes_accumulator(plan)) {
    if (plan.is_64_bit) code.bytes({0x48});
    code.bytes({0x89, 0xc1});  // mov ecx, eax
  }
  code.bytes({0xb8});        // mov eax, token
  code.word(handover.token);
  code.bytes({0xe7, handover.port});                             // out port, eax
  code.memory({0x83}, 7, control + control_stop, 1);             // cmp dword [stop], 0
  code.bytes({0});
  const std::size_t to_halt = code.forward_branch({0x0f, 0x85});  // jne

  stub.enter = code.here();
  code.bytes({0xdb, 0xe3});                               // fninit
  code.memory({0xd9}, 5, control + control_fpcw);         // fldcw
  code.memory({0x0f, 0xae}, 2, control + control_mxcsr);  // ldmxcsr
  for (unsigned reg = 0; reg < (plan.is_64_bit ? 16U : 8U); ++reg) {
    const bool zero = std::ranges::all_of(plan.xmm[reg], [](std::uint32_t word) { return word == 0; });
    if (zero && !is_patched(plan, reg)) {
      code.clear_xmm(reg);
    } else {
      code.load_xmm(reg, control + control_xmm + 16 * reg);
    }
  }
  code.bytes({0x31, 0xc0});  // xor eax, eax: flags are ZF and PF
  code.bytes({0xfc});        // cld
  for (unsigned reg = 0; reg < (plan.is_64_bit ? 16U : 8U); ++reg) {
    code.load_general(reg, control + control_general + 8 * reg);
  }
  code.branch({0xe9}, routine);  // jmp
  code.land(to_halt);
  code.bytes({0xf4});  // hlt
  stub.code = code.take();
  return stub;
}

}  // namespace bitwitness
