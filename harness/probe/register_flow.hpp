#pragma once
#include "harness/image.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>

namespace bitwitness {

/// General registers and XMM registers, one bit each.
struct RegisterSet {
  std::uint16_t general = 0;
  std::uint16_t xmm = 0;
};

/// What one instruction does to registers, as far as its text tells.
struct RegisterEffect {
  RegisterSet reads;
  RegisterSet writes;
  unsigned general_width = 0;  ///< bytes of the general register that is written
  bool is_pop = false;
  enum class Float : std::uint8_t { none, single, wide } floating = Float::none;  ///< of the result
  bool computes = false;               ///< the result is another number, not one that was moved
  std::optional<unsigned> stored_xmm;  ///< register whose 8 or 16 bytes go to memory
  /// The instruction only moves its operand: another register (numbered from 16 on for XMM), a load into its
  /// destination, or the store of a register.
  enum class Move : std::uint8_t { none, registers, load, store, nothing } move = Move::none;
  unsigned from = 0;
  unsigned to = 0;
  Float read_as = Float::none;  ///< the number that it takes the lowest bytes of the XMM registers it reads for
  bool fills_vector = false;    ///< all of an XMM register is made anew, not only a number in its lowest bytes
};

/// What one instruction does to the x87 stack.
struct X87Effect {
  enum class Kind : std::uint8_t { none, load_single, load_other, compute, exchange } kind = Kind::none;
  unsigned pops = 0;
  unsigned operand = 1;  ///< of an exchange, or the register that is stored to
  bool stores_register = false;
};

/// Reads an instruction's text, e.g. "faddp st(1)".
X87Effect x87_effect_of(std::string_view text);

/// Reads an instruction's text, e.g. "movss xmm0, dword ptr [ecx + 4]".
RegisterEffect effect_of(std::string_view text);

/// What a store puts into memory, judged by its instruction.
enum class StoreKind : std::uint8_t { integer, single, wide, vector };
StoreKind store_kind_of(std::string_view text);

/// Tells whether an instruction loads its memory operand as a float of its width.
bool loads_float(std::string_view text);

/// What an executed path leaves in registers that nothing has read since. A compiler computes nothing that is not
/// used: such a register is a result.
struct Leftover {
  RegisterSet unread;
  std::array<unsigned, 16> general_width{};          ///< bytes of the last write
  std::array<RegisterEffect::Float, 16> xmm_kind{};  ///< by the last write
  std::array<bool, 16> is_vector{};                  ///< XMM: the last write made all of it
  RegisterSet used;                                  ///< whose values at entry something was done with
  std::array<RegisterEffect::Float, 16> used_as{};   ///< XMM: what the values at entry were taken for
  bool st0_was_loaded = false;                       ///< what st0 holds is an f32 that was loaded
};

/// A load or store of stack words, the routine's own ones or its arguments.
struct StackAccess {
  std::uint32_t step = 0;  ///< index of the instruction in the path
  bool is_write = false;
  std::uint8_t size = 0;
  std::int32_t offset = 0;  ///< from the first word above the return address
};

/// Follows executed paths of one image.
class RegisterFlow {
 public:
  explicit RegisterFlow(const Image& image) : image_(image) {}
  /// `path` holds the addresses of every instruction from entry to return, `stack` what they did to stack words.
  /// A register that is only saved, moved, and put back is not used.
  Leftover follow(std::span<const std::uint64_t> path, std::span<const StackAccess> stack);

  /// Adds to the sets the registers that hold their values at entry when the path comes to the address of the set.
  void note_held(std::span<const std::uint64_t> path, std::span<const StackAccess> stack,
                 std::map<std::uint64_t, RegisterSet>& at);

  /// What kind of numbers a vector store was seen to store, if they were computed.
  [[nodiscard]] RegisterEffect::Float stored_by(std::uint64_t instruction) const;

 private:
  struct Effects {
    RegisterEffect registers;
    X87Effect x87;
  };
  const Effects& effects_at(std::uint64_t address);

  const Image& image_;
  std::unordered_map<std::uint64_t, Effects> effects_;
  std::unordered_map<std::uint64_t, RegisterEffect::Float> stored_;
};

}  // namespace bitwitness
