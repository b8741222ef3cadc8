#pragma once
#include "harness/disassembly.hpp"
#include "harness/image.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace bitwitness {

/// Tells whether an instruction's bytes begin with a VEX or EVEX prefix; in 32-bit code these are les, lds and bound
/// unless two register bits follow.
bool is_vex(std::span<const std::byte> code, bool is_64_bit);

/// Returns what an emulator executes at an address of the image: what disassemble_one does, and far jumps and calls to
/// a register, which are no instructions and which it nevertheless has.
std::optional<Instruction> executed_instruction(const Image& image, std::uint64_t address);

/// Says why an emulator must not be trusted with an instruction of the image ("is VEX-encoded, …"). Empty when it may
/// execute it.
std::string_view why_refused(const Image& image, const Instruction& instruction);

}  // namespace bitwitness
