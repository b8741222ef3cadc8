#pragma once
#include "harness/probe/exploration.hpp"
#include "harness/probe/register_flow.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

// What a routine does with what its caller owns, gathered from many calls.

namespace bitwitness {

/// What happened to one byte of a region, over all calls.
struct ByteUse {
  bool read = false;            ///< before anything was written there
  bool matters = false;         ///< another value there gave another outcome
  bool written = false;         ///< by some call
  bool always_written = false;  ///< by every call that returned
};

struct StoreSeen {
  std::int32_t offset = 0;
  unsigned size = 0;
  StoreKind kind = StoreKind::integer;
  auto operator<=>(const StoreSeen&) const = default;
};

/// A place that was used as a pointer.
struct PointerUse {
  std::size_t place = 0;
  std::vector<ByteUse> bytes;  ///< of the window
  std::set<StoreSeen> stores;
  std::set<std::pair<std::int32_t, unsigned>> loads;  ///< offset and size, of bytes not written before
  bool leaves_window = false;                         ///< it was followed to more than the window
  bool is_returned = true;                            ///< eax or rax held it after every return
  std::vector<bool> is_odd;  ///< per window byte: the four bytes written from here were once no float of common size
  std::vector<bool> is_nonzero;  ///< per window byte: they were not always 0
  [[nodiscard]] const ByteUse& at(std::int32_t offset) const {
    return bytes[static_cast<std::size_t>(offset + static_cast<std::int32_t>(window_front))];
  }
};

/// A place or XMM register whose content matters and that is no pointer.
struct WordUse {
  enum class Kind : std::uint8_t {
    value,  ///< its bits go into the outcome
    count,  ///< it tells how many elements there are
    index   ///< it moves where the pointers are followed to
  };
  Kind kind = Kind::value;
  std::optional<unsigned> xmm;  ///< number of the register; nothing for a place
  std::size_t place = 0;
  std::uint64_t bits = 0;  ///< that matter
  unsigned width = 0;      ///< widest load, if it was loaded from the stack
  bool is_float = false;
  bool takes_two = false;       ///< 32-bit code loads it and the next stack word as one f64
  std::int64_t read_step = 0;   ///< count and index: bytes by which one more moves or widens what is read
  std::int64_t write_step = 0;  ///< the same of what is written
};

/// A register that holds a result.
struct RegisterResult {
  bool is_xmm = false;
  unsigned number = 0;
  unsigned width = 0;         ///< bytes
  bool depends = false;       ///< differed between calls with other input
  bool is_left = false;       ///< nothing read it after it was computed
  unsigned narrowest = 8;     ///< general: bytes of the narrowest last write of a call
  bool high_half = false;     ///< general, 64-bit code: bits above 32 were set at times
  bool fills_vector = false;  ///< XMM: all 16 bytes were made anew, and the upper 8 differed between calls
};

/// A jump behind which lies code that no call reached and that may read or write more than was seen.
struct UnreachedCode {
  std::uint64_t jump = 0;
  std::uint64_t code = 0;
};

/// Everything found.
struct Usage {
  std::vector<PointerUse> pointers;  ///< by place
  std::vector<WordUse> words;        ///< by place, then XMM registers
  std::vector<RegisterResult> results;
  std::optional<unsigned> st0_bytes;    ///< a value was left on the x87 stack: 4, 8 or 10 bytes hold it exactly
  bool st0_was_loaded = true;           ///< it was an f32 that was loaded, in every call
  unsigned st0_bits = 0;                ///< most bits of a mantissa in it
  std::optional<std::int64_t> removed;  ///< bytes of stack removed by every return
  bool removed_varies = false;
  bool is_erratic = false;                              ///< equal calls had unequal outcomes
  std::array<bool, explored_stack_words> reads_word{};  ///< stack words loaded before anything was stored there
  bool loads_80_bits = false;                           ///< from the stack words
  bool reads_above = false;                             ///< stack words above those that are explored
  bool writes_image = false;
  std::optional<std::uint64_t> state;    ///< memory of the image that calls read and then write
  RegisterSet used_registers;            ///< something was done with what they held at entry
  std::vector<UnreachedCode> unreached;  ///< by address of the jump
  std::vector<TableJump> table_jumps;
  bool has_hidden_influence = false;  ///< what no pointer and no word covers changed an outcome
  bool is_cut_short = false;          ///< the budget ran out before everything was tried
  std::size_t one_way_jumps = 0;      ///< beside these: what they leave out ends the program or changes floats alone
  std::size_t calls = 0;              ///< of the last survey
  std::size_t returned = 0;           ///< of them
  std::vector<std::string> troubles;  ///< why calls did not return, each reason once

  [[nodiscard]] bool writes_memory() const;
  [[nodiscard]] const PointerUse* pointer_at(std::size_t place) const;
  [[nodiscard]] const WordUse* word_at(std::size_t place) const;
};

/// Instructions that one study may execute before it settles for what it has found.
inline constexpr std::uint64_t study_budget = 6'000'000;
/// And calls: each costs as much as some hundred instructions.
inline constexpr std::size_t study_calls = 16'000;

/// Studies a routine: finds the pointers, then what else matters, then extents and results.
class Study {
 public:
  Study(Exploration& exploration, const Image& image, std::uint64_t seed);
  Usage run();

 private:
  /// What two calls are compared by.
  struct Outcome {
    bool returned = false;
    std::uint64_t hash = 0;
    std::int64_t written = 0;  ///< bytes
    std::int64_t read = 0;
    std::int64_t first_written = 0;  ///< sum of the lowest offsets of every pointer
    std::int64_t first_read = 0;
  };
  enum class Rest : std::uint8_t { pointers, ones, zeros };  ///< what places hold that are no pointers

  // usage.cpp: calls and their records
  [[nodiscard]] std::uint64_t next();
  [[nodiscard]] Attempt make_attempt(std::size_t pattern);
  void fill(Attempt& attempt, std::size_t pattern);
  void set_words(Attempt& attempt, std::size_t pattern);
  [[nodiscard]] std::uint64_t special();
  [[nodiscard]] std::uint64_t special_float(bool is_wide);
  [[nodiscard]] std::uint64_t tame_float(bool is_wide);
  [[nodiscard]] std::uint64_t integer_of(std::size_t pattern);
  [[nodiscard]] std::uint64_t float_of(std::size_t pattern, bool is_wide);
  [[nodiscard]] std::uint64_t number();
  void follow(const Observed& observed);
  bool note_pointers(const Observed& observed);
  std::size_t try_rest(Rest rest);
  void discover();
  void promote();
  void survey(std::size_t calls);
  bool survey_once(std::size_t calls);
  void record(const Observed& observed, const Attempt& attempt);
  [[nodiscard]] std::string pointer_in_memory(const Observed& observed, const Attempt& attempt) const;
  void record_accesses(const Observed& observed);
  void record_argument(const ObservedAccess& access, std::vector<bool>& written);
  void record_numbers(PointerUse& pointer, const std::vector<std::uint8_t>& marks);
  void record_results(const Observed& observed, const Attempt& attempt);
  void choose_results();
  StoreKind kind_of_store(std::uint64_t instruction);
  bool is_float_load(std::uint64_t instruction);
  [[nodiscard]] std::vector<Attempt> make_bases();

  // usage_words.cpp: what matters
  Outcome outcome_of(const Attempt& attempt);
  void add_registers(Outcome& outcome, const Observed& observed) const;
  void check_repeatable();
  void find_words();
  [[nodiscard]] bool is_used(const WordUse& word) const;
  [[nodiscard]] bool is_only_left(const WordUse& word) const;
  [[nodiscard]] bool word_matters(std::span<const Attempt> bases, const WordUse& word);
  void classify(WordUse& word);
  void find_bits(WordUse& word);
  void find_bytes();
  void set(Attempt& attempt, const WordUse& word, std::uint64_t bits) const;
  [[nodiscard]] std::uint64_t get(const Attempt& attempt, const WordUse& word) const;

  // usage_challenge.cpp: whether anything else matters
  struct Element;
  [[nodiscard]] std::vector<Element> outside() const;
  void scramble(Attempt& attempt, const Element& element);
  bool challenge();
  void reach_more();
  void note_unreached();
  [[nodiscard]] bool out_of_budget() const {
    return exploration_.executed() > study_budget || exploration_.calls() > study_calls;
  }

  Exploration& exploration_;
  const Image& image_;
  bool is_64_bit_;
  std::uint64_t state_;
  RegisterFlow flow_;
  Usage usage_;
  Rest rest_ = Rest::pointers;
  bool is_erratic_ = false;
  bool has_hidden_influence_ = false;
  std::vector<bool> is_pointer_;
  std::array<unsigned, explored_stack_words> stack_width_{};  ///< widest load before a store; 0 for none
  std::array<bool, explored_stack_words> stack_float_{};
  std::unordered_map<std::uint64_t, StoreKind> store_kinds_;
  std::unordered_map<std::uint64_t, bool> float_loads_;
  RegisterSet used_registers_;  ///< over all calls that were followed
  std::array<RegisterEffect::Float, 16> used_as_{};

  // Registers over the calls of one survey.
  RegisterSet unread_;
  std::array<RegisterResult, 32> registers_{};  ///< general, then XMM
  std::array<std::uint64_t, 32> first_values_{};
  std::array<std::uint64_t, 16> first_uppers_{};
  std::array<bool, 16> fills_vector_{};
};

}  // namespace bitwitness
