#pragma once
#include "harness/call_plan.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

// Inside of harness/host/ only.

namespace bitwitness::host {

/// Offsets in the caller's own memory, which parent and child share.
inline constexpr std::size_t state_value = 0;    ///< address of the next packed value
inline constexpr std::size_t state_words = 8;    ///< of its words
inline constexpr std::size_t state_record = 16;  ///< of its record
inline constexpr std::size_t state_left = 24;    ///< values that have not come back, 32 bits
inline constexpr std::size_t state_seed = 28;    ///< a record's mark is this, combined with state_left
inline constexpr std::size_t state_fpcw = 32;
inline constexpr std::size_t state_mxcsr = 36;
inline constexpr std::size_t state_sp = 40;        ///< the stack pointer that the routine left
inline constexpr std::size_t state_result = 48;    ///< st0
inline constexpr std::size_t state_pair = 56;      ///< eax and edx
inline constexpr std::size_t state_poison = 64;    ///< 16 bytes
inline constexpr std::size_t state_odd = 80;       ///< in a hurry: 0 while every call has come back in order
inline constexpr std::size_t state_returned = 88;  ///< the stack pointer that a call is to leave
inline constexpr std::size_t state_away = 104;     ///< calls that have not come back where they were to, 32 bits
inline constexpr std::size_t state_fpsw = 96;      ///< what the last call left, 32 bits
inline constexpr std::size_t state_stack = 1008;   ///< 16 bytes of stack that nothing has been written to
inline constexpr std::size_t state_gap = 992;      ///< 16 bytes of what a slot passes over
inline constexpr std::size_t state_general = 128;  ///< what the registers hold at a call
inline constexpr std::size_t state_xmm = 256;
inline constexpr std::size_t state_saved_general = 512;  ///< what they held afterwards, where a result is
inline constexpr std::size_t state_saved_xmm = 640;
inline constexpr std::size_t state_frame = 1024;  ///< the stack from the routine's first instruction up
inline constexpr std::size_t most_frame = 3 * page_size - state_frame;
inline constexpr std::size_t state_size = 4 * page_size;  ///< its last page is the caller's own stack

/// What the caller notes of one call.
struct Record {
  std::uint64_t sp = 0;
  std::uint32_t flags = 0;
  std::uint16_t fpsw = 0;
  std::uint16_t fpcw = 0;
  std::uint32_t mxcsr = 0;
  std::uint32_t mark = 0;  ///< tells that the others are of this call
  std::uint64_t unused = 0;
};
static_assert(sizeof(Record) == 32);

/// Where what the caller needs lies, within the gap of a plan's layout.
struct HostLayout {
  Region state;
  Region input;   ///< the plan's input, writable
  Region thread;  ///< what fs or gs leads to
  Region records;
  Region values;
  Region words;
  Region code;
  std::size_t most_values = 0;  ///< in one go

  [[nodiscard]] std::uint64_t input_alias(const CallPlan& plan, std::uint64_t address) const {
    return input.address + (address - plan.layout.input.address);
  }
};

/// Lays out up to `values` values.
HostLayout lay_out_host(const CallPlan& plan, std::size_t values);

/// Machine code for a host CPU: for each value it sets its arguments, outputs, frame, control words and registers,
/// calls the routine and notes what came back, without leaving the guest.
struct HostCode {
  std::vector<std::byte> bytes;  ///< stand at layout.code
  std::uint64_t call_64 = 0;     ///< address of `syscall`
  std::uint64_t call_32 = 0;     ///< address of `int 0x80`
  std::uint64_t enter = 0;       ///< enter here for the next value
  std::uint64_t next = 0;        ///< where it goes on to the one after it
  std::uint64_t landing = 0;     ///< return address of the routine
  std::uint64_t done = 0;        ///< where a breakpoint has stopped it when no value is left
  /// The same in a hurry: control words are set once, and of all calls together it is noted whether any came back other
  /// than in order, in state_odd. 0 for a routine that is unruly.
  std::uint64_t hurried_enter = 0;
  std::uint64_t hurried_done = 0;
};

/// What a routine makes it necessary to set for each call, which costs more than a small routine does.
struct CallNeeds {
  bool uses_x87 = true;             ///< it may leave something on the stack
  bool sets_control = true;         ///< it may leave other control words or flags; else the records say nothing of them
  bool clear_x87_flags = false;     ///< it may look at sticky exception flags
  bool clear_upper_halves = false;  ///< it uses more of the vector registers than a signature knows
  /// What calls leave behind may be more than a glance tells; a caller in a hurry must not call it.
  bool is_unruly = true;
};

/// What the input and slots hold where a value passes over them.
std::array<std::uint8_t, 16> gap_bytes(const Filler& filler);

/// Where a go at some values begins.
struct GoStart {
  std::size_t first = 0;   ///< index of the first of them
  std::uint32_t seed = 0;  ///< of their records
};

/// Writes what the caller's memory at `state` holds before a go, but for state_left and what belongs to an environment
/// or to the outputs: control words and poison.
void put_caller_state(std::byte* state, const CallPlan& plan, const HostLayout& layout, const Filler& filler,
                      const GoStart& start);

HostCode make_host_code(const CallPlan& plan, const HostLayout& layout, std::uint64_t routine, const CallNeeds& needs);

}  // namespace bitwitness::host
