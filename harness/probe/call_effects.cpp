// What the instructions before and behind a call do to registers and the stack, as far as their text tells.
#include "harness/probe/call_lines.hpp"
#include "harness/probe/register_flow.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <map>
#include <string>
#include <string_view>

namespace bitwitness::call_lines {
namespace {

constexpr unsigned eax = 0;
constexpr unsigned ecx = 1;
constexpr unsigned edx = 2;
constexpr unsigned esp = 4;
constexpr unsigned ebp = 5;
constexpr std::int64_t home_bytes = 0x20;
constexpr std::size_t most_stack_words = 16;

bool has_bit(std::uint16_t bits, unsigned number) {
  return (bits >> number & 1) != 0;
}

/// "mov dword ptr [esp + 4], eax" in parts.
struct Parts {
  std::string_view mnemonic;
  std::string_view first;
  std::string_view second;
};

Parts parts_of(std::string_view text) {
  Parts parts;
  const std::size_t blank = text.find(' ');
  parts.mnemonic = text.substr(0, blank);
  if (blank == std::string_view::npos) return parts;
  const std::string_view rest = text.substr(blank + 1);
  const std::size_t comma = rest.find(", ");
  parts.first = rest.substr(0, comma);
  if (comma != std::string_view::npos) parts.second = rest.substr(comma + 2);
  return parts;
}

/// "8", "0x10", "-1".
std::optional<std::int64_t> number_in(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  const int base = text.starts_with("0x") ? 16 : 10;
  if (base == 16) text.remove_prefix(2);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return static_cast<std::int64_t>(is_negative ? 0 - number : number);
}

bool is_memory(std::string_view operand) {
  return operand.ends_with(']');
}

/// Number of a general register of full or half width that is an operand.
std::optional<unsigned> general_in(std::string_view operand) {
  if (operand.empty() || is_memory(operand) || operand.find(' ') != std::string_view::npos) return std::nullopt;
  const RegisterEffect effect = effect_of("mov " + std::string(operand) + ", 0");
  if (std::popcount(effect.writes.general) != 1 || effect.general_width < 4) return std::nullopt;
  return static_cast<unsigned>(std::countr_zero(effect.writes.general));
}

/// Distance of "[esp + 8]" from the stack pointer.
std::optional<std::int64_t> stack_offset(std::string_view operand) {
  const std::size_t open = operand.find('[');
  if (open == std::string_view::npos || operand.find("s:[") != std::string_view::npos) return std::nullopt;
  std::string_view inner = operand.substr(open + 1);
  if (!inner.starts_with("esp") && !inner.starts_with("rsp")) return std::nullopt;
  inner.remove_prefix(3);
  if (inner == "]") return 0;
  if (!inner.starts_with(" + ") || !inner.ends_with(']')) return std::nullopt;
  return number_in(inner.substr(3, inner.size() - 4));
}

std::int64_t bytes_of(std::string_view operand) {
  if (operand.starts_with("xmmword")) return 16;
  if (operand.starts_with("qword")) return 8;
  if (operand.starts_with("tbyte") || operand.starts_with("xword")) return 10;
  return 4;
}

/// How far an instruction moves the stack pointer up, of those that do nothing else.
std::optional<std::int64_t> stack_moved(const Parts& parts) {
  if (parts.first != "esp" && parts.first != "rsp") return std::nullopt;
  if (parts.mnemonic == "add") return number_in(parts.second);
  if (parts.mnemonic == "lea") return stack_offset(parts.second);
  const auto number = parts.mnemonic == "sub" ? number_in(parts.second) : std::nullopt;
  return number ? std::optional(-*number) : std::nullopt;
}

/// The state of a caller while it prepares a call.
class Preparation {
 public:
  Preparation(DirectCall& site, bool is_64_bit) : site_(site), is_64_bit_(is_64_bit), word_(is_64_bit ? 8 : 4) {}

  void step(const Instruction& instruction) {
    const Parts parts = parts_of(instruction.text);
    const RegisterEffect effect = effect_of(instruction.text);
    if (const auto moved = stack_moved(parts)) {
      move_stack(*moved);
    } else if (parts.mnemonic == "push") {
      note_reads(effect);
      const PassedWord value = value_of(parts.first);
      move_stack(-word_);
      words_[top_] = value;
      words_[top_].is_pushed = true;
    } else if (parts.mnemonic == "pop" && general_in(parts.first) && general_in(parts.first) != esp) {
      const auto found = words_.find(top_);
      load(*general_in(parts.first),
           found == words_.end() ? PassedWord{PassedWord::Kind::memory, 0, false} : found->second);
      move_stack(word_);
    } else {
      if (moves_stack_otherwise(parts, effect)) forget_stack();
      store(parts);
      note_reads(effect);
      note_writes(parts, effect);
    }
  }

  void finish() {
    site_.general = general_;
    site_.unread = unread_;
    site_.xmm = xmm_;
    const std::int64_t first = top_ + (is_64_bit_ ? home_bytes : 0);
    for (std::int64_t at = first; site_.stack.size() < most_stack_words; at += word_) {
      const auto found = words_.find(at);
      if (found == words_.end()) break;
      site_.stack.push_back(found->second);
    }
  }

 private:
  [[nodiscard]] std::uint64_t cut(std::int64_t number) const {
    return is_64_bit_ ? static_cast<std::uint64_t>(number) : static_cast<std::uint32_t>(number);
  }

  static bool moves_stack_otherwise(const Parts& parts, const RegisterEffect& effect) {
    return has_bit(effect.writes.general, esp) || parts.mnemonic.starts_with("push") ||
           parts.mnemonic.starts_with("pop") || parts.mnemonic == "leave" || parts.mnemonic == "enter";
  }

  void forget_stack() {
    words_.clear();
    top_ = 0;
  }

  void move_stack(std::int64_t bytes) {
    top_ += bytes;
    if (bytes > 0) words_.erase(words_.begin(), words_.lower_bound(top_));
  }

  [[nodiscard]] PassedWord value_of(std::string_view operand) const {
    if (const auto number = number_in(operand)) return {PassedWord::Kind::immediate, cut(*number), false};
    if (is_memory(operand)) return {PassedWord::Kind::memory, 0, false};
    const auto reg = general_in(operand);
    if (!reg) return {};
    if (*reg == esp) return {PassedWord::Kind::local, 0, false};
    PassedWord value = general_[*reg].value_or(PassedWord{PassedWord::Kind::register_, 0, false});
    value.is_pushed = false;
    return value;
  }

  void store(const Parts& parts) {
    static constexpr std::array<std::string_view, 8> only_read = {"cmp", "test", "nop",  "mul",
                                                                  "div", "imul", "idiv", "ldmxcsr"};
    if (std::ranges::find(only_read, parts.mnemonic) != only_read.end()) return;
    const std::optional<std::int64_t> offset = stack_offset(parts.first);
    // Loads of the x87 name their only operand first as well.
    const bool is_x87 = parts.mnemonic.starts_with('f');
    const bool is_store = !is_x87 || parts.mnemonic.starts_with("fst") || parts.mnemonic.starts_with("fist");
    if (!offset.has_value() || !is_store) return;
    const std::int64_t place = top_ + offset.value();
    const std::int64_t first = place & ~(word_ - 1);
    for (std::int64_t at = first; at < place + bytes_of(parts.first); at += word_) {
      const auto found = words_.find(at);
      const bool was_pushed = found != words_.end() && found->second.is_pushed;
      words_[at] = {PassedWord::Kind::unknown, 0, was_pushed};
    }
    const bool is_whole = parts.first.starts_with("dword") || parts.first.starts_with("qword");
    if (parts.mnemonic != "mov" || !is_whole || first != place) return;
    const bool was_pushed = words_[first].is_pushed;
    words_[first] = value_of(parts.second);
    words_[first].is_pushed = was_pushed;
  }

  void note_reads(const RegisterEffect& effect) {
    unread_ = static_cast<std::uint16_t>(unread_ & ~effect.reads.general);
  }

  void load(unsigned number, const PassedWord& value) {
    general_[number] = value;
    general_[number]->is_pushed = false;
    unread_ = static_cast<std::uint16_t>(unread_ | 1u << number);
  }

  void note_writes(const Parts& parts, const RegisterEffect& effect) {
    xmm_ = static_cast<std::uint16_t>(xmm_ | effect.writes.xmm);
    if (effect.writes.general == 0) return;
    PassedWord value;
    const auto named = general_in(parts.first);
    if (named && parts.mnemonic == "mov") {
      value = value_of(parts.second);
    } else if (named && parts.mnemonic == "lea") {
      const bool is_local = has_bit(effect.reads.general, esp) || has_bit(effect.reads.general, ebp);
      value.kind = is_local ? PassedWord::Kind::local : PassedWord::Kind::address;
    } else if (named && parts.mnemonic == "xor" && parts.first == parts.second) {
      value.kind = PassedWord::Kind::immediate;
    }
    for (unsigned number = 0; number < general_.size(); ++number) {
      if (has_bit(effect.writes.general, number)) load(number, number == named ? value : PassedWord{});
    }
  }

  DirectCall& site_;
  bool is_64_bit_;
  std::int64_t word_;
  std::int64_t top_ = 0;
  std::map<std::int64_t, PassedWord> words_;  // by distance from where the stack pointer was at first
  std::array<std::optional<PassedWord>, 16> general_{};
  std::uint16_t unread_ = 0;
  std::uint16_t xmm_ = 0;
};

/// The code behind a call.
class Sequel {
 public:
  explicit Sequel(DirectCall& site) : site_(site) {}

  void step(const Instruction& instruction) {
    const Parts parts = parts_of(instruction.text);
    if (parts.mnemonic == "ret" || parts.mnemonic == "leave") site_.returns_soon = true;
    if (instruction.flow != Flow::next && instruction.flow != Flow::conditional_jump) return;
    const RegisterEffect effect = effect_of(instruction.text);
    site_.read_behind = static_cast<std::uint16_t>(site_.read_behind | (effect.reads.general & ~written_));
    written_ = static_cast<std::uint16_t>(written_ | effect.writes.general);
    note_result(parts, effect);
    note_stack(parts, effect);
  }

 private:
  void note_stack(const Parts& parts, const RegisterEffect& effect) {
    const auto moved = stack_moved(parts);
    if (parts.mnemonic == "pop" && !is_scratch(parts.first)) site_.returns_soon = true;
    if (!stack_is_open_) return;
    if (moved) {
      stack_is_open_ = *moved > 0;
      if (*moved > 0 || site_.given_back == 0) site_.given_back += *moved;
    } else if (parts.mnemonic == "pop" && is_scratch(parts.first)) {
      site_.given_back += pop_size;
    } else if (parts.mnemonic.starts_with("push") || parts.mnemonic.starts_with("pop") ||
               has_bit(effect.writes.general, esp)) {
      stack_is_open_ = false;
    }
  }

  static bool is_scratch(std::string_view operand) {
    const auto reg = general_in(operand);
    return reg == ecx || reg == edx;
  }

  void note_result(const Parts& parts, const RegisterEffect& effect) {
    site_.result.eax = has_bit(site_.read_behind, eax);
    if ((effect.reads.xmm & 1) != 0 && !xmm0_is_gone_) site_.result.xmm0 = true;
    if ((effect.writes.xmm & 1) != 0) xmm0_is_gone_ = true;
    if (parts.mnemonic.starts_with('f') && !st0_is_gone_) note_x87(parts);
  }

  void note_x87(const Parts& parts) {
    if (parts.mnemonic.starts_with("fn") || parts.mnemonic == "fldcw" || parts.mnemonic == "fwait") return;
    st0_is_gone_ = true;  // what follows is about something that was loaded over it, or about what became of it
    if (parts.mnemonic.starts_with("fld") || parts.mnemonic == "fild") {
      if (parts.first.starts_with("st")) site_.result.st0 = 1;
      return;
    }
    site_.result.st0 = 1;
    if (!parts.mnemonic.starts_with("fst") || !is_memory(parts.first)) return;
    if (parts.first.starts_with("dword")) site_.result.st0 = 4;
    if (parts.first.starts_with("qword")) site_.result.st0 = 8;
  }

  static constexpr std::int64_t pop_size = 4;
  DirectCall& site_;
  bool stack_is_open_ = true;
  std::uint16_t written_ = 0;
  bool xmm0_is_gone_ = false;
  bool st0_is_gone_ = false;
};

}  // namespace

void follow_before(DirectCall& site, std::span<const Instruction> line, bool is_64_bit) {
  Preparation preparation(site, is_64_bit);
  for (const Instruction& instruction : line) preparation.step(instruction);
  preparation.finish();
}

void follow_behind(DirectCall& site, std::span<const Instruction> line, bool is_64_bit) {
  Sequel sequel(site);
  for (const Instruction& instruction : line) sequel.step(instruction);
  if (is_64_bit) site.given_back = 0;  // the caller's room stays as it is
}

}  // namespace bitwitness::call_lines
