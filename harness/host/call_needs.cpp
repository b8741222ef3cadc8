#include "harness/host/call_needs.hpp"

#include "harness/disassembly.hpp"
#include "harness/refused_code.hpp"
#include "harness/status_word.hpp"

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
constexpr std::array<std::string_view, 16> control = {"fldcw",    "fldenv", "frstor", "fxrstor", "xrstor",  "finit",
                                                      "fninit",   "fsave",  "fnsave", "fstenv",  "fnstenv", "ldmxcsr",
                                                      "vldmxcsr", "std",    "popf",   "iret"};

constexpr std::array<std::string_view, 7> status_readers = {"fnstsw", "fstsw", "fnstenv", "fstenv",
                                                            "fnsave", "fsave", "fxsave"};

/// What fills or empties x87 registers elsewhere than at the top of their stack, forgets what went wrong there, or
/// looks at flags of calls before.
constexpr std::array<std::string_view, 10> unruly = {"ffree", "fincstp", "fdecstp", "fclex",    "fnclex",
                                                     "emms",  "femms",   "stmxcsr", "vstmxcsr", "xsave"};

/// Tells whether a register below the top of the stack is stored to, which may be an empty one and so is filled.
bool stores_below_top(std::string_view text) {
  return (text.starts_with("fst st(") || text.starts_with("fstp st(")) && !text.ends_with("(0)") &&
         !text.ends_with("(1)");
}

/// Tells whether what stands before a return has made its address: then it is a jump to anywhere.
bool makes_return_address(std::string_view before) {
  return before.starts_with("push") || before.find("ptr [esp], ") != std::string_view::npos ||
         before.find("ptr [rsp], ") != std::string_view::npos;
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
  const bool is_64_bit = image.format() == ImageFormat::pe32_plus;
  const Listing listing = disassemble_routine(image, address, most_instructions, true, true);
  std::vector<Instruction> instructions = listing.instructions;
  bool calls_unknown_code = !listing.undecodable.empty();
  for (std::size_t i = 0; i < listing.instructions.size(); ++i) {
    const Instruction& instruction = listing.instructions[i];
    calls_unknown_code |= instruction.flow == Flow::indirect_call;
    if (i == 0 || instruction.flow != Flow::return_) continue;
    const Instruction& before = listing.instructions[i - 1];
    const bool is_next = before.address + before.size == instruction.address;
    calls_unknown_code |= is_next && makes_return_address(before.text);
  }
  // Where a jump table hides what follows, all that lies behind the routine's beginning stands for it.
  if (!listing.complete) {
    const std::vector<Instruction> behind = sweep(image, address);
    instructions.insert(instructions.end(), behind.begin(), behind.end());
  }
  const bool is_known = listing.complete && !calls_unknown_code;
  CallNeeds needs{.uses_x87 = !is_known,
                  .sets_control = !is_known,
                  .clear_x87_flags = !is_known,
                  .clear_upper_halves = false,
                  .is_unruly = !is_known};
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& instruction = instructions[i];
    const std::string_view text = instruction.text;
    const bool uses_mmx = text.find(" mm") != std::string_view::npos;
    needs.uses_x87 |= text.starts_with('f') || uses_mmx;
    needs.is_unruly |= uses_mmx || stores_below_top(text) || starts_with_one_of(text, unruly);
    needs.sets_control |= starts_with_one_of(text, control);
    needs.clear_upper_halves |= is_vex(image.read(instruction.address, instruction.size), is_64_bit);
    if (!starts_with_one_of(text, status_readers)) continue;
    const bool has_next =
        i + 1 < instructions.size() && instructions[i + 1].address == instruction.address + instruction.size;
    needs.clear_x87_flags |= !uses_condition_codes_only(instruction, has_next ? &instructions[i + 1] : nullptr);
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
