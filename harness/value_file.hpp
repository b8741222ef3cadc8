#pragma once
#include "harness/value_rows.hpp"

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace bitwitness {

/// Longest line of a value file, in bytes: 256 packed bytes with blanks between them, and room for a comment.
inline constexpr std::size_t max_value_line = 4096;

/// Reads hex digits in memory order into `out`, blanks ignored, and returns how many bytes the text has, which may be
/// more than fit. Throws Error with the reason alone, for the caller to say where.
std::size_t read_hex(std::span<std::byte> out, std::string_view text);

/// Adds the values of a file: one a line as hex bytes in memory order, `#` comments, LF or CRLF. Throws Error with path
/// and line for anything else, and for a file that cannot be read.
void append_file(ValueRows& rows, const std::filesystem::path& path);

}  // namespace bitwitness
