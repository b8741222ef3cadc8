#pragma once
#include "harness/emulator.hpp"
#include "harness/image.hpp"
#include "harness/machine.hpp"
#include "harness/operands.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace bitwitness {

/// A value of the x87 stack: 64 bits of significand, then 15 of exponent and the sign, little-endian.
using Extended = std::array<std::byte, 10>;

/// A general register that an instruction names or changes.
struct GeneralOperand {
  std::uint8_t number = 0;  ///< in the order eax ecx edx ebx esp ebp esi edi r8 … r15
  std::uint64_t before = 0;
  std::uint64_t after = 0;
};

/// An x87 register that an instruction uses or changes. A push or a pop renames all of them, which is no change.
struct X87Operand {
  std::optional<unsigned> index_before;  ///< n of st(n); nothing when it was empty
  std::optional<Extended> before;
  std::optional<unsigned> index_after;  ///< n of st(n); nothing when it is empty
  std::optional<Extended> after;
};

/// An XMM register that an instruction names or changes, as four 32-bit lanes, low first.
struct XmmOperand {
  std::uint8_t number = 0;
  std::array<std::uint32_t, 4> before{};
  std::array<std::uint32_t, 4> after{};
};

/// A load or a store. An x87 or SSE instruction's access counts as one whatever pieces the emulator makes of it.
struct MemoryAccess {
  Access access = Access::read;
  std::uint64_t address = 0;
  std::string where;  ///< what lies there: "argument 1", "stack", ".rdata"; empty when unknown
  Reading reading = Reading::bits;
  std::vector<std::byte> before;  ///< the bytes there; empty when they cannot be read
  std::vector<std::byte> after;   ///< of a store that was done; otherwise empty
  std::size_t size = 0;
};

/// A bit that an instruction changed: "cf", "pf", "af", "zf", "sf", "df", "of", or of the x87 status word "c0" … "c3".
struct FlagChange {
  std::string_view name;
  bool is_set = false;
};

/// A register that held one number before and another after.
struct Changed {
  std::uint32_t before = 0;
  std::uint32_t after = 0;
};

/// One executed instruction of the image.
struct TraceStep {
  std::uint64_t address = 0;
  std::string text;           ///< "fld dword ptr [eax + 4]"; "?" when its bytes are not an instruction
  bool is_completed = true;   ///< false of the instruction that ended the call: what it reads is shown, nothing changes
  std::uint64_t next = 0;     ///< address that execution went to; 0 when it went nowhere
  bool is_sequential = true;  ///< it went to the instruction behind
  std::optional<bool> taken;  ///< of a conditional jump
  std::vector<GeneralOperand> general;
  std::vector<X87Operand> x87;
  std::vector<XmmOperand> xmm;
  std::vector<MemoryAccess> memory;
  std::vector<FlagChange> flags;
  unsigned depth_before = 0;  ///< values on the x87 stack
  unsigned depth_after = 0;
  std::optional<Changed> fpcw;
  std::optional<Changed> mxcsr;
};

struct TraceOptions {
  std::uint64_t budget = MachineOptions().budget;  ///< instructions that the call may execute
  std::size_t limit = 10'000;                      ///< steps to keep; the call goes on beyond them
  std::stop_token stop{};                          ///< when requested, the trace ends soon and is not to be used
};

/// One call of a routine, instruction by instruction.
struct Trace {
  Routine routine;
  bool is_64_bit = false;
  Environment environment;
  std::vector<std::byte> packed;
  std::vector<TraceStep> steps;    ///< the first ones, at most as many as asked for
  std::uint64_t instructions = 0;  ///< executed in the image, those that are not kept included
  std::size_t limit = 0;           ///< steps that were asked for

  /// How the machine that verifies ended on this value, alone; what the steps show was executed apart from it.
  OutcomeKind outcome = OutcomeKind::returned;
  Incident incident;                 ///< unless it returned
  std::vector<std::uint32_t> words;  ///< when it returned

  /// What the traced call did otherwise than the machine; empty when both ended at the same instruction in the same way
  /// with the same words.
  std::string disagreement;
  std::vector<std::string> notes;  ///< what the machine observed beside the result

  [[nodiscard]] std::uint64_t omitted() const { return instructions - steps.size(); }
};

/// Calls a routine with one packed value and records every instruction of the image that it executes; what surrounds
/// the call is not shown. Throws Error when the routine cannot be called or the value has another size than its
/// signature.
Trace trace(const Image& image, const Routine& routine, std::span<const std::byte> packed,
            const Environment& environment, const TraceOptions& options = {});

}  // namespace bitwitness
