#pragma once
#include "harness/image.hpp"

#include <array>
#include <cstdint>
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
};

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
};

/// Follows executed paths of one image.
class RegisterFlow {
 public:
  explicit RegisterFlow(const Image& image) : image_(image) {}
  /// `path` holds the addresses of every instruction from entry to return.
  Leftover follow(std::span<const std::uint64_t> path);

  /// What kind of numbers a vector store was seen to store, if they were computed.
  [[nodiscard]] RegisterEffect::Float stored_by(std::uint64_t instruction) const;

 private:
  const Image& image_;
  std::unordered_map<std::uint64_t, RegisterEffect> effects_;
  std::unordered_map<std::uint64_t, RegisterEffect::Float> stored_;
};

}  // namespace bitwitness
