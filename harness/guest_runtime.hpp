#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace bitwitness {

/// A function of the runtime and where it starts.
struct RuntimeFunction {
  std::string_view name;
  std::uint32_t offset = 0;  ///< in the code
};

/// Functions of the C library that executables import, as guest code of our own: memory, square roots, rounding to
/// integers, and a heap. Each gives the exact or correctly rounded result, whatever the precision control; the game's
/// own library may not. The code may stand anywhere; `heap_size` bytes of zeros to write to must follow it.
struct GuestRuntime {
  std::span<const std::byte> code;  ///< whole pages
  std::vector<RuntimeFunction> functions;
  static constexpr std::size_t heap_size = 0x10000;
};

/// Returns the runtime of 32-bit or 64-bit code.
GuestRuntime guest_runtime(bool is_64_bit);

/// Tells whether a library that an executable imports from is a C library, by its name: "msvcrt.dll", "MSVCR90.dll",
/// "ucrtbase.dll", "api-ms-win-crt-math-l1-1-0.dll" and their like.
bool is_c_library(std::string_view library);

/// The runtime as it was assembled: code, a table of names, and the table's offset. Defined in a generated file.
std::span<const std::byte> embedded_runtime(bool is_64_bit);

}  // namespace bitwitness
