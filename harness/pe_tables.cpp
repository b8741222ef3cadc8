#include "harness/pe_tables.hpp"

#include "harness/pe_common.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <type_traits>

#include <LIEF/PE.hpp>
#include <LIEF/logging.hpp>
#include <LIEF/version.h>
#include <fmt/format.h>

// LIEF's one owner. Its interface changed between 0.9 and 0.14, and again up to 0.17, and most versions have no macro
// to tell them by: what differs is asked of the types themselves, and 0.9 has no ParserConfig.hpp.

namespace bitwitness::pe {
namespace {

void silence_lief() {
#if __has_include(<LIEF/PE/ParserConfig.hpp>)
  LIEF::logging::disable();
#else
  LIEF::Logger::disable();
#endif
}

std::unique_ptr<LIEF::PE::Binary> parse(const std::vector<std::uint8_t>& file) {
  return LIEF::PE::Parser::parse(file);
}

/// An optional part of a binary: a pointer that may be null, or a reference in 0.9.
template <typename Part>
auto* pointer_to(Part&& part) {
  if constexpr (std::is_pointer_v<std::remove_reference_t<Part>>) {
    return part;
  } else {
    return &part;
  }
}

template <typename Symbol>
std::uint32_t section_of(const Symbol& symbol) {
  if constexpr (requires { symbol.section_idx(); }) {
    return static_cast<std::uint32_t>(symbol.section_idx());
  } else {
    return static_cast<std::uint32_t>(symbol.section_number());
  }
}

/// Newer versions give forwarded exports the address 0 and keep what the table says apart.
template <typename Entry>
std::uint32_t address_of(const Entry& entry) {
  if constexpr (requires { entry.function_rva(); }) {
    return static_cast<std::uint32_t>(entry.function_rva());
  } else {
    return static_cast<std::uint32_t>(entry.address());
  }
}

template <typename Binary>
void read_exports(const Binary& binary, std::vector<ExportRow>& rows) {
  const auto* const table = pointer_to(binary.get_export());
  if (table == nullptr) return;
  for (const auto& entry : table->entries()) {
    if (!entry.name().empty()) rows.push_back({entry.name(), address_of(entry)});
  }
}

template <typename Binary>
void read_imports(const Binary& binary, const Excerpt& excerpt, std::vector<ImportRow>& rows) {
  for (const auto& library : binary.imports()) {
    const std::uint32_t table = library.import_address_table_rva();
    const auto known = std::ranges::lower_bound(excerpt.thunk_tables, table, {}, &ThunkTable::excerpt_address);
    if (known == excerpt.thunk_tables.end() || known->excerpt_address != table) continue;
    for (const auto& entry : library.entries()) {
      // By-name lookups are addresses below 2 GiB; by-ordinal ones have the top bit of their width set.
      const bool by_ordinal = entry.data() > 0x7fffffff;
      rows.push_back({library.name(),
                      by_ordinal ? fmt::format("#{}", entry.data() & 0xffff) : std::string(entry.name()),
                      known->slot_address + static_cast<std::uint32_t>(entry.iat_address() - table)});
    }
  }
}

template <typename Binary>
void read_symbols(const Binary& binary, std::vector<SymbolRow>& rows) {
  for (const auto& symbol : binary.symbols()) {
    rows.push_back({symbol.name(), section_of(symbol), static_cast<std::uint32_t>(symbol.value())});
  }
}

template <typename Binary>
void read_relocations(const Binary& binary, std::vector<RelocationRow>& rows) {
  for (const auto& block : binary.relocations()) {
    for (const auto& entry : block.entries()) {
      rows.push_back({block.virtual_address() + entry.position(), static_cast<unsigned>(entry.type())});
    }
  }
}

}  // namespace

Tables read_tables(const Excerpt& excerpt, const std::string& file_name) {
  Tables tables;
  if (excerpt.file.empty()) return tables;
  // LIEF's logger is one global object for all threads.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  try {
    silence_lief();
    const std::unique_ptr<LIEF::PE::Binary> binary = parse(excerpt.file);
    if (binary == nullptr) refuse(file_name, "LIEF {} cannot read its tables", library_version());
    read_exports(*binary, tables.exports);
    read_imports(*binary, excerpt, tables.imports);
    read_symbols(*binary, tables.symbols);
    read_relocations(*binary, tables.relocations);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& reason) {
    refuse(file_name, "LIEF {} cannot read its tables: {}", library_version(), reason.what());
  }
  return tables;
}

std::string_view library_version() {
  constexpr std::string_view version = LIEF_VERSION;
  return version.substr(0, version.find('-'));
}

}  // namespace bitwitness::pe
