#pragma once
#include "harness/call_end.hpp"
#include "harness/call_plan.hpp"
#include "harness/emulator.hpp"
#include "harness/guest_memory.hpp"
#include "harness/image.hpp"
#include "harness/lane.hpp"
#include "harness/lane_kind.hpp"
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

/// One emulator with one routine, its stub and its memory.
class UnicornLane final : public Lane, private EmulatorEvents {
 public:
  /// `refused` are addresses of instructions that must not be executed. `base` is where the surroundings go,
  /// `thread_block` what GuestMemory takes.
  UnicornLane(const Image& image, const Routine& routine, LaneKind kind, std::uint64_t base,
              std::span<const std::uint64_t> refused, bool thread_block, const MachineOptions& options);
  ~UnicornLane() override { emulator_.close(); }  // before the memory it has mapped goes

  void run(Run& out, std::span<std::uint32_t> words, std::span<const std::byte> packed,
           const Environment& environment) override;
  CallEnd run_one(std::span<std::uint32_t> words, std::span<const std::byte> packed,
                  const Environment& environment) override;
  std::vector<std::string> run_recorded(std::span<std::uint32_t> words, std::span<const std::byte> packed,
                                        const Environment& environment) override;
  void follow(std::span<const std::byte> packed, const Environment& environment, const Follower& follower) override;
  [[nodiscard]] std::uint64_t progress() const override { return progress_.load(std::memory_order_relaxed); }
  void interrupt() override;
  [[nodiscard]] bool ends_runaways() const override { return watches_everything(); }
  [[nodiscard]] CallContext context() const override;
  [[nodiscard]] bool is_spent() const override { return memory_.code_was_written(); }
  [[nodiscard]] std::span<const std::byte> surrounding_bytes(std::uint64_t address, std::size_t size) override;

 private:
  [[nodiscard]] FollowedState cpu_state(std::uint64_t address);
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
  std::optional<PathRecorder> recorder_;    ///< while a call is recorded
  const Follower* follower_ = nullptr;      ///< while a call is followed
  std::vector<std::vector<bool>> written_;  ///< per slot and byte
};

}  // namespace bitwitness
