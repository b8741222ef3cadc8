#pragma once
#include "harness/image.hpp"
#include "harness/machine.hpp"
#include "harness/subject.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bitwitness {

/// Rules that a routine may follow, all with the same sizes. Rules are made when asked for, so that hundreds of
/// thousands cost little.
class RuleSet {
 public:
  virtual ~RuleSet() = default;

  [[nodiscard]] virtual std::size_t size() const = 0;                      ///< how many rules
  [[nodiscard]] virtual std::size_t packed_size() const = 0;               ///< bytes
  [[nodiscard]] virtual std::vector<std::string> word_names() const = 0;   ///< one per output word
  [[nodiscard]] virtual WordKind word_kind() const = 0;                    ///< of every word
  [[nodiscard]] virtual std::string name(std::size_t rule) const = 0;      ///< short, of one line
  [[nodiscard]] virtual std::string sentence(std::size_t rule) const = 0;  ///< what the rule computes

  /// Decodes one packed value by a rule. Returns false when the rule gives this value no result; then a routine agrees
  /// that comes back without having written all of its output.
  virtual bool decode(std::size_t rule, std::span<const std::byte> packed, std::span<std::uint32_t> words) const = 0;

  /// Writes a packed value on which rules much like this one are likely to differ; equal numbers give equal values.
  /// Returns false when the set knows no better than to take any.
  virtual bool draw(std::size_t rule, std::uint64_t random, std::span<std::byte> packed) const {
    static_cast<void>(rule), static_cast<void>(random), static_cast<void>(packed);
    return false;
  }
};

/// Makes a packed value of any number: equal numbers give equal values.
using ValueDraw = std::function<void(std::uint64_t random, std::span<std::byte> packed)>;

struct RecognitionOptions {
  /// Of the packed value, in rising order: their boundaries are tried. Without fields the value is one.
  std::vector<BitField> fields;
  bool any_bits = true;              ///< values of any bits make sense; otherwise only what `draws` give is tried
  std::vector<ValueDraw> draws;      ///< values on which rules are likely to differ
  std::size_t values = 1024;         ///< first tried of each source
  std::size_t confirmations = 8192;  ///< further values of each source on which what is left is tried
  std::uint64_t search = 4'000'000;  ///< decodings spent on finding one more value that separates the rules left
  std::size_t nearest = 5;           ///< rules that do not fit to describe; 0 saves their ranking
  std::size_t bases = 32;            ///< values whose bits are flipped one by one
  std::size_t sample = 64;           ///< values run again alone
};

/// A routine's output word as one of a rule's: which, and whether its top bit, the sign of an f32, is flipped.
struct MappedWord {
  std::size_t from = 0;
  bool negated = false;
  bool operator==(const MappedWord&) const = default;
};

/// A value on which a routine and a rule differ.
struct Separation {
  std::vector<std::byte> value;
  OutcomeKind outcome = OutcomeKind::returned;  ///< of the routine
  std::vector<std::uint32_t> routine;           ///< its words; empty unless it returned
  std::vector<std::uint32_t> rule;              ///< the rule's words; empty when it gives none
};

/// How a rule compares with a routine.
struct RuleStanding {
  std::size_t rule = 0;
  std::vector<MappedWord> order;    ///< the routine's words as the rule's; empty when they are the same as they stand
  std::uint64_t agreed = 0;         ///< values
  std::uint64_t words_agreed = 0;   ///< output words of all values
  std::uint64_t words_close = 0;    ///< output words at most close_ulps apart
  std::optional<Separation> first;  ///< the first value, in the order tried, on which they differ
};

/// Largest distance at which words count as close: constants and roundings that are off stay within it.
inline constexpr std::uint64_t close_ulps = 64;

enum class RecognitionVerdict : std::uint8_t {
  one,      ///< exactly one rule agrees on every value tried
  several,  ///< several do, and nothing tried separates them
  none,     ///< no rule does
  nothing   ///< no value gave a result to compare
};

std::string_view to_string(RecognitionVerdict verdict);

/// What flipping one bit of the packed value changes.
struct BitUse {
  std::size_t changed = 0;         ///< base values whose output changed
  std::vector<std::size_t> words;  ///< output words that ever changed, rising
};

/// What `recognize` found. Equal inputs give equal results.
struct Recognition {
  RecognitionVerdict verdict = RecognitionVerdict::nothing;
  std::size_t rules = 0;                  ///< how many were compared
  std::vector<RuleStanding> matches;      ///< agree on every value tried, in the order of the rule set
  std::vector<RuleStanding> nearest;      ///< do not, best first
  std::uint64_t tried = 0;                ///< distinct values run
  std::uint64_t compared = 0;             ///< of those, the ones that returned or came back with output unwritten
  std::uint64_t unwritten = 0;            ///< of those, the latter
  std::uint64_t failed = 0;               ///< faulted or out of budget: compared with nothing
  std::uint64_t unstable = 0;             ///< of the values run again alone: gave other words
  std::uint64_t sampled = 0;              ///< values run again alone
  std::vector<std::byte> failed_value;    ///< the first that failed
  std::string failure;                    ///< and how
  std::uint64_t searched = 0;             ///< decodings spent on separating rules that agreed on everything before
  std::size_t bases = 0;                  ///< values whose bits were flipped
  std::vector<BitUse> bits;               ///< one per bit of the packed value; empty when no base returned
  std::vector<std::string> observations;  ///< what the machine saw beside the results

  /// For each rule the first value, in the order tried, on which it differs as it stands; or nothing.
  std::vector<std::optional<std::uint32_t>> first_difference;
  std::vector<std::byte> values;  ///< every value tried, in order
};

/// Finds the rules that a routine follows, by executing it on values that tell them apart. Throws Error when the rules
/// do not have the routine's sizes.
Recognition recognize(Machine& machine, const Signature& signature, const Environment& environment,
                      const RuleSet& rules, const RecognitionOptions& options = {});

/// The same for a routine of an image, emulated.
Recognition recognize(const Image& image, const Routine& routine, const Environment& environment, const RuleSet& rules,
                      const RecognitionOptions& options = {}, const MachineOptions& machine = {});

}  // namespace bitwitness
