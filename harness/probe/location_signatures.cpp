#include "harness/disassembly.hpp"
#include "harness/probe/location.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

namespace bitwitness {
namespace {

// Enough to see every return of a routine that decodes one value.
constexpr std::size_t most_instructions = 512;

constexpr std::array<Convention, 4> conventions_32{Convention::cdecl_call, Convention::stdcall_call,
                                                   Convention::thiscall_call, Convention::fastcall_call};

// In 32-bit code, eax ecx edx ebx esi edi.
constexpr std::array<std::uint8_t, 6> argument_registers{0, 1, 2, 3, 6, 7};

Argument packed_argument(std::size_t size) {
  return {Role::in, {Scalar::u8, static_cast<std::uint32_t>(size), true}, 0, std::nullopt};
}

Scalar word_scalar(const Subject& subject) {
  switch (subject.word_kind) {
    case WordKind::i32:
      return Scalar::i32;
    case WordKind::u32:
      return Scalar::u32;
    case WordKind::f32:
      break;
  }
  return Scalar::f32;
}

Argument result_argument(const Subject& subject, std::size_t count) {
  return {Role::out, {word_scalar(subject), static_cast<std::uint32_t>(count), true}, 0, std::nullopt};
}

/// Argument lists with pointers only: value and words whole, then each of them in two halves.
std::vector<std::vector<Argument>> pointer_arguments(const Subject& subject) {
  const std::size_t size = subject.packed_size;
  const std::size_t words = subject.word_names.size();
  const Argument in = packed_argument(size);
  const Argument out = result_argument(subject, words);
  std::vector<std::vector<Argument>> lists{{in, out}, {out, in}};
  if (size % 2 != 0 || words % 2 != 0) return lists;
  const Argument half_in = packed_argument(size / 2);
  const Argument half_out = result_argument(subject, words / 2);
  const std::vector<std::vector<Argument>> halves{
      {half_in, half_in, half_out, half_out},
      {half_out, half_out, half_in, half_in},
      {half_in, half_out, half_in, half_out},
      {half_out, half_in, half_out, half_in},
      {in, half_out, half_out},
      {half_out, half_out, in},
      {half_in, half_in, out},
      {out, half_in, half_in},
  };
  lists.insert(lists.end(), halves.begin(), halves.end());
  return lists;
}

std::optional<Scalar> integer_of(std::size_t size) {
  switch (size) {
    case 1:
      return Scalar::u8;
    case 2:
      return Scalar::u16;
    case 4:
      return Scalar::u32;
    case 8:
      return Scalar::u64;
    default:
      return std::nullopt;
  }
}

/// Bytes that a routine of a convention removes from the stack when it returns, in 32-bit code.
std::size_t removed_bytes(const Signature& signature) {
  std::size_t registers = 0;
  if (signature.convention == Convention::cdecl_call) return 0;
  if (signature.convention == Convention::thiscall_call) registers = 1;
  if (signature.convention == Convention::fastcall_call) registers = 2;
  std::size_t removed = 0;
  for (const Argument& argument : signature.arguments) {
    if (argument.place) continue;
    const bool is_value = argument.role == Role::value || argument.role == Role::constant;
    const std::size_t size = is_value ? (argument.type.size() + 3) / 4 * 4 : 4;
    if (registers > 0 && size == 4) {
      --registers;
    } else {
      removed += size;
    }
  }
  return removed;
}

/// What the returns of a routine remove from the stack; empty when none was seen or some may have been missed.
std::set<std::size_t> removed_by_returns(const Image& image, std::uint64_t address) {
  std::set<std::size_t> removed;
  const Listing listing = disassemble_routine(image, address, most_instructions);
  for (const Instruction& instruction : listing.instructions) {
    if (instruction.flow != Flow::return_) continue;
    removed.insert(instruction.immediates.empty() ? 0 : static_cast<std::size_t>(instruction.immediates.front()));
  }
  return removed;
}

std::vector<Signature> without_contradicted(std::vector<Signature> all, const Image& image, std::uint64_t address) {
  if (image.format() == ImageFormat::pe32_plus) return all;
  const std::set<std::size_t> removed = removed_by_returns(image, address);
  if (removed.empty()) return all;
  std::erase_if(all, [&](const Signature& signature) { return !removed.contains(removed_bytes(signature)); });
  return all;
}

/// Results that come back in a register, for values with few words.
std::optional<Result> register_result(const Subject& subject) {
  const std::size_t words = subject.word_names.size();
  if (words == 1) return Result{subject.word_kind == WordKind::f32 ? Scalar::f32 : Scalar::u32, std::nullopt};
  if (words == 2 && subject.word_kind != WordKind::f32) return Result{Scalar::u64, std::nullopt};
  return std::nullopt;
}

std::vector<Signature> usual(const Subject& subject, bool is_64_bit) {
  std::vector<Convention> conventions(conventions_32.begin(), conventions_32.end());
  if (is_64_bit) conventions = {Convention::win64};
  std::vector<Signature> all;
  const auto add = [&](const std::vector<Argument>& arguments, const std::optional<Result>& result) {
    for (const Convention convention : conventions) all.push_back({convention, arguments, result});
  };
  for (const auto& arguments : pointer_arguments(subject)) add(arguments, std::nullopt);
  const auto result = register_result(subject);
  if (result) add({packed_argument(subject.packed_size)}, result);
  if (const auto integer = integer_of(subject.packed_size)) {
    const Argument value{Role::value, {*integer, 1, false}, 0, std::nullopt};
    const Argument out = result_argument(subject, subject.word_names.size());
    if (result) add({value}, result);
    add({value, out}, std::nullopt);
    add({out, value}, std::nullopt);
  }
  return all;
}

}  // namespace

SignatureProposer usual_signatures(const Subject& subject) {
  return [subject](const Image& image, std::uint64_t address) {
    return without_contradicted(usual(subject, image.format() == ImageFormat::pe32_plus), image, address);
  };
}

SignatureProposer register_signatures(const Subject& subject) {
  return [subject](const Image& image, std::uint64_t address) {
    std::vector<Signature> all;
    if (image.format() == ImageFormat::pe32_plus) return all;
    const Argument in = packed_argument(subject.packed_size);
    const Argument out = result_argument(subject, subject.word_names.size());
    const auto placed = [](Argument argument, std::uint8_t number) {
      argument.place = Register{RegisterClass::general, number};
      return argument;
    };
    for (const Convention convention : {Convention::cdecl_call, Convention::stdcall_call}) {
      for (const std::uint8_t number : argument_registers) {
        all.push_back({convention, {placed(in, number), out}, std::nullopt});
        all.push_back({convention, {placed(out, number), in}, std::nullopt});
        for (const std::uint8_t other : argument_registers) {
          if (other == number || convention == Convention::stdcall_call) continue;
          all.push_back({convention, {placed(in, number), placed(out, other)}, std::nullopt});
        }
      }
    }
    return without_contradicted(std::move(all), image, address);
  };
}

}  // namespace bitwitness
