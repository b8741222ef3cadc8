#include "harness/host/host_trap.hpp"

#include "harness/disassembly.hpp"
#include "harness/memory_access.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstring>
#include <optional>
#include <string_view>

namespace bitwitness::host {
namespace {

constexpr std::size_t longest_instruction = 15;
constexpr std::uint16_t x87_exception_pending = 0x80;

constexpr unsigned overflow_exception = 4;
constexpr unsigned bound_exception = 5;
constexpr unsigned protection_exception = 13;
constexpr unsigned x87_exception = 16;
constexpr unsigned alignment_exception = 17;
constexpr unsigned simd_exception = 19;

bool is_canonical(std::uint64_t address) {
  const std::uint64_t top = address >> 47;
  return top == 0 || top == 0x1'ffff;
}

using Registers = std::array<std::pair<std::string_view, std::uint64_t>, 16>;

Registers named(const user_regs_struct& registers) {
  return {{{"rax", registers.rax},
           {"rcx", registers.rcx},
           {"rdx", registers.rdx},
           {"rbx", registers.rbx},
           {"rsp", registers.rsp},
           {"rbp", registers.rbp},
           {"rsi", registers.rsi},
           {"rdi", registers.rdi},
           {"r8", registers.r8},
           {"r9", registers.r9},
           {"r10", registers.r10},
           {"r11", registers.r11},
           {"r12", registers.r12},
           {"r13", registers.r13},
           {"r14", registers.r14},
           {"r15", registers.r15}}};
}

std::optional<std::uint64_t> number(std::string_view text) {
  const int base = text.starts_with("0x") ? 16 : 10;
  if (base == 16) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "rcx", "rcx*8" or "0x10".
std::optional<std::uint64_t> term(std::string_view text, const Registers& registers) {
  const std::string_view name = text.substr(0, text.find('*'));
  const auto found = std::ranges::find(registers, name, &std::pair<std::string_view, std::uint64_t>::first);
  if (found == registers.end()) return number(text);
  if (name.size() == text.size()) return found->second;
  const auto factor = number(text.substr(name.size() + 1));
  return factor ? std::optional(found->second * *factor) : std::nullopt;
}

/// What "rax + rcx*8 - 0x10" comes to; nothing when it names something else than whole registers.
std::optional<std::uint64_t> sum(std::string_view text, const Registers& registers) {
  std::uint64_t address = 0;
  bool is_negative = false;
  while (true) {
    const std::size_t end = text.find_first_of(" ");
    const auto value = term(text.substr(0, end), registers);
    if (!value) return std::nullopt;
    address += is_negative ? 0 - *value : *value;
    if (end == std::string_view::npos) return address;
    if (text.size() < end + 4) return std::nullopt;
    is_negative = text[end + 1] == '-';
    text.remove_prefix(end + 3);
  }
}

std::optional<std::uint64_t> address_in(std::string_view operand, const Registers& registers) {
  const std::size_t open = operand.find('[');
  const std::size_t close = operand.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::nullopt;
  return sum(operand.substr(open + 1, close - open - 1), registers);
}

/// One instruction where a process stopped.
class Stopped {
 public:
  Stopped(const Stop& stop, const TracedProcess& process) : stop_(stop), process_(process) {
    const auto bytes = process.read_some(stop.registers.rip, longest_instruction);
    instruction_ = disassemble_one(bytes, stop.registers.rip, runs_64_bit_code(stop));
    if (!instruction_) return;
    text_ = instruction_->text;
    for (const std::string_view prefix : {"rep ", "repe ", "repne ", "lock "}) {
      if (text_.starts_with(prefix)) text_.remove_prefix(prefix.size());
    }
    mnemonic_ = text_.substr(0, text_.find(' '));
  }

  [[nodiscard]] std::string_view mnemonic() const { return mnemonic_; }
  [[nodiscard]] std::string_view text() const { return text_; }

  [[nodiscard]] std::optional<std::uint64_t> immediate() const {
    if (!instruction_ || instruction_->immediates.empty()) return std::nullopt;
    return instruction_->immediates.front();
  }

  /// How it accessed `address`.
  [[nodiscard]] MemoryAccess access(std::uint64_t address, bool is_store) const {
    const bool is_64_bit = runs_64_bit_code(stop_);
    MemoryAccess access = memory_access_of(text_, is_64_bit, is_store);
    if (access.access != Access::any) return access;
    const std::uint64_t word = is_64_bit ? 8 : 4;
    const std::uint64_t sp = stop_.registers.rsp;
    const bool is_memory = text_.find('[') != std::string_view::npos;
    if (is_memory && (mnemonic_ == "push" || mnemonic_ == "call")) {
      return {address - (sp - word) < word ? Access::write : Access::read, static_cast<unsigned>(word)};
    }
    if (is_memory && mnemonic_ == "pop") {
      return {address - sp < word && !is_store ? Access::read : Access::write, static_cast<unsigned>(word)};
    }
    const std::uint64_t width = string_width();
    if (width == 0) return access;
    access.size = static_cast<unsigned>(width);
    // What is copied is read before it is written.
    const bool has_source = !mnemonic_.starts_with("stos");
    const bool has_target = mnemonic_.starts_with("movs") || mnemonic_.starts_with("stos");
    const bool is_at_source = has_source && address - stop_.registers.rsi < width;
    access.access = has_target && (is_store || !is_at_source) ? Access::write : Access::read;
    return access;
  }

  /// The address that is none of 64-bit code's and that it accessed, jumped or returned to.
  [[nodiscard]] std::optional<Trap> beyond_addresses() const {
    if (!runs_64_bit_code(stop_)) return std::nullopt;
    if (!is_canonical(stop_.registers.rip)) return executes(stop_.registers.rip);
    const Registers registers = named(stop_.registers);
    std::string_view operands = text_;
    bool has_memory = false;
    while (const auto address = address_in(operands, registers)) {
      has_memory = true;
      if (!is_canonical(*address)) return accesses(*address);
      operands.remove_prefix(operands.find(']') + 1);
    }
    const bool leaves = mnemonic_ == "jmp" || mnemonic_ == "call";
    if (leaves && !has_memory) {
      const std::size_t space = text_.find(' ');
      const auto target = space == std::string_view::npos ? std::nullopt : sum(text_.substr(space + 1), registers);
      if (target && !is_canonical(*target)) return executes(*target);
    }
    if (leaves && has_memory) {
      if (const auto target = word_at(*address_in(text_, registers)); target && !is_canonical(*target)) {
        return executes(*target);
      }
    }
    if (!is_canonical(stop_.registers.rsp)) return accesses(stop_.registers.rsp);
    if (mnemonic_ == "ret") {
      if (const auto target = word_at(stop_.registers.rsp); target && !is_canonical(*target)) return executes(*target);
    }
    return std::nullopt;
  }

  [[nodiscard]] Trap accesses(std::uint64_t address) const {
    const MemoryAccess found = access(address, false);
    return {Trap::Kind::unmapped, found.access, address, found.size};
  }

 private:
  static Trap executes(std::uint64_t address) { return {Trap::Kind::unmapped, Access::execute, address}; }

  /// Bytes of one element of a string instruction, 0 for others.
  [[nodiscard]] std::uint64_t string_width() const {
    if (mnemonic_.size() != 5 || text_.find('[') == std::string_view::npos) return 0;
    constexpr std::array<std::string_view, 5> names = {"movs", "stos", "lods", "scas", "cmps"};
    if (std::ranges::find(names, mnemonic_.substr(0, 4)) == names.end()) return 0;
    switch (mnemonic_.back()) {
      case 'b':
        return 1;
      case 'w':
        return 2;
      case 'd':
        return 4;
      default:
        return 8;
    }
  }

  [[nodiscard]] std::optional<std::uint64_t> word_at(std::uint64_t address) const {
    std::uint64_t word = 0;
    const auto bytes = process_.read_some(address, sizeof word);
    if (bytes.size() != sizeof word) return std::nullopt;
    std::memcpy(&word, bytes.data(), sizeof word);
    return word;
  }

  const Stop& stop_;
  const TracedProcess& process_;
  std::optional<Instruction> instruction_;
  std::string_view text_;
  std::string_view mnemonic_;
};

Trap interrupt(unsigned vector) {
  Trap trap;
  trap.kind = Trap::Kind::interrupt;
  trap.access = Access::any;
  trap.vector = vector;
  return trap;
}

Trap plain(Trap::Kind kind) {
  Trap trap;
  trap.kind = kind;
  trap.access = Access::any;
  return trap;
}

bool asks_the_system(std::string_view mnemonic) {
  return mnemonic == "syscall" || mnemonic == "sysenter";
}

/// What the kernel lets no program do, with nothing said about where.
Trap protection_trap(const Stop& stop, const Stopped& stopped) {
  if (const auto beyond = stopped.beyond_addresses()) return *beyond;
  const std::string_view mnemonic = stopped.mnemonic();
  if (mnemonic == "hlt") return plain(Trap::Kind::halt);
  if (mnemonic == "in" || mnemonic == "out" || mnemonic.starts_with("ins") || mnemonic.starts_with("outs")) {
    if (mnemonic != "insertps" && mnemonic != "insertq") {
      constexpr std::uint64_t last_port = 0xffff;
      return {Trap::Kind::port, mnemonic.starts_with("in") ? Access::read : Access::write,
              stopped.immediate().value_or(stop.registers.rdx & last_port)};
    }
  }
  if (mnemonic == "int" && stopped.immediate()) return interrupt(static_cast<unsigned>(*stopped.immediate()));
  if (mnemonic == "into") return interrupt(overflow_exception);
  if (mnemonic == "bound") return interrupt(bound_exception);
  return interrupt(protection_exception);
}

}  // namespace

bool runs_64_bit_code(const Stop& stop) {
  constexpr std::uint64_t code_64 = 0x33;
  return stop.registers.cs == code_64;
}

bool is_in_vsyscall_page(std::uint64_t address) {
  constexpr std::uint64_t vsyscall_page = 0xffff'ffff'ff60'0000;
  constexpr std::uint64_t size = 0x1000;
  return address - vsyscall_page < size;
}

bool is_behind(const Trap& trap, const Stop& stop) {
  if (trap.access == Access::execute) return trap.address == stop.registers.rip;
  return stop.signal == SIGSYS || stop.signal == SIGTRAP || is_in_vsyscall_page(stop.registers.rip);
}

std::optional<std::uint64_t> instruction_before(const Stop& stop, const TracedProcess& process) {
  constexpr std::array<std::array<unsigned, 2>, 2> calls = {{{0x0f, 0x05}, {0xcd, 0x80}}};
  constexpr unsigned breakpoint = 0xcc;
  constexpr std::uint64_t call_size = 2;
  const auto bytes = process.read_some(stop.registers.rip - call_size, call_size);
  if (bytes.size() != call_size) return std::nullopt;
  const auto first = std::to_integer<unsigned>(bytes[0]);
  const auto second = std::to_integer<unsigned>(bytes[1]);
  if (stop.signal == SIGTRAP && stop.code != TRAP_TRACE && second == breakpoint) return stop.registers.rip - 1;
  if (stop.signal != SIGSYS || std::ranges::find(calls, std::array{first, second}) == calls.end()) return std::nullopt;
  return stop.registers.rip - call_size;
}

Trap system_call_trap(std::uint64_t instruction, const TracedProcess& process) {
  const auto bytes = process.read_some(instruction, 2);
  constexpr std::byte int_opcode{0xcd};
  if (bytes.size() == 2 && bytes[0] == int_opcode) return interrupt(std::to_integer<unsigned>(bytes[1]));
  return plain(Trap::Kind::system_call);
}

Trap trap_of(const Stop& stop, const TracedProcess& process) {
  const Stopped stopped(stop, process);
  switch (stop.signal) {
    case SIGSEGV: {
      if (stop.code != SEGV_MAPERR && stop.code != SEGV_ACCERR) return protection_trap(stop, stopped);
      const bool is_forbidden = stop.code == SEGV_ACCERR;
      const auto kind = is_forbidden ? Trap::Kind::forbidden : Trap::Kind::unmapped;
      if (stop.address == stop.registers.rip) return {kind, Access::execute, stop.address};
      const MemoryAccess access = stopped.access(stop.address, is_forbidden);
      return {kind, access.access, stop.address, access.size};
    }
    case SIGSYS:
      return plain(Trap::Kind::system_call);
    case SIGILL:
      // Which processor has which of them is its own affair.
      return plain(asks_the_system(stopped.mnemonic()) ? Trap::Kind::system_call : Trap::Kind::invalid);
    case SIGFPE: {
      if (stop.code == FPE_INTDIV || stop.code == FPE_INTOVF) return interrupt(0);
      const bool is_sse = stopped.text().find("xmm") != std::string_view::npos;
      return interrupt(!is_sse && (process.fpsw() & x87_exception_pending) != 0 ? x87_exception : simd_exception);
    }
    case SIGBUS:
      if (stop.code == BUS_ADRALN) return interrupt(alignment_exception);
      return protection_trap(stop, stopped);  // through the stack's segment
    case SIGTRAP:
      return interrupt(stop.code == TRAP_TRACE || stop.code == TRAP_HWBKPT ? 1 : 3);
    default:
      return plain(Trap::Kind::stopped);
  }
}

}  // namespace bitwitness::host
