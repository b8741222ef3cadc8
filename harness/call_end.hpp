#pragma once
#include "harness/emulator.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace bitwitness {

/// A fact about one call that does not make its words invalid.
struct Trait {
  enum class Kind : std::uint8_t {
    writes_image,
    writes_input,
    writes_beside_output,
    writes_above_arguments,  ///< on the stack, where the caller keeps its own
    fpcw,
    mxcsr,
    direction_flag,
    x87_values,  ///< left on the x87 stack
    x87_pops     ///< more than were pushed
  };
  Kind kind = Kind::fpcw;
  std::uint64_t detail = 0;  ///< address, control word, or number of values
  auto operator<=>(const Trait&) const = default;
};

/// How one call ended, as a lane that watches every instruction saw it.
struct CallEnd {
  Trap trap;  ///< kind none: it came back to the stub
  bool over_budget = false;
  bool refused = false;           ///< stopped before an instruction that must not be executed (see refused_code.hpp)
  std::uint64_t instruction = 0;  ///< address of the last instruction executed or tried
  std::int64_t sp_offset = 0;     ///< of the stack pointer after return from where its convention leaves it
  std::optional<std::size_t> unwritten_word;  ///< first output word that it did not write in full
  std::vector<Trait> traits;

  /// Tells whether it came back with the stack in order and every output word written.
  [[nodiscard]] bool is_return() const { return trap.kind == Trap::Kind::none && sp_offset == 0 && !unwritten_word; }
};

inline constexpr std::uint64_t direction_flag = 0x400;
/// Status flags and the direction flag, which a caller sets anew for each call.
inline constexpr std::uint32_t passing_flags = 0xcd5;
inline constexpr std::uint32_t mxcsr_control_bits = 0xffc0;  ///< below them are the sticky exception flags
/// Distinct addresses outside output and stack that are kept of one call.
inline constexpr std::size_t max_writes_kept = 16;

/// Values on the x87 stack by its top alone: 0 to 7.
constexpr unsigned x87_depth(std::uint16_t fpsw) {
  return (8U - (fpsw >> 11 & 7U)) & 7U;
}

}  // namespace bitwitness
