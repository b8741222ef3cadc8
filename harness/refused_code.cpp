#include "harness/refused_code.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace bitwitness {
namespace {

/// Prefixes that may stand before a VEX or EVEX prefix: segments and address size.
bool may_precede_vex(unsigned byte) {
  static constexpr std::array<unsigned, 7> prefixes = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x67};
  return std::ranges::find(prefixes, byte) != prefixes.end();
}

}  // namespace

bool is_vex(std::span<const std::byte> code, bool is_64_bit) {
  while (!code.empty() && may_precede_vex(std::to_integer<unsigned>(code[0]))) code = code.subspan(1);
  if (code.size() < 2) return false;
  const auto first = std::to_integer<unsigned>(code[0]);
  if (first != 0xc4 && first != 0xc5 && first != 0x62) return false;
  return is_64_bit || (std::to_integer<unsigned>(code[1]) & 0xc0) == 0xc0;
}

namespace {

/// A far jump or call with a register for an operand, which no CPU has.
bool is_far_by_register(std::span<const std::byte> code) {
  if (code.size() != 2 || code[0] != std::byte{0xff}) return false;
  const auto operand = std::to_integer<unsigned>(code[1]);
  return (operand & 0xf8) == 0xd8 || (operand & 0xf8) == 0xe8;
}

/// What only the kernel may execute. The emulated CPU has no kernel to protect and would change its own state.
bool is_privileged(std::string_view text) {
  static constexpr std::array<std::string_view, 19> mnemonics = {
      "cli",   "clts", "invd", "invlpg", "lgdt",    "lidt",   "lldt",   "lmsw",  "ltr",   "rdmsr",
      "rdpmc", "rsm",  "sti",  "swapgs", "sysexit", "sysret", "wbinvd", "wrmsr", "xsetbv"};
  const std::string_view mnemonic = text.substr(0, text.find(' '));
  if (std::ranges::find(mnemonics, mnemonic) != mnemonics.end()) return true;
  if (mnemonic != "mov") return false;
  const std::string_view operands = text.substr(mnemonic.size());
  return operands.find(" cr") != std::string_view::npos || operands.find(" dr") != std::string_view::npos;
}

}  // namespace

std::optional<Instruction> executed_instruction(const Image& image, std::uint64_t address) {
  if (auto instruction = disassemble_one(image, address)) return instruction;
  constexpr std::uint32_t size = 2;
  const Segment* segment = image.find(address);
  if (segment == nullptr) return std::nullopt;
  const auto bytes = segment->bytes.subspan(address - segment->address);
  if (!is_far_by_register(bytes.first(std::min<std::size_t>(bytes.size(), size)))) return std::nullopt;
  Instruction instruction;
  instruction.address = address;
  instruction.size = size;
  instruction.text = "(far jump or call to a register)";
  instruction.flow = Flow::stop;
  return instruction;
}

std::string_view why_refused(const Image& image, const Instruction& instruction) {
  const bool is_64_bit = image.format() == ImageFormat::pe32_plus;
  if (is_vex(image.read(instruction.address, instruction.size), is_64_bit)) {
    return "is VEX-encoded, which the emulator would execute wrongly";
  }
  if (is_far_by_register(image.read(instruction.address, instruction.size))) {
    return "is no instruction: far jumps and calls take their address from memory";
  }
  if (instruction.text.starts_with("pcmpestr")) return "is one on which the emulator crashes";
  if (is_privileged(instruction.text)) return "is privileged: no program may execute it";
  return {};
}

}  // namespace bitwitness
