#pragma once
#include "harness/call_plan.hpp"
#include "harness/host/host_code.hpp"
#include "harness/host/host_memory.hpp"
#include "harness/host/traced_process.hpp"
#include "harness/image.hpp"
#include "harness/lane.hpp"
#include "harness/lane_machine.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

// Inside of harness/host/ only.

namespace bitwitness::host {

/// A lane on this computer's own processor, in a process that has nothing but the routine's memory (see
/// host_memory.hpp). Batches run without leaving the guest; what is odd about one has it run again value by value.
class HostLane final : public Lane {
 public:
  HostLane(const Image& image, const LaneOrder& order, const MachineOptions& options,
           std::chrono::nanoseconds stall_limit);

  void run(Run& out, std::span<std::uint32_t> words, std::span<const std::byte> packed,
           const Environment& environment) override;
  CallEnd run_one(std::span<std::uint32_t> words, std::span<const std::byte> packed,
                  const Environment& environment) override;
  void follow(std::span<const std::byte> packed, const Environment& environment, const Follower& follower) override;
  [[nodiscard]] std::uint64_t progress() const override;
  void interrupt() override;
  [[nodiscard]] bool ends_runaways() const override { return false; }
  [[nodiscard]] std::optional<clockid_t> clock() override;
  [[nodiscard]] CallContext context() const override;
  [[nodiscard]] bool is_spent() const override { return false; }
  [[nodiscard]] std::span<const std::byte> surrounding_bytes(std::uint64_t address, std::size_t size) override;

 private:
  /// What stopped one call.
  struct Fault {
    std::size_t index = 0;
    bool ran_too_long = false;
    Stop stop;
  };

  /// How a go at some values ended.
  enum class Went {
    on,
    to_memory_of_its_own,
    nowhere,
    in_vain  ///< in a hurry: something is odd about at least one of them, and nothing is known of any
  };

  /// What a stop before the end of a go is about.
  enum class Cause {
    nothing,  ///< a signal that somebody sent
    memory_of_its_own,
    request,  ///< to leave
    watchdog,
    fault
  };

  void start();
  [[nodiscard]] std::byte* state(std::size_t offset) const;
  void put_state(std::size_t offset, const auto& value);
  [[nodiscard]] std::uint32_t left() const;
  void begin(std::size_t first, std::size_t count);
  [[nodiscard]] bool keeps_state(std::size_t index, std::size_t records) const;
  Went execute(std::size_t count);
  [[nodiscard]] Cause cause_of(const Stop& stop, const user_regs_struct& before, std::uint64_t enter) const;

  void suspect_all(Run& out, std::span<const std::uint32_t> words, std::span<const std::byte> packed);
  [[nodiscard]] bool all_came_back() const;
  [[nodiscard]] bool may_hurry() const;
  Went hurry(std::size_t count);
  [[nodiscard]] bool keeps_processor(const Stop& stop) const;
  void take_words(std::vector<Suspect>& suspects, std::size_t first, std::span<std::uint32_t> words);
  void ask_again(std::vector<Suspect>& suspects, std::size_t first, std::span<const std::uint32_t> words,
                 std::span<const std::byte> packed);
  [[nodiscard]] std::array<std::uint8_t, 4> opposite_poison() const;
  void set_poison(const std::array<std::uint8_t, 4>& poison);
  void set_environment(const Environment& environment);
  void fill_stack();
  void restore();

  void run_one_by_one(Run& out, std::span<std::uint32_t> words, std::span<const std::byte> packed, std::size_t first);
  void inspect(Run& out, std::size_t first, std::size_t count, std::span<std::uint32_t> words);
  [[nodiscard]] Record record(std::size_t index) const;
  [[nodiscard]] bool is_of(const Record& record, std::size_t index) const;
  [[nodiscard]] bool misses_result(const Record& record) const;
  [[nodiscard]] bool is_clean(const Record& record) const;
  void find_traits(std::vector<Trait>& traits, const Record& record) const;
  bool note_poison(std::span<const std::uint32_t> words);
  [[nodiscard]] bool keeps_callers_stack() const;
  std::optional<std::uint64_t> written_before_output();

  void prepare_alone(std::span<const std::byte> packed);
  CallEnd end_of_call(std::span<std::uint32_t> words, std::span<const std::byte> packed);
  void find_writes(std::vector<Trait>& traits, std::span<const std::byte> packed);
  void describe_fault(CallEnd& end, std::span<const std::byte> packed);
  std::uint64_t last_instruction(std::span<const std::byte> packed, std::uint64_t end);
  [[nodiscard]] FollowedState state_of(const Stop& stop) const;
  void rewind(std::span<const std::byte> packed);
  void reinstate();
  [[nodiscard]] bool has_poison_byte(std::span<const std::uint32_t> words) const;
  std::optional<std::size_t> unwritten_word(std::span<const std::uint32_t> words, std::span<const std::byte> packed);

  const Image& image_;
  LaneKind kind_;
  MachineOptions options_;
  std::chrono::nanoseconds stall_limit_;
  CallPlan plan_;
  CallNeeds needs_;
  HostLayout layout_;
  HostCode code_;
  bool thread_block_;
  HostMemory memory_;
  std::optional<TracedProcess> process_;
  std::thread::id thread_;  // the process's tracer
  user_regs_struct entry_{};

  /// Where an output element's bytes are among the words, and its poison.
  struct Tap {
    std::size_t word = 0;
    std::size_t slot = 0;
    std::size_t offset = 0;
    std::size_t size = 0;
    std::uint64_t poison = 0;
    std::uint64_t changed = 0;
  };
  [[nodiscard]] static std::uint64_t element(std::span<const std::uint32_t> words, const Tap& tap);
  using WrittenPage = std::pair<std::uint64_t, std::vector<std::byte>>;

  std::vector<Tap> taps_;
  bool has_x87_result_ = false;
  std::size_t hurried_well_ = 0;
  std::size_t hurried_in_vain_ = 0;
  Environment environment_;
  std::uint32_t seed_ = 0;
  std::size_t count_ = 0;
  std::vector<Fault> faults_;
  std::vector<std::pair<std::size_t, std::uint32_t>> seeds_;  // from which value on records carry which
  bool has_upset_state_ = false;                              // a call has written to what its caller goes by
  std::vector<WrittenPage> written_;                          // what pages of the image hold now
  std::vector<WrittenPage> before_;                           // what those held that the last call has changed
  std::vector<std::byte> thread_now_;                         // the thread's block, likewise
  std::vector<std::byte> thread_before_;
  /// Goes begun, above the fewest values that have been left since.
  mutable std::atomic<std::uint64_t> mark_{0};
  std::array<std::uint8_t, 4> poison_{};
  std::uint64_t begun_ = 0;
  std::atomic<std::uint64_t> asked_{~std::uint64_t{0}};  // the progress at which a watchdog wanted an end
};

}  // namespace bitwitness::host
