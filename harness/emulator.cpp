#include "harness/emulator.hpp"

#include "harness/abort_guard.hpp"
#include "harness/error.hpp"
#include "harness/mapped_memory.hpp"

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unicorn/unicorn.h>

namespace bitwitness {
namespace {

// An engine initialises tables that all engines share, in part only when it is first used.
std::mutex open_mutex;

/// Where emulation would end of itself. Nothing is ever mapped there, so that arriving there is a fault.
constexpr std::uint64_t nowhere = ~std::uint64_t{0};

constexpr std::array<int, 16> general_64 = {UC_X86_REG_RAX, UC_X86_REG_RCX, UC_X86_REG_RDX, UC_X86_REG_RBX,
                                            UC_X86_REG_RSP, UC_X86_REG_RBP, UC_X86_REG_RSI, UC_X86_REG_RDI,
                                            UC_X86_REG_R8,  UC_X86_REG_R9,  UC_X86_REG_R10, UC_X86_REG_R11,
                                            UC_X86_REG_R12, UC_X86_REG_R13, UC_X86_REG_R14, UC_X86_REG_R15};
constexpr std::array<int, 8> general_32 = {UC_X86_REG_EAX, UC_X86_REG_ECX, UC_X86_REG_EDX, UC_X86_REG_EBX,
                                           UC_X86_REG_ESP, UC_X86_REG_EBP, UC_X86_REG_ESI, UC_X86_REG_EDI};

/// Engines that broke off cannot be closed any more; what they hold is lost.
constexpr unsigned most_breaks = 64;
std::atomic<unsigned> breaks{0};

Access access_of(uc_mem_type type) {
  switch (type) {
    case UC_MEM_WRITE:
    case UC_MEM_WRITE_UNMAPPED:
    case UC_MEM_WRITE_PROT:
      return Access::write;
    case UC_MEM_FETCH:
    case UC_MEM_FETCH_UNMAPPED:
    case UC_MEM_FETCH_PROT:
      return Access::execute;
    default:
      return Access::read;
  }
}

/// Everything mapped is readable but for what is reserved, and that counts as unmapped.
bool is_mapped(uc_mem_type type) {
  return type == UC_MEM_WRITE_PROT || type == UC_MEM_FETCH_PROT;
}

}  // namespace

struct Emulator::Impl {
  Impl(bool wide, EmulatorEvents& receiver) : is_64_bit(wide), events(receiver) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (pristine != nullptr) uc_context_free(pristine);
    if (uc != nullptr) uc_close(uc);
  }

  void map(const MappedMemory& mapping) {
    const uc_err error =
        uc_mem_map_ptr(uc, mapping.address, mapping.memory.size(), mapping.permissions, mapping.memory.data());
    if (error == UC_ERR_OK) return;
    throw Error(fmt::format("the emulator cannot map {} bytes at {:#x}: {}", mapping.memory.size(), mapping.address,
                            uc_strerror(error)));
  }

  /// Does something to this engine and to every one that takes its place.
  void set_up(std::function<void()> step) {
    step();
    steps.push_back(std::move(step));
  }

  std::mutex engine_mutex;  ///< held to replace the engine, and to use it from another thread
  uc_engine* uc = nullptr;
  uc_context* pristine = nullptr;
  bool is_64_bit;
  EmulatorEvents& events;
  Trap trap;
  std::exception_ptr failure;
  std::vector<std::function<void()>> steps;
  MappedMemories memories;

  template <typename Callback, typename... Extra>
  void hook(int type, Callback callback, std::uint64_t first, std::uint64_t last, Extra... extra) {
    uc_hook handle = 0;
    // Unicorn takes every callback as an untyped pointer.
    const uc_err error = uc_hook_add(uc, &handle, type, reinterpret_cast<void*>(callback), this, first, last, extra...);
    if (error != UC_ERR_OK) throw Error(fmt::format("the emulator refuses a hook: {}", uc_strerror(error)));
  }

  /// Runs what a callback does. An exception must not pass through the emulator's frames, which are not C++: it waits
  /// here until `start` has left them.
  template <typename Work>
  void guarded(Work work) {
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
      halt_with({Trap::Kind::stopped, Access::execute, 0, 0, 0});
    }
  }

  void halt_with(const Trap& reason) {
    if (trap.kind == Trap::Kind::none) trap = reason;
    uc_emu_stop(uc);
  }

  static Impl& self(void* user) { return *static_cast<Impl*>(user); }

  static bool on_invalid_access(uc_engine*, uc_mem_type type, std::uint64_t address, int size, std::int64_t,
                                void* user) {
    Impl& impl = self(user);
    if (impl.trap.kind == Trap::Kind::none) {
      impl.trap = {is_mapped(type) ? Trap::Kind::forbidden : Trap::Kind::unmapped, access_of(type), address,
                   static_cast<unsigned>(size), 0};
    }
    return false;
  }

  static void on_interrupt(uc_engine*, std::uint32_t vector, void* user) {
    self(user).halt_with({Trap::Kind::interrupt, Access::execute, 0, 0, vector});
  }

  static bool on_invalid_instruction(uc_engine*, void* user) {
    self(user).halt_with({Trap::Kind::invalid, Access::execute, 0, 0, 0});
    return false;
  }

  static void on_system_call(uc_engine*, void* user) {
    self(user).halt_with({Trap::Kind::system_call, Access::execute, 0, 0, 0});
  }

  static std::uint32_t on_in(uc_engine*, std::uint32_t port, int size, void* user) {
    self(user).halt_with({Trap::Kind::port, Access::read, port, static_cast<unsigned>(size), 0});
    return 0;
  }

  static void on_out(uc_engine*, std::uint32_t port, int size, std::uint32_t value, void* user) {
    Impl& impl = self(user);
    // After a stop the rest of the translated block still runs; it hands nothing over any more.
    if (impl.trap.kind != Trap::Kind::none) return;
    impl.guarded([&] {
      if (!impl.events.on_port_write(port, value)) {
        impl.halt_with({Trap::Kind::port, Access::write, port, static_cast<unsigned>(size), 0});
      }
    });
  }

  static void on_store(uc_engine*, uc_mem_type, std::uint64_t address, int size, std::int64_t, void* user) {
    Impl& impl = self(user);
    impl.guarded([&] { impl.events.on_write(address, static_cast<unsigned>(size)); });
  }

  static void on_load(uc_engine*, uc_mem_type, std::uint64_t address, int size, std::int64_t, void* user) {
    Impl& impl = self(user);
    impl.guarded([&] { impl.events.on_read(address, static_cast<unsigned>(size)); });
  }

  static void on_code(uc_engine*, std::uint64_t address, std::uint32_t, void* user) {
    Impl& impl = self(user);
    if (impl.trap.kind != Trap::Kind::none) return;
    impl.guarded([&] {
      if (!impl.events.on_instruction(address)) impl.halt_with({Trap::Kind::stopped, Access::execute, address, 0, 0});
    });
  }

  static void on_edge(uc_engine*, uc_tb* block, uc_tb*, void* user) {
    Impl& impl = self(user);
    if (impl.trap.kind != Trap::Kind::none) return;
    impl.guarded([&] {
      if (!impl.events.on_new_code(block->pc, block->size)) {
        impl.halt_with({Trap::Kind::stopped, Access::execute, block->pc, 0, 0});
      }
    });
  }

  template <typename Value>
  Value read(int reg) const {
    Value value{};
    uc_reg_read(uc, reg, &value);
    return value;
  }

  template <typename Value>
  void write(int reg, Value value) {
    uc_reg_write(uc, reg, &value);
  }
};

Emulator::Emulator(bool is_64_bit, EmulatorEvents& events) : impl_(std::make_unique<Impl>(is_64_bit, events)) {
  open();
}

void Emulator::open() {
  const std::scoped_lock lock(open_mutex);
  uc_engine* engine = nullptr;
  const uc_err opened = uc_open(UC_ARCH_X86, impl_->is_64_bit ? UC_MODE_64 : UC_MODE_32, &engine);
  if (opened != UC_ERR_OK) throw Error(fmt::format("the emulator does not start: {}", uc_strerror(opened)));
  {
    const std::scoped_lock exchange(impl_->engine_mutex);
    impl_->uc = engine;
  }
  constexpr std::uint64_t everywhere_first = 1;  // first > last means every address
  constexpr std::uint64_t everywhere_last = 0;
  impl_->hook(UC_HOOK_MEM_INVALID, &Impl::on_invalid_access, everywhere_first, everywhere_last);
  impl_->hook(UC_HOOK_INTR, &Impl::on_interrupt, everywhere_first, everywhere_last);
  impl_->hook(UC_HOOK_INSN_INVALID, &Impl::on_invalid_instruction, everywhere_first, everywhere_last);
  impl_->hook(UC_HOOK_INSN, &Impl::on_in, everywhere_first, everywhere_last, UC_X86_INS_IN);
  impl_->hook(UC_HOOK_INSN, &Impl::on_out, everywhere_first, everywhere_last, UC_X86_INS_OUT);
  impl_->hook(UC_HOOK_INSN, &Impl::on_system_call, everywhere_first, everywhere_last, UC_X86_INS_SYSCALL);
  impl_->hook(UC_HOOK_INSN, &Impl::on_system_call, everywhere_first, everywhere_last, UC_X86_INS_SYSENTER);
  impl_->hook(UC_HOOK_EDGE_GENERATED, &Impl::on_edge, everywhere_first, everywhere_last);
  // Unicorn reports 0 for both control words at first while it computes otherwise.
  impl_->write<std::uint16_t>(UC_X86_REG_FPCW, 0x037f);
  impl_->write<std::uint16_t>(UC_X86_REG_FPSW, 0);
  impl_->write<std::uint16_t>(UC_X86_REG_FPTAG, 0xffff);
  impl_->write<std::uint32_t>(UC_X86_REG_MXCSR, 0x1f80);
  reset_flags();
  if (uc_context_alloc(impl_->uc, &impl_->pristine) != UC_ERR_OK) {
    throw Error("the emulator cannot save its registers");
  }
  save_registers();
}

Emulator::~Emulator() = default;

void Emulator::close() {
  impl_.reset();
}

void Emulator::map(std::uint64_t address, std::span<std::byte> memory, bool writable, bool executable) {
  const std::uint32_t permissions =
      UC_PROT_READ | (writable ? UC_PROT_WRITE : UC_PROT_NONE) | (executable ? UC_PROT_EXEC : UC_PROT_NONE);
  impl_->map({address, memory, permissions});
  impl_->memories.add({address, memory, permissions});
}

void Emulator::reserve(std::uint64_t address, std::span<std::byte> memory) {
  impl_->map({address, memory, UC_PROT_NONE});
  impl_->memories.add({address, memory, UC_PROT_NONE});
}

void Emulator::watch_writes() {
  impl_->set_up([this] { impl_->hook(UC_HOOK_MEM_WRITE, &Impl::on_store, 1, 0); });
}

void Emulator::watch_reads() {
  impl_->set_up([this] { impl_->hook(UC_HOOK_MEM_READ, &Impl::on_load, 1, 0); });
}

void Emulator::watch_instructions(std::uint64_t first, std::uint64_t last) {
  impl_->set_up([this, first, last] { impl_->hook(UC_HOOK_CODE, &Impl::on_code, first, last); });
}

Trap Emulator::start(std::uint64_t address) {
  restore_registers();
  return run(address);
}

Trap Emulator::start(std::uint64_t address, const Registers& registers) {
  restore_registers();
  for (unsigned reg = 0; reg < (impl_->is_64_bit ? 16u : 8u); ++reg) {
    if (impl_->is_64_bit) {
      impl_->write<std::uint64_t>(general_64.at(reg), registers.general.at(reg));
    } else {
      impl_->write<std::uint32_t>(general_32.at(reg), static_cast<std::uint32_t>(registers.general.at(reg)));
    }
  }
  for (unsigned reg = 0; reg < (impl_->is_64_bit ? 16u : 8u); ++reg) {
    impl_->write(static_cast<int>(UC_X86_REG_XMM0 + reg), registers.xmm.at(reg));
  }
  impl_->write(UC_X86_REG_FPCW, registers.fpcw);
  impl_->write(UC_X86_REG_MXCSR, registers.mxcsr);
  return run(address);
}

void Emulator::set_gs_base(std::uint64_t address) {
  impl_->set_up([this, address] {
    restore_registers();
    impl_->write<std::uint64_t>(UC_X86_REG_GS_BASE, address);
    save_registers();
  });
}

void Emulator::save_registers() {
  if (uc_context_save(impl_->uc, impl_->pristine) == UC_ERR_OK) return;
  throw Error("the emulator cannot save its registers");
}

void Emulator::restore_registers() {
  // What stopped the call before may have left anything: the trap flag, or an exception that makes the next a double
  // fault.
  uc_context_restore(impl_->uc, impl_->pristine);
}

/// The old engine is left as it is: it broke off in the middle of its work.
void Emulator::replace_engine() {
  if (++breaks > most_breaks) {
    const std::scoped_lock lock(impl_->engine_mutex);
    impl_->uc = nullptr;
    throw Error(fmt::format("the emulator has broken off {} times; the last time over the code at {:#x}", most_breaks,
                            impl_->trap.address));
  }
  uc_context_free(std::exchange(impl_->pristine, nullptr));
  impl_->failure = nullptr;
  impl_->memories.blot_out(impl_->trap.address, UC_PROT_WRITE);
  open();
  for (const MappedMemory& mapping : impl_->memories.all()) impl_->map(mapping);
  for (const auto& step : impl_->steps) step();
}

Trap Emulator::run(std::uint64_t address) {
  Trap& trap = impl_->trap;
  trap = {};
  uc_err error = UC_ERR_OK;
  // The engine ends the program over register operands of far jumps and calls.
  if (!survives_abort([&] { error = uc_emu_start(impl_->uc, address, nowhere, 0, 0); })) {
    trap = {Trap::Kind::engine, Access::execute, program_counter(), 0, Trap::broke_off};
    replace_engine();
    return trap;
  }
  if ((trap.kind == Trap::Kind::invalid || trap.kind == Trap::Kind::interrupt) &&
      impl_->memories.is_blotted(program_counter())) {
    trap = {Trap::Kind::engine, Access::execute, program_counter(), 0, Trap::broke_off};
  }
  if (impl_->failure) std::rethrow_exception(std::exchange(impl_->failure, nullptr));
  if (trap.kind != Trap::Kind::none) return trap;
  if (error != UC_ERR_OK) {
    trap = {Trap::Kind::engine, Access::execute, program_counter(), 0, static_cast<unsigned>(error)};
    if (error == UC_ERR_INSN_INVALID) trap.kind = Trap::Kind::invalid;
  } else if (program_counter() == nowhere) {
    trap = {Trap::Kind::unmapped, Access::execute, nowhere, 0, 0};
  }
  return trap;
}

void Emulator::reset_flags() {
  impl_->write<std::uint64_t>(UC_X86_REG_EFLAGS, plain_flags);
}

void Emulator::stop() {
  const std::scoped_lock lock(impl_->engine_mutex);
  if (impl_->uc != nullptr) uc_emu_stop(impl_->uc);
}

CallState Emulator::call_state() const {
  CallState state;
  std::array<int, 7> registers = {impl_->is_64_bit ? UC_X86_REG_RSP : UC_X86_REG_ESP,
                                  impl_->is_64_bit ? UC_X86_REG_RCX : UC_X86_REG_ECX,
                                  impl_->is_64_bit ? UC_X86_REG_RDX : UC_X86_REG_EDX,
                                  UC_X86_REG_FPCW,
                                  UC_X86_REG_FPSW,
                                  UC_X86_REG_MXCSR,
                                  UC_X86_REG_EFLAGS};
  std::array<void*, 7> places = {&state.sp, &state.cx, &state.dx, &state.fpcw, &state.fpsw, &state.mxcsr, &state.flags};
  uc_reg_read_batch(impl_->uc, registers.data(), places.data(), static_cast<int>(registers.size()));
  return state;
}

unsigned Emulator::x87_values() const {
  const auto tags = impl_->read<std::uint16_t>(UC_X86_REG_FPTAG);
  unsigned values = 0;
  for (unsigned reg = 0; reg < 8; ++reg) {
    if ((tags >> 2 * reg & 3) != 3) ++values;  // 3: empty
  }
  return values;
}

std::uint64_t Emulator::general(unsigned reg) const {
  return impl_->is_64_bit ? impl_->read<std::uint64_t>(general_64.at(reg))
                          : impl_->read<std::uint32_t>(general_32.at(reg));
}

std::array<std::uint32_t, 4> Emulator::xmm(unsigned reg) const {
  return impl_->read<std::array<std::uint32_t, 4>>(static_cast<int>(UC_X86_REG_XMM0 + reg));
}

std::uint64_t Emulator::program_counter() const {
  return impl_->is_64_bit ? impl_->read<std::uint64_t>(UC_X86_REG_RIP) : impl_->read<std::uint32_t>(UC_X86_REG_EIP);
}

bool Emulator::read_memory(std::uint64_t address, std::span<std::byte> out) const {
  return uc_mem_read(impl_->uc, address, out.data(), out.size()) == UC_ERR_OK;
}

std::optional<std::array<std::byte, 10>> Emulator::x87(unsigned index) const {
  const unsigned top = impl_->read<std::uint16_t>(UC_X86_REG_FPSW) >> 11 & 7;
  const unsigned physical = (top + index) % 8;
  if ((impl_->read<std::uint16_t>(UC_X86_REG_FPTAG) >> 2 * physical & 3) == 3) return std::nullopt;
  // The engine numbers these registers from the top of the stack. It writes ten bytes.
  return impl_->read<std::array<std::byte, 10>>(static_cast<int>(UC_X86_REG_ST0 + index));
}

std::string_view verb(Access access) {
  switch (access) {
    case Access::read:
      return "reads";
    case Access::write:
      return "writes";
    case Access::execute:
      return "executes";
    case Access::any:
      break;
  }
  return "accesses";
}

std::string unicorn_version() {
  const unsigned version = uc_version(nullptr, nullptr);  // one byte each: major, minor, patch, extra
  return fmt::format("{}.{}.{}", version >> 24, version >> 16 & 0xff, version >> 8 & 0xff);
}

}  // namespace bitwitness
