#include "harness/probe/coverage.hpp"

#include "harness/disassembly.hpp"

#include <array>
#include <charconv>
#include <set>
#include <string_view>
#include <vector>

namespace bitwitness {
namespace {

constexpr std::size_t max_instructions = 96;
constexpr std::size_t max_instructions_of_end = 64;
constexpr std::uint16_t stack_pointer_bit = 1U << 4;

/// Where code is read on, and what holds there.
struct Point {
  std::uint64_t address = 0;
  std::optional<std::int64_t> stack;
  std::optional<std::int64_t> frame;
  RegisterSet written;
};

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> heads) {
  for (const std::string_view head : heads) {
    if (text.starts_with(head)) return true;
  }
  return false;
}

std::optional<std::int64_t> number_in(std::string_view text) {
  if (text.empty()) return 0;
  bool is_negative = false;
  while (text.starts_with(' ') || text.starts_with('+') || text.starts_with('-')) {
    is_negative = is_negative != text.starts_with('-');
    text.remove_prefix(1);
  }
  const bool is_hex = text.starts_with("0x");
  if (is_hex) text.remove_prefix(2);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, is_hex ? 16 : 10);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return is_negative ? -number : number;
}

/// Tells whether the memory operand of an instruction lies in the routine's own frame or is a load from a fixed
/// address.
bool touches_own_memory(const Instruction& instruction, const Point& point) {
  const std::string_view text = instruction.text;
  const std::size_t open = text.find('[');
  const bool names_memory = open != std::string_view::npos && !starts_with_any(text, {"lea ", "nop"});
  if (!names_memory) return true;
  if (text.find("s:[") != std::string_view::npos) return false;
  const std::string_view operand = text.substr(open + 1, text.find(']') - open - 1);
  const auto offset = [&](std::optional<std::int64_t> base) {
    const auto distance = number_in(operand.substr(3));
    return base && distance ? *base + *distance : 0;
  };
  if (starts_with_any(operand, {"esp", "rsp"})) return offset(point.stack) < 0;
  if (starts_with_any(operand, {"ebp", "rbp"})) return offset(point.frame) < 0;
  const bool is_fixed = starts_with_any(operand, {"0x", "rip"}) && instruction.memory_references.size() == 1;
  const std::size_t comma = text.find(',');
  return is_fixed && (text.starts_with('f') || (comma != std::string_view::npos && comma < open));
}

/// Tells whether an instruction leaves everything as it was that addresses are made of.
bool keeps_addresses(const Instruction& instruction, const RegisterEffect& effect) {
  const std::string_view text = instruction.text;
  if (text.find(' ') == std::string_view::npos && !text.starts_with('f') && text != "leave" && text != "nop") {
    return text == "wait";
  }
  if (starts_with_any(text, {"fnstsw ax", "fstsw ax", "nop", "add esp", "sub esp", "add rsp", "sub rsp",
                             "lea esp, [esp", "lea esi, [esi]", "pop ", "leave"})) {
    return true;
  }
  return (effect.writes.general & ~stack_pointer_bit) == 0;
}

/// Follows esp and ebp over one instruction.
void move_on(Point& point, const Instruction& instruction, const RegisterEffect& effect, std::int64_t word) {
  const std::string_view text = instruction.text;
  if (starts_with_any(text, {"push ", "pushf"})) {
    if (point.stack) *point.stack -= word;
  } else if (starts_with_any(text, {"pop ", "popf"})) {
    if (point.stack) *point.stack += word;
    if (text.ends_with("bp")) point.frame = std::nullopt;
  } else if (starts_with_any(text, {"add esp, ", "add rsp, ", "sub esp, ", "sub rsp, "})) {
    const auto bytes = number_in(text.substr(9));
    if (!bytes) point.stack = std::nullopt;
    if (bytes && point.stack) *point.stack += text.starts_with("add") ? *bytes : -*bytes;
  } else if (text == "leave") {
    point.stack = point.frame;
    if (point.stack) *point.stack += word;
    point.frame = std::nullopt;
  } else if ((effect.writes.general & stack_pointer_bit) != 0) {
    point.stack = std::nullopt;
  }
}

/// Tells whether no path through the code from an address returns.
bool never_returns(const Image& image, std::uint64_t address) {
  const Listing listing = disassemble_routine(image, address, max_instructions_of_end);
  if (!listing.complete || !listing.undecodable.empty()) return false;
  for (const Instruction& instruction : listing.instructions) {
    const bool may_leave = instruction.flow == Flow::return_ || instruction.flow == Flow::call ||
                           instruction.flow == Flow::indirect_call || instruction.flow == Flow::indirect_jump;
    if (may_leave) return false;
  }
  return true;
}

}  // namespace

UnseenSide look_at(const Image& image, const HalfSeenJump& jump,
                   const std::function<bool(std::uint64_t)>& was_executed) {
  UnseenSide side;
  const std::int64_t word = image.format() == ImageFormat::pe32_plus ? 8 : 4;
  if (!was_executed(jump.unseen) && never_returns(image, jump.unseen)) {
    side.kind = UnseenSide::Kind::ends;
    return side;
  }
  std::set<std::uint64_t> known;
  std::vector<Point> open{{jump.unseen, jump.stack, jump.frame, {}}};
  std::size_t count = 0;
  while (!open.empty()) {
    Point point = open.back();
    open.pop_back();
    while (!was_executed(point.address) && known.insert(point.address).second) {
      const auto instruction = disassemble_one(image, point.address);
      if (!instruction || ++count > max_instructions) return side;
      const RegisterEffect effect = effect_of(instruction->text);
      side.reads.general |= static_cast<std::uint16_t>(effect.reads.general & ~point.written.general);
      side.reads.xmm |= static_cast<std::uint16_t>(effect.reads.xmm & ~point.written.xmm);
      point.written.general |= effect.writes.general;
      point.written.xmm |= effect.writes.xmm;
      if (instruction->flow == Flow::return_ || instruction->flow == Flow::stop) break;
      if (instruction->flow == Flow::jump || instruction->flow == Flow::conditional_jump) {
        if (!instruction->target) return side;
        if (instruction->flow == Flow::conditional_jump) {
          Point other = point;
          other.address = instruction->address + instruction->size;
          open.push_back(other);
        }
        point.address = *instruction->target;
        continue;
      }
      const bool is_plain = instruction->flow == Flow::next && touches_own_memory(*instruction, point) &&
                            keeps_addresses(*instruction, effect);
      if (!is_plain) return side;
      move_on(point, *instruction, effect, word);
      point.address += instruction->size;
    }
  }
  side.kind = UnseenSide::Kind::harmless;
  return side;
}

}  // namespace bitwitness
