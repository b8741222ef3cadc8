#pragma once
#include "harness/image.hpp"
#include "harness/signature.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
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
  unwritten,      ///< came back without having written every output word
  disputed        ///< two witnesses were asked and do not say the same
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

/// What a processor and its caller's memory hold before an instruction.
struct FollowedState {
  std::uint64_t pc = 0;
  std::array<std::uint64_t, 16> general{};
  std::array<std::array<std::uint32_t, 4>, 16> xmm{};
  std::array<std::optional<std::array<std::byte, 10>>, 8> x87{};  ///< from the top of the stack; nothing in empty ones
  std::vector<std::byte> memory;                                  ///< the stack near the frame, and the outputs
};

/// Takes the states of a call in their order, the last of them back at the caller. Returns false to have no more.
using Follower = std::function<bool(const FollowedState&)>;

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

  /// Runs one value as run_alone does and shows the state before each instruction of the routine and what it calls.
  /// A witness that cannot tell shows nothing.
  virtual void follow(std::span<const std::byte> packed, const Environment& environment, const Follower& follower) {
    static_cast<void>(packed);
    static_cast<void>(environment);
    static_cast<void>(follower);
  }

  /// Says more of an incident of one value than `run` did, where that takes long: of a dispute, the instruction behind
  /// it.
  virtual void explain(Incident& incident, std::span<const std::byte> packed, const Environment& environment) {
    static_cast<void>(incident);
    static_cast<void>(packed);
    static_cast<void>(environment);
  }

  /// What happened beside the results so far, keyed by a sentence that reports print.
  [[nodiscard]] virtual const std::map<std::string, Observation>& observations() const = 0;

  /// Forgets them: what is observed from here on stands alone, e.g. that of another environment.
  virtual void forget_observations() = 0;

  /// "unicorn", "host" or "both".
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

/// Creates a machine that asks both of them. A value on which their outcomes or words are not the same is disputed and
/// gives no result; what only the processor shows is observed as such. Throws Error as they do.
std::unique_ptr<Machine> make_both_machine(const Image& image, const Routine& routine,
                                           const MachineOptions& options = {});
std::unique_ptr<Machine> make_both_machine(Image&& image, const Routine& routine,
                                           const MachineOptions& options = {}) = delete;

}  // namespace bitwitness
