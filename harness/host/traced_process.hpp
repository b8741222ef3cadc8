#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <sys/types.h>
#include <sys/user.h>

// Inside of harness/host/ only.

namespace bitwitness::host {

/// Why a process stopped.
struct Stop {
  int signal = 0;
  int code = 0;               ///< of the signal: SEGV_MAPERR, …; SI_KERNEL when the processor gives no address
  std::uint64_t address = 0;  ///< of the access, for memory errors
  user_regs_struct registers{};
};

/// A process of our own that executes nothing but what this one lets it: it is traced, so each signal stops it and none
/// is delivered. It ends with this program, however that ends. All calls but `interrupt` must come from the thread that
/// made it.
class TracedProcess {
 public:
  /// Forks. Throws Error when the system does not let a process be traced.
  TracedProcess();
  ~TracedProcess();
  TracedProcess(const TracedProcess&) = delete;
  TracedProcess& operator=(const TracedProcess&) = delete;

  /// Has the process make a system call and returns what it gives: a negative number is an error.
  std::int64_t call(std::int64_t number, const std::array<std::uint64_t, 6>& arguments);

  /// Where a `syscall` instruction lies from now on. At first it is one of the C library.
  void set_call_address(std::uint64_t address) { call_address_ = address; }

  /// Executes one instruction at an address with eax and ebx given, as `int 0x80` wants; returns eax.
  std::int64_t call_32_bit(std::uint64_t address, std::uint32_t eax, std::uint32_t ebx);

  /// Runs from these registers until something stops it. Throws Error when the process is gone.
  Stop run(const user_regs_struct& registers);

  /// Runs one instruction.
  Stop step(const user_regs_struct& registers);

  /// Makes floating-point and vector registers, and what else belongs to the extended state, as a program finds them.
  void reset_extended_state();

  /// Stops what runs, soon, with the signal `interrupt_signal`. Callable from another thread.
  void interrupt() const;
  static const int interrupt_signal;

  /// Registers of a process that has just started, for 64-bit or 32-bit code.
  [[nodiscard]] user_regs_struct fresh_registers(bool is_64_bit) const;

  /// Tells whether it was there when it was last heard of.
  [[nodiscard]] bool is_there() const { return pid_ > 0; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// The clock of its processor time.
  [[nodiscard]] clockid_t clock() const { return clock_; }

  /// The x87 and SSE registers.
  [[nodiscard]] user_fpregs_struct floating_point() const;

  /// The x87 status word.
  [[nodiscard]] std::uint16_t fpsw() const;

  /// Copies out of or into its memory. Throws Error when it is not all there.
  void read(std::uint64_t address, std::span<std::byte> out) const;
  void write(std::uint64_t address, std::span<const std::byte> bytes) const;

  /// Reads as many bytes as there are, up to `size`.
  [[nodiscard]] std::vector<std::byte> read_some(std::uint64_t address, std::size_t size) const;

 private:
  void end();
  void forget_rseq();
  void take_extended_state();
  Stop wait();
  Stop go_on(int request, const user_regs_struct& registers);
  [[noreturn]] void fail(std::string_view what, int error);

  std::atomic<pid_t> pid_ = -1;
  clockid_t clock_{};
  std::uint64_t call_address_ = 0;
  user_regs_struct first_{};
  std::vector<std::byte> extended_state_;
};

}  // namespace bitwitness::host
