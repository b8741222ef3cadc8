#pragma once
#include "harness/probe/call_sites.hpp"
#include "harness/signature.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace bitwitness {

/// Where a caller puts an argument: a register, or stack words counted from the lowest (win64: from [rsp + 20h]).
struct ArgumentPlace {
  std::optional<Register> reg;
  std::size_t first_word = 0;
  std::size_t words = 0;  ///< 0 in a register
};

/// Returns the place of each argument of a signature, in order.
std::vector<ArgumentPlace> argument_places(const Signature& signature, bool is_64_bit);

/// Returns how many stack words the places take.
std::size_t stack_words_of(const std::vector<ArgumentPlace>& places);

/// "stack argument 2" or "ecx".
std::string name_of(const ArgumentPlace& place, bool is_64_bit);

/// Returns the immediate that every call gives to a place of one word. Nothing when there are no calls, or one gives
/// another or something that is not known.
std::optional<std::uint64_t> same_immediate(const DirectCalls& calls, const ArgumentPlace& place);

}  // namespace bitwitness
