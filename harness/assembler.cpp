#include "harness/assembler.hpp"

namespace bitwitness {
namespace {

using namespace general_register;
constexpr unsigned fixed_address = 5;         // mod 0: a displacement alone
constexpr unsigned wide_displacement = 0x80;  // mod 2: a register and 32 bits

}  // namespace

void Assembler::bytes(std::initializer_list<unsigned> list) {
  for (const unsigned byte : list) code_.push_back(static_cast<std::byte>(byte));
}

void Assembler::word(std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) code_.push_back(static_cast<std::byte>(value >> shift & 0xff));
}

void Assembler::memory(std::initializer_list<unsigned> opcode, unsigned reg, const MemoryOperand& operand,
                       unsigned immediate_bytes) {
  bytes(opcode);
  if (operand.has_base) {
    bytes({wide_displacement | (reg & 7) << 3 | operand.base});
    word(static_cast<std::uint32_t>(operand.address));
    return;
  }
  bytes({(reg & 7) << 3 | fixed_address});
  const std::uint64_t relative = operand.address - (here() + 4 + immediate_bytes);
  word(static_cast<std::uint32_t>(is_64_bit_ ? relative : operand.address));
}

void Assembler::branch(std::initializer_list<unsigned> opcode, std::uint64_t target) {
  bytes(opcode);
  word(static_cast<std::uint32_t>(target - (here() + 4)));
}

std::size_t Assembler::forward_branch(std::initializer_list<unsigned> opcode) {
  bytes(opcode);
  word(0);
  return code_.size() - 4;
}

void Assembler::land(std::size_t displacement) {
  const auto distance = static_cast<std::uint32_t>(code_.size() - (displacement + 4));
  for (unsigned i = 0; i < 4; ++i) code_[displacement + i] = static_cast<std::byte>(distance >> 8 * i & 0xff);
}

void Assembler::load_general(unsigned reg, const MemoryOperand& from) {
  is_64_bit_ ? memory({wide(reg), 0x8b}, reg, from) : memory({0x8b}, reg, from);
}

void Assembler::store_general(unsigned reg, const MemoryOperand& to) {
  is_64_bit_ ? memory({wide(reg), 0x89}, reg, to) : memory({0x89}, reg, to);
}

void Assembler::load_xmm(unsigned reg, const MemoryOperand& from) {  // movups
  reg >= 8 ? memory({0x44, 0x0f, 0x10}, reg, from) : memory({0x0f, 0x10}, reg, from);
}

void Assembler::store_xmm(unsigned reg, const MemoryOperand& to) {
  reg >= 8 ? memory({0x44, 0x0f, 0x11}, reg, to) : memory({0x0f, 0x11}, reg, to);
}

void Assembler::clear_xmm(unsigned reg) {  // pxor
  if (reg >= 8) {
    bytes({0x66, 0x45, 0x0f, 0xef, 0xc0 | (reg & 7) << 3 | (reg & 7)});
  } else {
    bytes({0x66, 0x0f, 0xef, 0xc0 | reg << 3 | reg});
  }
}

void Assembler::load_part(unsigned reg, const MemoryOperand& from, std::size_t size) {
  if (size == 4) return memory({0x8b}, reg, from);
  size == 2 ? memory({0x66, 0x8b}, reg, from) : memory({0x8a}, reg, from);
}

void Assembler::store_part(unsigned reg, const MemoryOperand& to, std::size_t size) {
  if (size == 4) return memory({0x89}, reg, to);
  size == 2 ? memory({0x66, 0x89}, reg, to) : memory({0x88}, reg, to);
}

void Assembler::load_extended(unsigned reg, const MemoryOperand& from, std::size_t size, bool is_signed) {
  const unsigned width = size == 2 ? 1 : 0;
  memory({0x0f, (is_signed ? 0xbeU : 0xb6U) | width}, reg, from);  // movsx, movzx
}

void Assembler::load_half(unsigned xmm, const MemoryOperand& from) {  // movq
  memory({0xf3, 0x0f, 0x7e}, xmm, from);
}

void Assembler::store_half(unsigned xmm, const MemoryOperand& to) {
  memory({0x66, 0x0f, 0xd6}, xmm, to);
}

void Assembler::copy(const MemoryOperand& from, const MemoryOperand& to, std::size_t size) {
  std::size_t done = 0;
  for (; size - done >= 16; done += 16) {
    load_xmm(0, from + done);
    store_xmm(0, to + done);
  }
  if (size - done >= 8) {
    load_half(0, from + done);
    store_half(0, to + done);
    done += 8;
  }
  for (const std::size_t piece : {4U, 2U, 1U}) {
    if (size - done < piece) continue;
    load_part(eax, from + done, piece);
    store_part(eax, to + done, piece);
    done += piece;
  }
}

void Assembler::fill(const MemoryOperand& to, std::size_t size) {
  std::size_t done = 0;
  for (; size - done >= 16; done += 16) store_xmm(0, to + done);
  for (; size - done >= 8; done += 8) store_half(0, to + done);
  for (; size - done >= 4; done += 4) store_part(eax, to + done, 4);
  if (size - done >= 2) {
    store_part(eax, to + done, 2);
    done += 2;
    if (size == done) return;
    bytes({0xc1, 0xe8, 16});  // shr eax, 16
  }
  if (size - done == 1) store_part(eax, to + done, 1);
}

}  // namespace bitwitness
