#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "harness/call_plan.hpp"
#include "harness/guest_memory.hpp"
#include "harness/image.hpp"
#include "harness/machine.hpp"
#include "harness/stub.hpp"
#include "harness/emulator.hpp"

namespace bitwitness {

/// A fact about one call that does not make its words invalid.
struct Trait {
  enum class Kind : std::uint8_t { writes_image, writes_input, writes_beside_output, fpcw, mxcsr, direction_flag, x87_stack };
  Kind kind = Kind::fpcw;
  std::uint64_t detail = 0;  ///< address, control word, or number of values left
  auto operator<=>(const Trait&) const = default;
};

/// How one call ended, as a lane that runs values alone saw it.
struct CallEnd {
  Trap trap;                        ///< kind none: it came back to the stub
  bool over_budget = false;
  bool runs_vex = false;            ///< stopped before an instruction that the emulator would execute wrongly
  std::uint64_t instruction = 0;    ///< address of the last instruction executed or tried
  std::uint64_t previous = 0;       ///< address of the one before it
  std::int64_t sp_offset = 0;       ///< of the stack pointer after return from where its convention leaves it
  std::optional<std::size_t> unwritten_word;  ///< first output word that it did not write in full
  std::vector<Trait> traits;
};

/// One emulator with one routine, its stub and its memory. What makes the three kinds:
///
///   batch       as fast as the engine goes. The image and the input are read-only, so that the first write to either shows.
///   permissive  for routines with memory of their own: both are writable and every store is watched. The memory is as in
///               the file at the start of each batch, and persists through it.
///   alone       one value at a time from fresh memory, every instruction and store watched: decides what happened.
///
/// The first two only tell which values are suspect; those are decided alone.
enum class LaneKind : std::uint8_t { batch, permissive, alone };

/// What stands in places that the signature leaves open.
const Filler& filler_of(LaneKind kind);

class Lane final : private EmulatorEvents {
 public:
  /// `vex` are addresses of instructions that must not be executed. `base` is where the surroundings go.
  Lane(const Image& image, const Routine& routine, LaneKind kind, std::uint64_t base, std::span<const std::uint64_t> vex,
       std::uint64_t budget);

  struct Run {
    std::vector<std::size_t> suspects;                       ///< rising indices
    std::vector<std::pair<std::size_t, Trait>> traits;       ///< of values that are not suspect
    bool writes_memory_of_its_own = false;                   ///< batch kind: it stopped there; run again in a permissive lane
  };

  /// Runs every value; words of suspects are unspecified. For batch and permissive lanes.
  void run(Run& out, std::span<std::uint32_t> words, std::span<const std::byte> packed, const Environment& environment);

  /// Runs one value from fresh memory. For lanes of kind alone.
  CallEnd run_one(std::span<std::uint32_t> words, std::span<const std::byte> packed, const Environment& environment);

  /// Number of calls begun; read by a watchdog in another thread.
  [[nodiscard]] const std::atomic<std::uint64_t>& progress() const { return progress_; }

  /// Ends the current call, which becomes suspect. Callable from another thread.
  void interrupt();

  [[nodiscard]] const CallPlan& plan() const { return plan_; }
  [[nodiscard]] LaneKind kind() const { return kind_; }
  [[nodiscard]] std::uint64_t budget() const { return budget_; }

  /// Reads up to `size` bytes of guest memory at the address of an instruction that lies outside the image.
  [[nodiscard]] std::span<const std::byte> surrounding_bytes(std::uint64_t address, std::size_t size);

 private:
  bool on_port_write(std::uint32_t port, std::uint32_t value) override;
  void on_write(std::uint64_t address, unsigned size) override;
  bool on_instruction(std::uint64_t address) override;

  void set_environment(const Environment& environment);
  void prepare(std::size_t index);
  void finish(const CallState& state);
  void finish_alone(const CallState& state);
  /// Takes the words of the current value. Tells whether some look as if they had not been written.
  bool gather(const CallState& state);
  [[nodiscard]] bool is_clean(const CallState& state) const;
  void find_traits(std::vector<Trait>& traits, const CallState& state) const;
  [[nodiscard]] bool writes_before_output();
  [[nodiscard]] bool output_never_changed();

  /// Where one output element is taken from after a call.
  struct Tap {
    OutputElement::Source source;
    Scalar scalar;
    unsigned size;
    const std::byte* memory = nullptr;  ///< null when it is in a register
    unsigned reg = 0;
    bool is_poisoned = false;
    std::uint64_t poison = 0;
    std::uint64_t changed = 0;  ///< bits in which some value of the batch differed from the poison
  };
  [[nodiscard]] std::uint64_t load_register(const Tap& tap, const CallState& state) const;

  LaneKind kind_;
  std::uint64_t budget_;
  CallPlan plan_;
  Emulator emulator_;
  GuestMemory memory_;
  Handover handover_;
  Stub stub_;
  std::vector<std::uint64_t> vex_;
  std::vector<std::byte> poison_;
  std::vector<Tap> taps_;
  bool has_x87_result_ = false;
  std::atomic<std::uint64_t> progress_{0};

  // The batch being run.
  Environment environment_;
  std::span<const std::byte> packed_;
  std::span<std::uint32_t> words_;
  std::size_t count_ = 0;
  std::size_t index_ = 0;
  Run* run_ = nullptr;
  std::uint64_t started_ticks_ = 0;
  std::vector<Trait> writes_;  ///< of the current call
  std::vector<Trait> found_;

  // The call being run alone.
  CallEnd end_;
  std::uint64_t instructions_ = 0;
  std::vector<std::vector<bool>> written_;  ///< per slot and byte
};

}  // namespace bitwitness
