#pragma once
#include "harness/pe_headers.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bitwitness::pe {

/// Limits on what an executable's tables may hold. Beyond them a table is left out (a note says so), or, when
/// relocations are needed, the file is refused. They keep time and memory bounded whatever the file says.
inline constexpr std::size_t max_table_entries = std::size_t{1} << 18;  ///< exports plus imports
inline constexpr std::size_t max_symbols = std::size_t{1} << 20;
inline constexpr std::size_t max_relocations = std::size_t{1} << 22;
inline constexpr std::size_t max_name_length = 4096;                 ///< C++ names reach some thousand characters
inline constexpr std::size_t max_name_bytes = std::size_t{1} << 26;  ///< of all names together
inline constexpr std::size_t max_excerpt_size = std::size_t{1} << 26;

/// A copy of an import lookup table in an excerpt, and the import address table of the image that it stands for.
struct ThunkTable {
  std::uint32_t excerpt_address = 0;
  std::uint32_t slot_address = 0;
};

/// A small PE file that holds an image's tables, at the image's addresses, and nothing else.
///
/// LIEF gets this instead of the executable: LIEF 0.9 copies its input, then every section, then every resource,
/// believes every count and every length, and follows every pointer. In an excerpt all of them have been followed once,
/// within limits, and whatever they do not reach is absent.
struct Excerpt {
  std::vector<std::uint8_t> file;          ///< empty when the image has no tables
  std::vector<ThunkTable> thunk_tables;    ///< by rising excerpt_address
  std::string export_damage;               ///< why the export table was left out
  std::string symbol_damage;               ///< why the symbol table was left out
  std::vector<std::string> import_damage;  ///< which imports were left out, and why
};

/// What an excerpt is made from.
struct ExcerptSource {
  const Headers& headers;
  std::span<const std::byte> memory;  ///< the image as laid out at its preferred base
  std::span<const std::byte> file;
  bool relocations = false;  ///< include the relocation table, and throw Error when it is damaged
};

/// Builds the excerpt of an image.
Excerpt make_excerpt(const ExcerptSource& source, const std::string& file_name);

}  // namespace bitwitness::pe
