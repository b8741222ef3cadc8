#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace bitwitness {

enum class Access : std::uint8_t { read, write, execute, any };

/// "reads", "writes", "executes" or "accesses".
std::string_view verb(Access access);

/// What stopped guest code before it was done.
struct Trap {
  enum class Kind : std::uint8_t {
    none,
    unmapped,     ///< an access to where nothing is mapped
    forbidden,    ///< an access that the range does not permit
    interrupt,    ///< int, or an exception with that vector
    invalid,      ///< not an instruction of this CPU
    halt,         ///< hlt
    port,         ///< in or out
    system_call,  ///< syscall or sysenter
    stopped,      ///< the host asked for it
    engine        ///< the emulator gave up for another reason; `vector` is its error code, or broke_off
  };
  /// The emulator ended itself, as it does over code that it cannot translate; `address` is where that begins.
  static constexpr unsigned broke_off = ~0U;

  Kind kind = Kind::none;
  Access access = Access::read;
  std::uint64_t address = 0;  ///< of the access
  unsigned size = 0;
  unsigned vector = 0;
};

/// What the host looks at after each call. `cx` holds eax or rax if the routine's result is
/// there (see stub.hpp).
struct CallState {
  std::uint64_t sp = 0;
  std::uint64_t cx = 0;
  std::uint64_t dx = 0;
  std::uint16_t fpcw = 0;
  std::uint16_t fpsw = 0;
  std::uint32_t mxcsr = 0;
  std::uint64_t flags = 0;
};

/// Receives what guest code does. The calls come from inside Emulator::start.
class EmulatorEvents {
 public:
  virtual ~EmulatorEvents() = default;

  /// The guest wrote to a port. Returns false when that was not the stub's handover.
  virtual bool on_port_write(std::uint32_t port, std::uint32_t value) = 0;
  virtual void on_write(std::uint64_t address, unsigned size) = 0;
  /// Called before each watched load. Its bytes are still as the load finds them.
  virtual void on_read(std::uint64_t address, unsigned size) {
    static_cast<void>(address);
    static_cast<void>(size);
  }
  /// Called before each watched instruction. Returns false to stop there.
  virtual bool on_instruction(std::uint64_t address) = 0;
  /// Called before a run of instructions is executed for the first time. Returns false to stop there.
  virtual bool on_new_code(std::uint64_t address, unsigned size) = 0;
};

/// The flags a call starts with, as programs see them: interrupts are on, and one bit is always set.
inline constexpr std::uint32_t plain_flags = 0x202;

/// An emulated x86 CPU with flat memory. The only user of Unicorn. Not thread-safe but for `stop`.
class Emulator {
 public:
  /// Throws Error when the emulator cannot be created.
  Emulator(bool is_64_bit, EmulatorEvents& events);
  ~Emulator();
  Emulator(const Emulator&) = delete;
  Emulator& operator=(const Emulator&) = delete;

  /// Maps host memory, page-aligned in both address spaces, that must outlive the engine. Read access is always given.
  void map(std::uint64_t address, std::span<std::byte> memory, bool writable, bool executable);

  /// Takes an address range that the guest cannot access and the memory that stands for it.
  void reserve(std::uint64_t address, std::span<std::byte> memory);

  /// Watches every store, every load, or the instructions in [first, last]. Must be asked for before anything has run:
  /// translated code does not learn of it.
  void watch_writes();
  void watch_reads();
  void watch_instructions(std::uint64_t first, std::uint64_t last);

  /// Makes gs:[0] the memory at an address, in 64-bit code and from every start on.
  void set_gs_base(std::uint64_t address);

  /// Runs from an address until the guest halts or is stopped. The CPU is at first as it was made, whatever ran before.
  /// Throws Error when the emulator has broken off too often, each of which costs memory.
  [[nodiscard]] Trap start(std::uint64_t address);

  /// What the CPU holds when guest code starts. Everything else is as the CPU was made.
  struct Registers {
    std::array<std::uint64_t, 16> general{};  ///< in the order eax ecx edx ebx esp ebp esi edi r8 … r15
    std::array<std::array<std::uint32_t, 4>, 16> xmm{};
    std::uint16_t fpcw = 0x027f;
    std::uint32_t mxcsr = 0x1f80;
  };

  /// Runs as `start` does, from these registers with an empty x87 stack and plain flags.
  [[nodiscard]] Trap start(std::uint64_t address, const Registers& registers);

  /// Makes `start` return soon. Callable from another thread.
  void stop();

  /// Gives up the engine, so that memory mapped into it may go. Nothing else may be called afterwards.
  void close();

  /// Makes the flags plain.
  void reset_flags();

  [[nodiscard]] CallState call_state() const;
  /// Counts the x87 registers that hold a value, whatever the top of the stack is.
  [[nodiscard]] unsigned x87_values() const;
  [[nodiscard]] std::uint64_t general(unsigned reg) const;
  [[nodiscard]] std::array<std::uint32_t, 4> xmm(unsigned reg) const;
  [[nodiscard]] std::uint64_t program_counter() const;

  /// Copies guest memory, whatever access the guest has to it. Returns false when not all of it is mapped.
  [[nodiscard]] bool read_memory(std::uint64_t address, std::span<std::byte> out) const;

  /// One x87 register in the 80-bit format, by its distance from the top of the stack; nothing for an empty one.
  [[nodiscard]] std::optional<std::array<std::byte, 10>> x87(unsigned index) const;

 private:
  void save_registers();
  void restore_registers();
  void open();
  void replace_engine();
  Trap run(std::uint64_t address);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Returns the version of the emulator, e.g. "2.0.1".
std::string unicorn_version();

}  // namespace bitwitness
