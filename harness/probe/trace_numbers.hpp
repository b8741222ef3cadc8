#pragma once
#include "harness/probe/trace.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

// How traces print numbers. Decimals are the shortest that tell a value apart from its neighbours of the same format.

namespace bitwitness::trace_numbers {

/// Prints an 80-bit value: "0.7071067811865475", "-inf", "nan"; "invalid" for what a processor takes for no number.
std::string extended_text(const Extended& value);

/// Prints its 80 bits, sign first: 20 hex digits.
std::string extended_bits(const Extended& value);

/// Prints the bits of a binary64 as a number.
std::string f64_text(std::uint64_t bits);

/// Prints up to 16 bytes as one little-endian number: "0x3f800000". More are printed in memory order: "34 12 …".
std::string bits_text(std::span<const std::byte> bytes);

/// Prints bytes as the numbers that they are read as; nothing for plain bits.
std::vector<std::string> numbers_of(std::span<const std::byte> bytes, Reading reading);

/// Two 32-bit lanes as one number's bits.
constexpr std::uint64_t joined(std::uint32_t low, std::uint32_t high) {
  return std::uint64_t{high} << 32 | low;
}

}  // namespace bitwitness::trace_numbers
