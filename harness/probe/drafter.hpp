#pragma once
#include "harness/probe/drafting.hpp"
#include "harness/probe/element_types.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// How drafting.cpp and its siblings put observations into signatures. Not for other modules.

namespace bitwitness {

inline constexpr unsigned ecx_number = 1;
inline constexpr unsigned edx_number = 2;
inline constexpr std::size_t home_words = 4;  // stack words that win64 keeps for the arguments in registers

/// "1 byte", "2 bytes".
std::string plural(std::int64_t count, std::string_view word);

/// "+0..5" or "+3": offsets from a pointer.
std::string range_text(const Extent& extent);

class Drafter {
 public:
  Drafter(const Usage& usage, std::span<const Place> places, bool is_64_bit)
      : usage_(usage), places_(places), is_64_bit_(is_64_bit), word_size_(is_64_bit ? 8 : 4) {}

  Drafts run();

 private:
  void give_up(std::string why);
  /// Adds a clause that says why nothing can be more than `confidence`.
  void doubt(Confidence confidence, std::string why);
  [[nodiscard]] std::string name_of(std::size_t place) const { return to_string(places_[place], is_64_bit_); }
  void check_stack();
  [[nodiscard]] bool uses(std::size_t place) const;
  [[nodiscard]] std::optional<std::size_t> register_place(unsigned number) const;
  [[nodiscard]] bool uses_other_register(std::initializer_list<unsigned> usual) const;
  /// Says what the language has no words for.
  void check_pointer(const PointerUse& pointer);
  /// Tells whether what is read from an offset on is read only together with bytes before it, as a wide load does that
  /// is then masked.
  static bool is_part_of_used_loads(const PointerUse& pointer, std::int32_t end);
  Argument pointer_argument(const PointerUse& pointer);
  [[nodiscard]] Type type_of(const WordUse& word, bool may_be_array) const;
  Argument word_argument(const WordUse& word, bool may_be_array);
  /// Lowers what leaves something unexplained that the code was seen to read, or that leaves code unseen.
  void check_coverage();
  void check_registers();
  Argument argument_at(std::size_t place, bool may_be_array);
  void place_32_bit(Signature& signature);
  /// Adds the argument that begins at a stack word; returns how many words it takes.
  std::size_t place_stack_word(Signature& signature, std::size_t at);
  void place_win64(Signature& signature);
  void push(Candidate candidate, std::optional<Result> result, Confidence confidence, std::string support);
  void add_results(const Candidate& candidate);
  [[nodiscard]] Scalar result_scalar(const RegisterResult& eax) const;
  void add_st0_result(const Candidate& candidate);
  /// Registers in which no convention returns a result.
  void add_private_results(const Candidate& candidate, std::span<const RegisterResult* const> results);
  /// Beside packed bytes behind a pointer, a word may be a setting as well as a part of the value.
  void add_constants();
  void check_limits();

  const Usage& usage_;
  std::span<const Place> places_;
  bool is_64_bit_;
  std::int64_t word_size_;
  Drafts drafts_;
  std::vector<std::string> support_;
  std::vector<std::string> doubts_;
  std::vector<Type> values_;
  Confidence confidence_ = Confidence::certain;
  bool is_expressible_ = true;
  std::int64_t removed_ = 0;
  std::size_t stack_words_ = 0;
  std::size_t used_words_ = 0;
};

}  // namespace bitwitness
