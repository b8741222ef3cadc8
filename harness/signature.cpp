#include "harness/signature.hpp"

#include "harness/error.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <limits>
#include <span>

#include <fmt/format.h>

namespace bitwitness {
namespace {

struct ScalarRow {
  std::string_view name;
  Scalar scalar;
  std::size_t size;
};

constexpr std::array<ScalarRow, 10> scalars{{{"u8", Scalar::u8, 1},
                                             {"u16", Scalar::u16, 2},
                                             {"u32", Scalar::u32, 4},
                                             {"u64", Scalar::u64, 8},
                                             {"i8", Scalar::i8, 1},
                                             {"i16", Scalar::i16, 2},
                                             {"i32", Scalar::i32, 4},
                                             {"i64", Scalar::i64, 8},
                                             {"f32", Scalar::f32, 4},
                                             {"f64", Scalar::f64, 8}}};

const ScalarRow& row_of(Scalar scalar) {
  return *std::find_if(scalars.begin(), scalars.end(), [&](const ScalarRow& row) { return row.scalar == scalar; });
}

struct ConventionRow {
  std::string_view name;
  Convention convention;
};

constexpr std::array<ConventionRow, 6> conventions{{{"cdecl", Convention::cdecl_call},
                                                    {"stdcall", Convention::stdcall_call},
                                                    {"thiscall", Convention::thiscall_call},
                                                    {"fastcall", Convention::fastcall_call},
                                                    {"win64", Convention::win64},
                                                    {"auto", Convention::automatic}}};

constexpr std::array<std::string_view, 8> names_32{"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"};
constexpr std::array<std::string_view, 8> names_64{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"};

bool is_float(Scalar scalar) {
  return scalar == Scalar::f32 || scalar == Scalar::f64;
}

bool is_signed(Scalar scalar) {
  return scalar == Scalar::i8 || scalar == Scalar::i16 || scalar == Scalar::i32 || scalar == Scalar::i64;
}

bool is_pointer(Role role) {
  return role == Role::in || role == Role::out || role == Role::inout;
}

bool takes_packed(Role role) {
  return role == Role::in || role == Role::inout || role == Role::value;
}

bool gives_output(Role role) {
  return role == Role::out || role == Role::inout;
}

std::uint64_t mask_of(Scalar scalar) {
  return std::numeric_limits<std::uint64_t>::max() >> (64 - 8 * static_cast<unsigned>(size_of(scalar)));
}

std::string print_literal(std::uint64_t bits, Scalar scalar) {
  std::array<char, 64> buffer{};
  const auto print = [&](auto value) {
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
    return std::string(buffer.data(), end);
  };
  // Infinities and NaNs have no decimal spelling in the language.
  constexpr std::uint32_t infinity_32 = 0x7f800000;
  constexpr std::uint64_t infinity_64 = 0x7ff0000000000000;
  if (scalar == Scalar::f32) {
    if ((bits & infinity_32) == infinity_32) return fmt::format("0x{:08x}", bits);
    return print(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  if (scalar == Scalar::f64) {
    if ((bits & infinity_64) == infinity_64) return fmt::format("0x{:016x}", bits);
    return print(std::bit_cast<double>(bits));
  }
  const std::uint64_t mask = mask_of(scalar);
  if (!is_signed(scalar) || bits <= mask / 2) return print(bits);
  return fmt::format("-{}", print((std::uint64_t{0} - bits) & mask));
}

[[noreturn]] void refuse(const Signature& signature, std::string_view reason) {
  throw Error(fmt::format("signature '{}': {}", to_string(signature), reason));
}

void require_this_pointer(const Signature& signature) {
  const auto first = std::find_if(signature.arguments.begin(), signature.arguments.end(),
                                  [](const Argument& argument) { return !argument.place; });
  if (first == signature.arguments.end() || is_pointer(first->role)) return;
  if (is_float(first->type.scalar) || first->type.is_array || first->type.size() > 4) {
    refuse(signature,
           fmt::format("thiscall passes its first argument in ecx, which cannot hold {}", to_string(first->type)));
  }
}

// Arguments without a register go where the convention puts them, in their order; a placed one must not lie there.
void require_no_collision(const Signature& signature) {
  static constexpr std::array<std::uint8_t, 4> in_order{1, 2, 8, 9};  // ecx edx r8 r9
  const Convention convention = signature.convention;
  const std::size_t available = convention == Convention::win64           ? 4
                                : convention == Convention::fastcall_call ? 2
                                : convention == Convention::thiscall_call ? 1
                                                                          : 0;
  const auto unplaced = std::count_if(signature.arguments.begin(), signature.arguments.end(),
                                      [](const Argument& argument) { return !argument.place; });
  const auto used = std::span(in_order).first(std::min(available, static_cast<std::size_t>(unplaced)));
  for (const Argument& argument : signature.arguments) {
    if (!argument.place) continue;
    const bool is_general = argument.place->kind == RegisterClass::general;
    const bool collides = is_general ? std::find(used.begin(), used.end(), argument.place->number) != used.end()
                                     : convention == Convention::win64 && argument.place->number < used.size();
    if (collides) {
      refuse(signature,
             fmt::format("{} is also where {} puts an argument without a register: place that one too",
                         to_string(*argument.place, convention == Convention::win64), to_string(convention)));
    }
  }
}

void require_register_exists(const Signature& signature, const std::optional<Register>& place) {
  if (place && place->number >= 8) {
    refuse(signature, fmt::format("{} exists only in 64-bit code, and the image is 32-bit", to_string(*place, true)));
  }
}

}  // namespace

std::size_t size_of(Scalar scalar) {
  return row_of(scalar).size;
}

std::size_t Type::size() const {
  return size_of(scalar) * count;
}

std::size_t Type::extent() const {
  return offset_of(count - 1) + size_of(scalar);
}

std::size_t Type::offset_of(std::size_t element) const {
  std::size_t offset = element * size_of(scalar);
  for (const Skip& skip : skips) offset += skip.before <= element ? skip.bytes : 0;
  return offset;
}

std::size_t Type::word_count() const {
  return (size_of(scalar) == 8 ? std::size_t{2} : std::size_t{1}) * count;
}

std::size_t Signature::packed_size() const {
  std::size_t total = 0;
  for (const Argument& argument : arguments) total += takes_packed(argument.role) ? argument.type.size() : 0;
  return total;
}

std::size_t Signature::word_count() const {
  std::size_t total = result ? Type{result->scalar}.word_count() : 0;
  for (const Argument& argument : arguments) total += gives_output(argument.role) ? argument.type.word_count() : 0;
  return total;
}

std::string to_string(const Signature& signature) {
  std::string out(to_string(signature.convention));
  if (signature.convention == Convention::automatic) return out;
  const bool is_64_bit = signature.convention == Convention::win64;
  const auto put_place = [&](const std::optional<Register>& place) {
    if (place) out += " @ " + to_string(*place, is_64_bit);
  };
  out += '(';
  for (const Argument& argument : signature.arguments) {
    if (&argument != &signature.arguments.front()) out += ", ";
    switch (argument.role) {
      case Role::in:
        out += "in ";
        break;
      case Role::out:
        out += "out ";
        break;
      case Role::inout:
        out += "inout ";
        break;
      case Role::value:
        out += "value ";
        break;
      case Role::constant:
        break;
    }
    out += to_string(argument.type);
    if (argument.role == Role::constant) out += " = " + print_literal(argument.literal, argument.type.scalar);
    put_place(argument.place);
  }
  out += ')';
  if (signature.result) {
    out += fmt::format(" -> {}", to_string(signature.result->scalar));
    put_place(signature.result->place);
  }
  return out;
}

std::string to_string(const Type& type) {
  std::string out(to_string(type.scalar));
  if (!type.is_array) return out;
  out += '[';
  std::uint32_t printed = 0;
  for (const Skip& skip : type.skips) {
    if (skip.before != printed) out += fmt::format("{}, ", skip.before - printed);
    out += fmt::format("+{}, ", skip.bytes);
    printed = skip.before;
  }
  return out + fmt::format("{}]", type.count - printed);
}

std::string_view to_string(Scalar scalar) {
  return row_of(scalar).name;
}

std::string_view to_string(Convention convention) {
  return std::find_if(conventions.begin(), conventions.end(),
                      [&](const ConventionRow& row) { return row.convention == convention; })
      ->name;
}

std::string to_string(Register reg, bool is_64_bit) {
  if (reg.kind == RegisterClass::xmm) return fmt::format("xmm{}", reg.number);
  if (reg.number >= 8) return fmt::format("r{}", reg.number);
  return std::string(is_64_bit ? names_64[reg.number] : names_32[reg.number]);
}

void require_callable(const Signature& signature, bool is_64_bit) {
  if (signature.convention == Convention::automatic) {
    refuse(signature, "arguments and result are not known: give them with --signature");
  }
  if (is_64_bit != (signature.convention == Convention::win64)) {
    refuse(signature, is_64_bit ? "the image is 64-bit, whose convention is win64"
                                : "the image is 32-bit, and win64 is a convention of 64-bit code");
  }
  if (!is_64_bit) {
    for (const Argument& argument : signature.arguments) require_register_exists(signature, argument.place);
    if (signature.result) require_register_exists(signature, signature.result->place);
  }
  if (signature.convention == Convention::thiscall_call) require_this_pointer(signature);
  require_no_collision(signature);
}

}  // namespace bitwitness
