#pragma once
#include "harness/call_plan.hpp"
#include "harness/disassembly.hpp"
#include "harness/emulator.hpp"
#include "harness/guest_memory.hpp"
#include "harness/operands.hpp"
#include "harness/probe/trace.hpp"
#include "harness/probe/trace_state.hpp"
#include "harness/stub.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace bitwitness {

/// One emulator for one call of a routine, in the surroundings that the machine gives a value it runs alone.
class TracedCall final : private EmulatorEvents {
 public:
  TracedCall(const Image& image, const Routine& routine, const TraceOptions& options);
  ~TracedCall() override { emulator_.close(); }  // before the memory it has mapped goes
  TracedCall(const TracedCall&) = delete;
  TracedCall& operator=(const TracedCall&) = delete;

  /// Makes the call and fills in the trace's steps and its count of instructions. Not to be called again: the memory is
  /// not put back.
  void run(Trace& out, std::span<const std::byte> packed, const Environment& environment);

  [[nodiscard]] bool came_back() const { return came_back_; }
  /// Address of the last instruction of the image that was executed or tried.
  [[nodiscard]] std::uint64_t last_instruction() const { return last_instruction_; }
  /// Output words, when it came back.
  [[nodiscard]] const std::vector<std::uint32_t>& words() const { return words_; }

 private:
  /// What is known of an instruction of the image, whatever its operands hold.
  struct Known {
    std::string text;
    std::uint32_t size = 0;
    Flow flow = Flow::next;
    Operands operands;
    bool is_refused = false;
  };

  bool on_port_write(std::uint32_t port, std::uint32_t value) override;
  void on_write(std::uint64_t address, unsigned size) override;
  void on_read(std::uint64_t address, unsigned size) override;
  bool on_instruction(std::uint64_t address) override;
  bool on_new_code(std::uint64_t, unsigned) override { return true; }

  void prepare(std::span<const std::byte> packed, const Environment& environment);
  void place(std::span<const std::byte> packed);
  const Known& known(std::uint64_t address);
  void begin_step(std::uint64_t address, const Known& instruction);
  /// Completes the step that is being recorded, if one is, with what is there now.
  void end_step(std::uint64_t next);
  /// Leaves the step that is being recorded as one that did not happen.
  void abandon_step();
  void add_access(Access access, std::uint64_t address, unsigned size);
  [[nodiscard]] std::vector<std::byte> bytes_at(std::uint64_t address, std::size_t size) const;
  [[nodiscard]] std::string where(std::uint64_t address) const;
  void gather(const CallState& state);

  const Image& image_;
  TraceOptions options_;
  CallPlan plan_;
  Emulator emulator_;
  GuestMemory memory_;
  Stub stub_;
  std::unordered_map<std::uint64_t, Known> known_;

  Trace* out_ = nullptr;
  const Known* current_ = nullptr;  ///< the instruction of the step being recorded; null when none is
  CpuState before_;
  bool came_back_ = false;
  bool is_over_ = false;
  std::uint64_t last_instruction_ = 0;
  std::vector<std::uint32_t> words_;
};

}  // namespace bitwitness
