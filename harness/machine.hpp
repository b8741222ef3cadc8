#pragma once
#include "harness/image.hpp"
#include "harness/signature.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

// Argument order in this project: object, outputs, inputs, options. Spans, never pointer and length.

namespace bitwitness {

/// The floating-point state a routine starts with, on every call.
struct Environment {
  std::uint16_t fpcw = 0x027f;   ///< x87 control word; 0x027f is what Win32 programs start with (53-bit precision)
  std::uint32_t mxcsr = 0x1f80;  ///< SSE control and status register
  bool operator==(const Environment&) const = default;
};

/// Code at an address, with what it takes and gives.
struct Routine {
  std::string name;
  std::uint64_t address = 0;
  Signature signature;
};

/// How the run of one value ended.
enum class OutcomeKind : std::uint8_t {
  returned,       ///< came back to its caller, stack in order, every output word written
  faulted,        ///< stopped by an access, an instruction or an import, or came back with the stack out of order
  out_of_budget,  ///< executed more instructions than allowed
  unwritten       ///< came back without having written every output word
};

std::string_view to_string(OutcomeKind kind);

/// What is known of a value that did not return.
struct Incident {
  std::size_t index = 0;  ///< of the value in the batch
  OutcomeKind kind = OutcomeKind::faulted;
  std::uint64_t address = 0;  ///< of the instruction; 0 when unknown
  std::string instruction;    ///< its text; empty when its bytes cannot be read
  std::string reason;         ///< e.g. "reads 4 bytes at 0x10, which is not mapped"
  bool operator==(const Incident&) const = default;
};

/// Something that happened on some values and does not make their words invalid, such as a write to memory of its own.
struct Observation {
  std::uint64_t values = 0;            ///< how many values showed it
  std::vector<std::byte> first_value;  ///< the smallest of them
};

/// What a batch gave: one outcome and `word_count` words per value. Reused between calls to save allocation.
struct Batch {
  std::vector<std::uint32_t> words;   ///< of a value that did not return: unspecified
  std::vector<OutcomeKind> outcomes;  ///< one per value
  bool unfinished = false;            ///< a stop was requested meanwhile: the rest is meaningless
  std::vector<Incident> incidents;    ///< one per value that did not return, by rising index
};

struct MachineOptions {
  std::uint64_t budget = 1'000'000;  ///< instructions one value may execute; each repetition of a repeated one counts
  std::stop_token stop = {};         ///< when requested, `run` ends soon and leaves its batch unfinished
  std::function<void()> pulse = {};  ///< called now and then while a batch takes long
};

/// A witness: executes one routine of one image over batches of packed values. Not thread-safe; use one per thread.
/// Each call starts from the same registers, flags, control words, x87 stack and stack pointer. Code from the image
/// reaches nothing but its own mappings.
class Machine {
 public:
  virtual ~Machine() = default;

  /// Runs every value of `packed` (whole values, packed_size bytes each). What one value does never costs another.
  virtual void run(Batch& out, std::span<const std::byte> packed, const Environment& environment) = 0;

  /// Runs one value alone, in memory as the file gives it and with different filler in everything the signature leaves
  /// open (other registers, stack, bytes after the input). The words equal those of a batch unless the routine depends
  /// on what earlier values left behind or on what it was not given.
  virtual void run_alone(Batch& out, std::span<const std::byte> packed, const Environment& environment) = 0;

  /// Runs one value alone and says where its path depends on the processor or on bytes of the image's writable data,
  /// one clause each that reports print. A witness that cannot tell says nothing.
  virtual std::vector<std::string> path(std::span<const std::byte> packed, const Environment& environment) {
    static_cast<void>(packed);
    static_cast<void>(environment);
    return {};
  }

  /// What happened beside the results so far, keyed by a sentence that reports print.
  [[nodiscard]] virtual const std::map<std::string, Observation>& observations() const = 0;

  /// "unicorn" or "host".
  [[nodiscard]] virtual std::string_view witness() const = 0;
};

/// Creates a machine that emulates. Throws Error when the routine's address is not code or its signature cannot be
/// called. The image must outlive the machine.
std::unique_ptr<Machine> make_unicorn_machine(const Image& image, const Routine& routine,
                                              const MachineOptions& options = {});
std::unique_ptr<Machine> make_unicorn_machine(Image&& image, const Routine& routine,
                                              const MachineOptions& options = {}) = delete;

/// Creates a machine that executes on this computer's own processor (x86-64 Linux), in processes that can reach
/// nothing. A call that does not return is ended by processor time, 20 ns for each instruction of the budget. Throws
/// Error as the other one does, and when the system does not allow it.
std::unique_ptr<Machine> make_host_machine(const Image& image, const Routine& routine,
                                           const MachineOptions& options = {});
std::unique_ptr<Machine> make_host_machine(Image&& image, const Routine& routine,
                                           const MachineOptions& options = {}) = delete;

}  // namespace bitwitness
