#pragma once
#include "harness/emulator.hpp"
#include "harness/image.hpp"
#include "harness/machine.hpp"
#include "harness/probe/coverage.hpp"
#include "harness/probe/register_flow.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

// Calls of code of which nothing is known: every place where an argument may be holds a pointer to memory of its own,
// and what the code does with them is written down.

namespace bitwitness {

/// Where a caller may leave an argument that can be a pointer.
struct Place {
  enum class Kind : std::uint8_t { stack, general };
  Kind kind = Kind::stack;
  unsigned index = 0;  ///< stack: words above the return address; general: the register's number
  bool operator==(const Place&) const = default;
};

/// Stack words above the return address that hold candidates.
inline constexpr std::size_t explored_stack_words = 12;

/// Bytes in front of and behind a place's pointer that a call may be given and that are looked at afterwards. More of
/// the region is mapped on both sides.
inline constexpr std::size_t window_front = 256;
inline constexpr std::size_t window_back = 1280;
inline constexpr std::size_t window_size = window_front + window_back;

/// What one call starts with.
struct Attempt {
  /// Per place: what it holds; nothing for a pointer to its own region.
  std::vector<std::optional<std::uint64_t>> integers;
  std::array<std::array<std::uint32_t, 4>, 16> xmm{};
  /// window_size bytes per place.
  std::vector<std::byte> contents;

  [[nodiscard]] std::span<std::byte> window(std::size_t place) {
    return std::span(contents).subspan(place * window_size, window_size);
  }
};

/// A load or store that touches what the caller owns.
struct ObservedAccess {
  enum class Where : std::uint8_t { region, arguments, image };
  Where where = Where::region;
  bool is_write = false;
  std::uint8_t size = 0;
  std::uint16_t place = 0;  ///< region: index of the place
  std::int32_t offset = 0;  ///< region: from its pointer; arguments: from the first word above the return address
  std::uint64_t instruction = 0;
};

/// What one call did.
struct Observed {
  enum class End : std::uint8_t { returned, trapped, out_of_budget, refused };
  End end = End::trapped;
  Trap trap;
  std::uint64_t instruction = 0;  ///< last one executed or tried
  std::int64_t removed = 0;       ///< bytes that it removed from the stack beyond the return address
  std::array<std::uint64_t, 16> general{};
  std::array<std::array<std::uint32_t, 4>, 16> xmm{};
  unsigned x87_values = 0;
  std::optional<std::array<std::byte, 10>> st0;
  std::vector<ObservedAccess> accesses;
  std::vector<StackAccess> stack;
  std::vector<std::uint64_t> path;  ///< addresses of the first instructions executed
  std::uint64_t instructions = 0;
  bool is_whole = false;  ///< path and stack hold all of the call

  [[nodiscard]] bool returned() const { return end == End::returned; }
};

struct ExplorationOptions {
  Environment environment;
  std::uint64_t budget = 50'000;  ///< instructions of one call
};

/// Calls one address again and again. Memory is as the file gives it at the start of each call; the image's writable
/// segments may be written. Not thread-safe. The image must outlive it.
class Exploration {
 public:
  Exploration(const Image& image, std::uint64_t address, const ExplorationOptions& options = {});
  ~Exploration();

  /// Every candidate: stack words from the lowest up, then general registers but the stack pointer.
  [[nodiscard]] std::span<const Place> places() const;

  /// The pointer that a place holds unless it is given an integer.
  [[nodiscard]] std::uint64_t pointer(std::size_t place) const;

  /// Returns an attempt in which every place holds its pointer and all contents and XMM registers are zero.
  [[nodiscard]] Attempt blank() const;

  /// Calls the routine. The result is valid until the next call.
  const Observed& run(const Attempt& attempt);

  /// The window of a place as the last call left it.
  [[nodiscard]] std::span<const std::byte> after(std::size_t place) const;

  /// Says why a call did not return, as one clause: "reads 4 bytes at 0x10, where nothing is mapped".
  [[nodiscard]] std::string why(const Observed& observed) const;

  /// Instructions executed in all calls.
  [[nodiscard]] std::uint64_t executed() const;
  [[nodiscard]] std::size_t calls() const;

  /// Conditional jumps that went only one way in all calls, by address.
  [[nodiscard]] std::vector<HalfSeenJump> half_seen() const;
  /// Jumps through registers or tables, by address.
  [[nodiscard]] std::vector<TableJump> table_jumps() const;
  [[nodiscard]] bool was_executed(std::uint64_t address) const;

  /// Memory of the image that a call has read and then written: it may tell the next call something. Nothing when there
  /// is none.
  [[nodiscard]] std::optional<std::uint64_t> state() const;

  /// Numbers that executed code compares with, in the order in which they were met.
  [[nodiscard]] std::span<const std::uint64_t> numbers() const;

  /// Calls the routine and says what its path depends on (see path_recorder.hpp).
  std::vector<std::string> path(const Attempt& attempt);

  /// Tells whether the routine has used fs:[…] or, in 64-bit code, gs:[…], for which scratch memory then stands.
  [[nodiscard]] bool uses_thread_block() const;
  /// Tells whether the routine has written to code.
  [[nodiscard]] bool writes_code() const;

 private:
  struct Bench;
  void replace_bench();

  const Image& image_;
  std::uint64_t address_;
  ExplorationOptions options_;
  std::vector<Place> places_;
  std::unique_ptr<Bench> bench_;
  std::uint64_t executed_ = 0;
  std::size_t calls_ = 0;
  bool uses_thread_block_ = false;
  bool writes_code_ = false;
};

/// Names a place as a reader knows it: "stack argument 2", "ecx".
std::string to_string(const Place& place, bool is_64_bit);

}  // namespace bitwitness
