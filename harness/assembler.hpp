#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace bitwitness {

/// A memory operand: at a fixed address, or at a displacement from what a general register holds.
struct MemoryOperand {
  std::uint64_t address = 0;  ///< or the displacement
  bool has_base = false;
  unsigned base = 0;  ///< eax … edi but esp

  [[nodiscard]] MemoryOperand operator+(std::uint64_t offset) const { return {address + offset, has_base, base}; }
};

constexpr MemoryOperand at(std::uint64_t address) {
  return {address, false, 0};
}

constexpr MemoryOperand based(unsigned base, std::uint64_t displacement) {
  return {displacement, true, base};
}

/// Numbers of general registers; r8 … r15 follow.
namespace general_register {
inline constexpr unsigned eax = 0;
inline constexpr unsigned ecx = 1;
inline constexpr unsigned edx = 2;
inline constexpr unsigned ebx = 3;
inline constexpr unsigned esp = 4;
inline constexpr unsigned esi = 6;
inline constexpr unsigned edi = 7;
}  // namespace general_register

/// Writes the machine code of callers.
class Assembler {
 public:
  Assembler(std::uint64_t origin, bool is_64_bit) : origin_(origin), is_64_bit_(is_64_bit) {}

  [[nodiscard]] std::uint64_t here() const { return origin_ + code_.size(); }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(code_); }

  void bytes(std::initializer_list<unsigned> list);
  void word(std::uint32_t value);

  /// Emits an opcode with a memory operand. A fixed address is a displacement of 32 bits in 32-bit code and relative to
  /// the next instruction in 64-bit code, which begins `immediate_bytes` behind the operand.
  void memory(std::initializer_list<unsigned> opcode, unsigned reg, const MemoryOperand& operand,
              unsigned immediate_bytes = 0);

  void branch(std::initializer_list<unsigned> opcode, std::uint64_t target);

  /// Emits a forward branch and returns where its displacement stands.
  std::size_t forward_branch(std::initializer_list<unsigned> opcode);
  void land(std::size_t displacement);

  /// Moves a whole general register, which the widths of operands in 64-bit code follow.
  void load_general(unsigned reg, const MemoryOperand& from);
  void store_general(unsigned reg, const MemoryOperand& to);

  /// Moves 128 bits, however aligned.
  void load_xmm(unsigned reg, const MemoryOperand& from);
  void store_xmm(unsigned reg, const MemoryOperand& to);
  void clear_xmm(unsigned reg);

  /// Moves 1, 2 or 4 bytes of eax … ebx.
  void load_part(unsigned reg, const MemoryOperand& from, std::size_t size);
  void store_part(unsigned reg, const MemoryOperand& to, std::size_t size);
  /// Loads 1 or 2 bytes and extends them to 32 bits.
  void load_extended(unsigned reg, const MemoryOperand& from, std::size_t size, bool is_signed);
  /// Moves the low 64 bits of xmm0 … xmm7.
  void load_half(unsigned xmm, const MemoryOperand& from);
  void store_half(unsigned xmm, const MemoryOperand& to);

  /// Copies bytes, in pieces of up to 16, through eax and xmm0.
  void copy(const MemoryOperand& from, const MemoryOperand& to, std::size_t size);
  /// Stores what xmm0 holds over and over; eax must hold its low 32 bits. For tails of 1 to 3 bytes as well.
  void fill(const MemoryOperand& to, std::size_t size);

 private:
  [[nodiscard]] unsigned wide(unsigned reg) const { return 0x48U | (reg >= 8 ? 4U : 0U); }

  std::uint64_t origin_;
  bool is_64_bit_;
  std::vector<std::byte> code_;
};

}  // namespace bitwitness
