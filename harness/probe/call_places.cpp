#include "harness/probe/call_places.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace bitwitness {
namespace {

constexpr std::array<std::uint8_t, 4> win64_registers = {1, 2, 8, 9};  // rcx, rdx, r8, r9
constexpr std::array<std::uint8_t, 2> fast_registers = {1, 2};         // ecx, edx

bool is_pointer(const Argument& argument) {
  return argument.role == Role::in || argument.role == Role::out || argument.role == Role::inout;
}

bool is_float(const Argument& argument) {
  return !is_pointer(argument) && !argument.type.is_array &&
         (argument.type.scalar == Scalar::f32 || argument.type.scalar == Scalar::f64);
}

std::size_t fast_count(Convention convention) {
  if (convention == Convention::thiscall_call) return 1;
  return convention == Convention::fastcall_call ? fast_registers.size() : 0;
}

}  // namespace

std::vector<ArgumentPlace> argument_places(const Signature& signature, bool is_64_bit) {
  std::vector<ArgumentPlace> places;
  std::size_t position = 0;
  std::size_t word = 0;
  for (const Argument& argument : signature.arguments) {
    if (argument.place) {
      places.push_back({argument.place, 0, 0});
      continue;
    }
    if (is_64_bit && position < win64_registers.size()) {
      const auto number = static_cast<std::uint8_t>(position);
      places.push_back({is_float(argument) ? Register{RegisterClass::xmm, number}
                                           : Register{RegisterClass::general, win64_registers[position]},
                        0, 0});
      ++position;
      continue;
    }
    constexpr std::size_t word_size = 4;
    const std::size_t words =
        is_64_bit || is_pointer(argument) ? 1 : (argument.type.size() + word_size - 1) / word_size;
    if (!is_64_bit && position < fast_count(signature.convention) && words == 1 && !is_float(argument)) {
      places.push_back({Register{RegisterClass::general, fast_registers[position++]}, 0, 0});
      continue;
    }
    places.push_back({std::nullopt, word, words});
    word += words;
  }
  return places;
}

std::size_t stack_words_of(const std::vector<ArgumentPlace>& places) {
  std::size_t words = 0;
  for (const ArgumentPlace& place : places) words += place.words;
  return words;
}

std::string name_of(const ArgumentPlace& place, bool is_64_bit) {
  if (place.reg) return to_string(*place.reg, is_64_bit);
  return fmt::format("stack argument {}", place.first_word + 1);
}

std::optional<std::uint64_t> same_immediate(const DirectCalls& calls, const ArgumentPlace& place) {
  if (place.words > 1 || (place.reg && place.reg->kind == RegisterClass::xmm)) return std::nullopt;
  std::optional<std::uint64_t> same;
  for (const DirectCall& site : calls.sites) {
    const PassedWord* word = nullptr;
    if (!place.reg) {
      if (place.first_word < site.stack.size()) word = &site.stack[place.first_word];
    } else if (const auto& loaded = site.general[place.reg->number]) {
      word = &*loaded;
    }
    if (word == nullptr || word->kind != PassedWord::Kind::immediate) return std::nullopt;
    if (same && *same != word->number) return std::nullopt;
    same = word->number;
  }
  return same;
}

}  // namespace bitwitness
