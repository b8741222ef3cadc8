#include "harness/pe_excerpt.hpp"

#include "harness/pe_walk.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace bitwitness::pe {
namespace {

/// LIEF searches its sections one by one for every address.
constexpr std::size_t max_runs = 256;
/// Runs of pages closer than this become one.
constexpr std::size_t largest_gap = 16;

/// Bytes written one after the other, little-endian.
class Writer {
 public:
  void u16(std::uint64_t value) { put(value, 2); }
  void u32(std::uint64_t value) { put(value, 4); }
  void put(std::uint64_t value, unsigned width) {
    for (unsigned i = 0; i < width; ++i) bytes_.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  }
  void zeros(std::size_t count) { bytes_.resize(bytes_.size() + count); }
  void pad_to_page() { bytes_.resize(static_cast<std::size_t>(round_to_pages(bytes_.size()))); }
  void append(std::span<const std::byte> bytes) {
    const auto* const first = reinterpret_cast<const std::uint8_t*>(bytes.data());
    bytes_.insert(bytes_.end(), first, first + bytes.size());
  }
  void append(std::span<const std::uint8_t> bytes) { append(std::as_bytes(bytes)); }

  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] std::vector<std::uint8_t>& bytes() { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

struct Run {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
};

std::vector<Run> runs_of(const std::vector<bool>& pages) {
  std::vector<Run> runs;
  for (std::size_t page = 0; page < pages.size(); ++page) {
    if (!pages[page]) continue;
    const std::uint64_t address = page * page_size;
    if (!runs.empty() && address <= runs.back().address + runs.back().size + largest_gap * page_size) {
      runs.back().size = address + page_size - runs.back().address;
    } else {
      runs.push_back({address, page_size});
    }
  }
  return runs;
}

struct Imports {
  std::vector<std::uint8_t> bytes;  ///< descriptors, then lookup tables
  std::uint32_t descriptor_size = 0;
};

/// Writes an import directory for `address`. Each library's lookup table is a copy that serves as its address table
/// too, so that nothing depends on what the file's address table holds.
Imports write_imports(std::span<const ImportedLibrary> libraries, bool is_64, std::uint32_t address,
                      std::vector<ThunkTable>& tables) {
  const unsigned width = is_64 ? 8 : 4;
  Writer descriptors;
  Writer lookups;
  const std::size_t descriptor_size = (libraries.size() + 1) * 20;
  const std::size_t lookups_start = (descriptor_size + 7) & ~std::size_t{7};
  for (const ImportedLibrary& library : libraries) {
    const auto table = static_cast<std::uint32_t>(address + lookups_start + lookups.size());
    tables.push_back({table, library.slot_address});
    descriptors.u32(table);
    descriptors.zeros(8);
    descriptors.u32(library.name_address);
    descriptors.u32(table);
    for (const std::uint64_t lookup : library.lookups) lookups.put(lookup, width);
    lookups.put(0, width);
  }
  descriptors.zeros(lookups_start - descriptors.size());
  descriptors.append(lookups.bytes());
  return {std::move(descriptors.bytes()), static_cast<std::uint32_t>(descriptor_size)};
}

struct Symbols {
  std::vector<std::uint8_t> bytes;  ///< symbols, then the string table
  std::uint32_t count = 0;
};

/// Symbols of code and data that lies in a section. The records that name sections themselves are left out.
bool is_wanted(const Bytes& file, std::uint64_t record, std::size_t section_count) {
  constexpr unsigned external = 2;
  constexpr unsigned statik = 3;
  constexpr unsigned label = 6;
  constexpr unsigned weak_external = 105;
  const auto section = file.get<std::int16_t>(record + 12);
  if (section <= 0 || static_cast<std::size_t>(section) > section_count) return false;
  const unsigned type = file.u16(record + 14);
  const unsigned storage = file.get<std::uint8_t>(record + 16);
  const unsigned auxiliary = file.get<std::uint8_t>(record + 17);
  if (storage == statik) return type != 0 || auxiliary == 0;
  return storage == external || storage == label || storage == weak_external;
}

/// Copies the wanted symbols, each with its name in the string table: LIEF 0.9 loses names of up to eight characters.
Symbols write_symbols(const Headers& headers, std::span<const std::byte> bytes) {
  const Bytes file(bytes);
  const std::uint64_t first = headers.symbol_offset;
  const std::uint64_t strings = first + symbol_size * headers.symbol_count;
  if (headers.symbol_count > max_symbols) throw Damaged(fmt::format("it has more than {} entries", max_symbols));
  if (!file.has(first, strings - first)) {
    throw Damaged(
        fmt::format("it takes file offsets {:#x} to {:#x}, but the file has {:#x} bytes", first, strings, file.size()));
  }
  Writer symbols;
  Writer names;
  Symbols result;
  for (std::uint64_t i = 0; i < headers.symbol_count;) {
    const std::uint64_t record = first + symbol_size * i;
    i += 1 + std::uint64_t{file.get<std::uint8_t>(record + 17)};
    if (!is_wanted(file, record, headers.sections.size())) continue;
    const bool is_long = file.u32(record) == 0;
    const std::uint64_t long_name = strings + file.u32(record + 4);
    const std::string_view name = is_long ? file.text(long_name, max_name_length + 1) : file.text(record, 8);
    if (is_long && (name.size() > max_name_length || !file.has(long_name, name.size() + 1))) {
      throw Damaged(fmt::format("the name of the symbol at file offset {:#x} has no end", record));
    }
    if (name.empty()) continue;
    if (names.size() + name.size() > max_name_bytes) {
      throw Damaged(fmt::format("its names are longer than {:#x} bytes together", max_name_bytes));
    }
    symbols.u32(0);
    symbols.u32(4 + names.size());
    symbols.append(bytes.subspan(static_cast<std::size_t>(record + 8), 9));
    symbols.put(0, 1);
    names.append(std::as_bytes(std::span(name)));
    names.put(0, 1);
    ++result.count;
  }
  if (result.count == 0) return result;
  symbols.u32(4 + names.size());
  symbols.append(names.bytes());
  result.bytes = std::move(symbols.bytes());
  return result;
}

struct Contents {
  const ExcerptSource& source;
  std::vector<Run> runs;  ///< the last one holds the imports when there are any
  Imports imports;
  Symbols symbols;
  Directory exports;
  Directory relocations;
};

void write_headers(Writer& out, const Contents& contents) {
  const Headers& headers = contents.source.headers;
  const bool is_64 = headers.format == ImageFormat::pe32_plus;
  const std::size_t section_count = contents.runs.size();
  const std::size_t optional_size = (is_64 ? 112U : 96U) + 8 * directory_count;
  const std::size_t headers_size = 0x40 + 24 + optional_size + 40 * section_count;
  std::uint64_t raw = round_to_pages(headers_size);
  std::uint64_t runs_size = 0;
  for (const Run& run : contents.runs) runs_size += run.size;

  out.u16(0x5a4d);
  out.zeros(0x3a);
  out.u32(0x40);
  out.u32(0x4550);
  out.u16(is_64 ? 0x8664 : 0x14c);
  out.u16(section_count);
  out.u32(0);
  out.u32(contents.symbols.count == 0 ? 0 : raw + runs_size);
  out.u32(contents.symbols.count);
  out.u16(optional_size);
  out.u16(0x0002);

  const std::size_t optional = out.size();
  out.u16(is_64 ? 0x20b : 0x10b);
  out.zeros(is_64 ? 22 : 26);
  out.put(headers.image_base, is_64 ? 8 : 4);
  out.u32(page_size);
  out.u32(page_size);
  out.zeros(16);
  out.u32(contents.source.memory.size() + round_to_pages(contents.imports.bytes.size()));
  out.u32(raw);
  out.zeros(optional + (is_64 ? 108U : 92U) - out.size());
  out.u32(directory_count);
  for (std::size_t i = 0; i < directory_count; ++i) {
    Directory directory;
    if (i == export_directory) directory = contents.exports;
    if (i == relocation_directory) directory = contents.relocations;
    if (i == import_directory && contents.imports.descriptor_size != 0) {
      directory = {static_cast<std::uint32_t>(contents.source.memory.size()), contents.imports.descriptor_size};
    }
    out.u32(directory.address);
    out.u32(directory.size);
  }
  for (const Run& run : contents.runs) {
    out.zeros(8);
    out.u32(run.size);
    out.u32(run.address);
    out.u32(run.size);
    out.u32(raw);
    out.zeros(12);
    out.u32(0x40000040);
    raw += run.size;
  }
  out.pad_to_page();
}

std::vector<std::uint8_t> write_file(const Contents& contents) {
  Writer out;
  write_headers(out, contents);
  const std::span<const std::byte> memory = contents.source.memory;
  for (const Run& run : contents.runs) {
    if (run.address < memory.size()) {
      out.append(memory.subspan(static_cast<std::size_t>(run.address), static_cast<std::size_t>(run.size)));
    } else {
      out.append(contents.imports.bytes);
      out.pad_to_page();
    }
  }
  out.append(contents.symbols.bytes);
  return std::move(out.bytes());
}

}  // namespace

Excerpt make_excerpt(const ExcerptSource& source, const std::string& file_name) {
  const Headers& headers = source.headers;
  Excerpt excerpt;
  Contents contents{.source = source, .runs = {}, .imports = {}, .symbols = {}, .exports = {}, .relocations = {}};
  TableWalk walk(headers, source.memory);
  if (source.relocations) {
    try {
      walk.relocations();
    } catch (const Damaged& reason) {
      refuse(file_name, "cannot be moved to another base: in its relocation table, {}", reason.what());
    }
    contents.relocations = headers.directories[relocation_directory];
  }
  if (headers.directories[export_directory].address != 0) {
    try {
      walk.exports();
      contents.exports = headers.directories[export_directory];
    } catch (const Damaged& reason) {
      excerpt.export_damage = reason.what();
    }
  }
  const std::vector<ImportedLibrary> libraries = walk.imports(excerpt.import_damage);
  if (headers.symbol_offset != 0 && headers.symbol_count != 0) {
    try {
      contents.symbols = write_symbols(headers, source.file);
    } catch (const Damaged& reason) {
      excerpt.symbol_damage = reason.what();
    }
  }

  contents.runs = runs_of(walk.pages());
  std::uint64_t size = 0;
  for (const Run& run : contents.runs) size += run.size;
  if (contents.runs.size() > max_runs || size > max_excerpt_size) {
    const std::string reason =
        fmt::format("the tables are spread over {} places and {:#x} bytes", contents.runs.size(), size);
    if (source.relocations) refuse(file_name, "cannot be moved to another base: {}", reason);
    excerpt.export_damage = reason;
    excerpt.import_damage = {reason};
    contents.runs.clear();
    contents.exports = {};
  } else if (!libraries.empty()) {
    const auto address = static_cast<std::uint32_t>(source.memory.size());
    contents.imports =
        write_imports(libraries, headers.format == ImageFormat::pe32_plus, address, excerpt.thunk_tables);
    contents.runs.push_back({address, round_to_pages(contents.imports.bytes.size())});
  }
  if (!contents.runs.empty() || contents.symbols.count != 0) excerpt.file = write_file(contents);
  return excerpt;
}

}  // namespace bitwitness::pe
