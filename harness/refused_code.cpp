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

/// VEX and EVEX prefixes; in 32-bit code the same bytes are les, lds and bound unless two register bits follow.
bool is_vex(std::span<const std::byte> code, bool is_64_bit) {
  while (!code.empty() && may_precede_vex(std::to_integer<unsigned>(code[0]))) code = code.subspan(1);
  if (code.size() < 2) return false;
  const auto first = std::to_integer<unsigned>(code[0]);
  if (first != 0xc4 && first != 0xc5 && first != 0x62) return false;
  return is_64_bit || (std::to_integer<unsigned>(code[1]) & 0xc0) == 0xc0;
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

std::string_view why_refused(const Image& image, const Instruction& instruction) {
  const bool is_64_bit = image.format() == ImageFormat::pe32_plus;
  if (is_vex(image.read(instruction.address, instruction.size), is_64_bit)) {
    return "is VEX-encoded, which the emulator would execute wrongly";
  }
  if (is_privileged(instruction.text)) return "is privileged: no program may execute it";
  return {};
}

}  // namespace bitwitness
