#pragma once
#include "harness/image.hpp"

#include <cstdint>
#include <string_view>

namespace bitwitness {

/// Finds an address range for the surroundings: apart from everything mapped, within reach of a 32-bit displacement of
/// the image, and below the addresses that filler registers hold. Throws Error when there is none.
std::uint64_t find_base(const Image& image, std::uint64_t size);

/// Tells whether a routine, or what it calls, names memory through the segment register of its thread (fs in 32-bit and
/// gs in 64-bit code), as the frames of exception handlers do.
bool uses_thread_block(const Image& image, std::uint64_t address);

/// The same of one instruction, by its text.
bool names_thread_block(std::string_view text, bool is_64_bit);

}  // namespace bitwitness
