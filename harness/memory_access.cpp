#include "harness/memory_access.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace bitwitness {
namespace {

constexpr std::array<std::pair<std::string_view, unsigned>, 9> widths = {{{"byte ptr", 1},
                                                                          {"dword ptr", 4},
                                                                          {"fword ptr", 6},
                                                                          {"qword ptr", 8},
                                                                          {"tbyte ptr", 10},
                                                                          {"xword ptr", 10},
                                                                          {"xmmword ptr", 16},
                                                                          {"ymmword ptr", 32},
                                                                          {"word ptr", 2}}};

// What stores to its first operand without having read it.
constexpr std::array<std::string_view, 5> stores = {"mov", "set", "fst", "fist", "fnst"};

bool is_string_instruction(std::string_view text) {
  return text.find("es:[") != std::string_view::npos;
}

}  // namespace

MemoryAccess memory_access_of(std::string_view text, bool is_64_bit, bool is_store) {
  const std::string_view mnemonic = text.substr(0, text.find(' '));
  const unsigned word = is_64_bit ? 8 : 4;
  if (text.find('[') == std::string_view::npos) {  // the stack
    if (mnemonic == "push" || mnemonic == "call") return {Access::write, word};
    if (mnemonic == "pop" || mnemonic == "ret" || mnemonic == "leave") return {Access::read, word};
    return {};
  }
  if (is_string_instruction(text) || mnemonic == "push" || mnemonic == "call" || mnemonic == "pop") return {};
  MemoryAccess access;
  for (const auto& [name, size] : widths) {
    if (const std::size_t at = text.find(name); at != std::string_view::npos && (at == 0 || text[at - 1] == ' ')) {
      access.size = size;
      break;
    }
  }
  const std::string_view operands = text.substr(std::min(mnemonic.size(), text.size()));
  const bool is_first = operands.substr(0, operands.find(',')).find('[') != std::string_view::npos;
  const bool only_stores = is_first && std::ranges::any_of(stores, [mnemonic](std::string_view start) {
                             return mnemonic.starts_with(start);
                           });
  access.access = only_stores || (is_first && is_store) ? Access::write : Access::read;
  return access;
}

}  // namespace bitwitness
