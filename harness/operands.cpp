#include "harness/operands.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>

namespace bitwitness {

std::optional<unsigned> register_number(std::string_view word, std::string_view prefix, unsigned end) {
  if (!word.starts_with(prefix)) return std::nullopt;
  word.remove_prefix(prefix.size());
  unsigned number = 0;
  const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || rest != word.data() + word.size() || number >= end) return std::nullopt;
  return number;
}

namespace {

/// Names of one register in its four widths.
struct RegisterNames {
  std::array<std::string_view, 5> names;
};

constexpr std::array<RegisterNames, 8> legacy_names = {{{{"eax", "rax", "ax", "al", "ah"}},
                                                        {{"ecx", "rcx", "cx", "cl", "ch"}},
                                                        {{"edx", "rdx", "dx", "dl", "dh"}},
                                                        {{"ebx", "rbx", "bx", "bl", "bh"}},
                                                        {{"esp", "rsp", "sp", "spl", "esp"}},
                                                        {{"ebp", "rbp", "bp", "bpl", "ebp"}},
                                                        {{"esi", "rsi", "si", "sil", "esi"}},
                                                        {{"edi", "rdi", "di", "dil", "edi"}}}};

std::optional<unsigned> general_number(std::string_view word) {
  for (unsigned reg = 0; reg < legacy_names.size(); ++reg) {
    if (std::ranges::find(legacy_names.at(reg).names, word) != legacy_names.at(reg).names.end()) return reg;
  }
  if (word.size() > 2 && std::string_view("dwb").find(word.back()) != std::string_view::npos) word.remove_suffix(1);
  const auto number = register_number(word, "r", 16);
  return number && *number >= 8 ? number : std::nullopt;
}

std::string_view mnemonic_of(std::string_view text) {
  // "rep movsd …", "lock xadd …"
  for (const std::string_view prefix : {"rep ", "repe ", "repne ", "lock "}) {
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  }
  return text.substr(0, text.find(' '));
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [text](std::string_view prefix) { return text.starts_with(prefix); });
}

bool is_x87(std::string_view mnemonic) {
  return mnemonic.starts_with('f') && !starts_with_any(mnemonic, {"femms", "fxsave", "fxrstor"});
}

bool is_x87_control(std::string_view mnemonic) {
  return starts_with_any(mnemonic, {"fn", "fldcw", "fldenv", "fstcw", "fstsw", "fstenv", "fsave", "frstor", "fwait",
                                    "finit", "fclex", "ffree", "fincstp", "fdecstp"});
}

/// Loads push what memory, a register or a constant holds; all other arithmetic starts from st(0).
bool uses_top(std::string_view mnemonic) {
  return is_x87(mnemonic) && !is_x87_control(mnemonic) && !starts_with_any(mnemonic, {"fld", "fild", "fbld"});
}

/// fild, fist(p), fisttp and the arithmetic on integers in memory: fiadd, ficom, fidiv, fimul, fisub …
bool has_integer_memory(std::string_view mnemonic) {
  return starts_with_any(mnemonic, {"fi"});
}

bool has_sse_operand(std::string_view text) {
  return text.find("xmm") != std::string_view::npos;
}

/// SSE instructions that move or compute integers; the letter before the type is not part of a name like "mulps".
bool is_integer_sse(std::string_view mnemonic) {
  return mnemonic.starts_with('p') || starts_with_any(mnemonic, {"movd", "movq", "movnti", "movntdq", "lddqu"});
}

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> suffixes) {
  return std::ranges::any_of(suffixes, [text](std::string_view suffix) { return text.ends_with(suffix); });
}

/// The type that a name or a part of one ends with, as in "mulsd" and "cvttps".
Reading type_behind(std::string_view name) {
  if (ends_with_any(name, {"ss", "ps"})) return Reading::f32;
  if (ends_with_any(name, {"sd", "pd"})) return Reading::f64;
  return Reading::integer;
}

}  // namespace

std::optional<GeneralPart> general_part(std::string_view name) {
  const auto number = general_number(name);
  if (!number) return std::nullopt;
  GeneralPart part{static_cast<std::uint8_t>(*number), 0, 64};
  if (name.size() == 2 && name[1] == 'h') return GeneralPart{part.number, 8, 8};
  if (*number >= 8) {
    part.width = name.back() == 'd' ? 32 : name.back() == 'w' ? 16 : name.back() == 'b' ? 8 : 64;
  } else if (name.front() != 'r') {
    part.width = name.front() == 'e' ? 32 : name.back() == 'l' ? 8 : 16;
  }
  return part;
}

std::pair<std::string, std::string> split_mnemonic(std::string_view text) {
  std::string prefix;
  while (true) {
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos) break;
    const std::string_view word = text.substr(0, space);
    text.remove_prefix(space + 1);
    if (word == "repz") {
      prefix = "repe";
    } else if (word == "repnz") {
      prefix = "repne";
    } else if (word == "rep" || word == "repe" || word == "repne" || word == "lock") {
      prefix = word;
    }
  }
  if (text == "ret" || text == "jmp" || text == "call") prefix.clear();
  return {prefix, std::string(text)};
}

Operands operands_of(std::string_view text) {
  Operands operands;
  const std::string_view mnemonic = mnemonic_of(text);
  operands.is_floating_point = is_x87(mnemonic) || has_sse_operand(text);
  if (uses_top(mnemonic)) operands.x87 |= 1;
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::string_view rest = text;
  while (true) {
    const std::size_t start = rest.find_first_of(letters);
    if (start == std::string_view::npos) return operands;
    rest.remove_prefix(start);
    const std::string_view word = rest.substr(0, rest.find_first_not_of(letters));
    rest.remove_prefix(word.size());
    if (const auto reg = general_number(word)) {
      operands.general = static_cast<std::uint16_t>(operands.general | 1U << *reg);
    } else if (const auto xmm = register_number(word, "xmm", 16)) {
      operands.xmm = static_cast<std::uint16_t>(operands.xmm | 1U << *xmm);
    } else if (word == "st") {
      unsigned index = 0;
      if (rest.size() > 1 && rest[0] == '(' && rest[1] >= '0' && rest[1] <= '7')
        index = static_cast<unsigned>(rest[1] - '0');
      operands.x87 = static_cast<std::uint8_t>(operands.x87 | 1U << index);
    }
  }
}

Lanes lanes_of(std::string_view text) {
  const std::string_view mnemonic = mnemonic_of(text);
  if (!has_sse_operand(text)) return {};
  if (mnemonic.starts_with("cvt")) {
    const std::size_t middle = mnemonic.find('2');
    const std::string_view source = mnemonic.substr(0, middle);
    return {type_behind(source), type_behind(mnemonic), ends_with_any(source, {"ss", "sd", "si"})};
  }
  if (mnemonic == "movddup") return {Reading::f64, Reading::f64, false};
  if (ends_with_any(mnemonic, {"dup"})) return {Reading::f32, Reading::f32, false};  // movsldup, movshdup
  if (is_integer_sse(mnemonic)) return {};
  const Reading type = type_behind(mnemonic);
  if (type == Reading::integer) return {};
  return {type, type, ends_with_any(mnemonic, {"ss", "sd"})};
}

Reading reading_of(std::string_view text, std::size_t size) {
  const std::string_view mnemonic = mnemonic_of(text);
  if (has_sse_operand(text)) return lanes_of(text).source;
  if (!is_x87(mnemonic) || is_x87_control(mnemonic) || starts_with_any(mnemonic, {"fb"})) return Reading::bits;
  if (has_integer_memory(mnemonic)) return Reading::integer;
  if (size == 4) return Reading::f32;
  if (size == 8) return Reading::f64;
  constexpr std::size_t extended_size = 10;
  return size == extended_size ? Reading::f80 : Reading::bits;
}

}  // namespace bitwitness
