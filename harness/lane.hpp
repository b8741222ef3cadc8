#pragma once
#include "harness/call_end.hpp"
#include "harness/call_text.hpp"
#include "harness/machine.hpp"

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace bitwitness {

/// A CPU with one routine, its caller and its memory; lane_kind.hpp says which kinds there are.
class Lane {
 public:
  virtual ~Lane() = default;

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

    void clear() { *this = {}; }
  };

  /// Runs every value; words of suspects are unspecified. For batch and permissive lanes.
  virtual void run(Run& out, std::span<std::uint32_t> words, std::span<const std::byte> packed,
                   const Environment& environment) = 0;

  /// Runs one value from fresh memory. For lanes of kind alone.
  virtual CallEnd run_one(std::span<std::uint32_t> words, std::span<const std::byte> packed,
                          const Environment& environment) = 0;

  /// Runs one value as `run_one` does and says what its path depends on (see path_recorder.hpp). A lane that cannot
  /// tell runs nothing.
  virtual std::vector<std::string> run_recorded(std::span<std::uint32_t> words, std::span<const std::byte> packed,
                                                const Environment& environment) {
    static_cast<void>(words);
    static_cast<void>(packed);
    static_cast<void>(environment);
    return {};
  }

  /// Runs one value as `run_one` does and shows the state before each instruction outside of its caller, and the one in
  /// which it comes back.
  virtual void follow(std::span<const std::byte> packed, const Environment& environment, const Follower& follower) = 0;

  /// Number of calls begun; read by a watchdog in another thread.
  [[nodiscard]] virtual std::uint64_t progress() const = 0;

  /// Ends the current call, which becomes suspect. Callable from another thread.
  virtual void interrupt() = 0;

  /// Tells whether it counts instructions, and so ends calls that execute too many without a watchdog.
  [[nodiscard]] virtual bool ends_runaways() const = 0;

  /// The clock of the processor time that calls take, when that is not the calling thread's. Asked by the thread that
  /// is about to run some.
  [[nodiscard]] virtual std::optional<clockid_t> clock() { return {}; }

  /// What messages about its calls refer to.
  [[nodiscard]] virtual CallContext context() const = 0;

  /// Tells whether its memory cannot be restored any more, so that another lane must take its place.
  [[nodiscard]] virtual bool is_spent() const = 0;

  /// Reads up to `size` bytes of guest memory at the address of an instruction that lies outside the image.
  [[nodiscard]] virtual std::span<const std::byte> surrounding_bytes(std::uint64_t address, std::size_t size) = 0;
};

}  // namespace bitwitness
