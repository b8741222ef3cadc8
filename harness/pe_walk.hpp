#pragma once
#include "harness/pe_excerpt.hpp"
#include "harness/pe_headers.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace bitwitness::pe {

/// Says why a table cannot be read.
class Damaged : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One library's imports, ordinary or delayed.
struct ImportedLibrary {
  std::uint32_t name_address = 0;
  std::uint32_t slot_address = 0;      ///< of the first entry of its import address table
  std::vector<std::uint64_t> lookups;  ///< one per imported function, as in an import lookup table, all relative
};

/// Follows the tables of a laid-out image within limits and remembers which pages they lie in.
class TableWalk {
 public:
  TableWalk(const Headers& headers, std::span<const std::byte> memory);

  /// Follows the export table. Throws Damaged.
  void exports();

  /// Follows the import tables, ordinary and delayed. What cannot be followed is left out and said in `damage`.
  std::vector<ImportedLibrary> imports(std::vector<std::string>& damage);

  /// Follows the relocation table. Throws Damaged.
  void relocations();

  /// One flag per page of the image: whether a table touches it.
  [[nodiscard]] const std::vector<bool>& pages() const { return pages_; }

 private:
  void touch(std::uint64_t address, std::uint64_t count);
  void touch_name(std::uint64_t address);
  void spend_entries(std::size_t count);
  void ordinary_imports(std::vector<ImportedLibrary>& libraries, std::vector<std::string>& damage);
  void delayed_imports(std::vector<ImportedLibrary>& libraries, std::vector<std::string>& damage);
  void add_library(std::vector<ImportedLibrary>& libraries, std::vector<std::string>& damage, std::uint32_t name,
                   std::uint64_t lookups, std::uint32_t slots, std::uint64_t bias);

  const Headers& headers_;
  Bytes memory_;
  std::vector<bool> pages_;
  std::size_t entries_left_ = max_table_entries;
  std::size_t name_bytes_left_ = max_name_bytes;
};

}  // namespace bitwitness::pe
