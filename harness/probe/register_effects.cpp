#include "harness/disassembly.hpp"
#include "harness/probe/register_flow.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace bitwitness {
namespace {

struct Named {
  bool is_xmm = false;
  unsigned number = 0;
  unsigned width = 0;
  bool operator==(const Named&) const = default;
};

constexpr std::array<std::string_view, 8> wide_names = {"ax", "cx", "dx", "bx", "sp", "bp", "si", "di"};
constexpr std::array<std::string_view, 8> low_names = {"al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil"};
constexpr std::array<std::string_view, 4> high_names = {"ah", "ch", "dh", "bh"};

std::optional<unsigned> number_in(std::string_view digits) {
  if (digits.empty() || digits.size() > 2) return std::nullopt;
  unsigned number = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<unsigned>(c - '0');
  }
  return number < 16 ? std::optional(number) : std::nullopt;
}

template <typename Names>
std::optional<unsigned> index_in(const Names& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<unsigned>(found - names.begin());
}

std::optional<Named> register_named(std::string_view name) {
  if (name.starts_with("xmm")) {
    if (const auto number = number_in(name.substr(3))) return Named{true, *number, 16};
    return std::nullopt;
  }
  if (const auto number = index_in(wide_names, name)) return Named{false, *number, 2};
  if (const auto number = index_in(low_names, name)) return Named{false, *number, 1};
  if (const auto number = index_in(high_names, name)) return Named{false, *number, 1};
  if (name.size() == 3 && (name[0] == 'e' || name[0] == 'r')) {
    if (const auto number = index_in(wide_names, name.substr(1)))
      return Named{false, *number, name[0] == 'e' ? 4u : 8u};
  }
  if (name.size() < 2 || name[0] != 'r') return std::nullopt;
  unsigned width = 8;
  std::string_view digits = name.substr(1);
  if (digits.ends_with('d')) width = 4;
  if (digits.ends_with('w')) width = 2;
  if (digits.ends_with('b')) width = 1;
  if (width != 8) digits.remove_suffix(1);
  if (const auto number = number_in(digits); number && *number >= 8) return Named{false, *number, width};
  return std::nullopt;
}

void add(RegisterSet& set, const Named& reg) {
  const auto bit = static_cast<std::uint16_t>(1u << reg.number);
  (reg.is_xmm ? set.xmm : set.general) |= bit;
}

void add_general(RegisterSet& set, std::initializer_list<unsigned> numbers) {
  for (const unsigned number : numbers) add(set, {false, number, 4});
}

/// Adds every register whose name stands in a text.
void add_all(RegisterSet& set, std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t end = at;
    while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end])) != 0) ++end;
    if (end > at) {
      if (const auto reg = register_named(text.substr(at, end - at))) add(set, *reg);
    }
    at = end + 1;
  }
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> operands_of(std::string_view text) {
  std::vector<std::string_view> operands;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    operands.push_back(trimmed(text.substr(0, comma)));
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return operands;
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> heads) {
  return std::ranges::any_of(heads, [text](std::string_view head) { return text.starts_with(head); });
}

bool is_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

bool has_no_destination(std::string_view mnemonic) {
  return is_any(mnemonic, {"cmp", "test", "push", "call", "ret", "comiss", "comisd", "ucomiss", "ucomisd", "bt", "nop",
                           "out", "ldmxcsr", "fldcw", "ptest", "sahf"}) ||
         mnemonic.starts_with('j') || (mnemonic.starts_with('f') && mnemonic != "fnstsw" && mnemonic != "fstsw");
}

/// Tells whether what an instruction gives does not depend on its operands.
bool clears(std::string_view mnemonic, const std::vector<std::string_view>& operands) {
  if (operands.size() != 2) return false;
  if (operands[0] == operands[1]) {
    return is_any(mnemonic, {"xor", "sub", "sbb", "pxor", "xorps", "xorpd"}) ||
           starts_with_any(mnemonic, {"pcmpeq", "psub", "pcmpgt"});
  }
  const bool is_ones = is_any(operands[1], {"-1", "0xffffffff", "0xffffffffffffffff"});
  return (mnemonic == "or" && is_ones) || (mnemonic == "and" && operands[1] == "0");
}

/// Tells whether an instruction ignores what its destination held.
bool overwrites(std::string_view mnemonic, const std::vector<std::string_view>& operands) {
  if (clears(mnemonic, operands)) return true;
  if (mnemonic == "imul") return operands.size() == 3;
  return starts_with_any(mnemonic, {"mov", "lea", "pop", "set", "cvt", "sqrt", "rsqrt", "rcp", "pshuf", "fnstsw",
                                    "fstsw", "bsf", "bsr", "pextr", "tzcnt", "lzcnt", "popcnt", "lddqu", "pabs"}) &&
         !is_any(mnemonic, {"movlps", "movhps", "movlpd", "movhpd", "movhlps", "movlhps"});
}

constexpr unsigned a = 0;
constexpr unsigned c = 1;
constexpr unsigned d = 2;
constexpr unsigned b = 3;
constexpr unsigned bp = 5;
constexpr unsigned si = 6;
constexpr unsigned di = 7;

/// Registers that an instruction uses without naming them.
void add_implicit(RegisterEffect& effect, std::string_view mnemonic, std::size_t operands) {
  const auto uses = [&effect](std::initializer_list<unsigned> reads, std::initializer_list<unsigned> writes) {
    add_general(effect.reads, reads);
    add_general(effect.writes, writes);
    if (writes.size() != 0) effect.general_width = 4;
  };
  if (is_any(mnemonic, {"cdq", "cqo", "cwd"})) uses({a}, {d});
  if (is_any(mnemonic, {"cwde", "cdqe", "cbw"})) uses({a}, {a});
  if (mnemonic == "mul" || (mnemonic == "imul" && operands == 1)) uses({a}, {a, d});
  if (is_any(mnemonic, {"div", "idiv"})) uses({a, d}, {a, d});
  if (mnemonic == "leave") uses({bp}, {bp});
  if (is_any(mnemonic, {"cpuid", "rdtsc"})) uses({a, c}, {a, b, c, d});
  if (mnemonic.starts_with("loop")) uses({c}, {c});
  if (mnemonic == "sahf") uses({a}, {});
  if (mnemonic == "lahf") uses({}, {a});
  if (mnemonic.starts_with("stos")) uses({a, c, di}, {c, di});
  if (mnemonic.starts_with("lods")) uses({si}, {a, si});
  if (is_any(mnemonic, {"movsb", "movsw", "movsq", "cmpsb", "cmpsw", "cmpsd", "scasb"}))
    uses({a, c, si, di}, {c, si, di});
}

std::string_view mnemonic_of(std::string_view& rest) {
  while (true) {
    const std::size_t blank = rest.find(' ');
    const std::string_view word = rest.substr(0, blank);
    rest = blank == std::string_view::npos ? std::string_view{} : rest.substr(blank + 1);
    if (!is_any(word, {"rep", "repe", "repne", "lock", "bnd"}) || rest.empty()) return word;
  }
}

RegisterEffect::Float float_kind(std::string_view mnemonic) {
  if (mnemonic == "cvtps2pd" || mnemonic == "cvtss2sd" || mnemonic == "cvtsi2sd" || mnemonic == "cvtdq2pd") {
    return RegisterEffect::Float::wide;
  }
  if (mnemonic == "cvtsd2ss" || mnemonic == "cvtpd2ps" || mnemonic == "cvtsi2ss" || mnemonic == "cvtdq2ps") {
    return RegisterEffect::Float::single;
  }
  if (mnemonic.ends_with("ss") || mnemonic.ends_with("ps") || mnemonic == "movd") return RegisterEffect::Float::single;
  if (mnemonic.ends_with("sd") || mnemonic.ends_with("pd") || mnemonic == "movq") return RegisterEffect::Float::wide;
  return RegisterEffect::Float::none;
}

/// What an instruction takes the lowest bytes of an XMM operand for; moves of all of it tell nothing.
RegisterEffect::Float read_kind(std::string_view mnemonic) {
  using enum RegisterEffect::Float;
  if (starts_with_any(mnemonic, {"cvtss2", "cvttss2", "cvtps2", "cvttps2"})) return single;
  if (starts_with_any(mnemonic, {"cvtsd2", "cvttsd2", "cvtpd2", "cvttpd2"})) return wide;
  if (starts_with_any(mnemonic, {"cvt", "mova", "movu", "and", "or", "xor"})) return none;
  return float_kind(mnemonic);
}

bool is_plain_move(std::string_view mnemonic) {
  return is_any(mnemonic, {"mov", "movaps", "movups", "movapd", "movupd", "movdqa", "movdqu", "movss", "movsd", "movq",
                           "movd", "push", "pop"});
}

/// Tells whether an instruction is one that compilers put in for its length: "lea esi, [esi]".
bool is_filler(std::string_view mnemonic, const std::vector<std::string_view>& operands) {
  if (mnemonic == "nop") return true;
  if (operands.size() != 2) return false;
  if (mnemonic == "xchg") return operands[0] == operands[1];
  if (mnemonic != "lea" || !operands[1].starts_with('[')) return false;
  const std::string_view inside = operands[1].substr(1);
  if (!inside.starts_with(operands[0])) return false;
  const std::string_view rest = inside.substr(operands[0].size());
  return is_any(rest, {"]", " + eiz]", " + eiz*1]", " + 0]", " + riz]", " + riz*1]"});
}

void add_move(RegisterEffect& effect, std::string_view mnemonic, const std::vector<std::string_view>& operands) {
  const auto index = [](const Named& reg) { return reg.number + (reg.is_xmm ? 16 : 0); };
  if (is_filler(mnemonic, operands)) effect.move = RegisterEffect::Move::nothing;
  if (mnemonic == "push" && operands.size() == 1) {
    if (const auto reg = register_named(operands[0])) {
      effect.move = RegisterEffect::Move::store;
      effect.from = index(*reg);
    }
  }
  if (mnemonic == "pop" && operands.size() == 1) {
    if (const auto reg = register_named(operands[0])) {
      effect.move = RegisterEffect::Move::load;
      effect.to = index(*reg);
    }
  }
  if (mnemonic == "leave") {
    effect.move = RegisterEffect::Move::load;
    effect.to = bp;
  }
  if (operands.size() != 2 || !is_plain_move(mnemonic)) return;
  const auto to = register_named(operands[0]);
  const auto from = register_named(operands[1]);
  const bool is_narrow = (to && to->width < 4) || (from && from->width < 4);
  if (is_narrow) return;
  if (to && from) {
    effect.move = *to == *from ? RegisterEffect::Move::nothing : RegisterEffect::Move::registers;
    effect.from = index(*from);
    effect.to = index(*to);
  } else if (to && operands[1].ends_with(']')) {
    effect.move = RegisterEffect::Move::load;
    effect.to = index(*to);
  } else if (from && operands[0].ends_with(']')) {
    effect.move = RegisterEffect::Move::store;
    effect.from = index(*from);
  }
}

}  // namespace

RegisterEffect effect_of(std::string_view text) {
  RegisterEffect effect;
  std::string_view rest = text;
  const std::string_view mnemonic = mnemonic_of(rest);
  const std::vector<std::string_view> operands = operands_of(rest);
  effect.is_pop = mnemonic == "pop";
  if (operands.size() == 2 && operands[0].ends_with(']') && store_kind_of(text) == StoreKind::vector) {
    if (const auto reg = register_named(operands[1]); reg && reg->is_xmm) effect.stored_xmm = reg->number;
  }
  add_implicit(effect, mnemonic, operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto reg = register_named(operands[i]);
    if (!reg || i > 0 || has_no_destination(mnemonic)) {
      add_all(effect.reads, operands[i]);
      if (i > 0 && reg && mnemonic == "xchg") add(effect.writes, *reg);
      continue;
    }
    add(effect.writes, *reg);
    if (!reg->is_xmm) effect.general_width = reg->width;
    if (reg->is_xmm) effect.floating = float_kind(mnemonic);
    effect.computes = effect.floating != RegisterEffect::Float::none && !mnemonic.starts_with("mov");
    if (!overwrites(mnemonic, operands)) add(effect.reads, *reg);
    if (clears(mnemonic, operands)) break;
  }
  add_move(effect, mnemonic, operands);
  effect.read_as = read_kind(mnemonic);
  effect.fills_vector = is_any(mnemonic, {"movdqa", "movdqu", "movaps", "movups", "movapd", "movupd", "lddqu"}) ||
                        starts_with_any(mnemonic, {"pinsr", "punpck", "unpck", "shuf", "pshuf", "movlh", "movhl"}) ||
                        is_any(mnemonic, {"movhps", "movhpd"});
  return effect;
}

StoreKind store_kind_of(std::string_view text) {
  std::string_view rest = text;
  const std::string_view mnemonic = mnemonic_of(rest);
  if (text.find("xmmword") != std::string_view::npos) return StoreKind::vector;
  const bool is_float_store = is_any(mnemonic, {"fst", "fstp"});
  if (is_float_store) return text.find("qword") != std::string_view::npos ? StoreKind::wide : StoreKind::single;
  if (mnemonic == "movss" || mnemonic == "extractps") return StoreKind::single;
  if (mnemonic == "movsd" && text.find("xmm") != std::string_view::npos) return StoreKind::wide;
  if (is_any(mnemonic, {"movlps", "movhps", "movlpd", "movhpd", "movq"})) return StoreKind::vector;
  return StoreKind::integer;
}

bool loads_float(std::string_view text) {
  std::string_view rest = text;
  const std::string_view mnemonic = mnemonic_of(rest);
  if (is_any(mnemonic, {"movss",   "addss",     "subss",     "mulss",    "divss",  "cvtss2sd", "sqrtss",  "addsd",
                        "subsd",   "mulsd",     "divsd",     "cvtsd2ss", "sqrtsd", "comiss",   "ucomiss", "comisd",
                        "ucomisd", "cvttss2si", "cvttsd2si", "minss",    "maxss",  "minsd",    "maxsd"})) {
    return true;
  }
  if (mnemonic == "movsd") return text.find("xmm") != std::string_view::npos;
  return is_any(mnemonic, {"fld", "fadd", "fsub", "fsubr", "fmul", "fdiv", "fdivr", "fcom", "fcomp"});
}

X87Effect x87_effect_of(std::string_view text) {
  X87Effect effect;
  std::string_view rest = text;
  const std::string_view mnemonic = mnemonic_of(rest);
  if (!mnemonic.starts_with('f')) return effect;
  const std::size_t operand = rest.rfind("st(");
  if (operand != std::string_view::npos) effect.operand = static_cast<unsigned>(rest[operand + 3] - '0');
  const bool names_memory = rest.find('[') != std::string_view::npos;
  if (mnemonic.ends_with('p')) effect.pops = mnemonic.ends_with("pp") ? 2 : 1;
  if (mnemonic == "fld") {
    effect.kind = rest.starts_with("dword") ? X87Effect::Kind::load_single : X87Effect::Kind::load_other;
  } else if (starts_with_any(mnemonic, {"fld1", "fldz", "fldpi", "fldl", "fild"})) {
    effect.kind = X87Effect::Kind::load_other;
  } else if (mnemonic == "fxch") {
    effect.kind = X87Effect::Kind::exchange;
  } else if (mnemonic == "fst" || mnemonic == "fstp") {
    effect.stores_register = !names_memory;
  } else if (starts_with_any(mnemonic, {"fist", "fnst", "fst", "fldcw", "fldenv", "fwait", "fcom", "fucom", "ficom",
                                        "ftst", "fxam", "fchs", "fabs", "fnclex", "fnop", "ffree"})) {
    return effect;
  } else {
    effect.kind = X87Effect::Kind::compute;
  }
  return effect;
}

}  // namespace bitwitness
