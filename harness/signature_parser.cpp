#include "harness/error.hpp"
#include "harness/signature.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <limits>
#include <system_error>

#include <fmt/format.h>

namespace bitwitness {
namespace {

// Longer than any signature within the limits of the header.
constexpr std::size_t max_text = 1024;

constexpr std::array conventions{Convention::cdecl_call,    Convention::stdcall_call, Convention::thiscall_call,
                                 Convention::fastcall_call, Convention::win64,        Convention::automatic};

constexpr std::array scalars{Scalar::u8,  Scalar::u16, Scalar::u32, Scalar::u64, Scalar::i8,
                             Scalar::i16, Scalar::i32, Scalar::i64, Scalar::f32, Scalar::f64};

constexpr Register stack_pointer{RegisterClass::general, 4};

bool is_float(Scalar scalar) {
  return scalar == Scalar::f32 || scalar == Scalar::f64;
}

bool is_signed(Scalar scalar) {
  return scalar == Scalar::i8 || scalar == Scalar::i16 || scalar == Scalar::i32 || scalar == Scalar::i64;
}

bool is_pointer(Role role) {
  return role == Role::in || role == Role::out || role == Role::inout;
}

std::uint64_t max_of(Scalar scalar) {
  return std::numeric_limits<std::uint64_t>::max() >> (64 - 8 * static_cast<unsigned>(size_of(scalar)));
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

// Keeps a message on one line and its columns where they are, whatever the text holds.
std::string shown(std::string_view text) {
  std::string out(text.substr(0, max_text));
  std::replace_if(
      out.begin(), out.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return out;
}

bool is_named(Register reg, std::string_view name) {
  return name == to_string(reg, false) || name == to_string(reg, true);
}

std::optional<Register> find_register(std::string_view name) {
  for (const RegisterClass kind : {RegisterClass::general, RegisterClass::xmm}) {
    for (std::uint8_t number = 0; number < 16; ++number) {
      if (is_named({kind, number}, name)) return Register{kind, number};
    }
  }
  return std::nullopt;
}

template <typename Float, typename Bits>
std::optional<std::uint64_t> parse_decimal_float(std::string_view text) {
  Float value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return std::uint64_t{std::bit_cast<Bits>(value)};
}

std::string range_of(Scalar scalar) {
  const std::uint64_t max = max_of(scalar);
  if (is_float(scalar)) return fmt::format("a finite decimal that {} can hold, or its bits in hex", to_string(scalar));
  if (!is_signed(scalar)) return fmt::format("an integer from 0 to {}", max);
  return fmt::format("an integer from -{} to {}", max / 2 + 1, max / 2);
}

// The bits of a literal in the width of its type, or nothing when it is malformed or out of range.
std::optional<std::uint64_t> literal_bits(std::string_view text, Scalar scalar) {
  const bool negative = text.starts_with('-');
  std::string_view digits = text.substr(negative ? 1 : 0);
  const bool hex = digits.starts_with("0x") || digits.starts_with("0X");
  if (is_float(scalar) && !hex) {
    if (digits.empty() || !(is_digit(digits.front()) || digits.front() == '.')) return std::nullopt;
    return scalar == Scalar::f32 ? parse_decimal_float<float, std::uint32_t>(text)
                                 : parse_decimal_float<double, std::uint64_t>(text);
  }
  if (hex) digits.remove_prefix(2);
  std::uint64_t magnitude = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, hex ? 16 : 10);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  const std::uint64_t max = max_of(scalar);
  if (!is_signed(scalar)) {
    if (negative || magnitude > max) return std::nullopt;
    return magnitude;
  }
  if (magnitude > max / 2 + (negative ? 1 : 0)) return std::nullopt;
  return (negative ? std::uint64_t{0} - magnitude : magnitude) & max;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Signature parse() {
    signature_.convention = parse_convention();
    if (signature_.convention == Convention::automatic) {
      if (accept('(')) require(')', "')': auto takes no arguments");
      require_end("the end: auto leaves arguments and result open");
      return signature_;
    }
    require('(', "'('");
    if (!accept(')')) {
      do {
        parse_argument();
      } while (accept(','));
      require(')', signature_.arguments.back().place ? "',' or ')'" : "'@', ',' or ')'");
    }
    if (signature_.packed_size() == 0) fail(pos_ - 1, "an 'in', 'inout' or 'value' argument with the packed bytes");
    if (accept("->")) {
      parse_result();
      require_end(signature_.result->place ? "the end" : "'@' or the end");
    } else {
      require_end("'->' or the end");
    }
    if (signature_.word_count() == 0) fail(text_.size(), "'-> result': there is no 'out' or 'inout' argument either");
    return signature_;
  }

 private:
  [[noreturn]] void fail(std::size_t at, std::string_view expected) const {
    throw Error(fmt::format("signature '{}': column {}: expected {}", shown(text_), at + 1, expected));
  }

  void skip_blanks() {
    while (pos_ < text_.size() && (text_[pos_] == ' ' || text_[pos_] == '\t')) ++pos_;
  }

  bool accept(std::string_view token) {
    skip_blanks();
    if (!text_.substr(pos_).starts_with(token)) return false;
    pos_ += token.size();
    return true;
  }

  bool accept(char token) { return accept(std::string_view(&token, 1)); }

  void require(char token, std::string_view expected) {
    if (!accept(token)) fail(pos_, expected);
  }

  void require_end(std::string_view expected) {
    skip_blanks();
    if (pos_ != text_.size()) fail(pos_, expected);
  }

  // Leaves the position at the word, so that an error about it points there; `pos_ += size` takes it.
  std::string_view peek_word() {
    skip_blanks();
    std::size_t end = pos_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    return text_.substr(pos_, end - pos_);
  }

  Convention parse_convention() {
    const std::string_view word = peek_word();
    for (const Convention convention : conventions) {
      if (word == to_string(convention)) {
        pos_ += word.size();
        return convention;
      }
    }
    fail(pos_, "cdecl, stdcall, thiscall, fastcall, win64 or auto");
  }

  std::optional<Scalar> accept_scalar() {
    const std::string_view word = peek_word();
    for (const Scalar scalar : scalars) {
      if (word == to_string(scalar)) {
        pos_ += word.size();
        return scalar;
      }
    }
    return std::nullopt;
  }

  Type parse_type(std::string_view expected) {
    const std::optional<Scalar> scalar = accept_scalar();
    if (!scalar) fail(pos_, expected);
    Type type;
    type.scalar = *scalar;
    if (!accept('[')) return type;
    type.is_array = true;
    type.count = 0;
    do {
      if (accept('+')) {
        if (type.skips.size() == max_skips) fail(pos_ - 1, fmt::format("at most {} gaps", max_skips));
        type.skips.push_back({type.count, parse_number("bytes to pass over")});
        require(',', "',': elements follow the bytes that are passed over");
      } else if (type.count != 0) {
        fail(pos_, "'+' and the bytes to pass over");
      }
      type.count += parse_number("elements");
      if (type.extent() > max_output_bytes) fail(pos_, fmt::format("at most {} bytes", max_output_bytes));
    } while (accept(','));
    require(']', "',' or ']'");
    return type;
  }

  std::uint32_t parse_number(std::string_view of) {
    skip_blanks();
    const std::size_t at = pos_;
    std::uint32_t number = 0;
    while (pos_ < text_.size() && is_digit(text_[pos_])) ++pos_;
    const auto error = std::from_chars(text_.data() + at, text_.data() + pos_, number).ec;
    if (error != std::errc{} || number == 0 || number > max_output_bytes) {
      fail(at, fmt::format("a count of {} from 1 to {}", of, max_output_bytes));
    }
    return number;
  }

  void require_no_skips(std::size_t at, const Type& type) const {
    if (!type.skips.empty()) fail(at, "no '+': only what a pointer points to has bytes to pass over");
  }

  void parse_argument() {
    const std::string_view word = peek_word();
    const std::size_t start = pos_;
    if (signature_.arguments.size() == max_arguments) fail(start, fmt::format("at most {} arguments", max_arguments));
    static constexpr std::array<std::pair<std::string_view, Role>, 4> roles{
        {{"in", Role::in}, {"out", Role::out}, {"inout", Role::inout}, {"value", Role::value}}};
    const auto role = std::find_if(roles.begin(), roles.end(), [&](const auto& row) { return row.first == word; });
    Argument argument;
    if (role != roles.end()) {
      pos_ += word.size();
      skip_blanks();
      const std::size_t type_at = pos_;
      argument.role = role->second;
      argument.type = parse_type("a type: u8 … u64, i8 … i64, f32 or f64");
      if (argument.role == Role::value) require_no_skips(type_at, argument.type);
      signature_.arguments.push_back(argument);
      require_sizes(type_at);
    } else {
      argument.role = Role::constant;
      argument.type = parse_type("in, out, inout, value, or a type with '='");
      require('=', "'=': a type without in, out, inout or value is a constant");
      if (argument.type.is_array) fail(start, "a scalar: a constant is not an array");
      argument.literal = parse_literal(argument.type.scalar);
      signature_.arguments.push_back(argument);
    }
    if (accept('@')) signature_.arguments.back().place = parse_argument_register();
  }

  void require_sizes(std::size_t at) const {
    std::size_t output = 0;
    for (const Argument& argument : signature_.arguments) {
      if (argument.role == Role::out || argument.role == Role::inout) output += argument.type.extent();
    }
    if (signature_.packed_size() > max_packed_size) fail(at, fmt::format("at most {} packed bytes", max_packed_size));
    if (output > max_output_bytes) fail(at, fmt::format("at most {} bytes of output", max_output_bytes));
  }

  std::uint64_t parse_literal(Scalar scalar) {
    skip_blanks();
    const std::size_t at = pos_;
    const auto in_literal = [&](char c) {
      return is_word(c) || c == '.' ||
             ((c == '-' || c == '+') && (pos_ == at || text_[pos_ - 1] == 'e' || text_[pos_ - 1] == 'E'));
    };
    while (pos_ < text_.size() && in_literal(text_[pos_])) ++pos_;
    const std::optional<std::uint64_t> bits = literal_bits(text_.substr(at, pos_ - at), scalar);
    if (!bits) fail(at, range_of(scalar));
    return *bits;
  }

  Register parse_register() {
    const std::string_view word = peek_word();
    const std::optional<Register> reg = find_register(word);
    if (reg == stack_pointer) fail(pos_, "a register other than the stack pointer");
    if (!reg) fail(pos_, "a register: eax … edi, rax … r15 or xmm0 … xmm15");
    return *reg;
  }

  void take_register(std::size_t bytes, Register reg) {
    // win64 is the only convention of 64-bit code; a pointer and the low half of an xmm register always fit.
    const bool is_wide = reg.kind == RegisterClass::xmm || signature_.convention == Convention::win64;
    const std::size_t room = is_wide ? 8 : 4;
    if (bytes > room) {
      fail(pos_, fmt::format("a register that holds {} bytes: {} takes {}", bytes, peek_word(), room));
    }
    pos_ += peek_word().size();
  }

  Register parse_argument_register() {
    const Argument& argument = signature_.arguments.back();
    const Register reg = parse_register();
    if (reg.kind == RegisterClass::xmm) {
      if (is_pointer(argument.role)) fail(pos_, "a general register: the argument is a pointer");
      if (argument.role == Role::constant && !is_float(argument.type.scalar)) {
        fail(pos_, "a general register: the constant is an integer");
      }
    }
    const bool taken = std::any_of(signature_.arguments.begin(), signature_.arguments.end(),
                                   [&](const Argument& other) { return other.place == reg; });
    if (taken) fail(pos_, fmt::format("a register that no other argument has: {} is taken", peek_word()));
    take_register(is_pointer(argument.role) ? 0 : argument.type.size(), reg);
    return reg;
  }

  void parse_result() {
    skip_blanks();
    const std::size_t at = pos_;
    const std::optional<Scalar> scalar = accept_scalar();
    if (!scalar || (!is_float(*scalar) && *scalar != Scalar::u32 && *scalar != Scalar::u64)) {
      fail(at, "f32, f64, u32 or u64");
    }
    Result result;
    result.scalar = *scalar;
    if (accept('@')) {
      const Register reg = parse_register();
      take_register(size_of(*scalar), reg);
      result.place = reg;
    }
    signature_.result = result;
  }

  std::string_view text_;
  std::size_t pos_ = 0;
  Signature signature_;
};

}  // namespace

Signature parse_signature(std::string_view text) {
  if (text.size() > max_text) {
    throw Error(fmt::format("signature '{}…': column {}: expected the end: a signature has at most {} characters",
                            shown(text.substr(0, 32)), max_text + 1, max_text));
  }
  return Parser(text).parse();
}

}  // namespace bitwitness
