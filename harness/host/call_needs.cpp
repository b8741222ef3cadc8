#include "harness/host/call_needs.hpp"

#include "harness/disassembly.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace bitwitness::host {
namespace {

constexpr std::size_t most_instructions = 4096;

template <std::size_t Count>
bool starts_with_one_of(std::string_view text, const std::array<std::string_view, Count>& starts) {
  return std::ranges::any_of(starts, [text](std::string_view start) { return text.starts_with(start); });
}

/// What leaves another control word or flag behind.
constexpr std::array<std::string_view, 12> control = {"fldcw",  "fldenv",  "frstor",   "fxrstor", "xrstor", "finit",
                                                      "fninit", "ldmxcsr", "vldmxcsr", "std",     "popf",   "iret"};

constexpr std::array<std::string_view, 7> status_readers = {"fnstsw", "fstsw", "fnstenv", "fstenv",
                                                            "fnsave", "fsave", "fxsave"};

/// What fills or empties x87 registers elsewhere than at the top of their stack, forgets what went wrong there, or
/// looks at flags of calls before.
constexpr std::array<std::string_view, 10> unruly = {"ffree", "fincstp", "fdecstp", "fclex",    "fnclex",
                                                     "emms",  "femms",   "stmxcsr", "vstmxcsr", "xsave"};

/// Tells whether an instruction behind "fnstsw ax" looks at its upper half alone, where comparisons leave their result.
/// Exceptions are in the lower one.
bool takes_upper_half(std::string_view text) {
  return text == "sahf" || text.starts_with("test ah,") || text.starts_with("and ah,");
}

/// Decodes what lies behind an address, one instruction after the other.
std::vector<Instruction> sweep(const Image& image, std::uint64_t address) {
  constexpr std::uint64_t most_bytes = 4096;
  std::vector<Instruction> all;
  for (std::uint64_t at = address; at < address + most_bytes;) {
    std::optional<Instruction> instruction = disassemble_one(image, at);
    at += instruction ? instruction->size : 1;
    if (instruction) all.push_back(*std::move(instruction));
  }
  return all;
}

}  // namespace

CallNeeds needs_of(const Image& image, std::uint64_t address) {
  const Listing listing = disassemble_routine(image, address, most_instructions, true, true);
  std::vector<Instruction> instructions = listing.instructions;
  bool calls_unknown_code = !listing.undecodable.empty();
  for (const Instruction& instruction : listing.instructions) {
    calls_unknown_code |= instruction.flow == Flow::indirect_call;
  }
  // Where a jump table hides what follows, all that lies behind the routine's beginning stands for it.
  if (!listing.complete) instructions = sweep(image, address);
  CallNeeds needs{.uses_x87 = calls_unknown_code,
                  .sets_control = calls_unknown_code,
                  .clear_x87_flags = calls_unknown_code,
                  .clear_upper_halves = false,
                  .is_unruly = calls_unknown_code || !listing.complete};
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& instruction = instructions[i];
    const std::string_view text = instruction.text;
    const bool uses_mmx = text.find(" mm") != std::string_view::npos;
    needs.uses_x87 |= text.starts_with('f') || uses_mmx;
    needs.is_unruly |= uses_mmx || starts_with_one_of(text, unruly);
    needs.sets_control |= starts_with_one_of(text, control);
    needs.clear_upper_halves |= text.starts_with('v') && !text.starts_with("ver");
    if (!starts_with_one_of(text, status_readers)) continue;
    const bool is_comparison = text == "fnstsw ax" && i + 1 < instructions.size() &&
                               instructions[i + 1].address == instruction.address + instruction.size &&
                               takes_upper_half(instructions[i + 1].text);
    needs.clear_x87_flags |= !is_comparison;
  }
  needs.is_unruly |= needs.sets_control || needs.clear_x87_flags;
  return needs;
}

CallNeeds all_needs(const Image& image, std::uint64_t address) {
  CallNeeds needs = needs_of(image, address);
  needs.uses_x87 = needs.sets_control = needs.clear_x87_flags = needs.is_unruly = true;
  return needs;
}

}  // namespace bitwitness::host
