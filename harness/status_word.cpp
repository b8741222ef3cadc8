#include "harness/status_word.hpp"

#include <cstdint>

namespace bitwitness {

bool uses_condition_codes_only(const Instruction& store, const Instruction* next) {
  constexpr std::uint64_t condition_codes = 0x45;  // in ah
  if (store.text != "fnstsw ax" || next == nullptr) return false;
  if (next->text == "sahf") return true;
  if (!next->text.starts_with("test ah, ") && !next->text.starts_with("and ah, ")) return false;
  return next->immediates.size() == 1 && (next->immediates[0] & 0xff & ~condition_codes) == 0;
}

}  // namespace bitwitness
