#include "harness/host/traced_process.hpp"

#include "harness/error.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include <elf.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bitwitness::host {
namespace {

constexpr std::uint64_t syscall_size = 2;
constexpr std::uint64_t plain_flags = 0x202;

// Selectors of Linux for user code: what a far call from 64-bit code would name.
constexpr std::uint64_t code_64 = 0x33;
constexpr std::uint64_t code_32 = 0x23;
constexpr std::uint64_t data_32 = 0x2b;

constexpr int cannot_be_traced = 71;

// Layout of an XSAVE area.
constexpr std::size_t xsave_fcw = 0;
constexpr std::size_t xsave_mxcsr = 24;
constexpr std::size_t xsave_header = 512;
constexpr std::size_t xsave_header_size = 64;

[[noreturn]] void unavailable(std::string_view what, int error) {
  throw Error(fmt::format("--witness host: {}: {}", what, std::strerror(error)));
}

/// Runs in the child: only what a signal handler may call.
[[noreturn]] void become_traced(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(cannot_be_traced);
  ::setpgid(0, 0);  // what a terminal sends is meant for the parent
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  constexpr rlimit nothing{0, 0};
  ::setrlimit(RLIMIT_CORE, &nothing);
  if (::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(cannot_be_traced);
  ::kill(::getpid(), SIGSTOP);
  ::_exit(0);
}

}  // namespace

const int TracedProcess::interrupt_signal = SIGUSR1;

TracedProcess::TracedProcess() {
  const pid_t parent = ::getpid();
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // the child would run this program's handlers
  const pid_t child = ::fork();
  const int reason = errno;
  if (child == 0) become_traced(parent);
  pid_ = child;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) unavailable("a process cannot be started", reason);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFSTOPPED(status)) {
    pid_ = -1;
    unavailable("this system does not let a process be traced (ptrace)", EPERM);
  }
  if (::ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_EXITKILL) != 0 ||
      ::ptrace(PTRACE_GETREGS, child, nullptr, &first_) != 0 || ::clock_getcpuclockid(pid_, &clock_) != 0) {
    const int error = errno;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    unavailable("a process cannot be traced", error);
  }
  try {
    take_extended_state();
    call_address_ = first_.rip - syscall_size;  // it has just called kill
    forget_rseq();
  } catch (...) {
    end();
    throw;
  }
}

/// The C library has the kernel keep a note in the thread's memory, which is to go.
void TracedProcess::forget_rseq() {
#ifdef PTRACE_GET_RSEQ_CONFIGURATION
  __ptrace_rseq_configuration note{};
  const auto got = ::ptrace(PTRACE_GET_RSEQ_CONFIGURATION, pid_.load(), sizeof note, &note);
  if (got < 0 || note.rseq_abi_pointer == 0) return;
  constexpr std::uint64_t unregister = 1;
  call(SYS_rseq, {note.rseq_abi_pointer, note.rseq_abi_size, unregister, note.signature, 0, 0});
#endif
}

TracedProcess::~TracedProcess() {
  end();
}

void TracedProcess::end() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

/// Takes the form of the extended state from the kernel, and gives every part of it its initial value.
void TracedProcess::take_extended_state() {
  constexpr std::size_t most = std::size_t{64} * 1024;
  extended_state_.resize(most);
  iovec area{extended_state_.data(), extended_state_.size()};
  const bool has = ::ptrace(PTRACE_GETREGSET, pid_.load(), NT_X86_XSTATE, &area) == 0;
  extended_state_.resize(has ? area.iov_len : 0);
  if (extended_state_.size() < xsave_header + xsave_header_size) return extended_state_.clear();
  std::ranges::fill(extended_state_, std::byte{0});
  constexpr std::uint16_t fcw = 0x037f;
  constexpr std::uint32_t mxcsr = 0x1f80;
  std::memcpy(extended_state_.data() + xsave_fcw, &fcw, sizeof fcw);
  std::memcpy(extended_state_.data() + xsave_mxcsr, &mxcsr, sizeof mxcsr);
}

void TracedProcess::reset_extended_state() {
  if (extended_state_.empty()) return;
  const iovec area{extended_state_.data(), extended_state_.size()};
  if (::ptrace(PTRACE_SETREGSET, pid_.load(), NT_X86_XSTATE, &area) != 0) fail("its registers cannot be set", errno);
}

/// A process that is gone is told as such, whatever was asked of it.
void TracedProcess::fail(std::string_view what, int error) {
  if (error == ESRCH) wait();
  unavailable(what, error);
}

Stop TracedProcess::wait() {
  int status = 0;
  pid_t found = 0;
  while ((found = ::waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
  }
  if (found < 0 || !WIFSTOPPED(status)) {
    pid_ = -1;
    throw Error(fmt::format("--witness host: the process that runs the routine is gone{}",
                            found > 0 && WIFSIGNALED(status) ? fmt::format(" (signal {})", WTERMSIG(status)) : ""));
  }
  Stop stop;
  stop.signal = WSTOPSIG(status);
  siginfo_t info{};
  if (::ptrace(PTRACE_GETSIGINFO, pid_.load(), nullptr, &info) == 0) {
    stop.code = info.si_code;
    stop.address = reinterpret_cast<std::uint64_t>(info.si_addr);
  }
  if (::ptrace(PTRACE_GETREGS, pid_.load(), nullptr, &stop.registers) != 0) fail("its registers cannot be read", errno);
  return stop;
}

Stop TracedProcess::go_on(int request, const user_regs_struct& registers) {
  if (::ptrace(PTRACE_SETREGS, pid_.load(), nullptr, &registers) != 0) fail("its registers cannot be set", errno);
  if (::ptrace(static_cast<__ptrace_request>(request), pid_.load(), nullptr, nullptr) != 0)
    fail("it cannot go on", errno);
  return wait();
}

Stop TracedProcess::run(const user_regs_struct& registers) {
  return go_on(PTRACE_CONT, registers);
}

Stop TracedProcess::step(const user_regs_struct& registers) {
  return go_on(PTRACE_SINGLESTEP, registers);
}

std::int64_t TracedProcess::call(std::int64_t number, const std::array<std::uint64_t, 6>& arguments) {
  user_regs_struct registers = fresh_registers(true);
  registers.rip = call_address_;
  registers.rax = static_cast<std::uint64_t>(number);
  registers.rdi = arguments[0];
  registers.rsi = arguments[1];
  registers.rdx = arguments[2];
  registers.r10 = arguments[3];
  registers.r8 = arguments[4];
  registers.r9 = arguments[5];
  Stop stop = step(registers);
  while (stop.signal != SIGTRAP) {
    if (stop.code > 0) throw Error("--witness host: the process that runs the routine cannot be set up");
    stop = step(stop.registers);  // a signal came first
  }
  return static_cast<std::int64_t>(stop.registers.rax);
}

std::int64_t TracedProcess::call_32_bit(std::uint64_t address, std::uint32_t eax, std::uint32_t ebx) {
  user_regs_struct registers = fresh_registers(true);
  registers.rip = address;
  registers.rax = eax;
  registers.rbx = ebx;
  Stop stop = step(registers);
  while (stop.signal != SIGTRAP && stop.code <= 0) stop = step(stop.registers);
  if (stop.signal != SIGTRAP) return -ENOSYS;  // the kernel has no such gate
  return static_cast<std::int32_t>(stop.registers.rax);
}

void TracedProcess::interrupt() const {
  const pid_t pid = pid_;  // once: -1 would mean every process there is
  if (pid > 0) ::kill(pid, interrupt_signal);
}

user_regs_struct TracedProcess::fresh_registers(bool is_64_bit) const {
  user_regs_struct registers{};  // nothing of this program's
  registers.orig_rax = ~0ULL;    // no system call is to be made again
  registers.eflags = plain_flags;
  registers.cs = is_64_bit ? code_64 : code_32;
  registers.ss = data_32;
  registers.ds = registers.es = is_64_bit ? 0 : data_32;
  return registers;
}

user_fpregs_struct TracedProcess::floating_point() const {
  user_fpregs_struct registers{};
  if (::ptrace(PTRACE_GETFPREGS, pid_.load(), nullptr, &registers) != 0)
    unavailable("its registers cannot be read", errno);
  return registers;
}

std::uint16_t TracedProcess::fpsw() const {
  user_fpregs_struct registers{};
  if (::ptrace(PTRACE_GETFPREGS, pid_.load(), nullptr, &registers) != 0) return 0;
  return registers.swd;
}

void TracedProcess::read(std::uint64_t address, std::span<std::byte> out) const {
  const iovec local{out.data(), out.size()};
  const iovec remote{reinterpret_cast<void*>(address), out.size()};
  if (::process_vm_readv(pid_, &local, 1, &remote, 1, 0) != static_cast<ssize_t>(out.size())) {
    unavailable(fmt::format("memory at {:#x} cannot be read", address), errno);
  }
}

void TracedProcess::write(std::uint64_t address, std::span<const std::byte> bytes) const {
  const iovec local{const_cast<std::byte*>(bytes.data()), bytes.size()};
  const iovec remote{reinterpret_cast<void*>(address), bytes.size()};
  if (::process_vm_writev(pid_, &local, 1, &remote, 1, 0) != static_cast<ssize_t>(bytes.size())) {
    unavailable(fmt::format("memory at {:#x} cannot be written", address), errno);
  }
}

std::vector<std::byte> TracedProcess::read_some(std::uint64_t address, std::size_t size) const {
  constexpr std::uint64_t page = 4096;
  std::vector<std::byte> bytes(size);
  // A read is whole within a page, or not at all.
  std::size_t done = 0;
  while (done < size) {
    const std::uint64_t from = address + done;
    const std::size_t part = std::min<std::size_t>(size - done, page - from % page);
    const iovec local{bytes.data() + done, part};
    const iovec remote{reinterpret_cast<void*>(from), part};
    if (::process_vm_readv(pid_, &local, 1, &remote, 1, 0) != static_cast<ssize_t>(part)) break;
    done += part;
  }
  bytes.resize(done);
  return bytes;
}

}  // namespace bitwitness::host
