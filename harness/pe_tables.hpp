#pragma once
#include "harness/pe_excerpt.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bitwitness::pe {

/// Addresses are relative to the image's base.
struct ExportRow {
  std::string name;
  std::uint32_t address = 0;
};

struct SymbolRow {
  std::string name;
  std::uint32_t section = 0;  ///< from 1, in the order of the section table
  std::uint32_t value = 0;    ///< offset in that section
};

struct ImportRow {
  std::string library;
  std::string name;  ///< "#12" when imported by ordinal
  std::uint32_t slot = 0;
};

struct RelocationRow {
  std::uint32_t address = 0;
  unsigned type = 0;
};

struct Tables {
  std::vector<ExportRow> exports;
  std::vector<SymbolRow> symbols;
  std::vector<ImportRow> imports;
  std::vector<RelocationRow> relocations;
};

/// Reads the tables of an excerpt. Safe to call from several threads. Throws Error, starting with `file_name`.
Tables read_tables(const Excerpt& excerpt, const std::string& file_name);

/// Version of LIEF, e.g. "0.9.0".
std::string_view library_version();

}  // namespace bitwitness::pe
