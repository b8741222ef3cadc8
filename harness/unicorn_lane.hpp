#pragma once
#include "harness/call_plan.hpp"
#include "harness/emulator.hpp"
#include "harness/guest_memory.hpp"
#include "harness/image.hpp"
#include "harness/machine.hpp"
#include "harness/path_recorder.hpp"
#include "harness/stub.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace bitwitness {

/// A fact about one call that does not make its words invalid.
struct Trait {
  enum class Kind : std::uint8_t {
    writes_image,
    writes_input,
    writes_beside_output,
    writes_above_arguments,  ///< on the stack, where the caller keeps its own
    fpcw,
    mxcsr,
    direction_flag,
    x87_values,  ///< left on the x87 stack
    x87_pops     ///< more than were pushed
  };
  Kind kind = Kind::fpcw;
  std::uint64_t detail = 0;  ///< address, control word, or number of values
  auto operator<=>(const Trait&) const = default;
};

/// How one call ended, as a lane that watches every instruction saw it.
struct CallEnd {
  Trap trap;  ///< kind none: it came back to the stub
  bool over_budget = false;
  bool refused = false;           ///< stopped before an instruction that must not be executed (see refused_code.hpp)
  std::uint64_t instruction = 0;  ///< address of the last instruction executed or tried
  std::int64_t sp_offset = 0;     ///< of the stack pointer after return from where its convention leaves it
  std::optional<std::size_t> unwritten_word;  ///< first output word that it did not write in full
  std::vector<Trait> traits;

  /// Tells whether it came back with the stack in order and every output word written.
  [[nodiscard]] bool is_return() const { return trap.kind == Trap::Kind::none && sp_offset == 0 && !unwritten_word; }
};

/// One emulator with one routine, its stub and its memory. What makes the three kinds:
///
///   batch       as fast as the engine goes. The image and the input are read-only, so that the first write to either
///   shows.
///               It only tells which values are suspect; those are decided alone.
///   permissive  for routines with memory of their own: both are writable. The memory is as in the file at the start of
///   each
///               batch and persists through it; so each value is decided where it stands, every instruction and store
///               watched.
///   alone       the same, one value at a time, each from fresh memory.
enum class LaneKind : std::uint8_t { batch, permissive, alone };

/// Values on the x87 stack by its top alone: 0 to 7.
constexpr unsigned x87_depth(std::uint16_t fpsw) {
  return (8U - (fpsw >> 11 & 7U)) & 7U;
}

/// What stands in places that the signature leaves open.
const Filler& filler_of(LaneKind kind);

/// Finds an address range for the surroundings: apart from everything mapped, within reach of a 32-bit displacement of
/// the image, and below the addresses that filler registers hold. Throws Error when there is none.
std::uint64_t find_base(const Image& image, std::uint64_t size);

/// Tells whether a routine, or what it calls, names memory through the segment register of its thread (fs in 32-bit and
/// gs in 64-bit code), as the frames of exception handlers do.
bool uses_thread_block(const Image& image, std::uint64_t address);

/// The same of one instruction, by its text.
bool names_thread_block(std::string_view text, bool is_64_bit);

class Lane final : private EmulatorEvents {
 public:
  /// `refused` are addresses of instructions that must not be executed. `base` is where the surroundings go,
  /// `thread_block` what GuestMemory takes.
  Lane(const Image& image, const Routine& routine, LaneKind kind, std::uint64_t base,
       std::span<const std::uint64_t> refused, bool thread_block, const MachineOptions& options);
  ~Lane() override { emulator_.close(); }  // before the memory it has mapped goes

  struct Suspect {
    std::size_t index = 0;
    bool only_slow = false;  ///< its words are those of a return; only its instructions may be too many
  };

  struct Run {
    std::vector<Suspect> suspects;                      ///< batch kind: by rising index
    std::vector<std::pair<std::size_t, CallEnd>> ends;  ///< permissive kind: of values that did not return
    std::vector<std::pair<std::size_t, Trait>> traits;  ///< of values that are in neither
    bool unfinished = false;                            ///< a stop was requested
    bool writes_memory_of_its_own = false;  ///< batch kind: it stopped there; run again in a permissive lane
    std::vector<std::uint64_t> refused;     ///< batch kind: it met these first; run again in a lane that knows them
  };

  /// Runs every value; words of suspects are unspecified. For batch and permissive lanes.
  void run(Run& out, std::span<std::uint32_t> words, std::span<const std::byte> packed, const Environment& environment);

  /// Runs one value from fresh memory. For lanes of kind alone.
  CallEnd run_one(std::span<std::uint32_t> words, std::span<const std::byte> packed, const Environment& environment);

  /// Runs one value as `run_one` does and says what its path depends on (see path_recorder.hpp).
  std::vector<std::string> run_recorded(std::span<std::uint32_t> words, std::span<const std::byte> packed,
                                        const Environment& environment);

  /// Number of calls begun; read by a watchdog in another thread.
  [[nodiscard]] const std::atomic<std::uint64_t>& progress() const { return progress_; }

  /// Ends the current call, which becomes suspect. Callable from another thread.
  void interrupt();

  [[nodiscard]] const CallPlan& plan() const { return plan_; }
  [[nodiscard]] LaneKind kind() const { return kind_; }
  [[nodiscard]] bool has_thread_block() const { return thread_block_; }
  [[nodiscard]] std::uint64_t budget() const { return options_.budget; }
  /// Tells whether its memory cannot be restored any more, so that another lane must take its place.
  [[nodiscard]] bool is_spent() const { return memory_.code_was_written(); }

  /// Reads up to `size` bytes of guest memory at the address of an instruction that lies outside the image.
  [[nodiscard]] std::span<const std::byte> surrounding_bytes(std::uint64_t address, std::size_t size);

 private:
  bool on_port_write(std::uint32_t port, std::uint32_t value) override;
  void on_write(std::uint64_t address, unsigned size) override;
  void on_read(std::uint64_t address, unsigned size) override;
  bool on_instruction(std::uint64_t address) override;
  bool on_new_code(std::uint64_t address, unsigned size) override;

  [[nodiscard]] bool watches_everything() const { return kind_ != LaneKind::batch; }
  void set_environment(const Environment& environment);
  void set_stop(bool stop);
  void fill_stack();
  void prepare(std::size_t index);
  void finish(const CallState& state);
  void finish_watched(const CallState& state);
  /// Makes the call of the current value and watches it.
  void call();
  /// Records how a call of a permissive lane ended.
  void record();
  [[nodiscard]] bool is_written(std::size_t slot, std::size_t offset, std::size_t size);
  /// Takes the words of the current value. Tells whether some look as if they had not been written.
  bool gather(const CallState& state);
  [[nodiscard]] bool is_clean(const CallState& state) const;
  [[nodiscard]] bool keeps_callers_stack() const;
  void find_traits(std::vector<Trait>& traits, const CallState& state) const;
  /// Tells whether bytes before an output were written, and clears them.
  bool writes_before_output();
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

  const Image& image_;
  LaneKind kind_;
  bool thread_block_;
  MachineOptions options_;
  CallPlan plan_;
  Emulator emulator_;
  GuestMemory memory_;
  Handover handover_;
  Stub stub_;
  std::vector<std::uint64_t> refused_;  ///< rising
  std::vector<std::byte> poison_;
  std::vector<std::byte> pristine_stack_;
  std::vector<Tap> taps_;
  std::byte* frame_ = nullptr;  ///< host memory of the stack at the routine's first instruction
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

  // The call being watched.
  CallEnd end_;
  bool came_back_ = false;
  std::uint64_t instructions_ = 0;
  std::optional<PathRecorder> recorder_;  ///< while a call is recorded
  std::vector<std::vector<bool>> written_;  ///< per slot and byte
};

}  // namespace bitwitness
