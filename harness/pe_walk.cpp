#include "harness/pe_walk.hpp"

#include "harness/printable.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace bitwitness::pe {
namespace {

constexpr std::uint64_t import_descriptor_size = 20;
constexpr std::uint64_t delay_descriptor_size = 32;
constexpr std::size_t max_libraries = 4096;

template <typename... Arguments>
[[noreturn]] void damaged(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  throw Damaged(fmt::format(text, std::forward<Arguments>(arguments)...));
}

constexpr std::array<std::string_view, 16> relocation_names{
    "ABSOLUTE", "HIGH",       "LOW",   "HIGHLOW",  "HIGHADJ", "MIPS_JMPADDR", "SECTION", "THUMB_MOV32",
    "RISCV",    "IA64_IMM64", "DIR64", "HIGH3ADJ", "12",      "13",           "14",      "15"};

/// ABSOLUTE (padding), HIGH, LOW, HIGHLOW, DIR64.
constexpr bool is_supported(unsigned type) {
  return type <= 3 || type == 10;
}

}  // namespace

TableWalk::TableWalk(const Headers& headers, std::span<const std::byte> memory)
    : headers_(headers), memory_(memory), pages_(memory.size() / page_size) {}

void TableWalk::touch(std::uint64_t address, std::uint64_t count) {
  if (!memory_.has(address, count)) damaged("rva:{:#x} to rva:{:#x} is outside the image", address, address + count);
  if (count == 0) return;
  for (std::uint64_t page = address / page_size; page <= (address + count - 1) / page_size; ++page) pages_[page] = true;
}

void TableWalk::touch_name(std::uint64_t address) {
  const std::string_view name = memory_.text(address, max_name_length + 1);
  if (name.size() > max_name_length) damaged("the name at rva:{:#x} has no end", address);
  touch(address, name.size() + 1);
  if (name.size() > name_bytes_left_) damaged("its names are longer than {:#x} bytes together", max_name_bytes);
  name_bytes_left_ -= name.size();
}

void TableWalk::spend_entries(std::size_t count) {
  if (count > entries_left_) damaged("it has more than {} entries", max_table_entries);
  entries_left_ -= count;
}

void TableWalk::exports() {
  const Directory directory = headers_.directories[export_directory];
  touch(directory.address, 40);
  const std::uint32_t name = memory_.u32(directory.address + 12ULL);
  const std::uint32_t address_count = memory_.u32(directory.address + 20ULL);
  const std::uint32_t name_count = memory_.u32(directory.address + 24ULL);
  const std::uint64_t addresses = memory_.u32(directory.address + 28ULL);
  const std::uint64_t names = memory_.u32(directory.address + 32ULL);
  const std::uint64_t ordinals = memory_.u32(directory.address + 36ULL);
  if (name != 0) touch_name(name);
  spend_entries(std::size_t{address_count} + name_count);
  touch(addresses, std::uint64_t{4} * address_count);
  touch(names, std::uint64_t{4} * name_count);
  touch(ordinals, std::uint64_t{2} * name_count);
  for (std::uint64_t i = 0; i < address_count; ++i) {
    const std::uint32_t address = memory_.u32(addresses + 4 * i);
    // An address inside the export directory is not code but the name of another library's function.
    if (address >= directory.address && address - directory.address < directory.size) touch_name(address);
  }
  for (std::uint64_t i = 0; i < name_count; ++i) {
    touch_name(memory_.u32(names + 4 * i));
    const std::uint16_t ordinal = memory_.u16(ordinals + 2 * i);
    if (ordinal >= address_count) damaged("name {} of it stands for address {} of {}", i, ordinal, address_count);
  }
}

std::vector<ImportedLibrary> TableWalk::imports(std::vector<std::string>& damage) {
  std::vector<ImportedLibrary> libraries;
  try {
    ordinary_imports(libraries, damage);
  } catch (const Damaged& reason) {
    damage.push_back(fmt::format("import table: {}", reason.what()));
  }
  try {
    delayed_imports(libraries, damage);
  } catch (const Damaged& reason) {
    damage.push_back(fmt::format("delay-load import table: {}", reason.what()));
  }
  return libraries;
}

void TableWalk::ordinary_imports(std::vector<ImportedLibrary>& libraries, std::vector<std::string>& damage) {
  std::uint64_t row = headers_.directories[import_directory].address;
  if (row == 0) return;
  for (std::size_t i = 0; i < max_libraries; ++i, row += import_descriptor_size) {
    if (!memory_.has(row, import_descriptor_size)) damaged("rva:{:#x} is outside the image", row);
    const std::uint32_t lookups = memory_.u32(row);
    const std::uint32_t name = memory_.u32(row + 12);
    const std::uint32_t slots = memory_.u32(row + 16);
    if (name == 0 || slots == 0) return;
    // Some linkers write no lookup table; the address table holds the same until the loader fills it.
    add_library(libraries, damage, name, lookups != 0 ? lookups : slots, slots, 0);
  }
  damaged("it names more than {} libraries", max_libraries);
}

void TableWalk::delayed_imports(std::vector<ImportedLibrary>& libraries, std::vector<std::string>& damage) {
  std::uint64_t row = headers_.directories[delay_import_directory].address;
  if (row == 0) return;
  for (std::size_t i = 0; i < max_libraries; ++i, row += delay_descriptor_size) {
    if (!memory_.has(row, delay_descriptor_size)) damaged("rva:{:#x} is outside the image", row);
    if (memory_.u32(row + 4) == 0) return;
    // Attribute bit 0 clear, as Visual C++ 6 wrote it: absolute addresses instead of relative ones.
    const std::uint64_t bias = (memory_.u32(row) & 1U) != 0 ? 0 : headers_.image_base;
    const auto relative = [&](std::uint64_t offset) {
      return static_cast<std::uint32_t>(memory_.u32(row + offset) - bias);
    };
    add_library(libraries, damage, relative(4), relative(16), relative(12), bias);
  }
  damaged("it names more than {} libraries", max_libraries);
}

void TableWalk::add_library(std::vector<ImportedLibrary>& libraries, std::vector<std::string>& damage,
                            std::uint32_t name, std::uint64_t lookups, std::uint32_t slots, std::uint64_t bias) {
  const bool is_64 = headers_.format == ImageFormat::pe32_plus;
  const std::uint64_t width = is_64 ? 8 : 4;
  const std::uint64_t by_ordinal = is_64 ? std::uint64_t{1} << 63 : std::uint64_t{1} << 31;
  ImportedLibrary library{.name_address = name, .slot_address = slots, .lookups = {}};
  try {
    touch_name(name);
    for (std::uint64_t at = lookups;; at += width) {
      if (!memory_.has(at, width)) damaged("its lookup table at rva:{:#x} has no end", lookups);
      std::uint64_t lookup = is_64 ? memory_.get<std::uint64_t>(at) : memory_.u32(at);
      if (lookup == 0) break;
      spend_entries(1);
      if ((lookup & by_ordinal) != 0) {
        lookup = by_ordinal | (lookup & 0xffff);
      } else {
        lookup -= bias;
        touch(lookup, 2);
        touch_name(lookup + 2);
      }
      library.lookups.push_back(lookup);
    }
    if (!memory_.has(slots, width * library.lookups.size())) {
      damaged("its address table at rva:{:#x} is outside the image", slots);
    }
    libraries.push_back(std::move(library));
  } catch (const Damaged& reason) {
    damage.push_back(fmt::format("imports from {}: {}", printable(memory_.text(name, 64)), reason.what()));
  }
}

void TableWalk::relocations() {
  const Directory directory = headers_.directories[relocation_directory];
  touch(directory.address, directory.size);
  const std::uint64_t end = std::uint64_t{directory.address} + directory.size;
  std::size_t left = max_relocations;
  for (std::uint64_t block = directory.address; block + 8 <= end;) {
    const std::uint32_t page = memory_.u32(block);
    const std::uint32_t size = memory_.u32(block + 4);
    if (page == 0 && size == 0) return;
    if (page == 0 || size < 8 || size % 2 != 0 || size > end - block || size > 0x20000) {
      damaged("the block at rva:{:#x} (for rva:{:#x}, {:#x} bytes) is not one", block, page, size);
    }
    const std::size_t count = (size - 8) / 2;
    if (count > left) damaged("it has more than {} entries", max_relocations);
    left -= count;
    for (std::uint64_t at = block + 8; at < block + size; at += 2) {
      const unsigned type = memory_.u16(at) >> 12U;
      if (!is_supported(type)) {
        damaged("relocation type {} ({}) for rva:{:#x} is not supported", relocation_names[type], type,
                std::uint64_t{page} + (memory_.u16(at) & 0xfffU));
      }
    }
    block += size;
  }
}

}  // namespace bitwitness::pe
