#include "tests/pe_builder.hpp"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <span>
#include <stdexcept>

#include <unistd.h>

namespace bitwitness::tests {
namespace {

std::uint32_t align(std::uint64_t value, std::uint32_t alignment) {
  const std::uint64_t step = alignment == 0 ? 1 : alignment;
  return static_cast<std::uint32_t>((value + step - 1) / step * step);
}

/// Bytes for an address, written little-endian.
class Blob {
 public:
  explicit Blob(std::uint32_t address) : address_(address) {}

  [[nodiscard]] std::uint32_t here() const { return address_ + static_cast<std::uint32_t>(bytes.size()); }

  void put(std::uint64_t value, unsigned width) {
    for (unsigned i = 0; i < width; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
  void u16(std::uint64_t value) { put(value, 2); }
  void u32(std::uint64_t value) { put(value, 4); }

  std::uint32_t text(std::string_view value) {
    const std::uint32_t start = here();
    for (const char c : value) bytes.push_back(static_cast<std::byte>(c));
    bytes.push_back(std::byte{0});
    return start;
  }

  void append(const FileBytes& other) { bytes.insert(bytes.end(), other.begin(), other.end()); }
  void pad_to(std::size_t size) { bytes.resize(std::max(size, bytes.size())); }

  FileBytes bytes;

 private:
  std::uint32_t address_;
};

FileBytes export_table(const std::vector<BuilderExport>& exports, std::uint32_t address) {
  std::vector<BuilderExport> sorted = exports;
  std::ranges::sort(sorted, {}, &BuilderExport::name);
  const auto count = static_cast<std::uint32_t>(sorted.size());
  const std::uint32_t addresses = address + 40;
  const std::uint32_t names = addresses + 4 * count;
  const std::uint32_t ordinals = names + 4 * count;
  Blob strings(ordinals + 2 * count);
  const std::uint32_t own_name = strings.text("test.dll");

  Blob out(address);
  for (int i = 0; i < 3; ++i) out.u32(0);
  out.u32(own_name);
  out.u32(1);
  out.u32(count);
  out.u32(count);
  out.u32(addresses);
  out.u32(names);
  out.u32(ordinals);
  for (const BuilderExport& row : sorted) out.u32(row.forward.empty() ? row.address : strings.text(row.forward));
  for (const BuilderExport& row : sorted) out.u32(strings.text(row.name));
  for (std::uint32_t i = 0; i < count; ++i) out.u16(i);
  out.append(strings.bytes);
  return out.bytes;
}

std::uint64_t lookup_of(const std::string& function, Blob& strings, bool is_64, std::uint64_t bias) {
  if (function.starts_with("#")) return (is_64 ? 1ULL << 63 : 1ULL << 31) | std::stoul(function.substr(1));
  const std::uint32_t start = strings.here();
  strings.u16(0);
  strings.text(function);
  return start + bias;
}

/// Import tables: descriptors, then for each library lookup table and address table, then the names.
FileBytes import_table(const std::vector<BuilderLibrary>& libraries, std::uint32_t address, bool is_64, bool delayed,
                       std::uint64_t bias) {
  const unsigned width = is_64 ? 8 : 4;
  const std::uint32_t row_size = delayed ? 32 : 20;
  std::uint32_t table = align(address + row_size * (libraries.size() + 1), 8);
  std::uint32_t strings_start = table;
  for (const BuilderLibrary& library : libraries) {
    strings_start += 2 * width * static_cast<std::uint32_t>(library.functions.size() + 1);
  }
  Blob strings(strings_start);
  Blob rows(address);
  Blob tables(table);
  for (const BuilderLibrary& library : libraries) {
    const std::uint32_t name = strings.text(library.name);
    std::vector<std::uint64_t> lookups;
    for (const std::string& function : library.functions) lookups.push_back(lookup_of(function, strings, is_64, bias));
    lookups.push_back(0);
    const std::uint32_t lookup_table = tables.here();
    for (const std::uint64_t lookup : lookups) tables.put(lookup, width);
    const std::uint32_t address_table = tables.here();
    for (const std::uint64_t lookup : lookups) tables.put(lookup, width);
    if (delayed) {
      rows.u32(bias == 0 ? 1 : 0);
      for (const std::uint64_t value : {name + bias, std::uint64_t{0}, address_table + bias, lookup_table + bias}) {
        rows.u32(value);
      }
      for (int i = 0; i < 3; ++i) rows.u32(0);
    } else {
      rows.u32(library.lookup_table ? lookup_table : 0);
      rows.u32(0);
      rows.u32(0);
      rows.u32(name);
      rows.u32(address_table);
    }
  }
  rows.pad_to(table - address);
  rows.append(tables.bytes);
  rows.append(strings.bytes);
  return rows.bytes;
}

FileBytes relocation_table(const std::vector<BuilderRelocation>& relocations) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> pages;
  for (const BuilderRelocation& row : relocations) {
    pages[row.address & ~0xfffU].push_back((row.type << 12U) | (row.address & 0xfffU));
  }
  Blob out(0);
  for (auto& [page, entries] : pages) {
    if (entries.size() % 2 != 0) entries.push_back(0);
    out.u32(page);
    out.u32(8 + 2 * entries.size());
    for (const std::uint32_t entry : entries) out.u16(entry);
  }
  return out.bytes;
}

void write_symbols(Blob& out, const std::vector<BuilderSymbol>& symbols) {
  Blob strings(4);
  for (const BuilderSymbol& symbol : symbols) {
    if (symbol.name.size() > 8) {
      out.u32(0);
      out.u32(strings.text(symbol.name));
    } else {
      const std::size_t end = out.bytes.size() + 8;
      for (const char c : symbol.name) out.bytes.push_back(static_cast<std::byte>(c));
      out.pad_to(end);
    }
    out.u32(symbol.value);
    out.u16(static_cast<std::uint16_t>(symbol.section));
    out.u16(symbol.type);
    out.put(symbol.storage, 1);
    out.put(symbol.auxiliary, 1);
    // A reader that takes auxiliary records for symbols finds one.
    for (unsigned i = 0; i < symbol.auxiliary; ++i) {
      out.append(bytes_of("auxiliar"));
      out.u32(0);
      out.u16(1);
      out.u16(0x20);
      out.u16(2);
    }
  }
  out.u32(4 + strings.bytes.size());
  out.append(strings.bytes);
}

struct Placed {
  BuilderSection section;
  std::uint32_t address = 0;
  std::uint32_t virtual_size = 0;
  std::uint32_t raw_offset = 0;
  std::uint32_t raw_size = 0;
};

class Placer {
 public:
  explicit Placer(const PeBuilder& builder, std::uint32_t headers_size)
      : builder_(builder),
        next_address_(align(headers_size, builder.section_alignment)),
        next_offset_(align(headers_size, builder.file_alignment)) {}

  [[nodiscard]] std::uint32_t next_address() const { return next_address_; }

  void add(const BuilderSection& section) {
    Placed placed{.section = section};
    const auto size = static_cast<std::uint32_t>(section.data.size());
    placed.address = section.address.value_or(next_address_);
    placed.virtual_size = section.virtual_size.value_or(size);
    placed.raw_size = section.raw_size.value_or(align(size, builder_.file_alignment));
    placed.raw_offset = section.raw_offset.value_or(size == 0 ? 0 : next_offset_);
    const std::uint32_t extent = placed.virtual_size != 0 ? placed.virtual_size : placed.raw_size;
    next_address_ = align(std::uint64_t{placed.address} + extent, builder_.section_alignment);
    if (size != 0) next_offset_ = align(std::uint64_t{next_offset_} + size, builder_.file_alignment);
    all.push_back(placed);
  }

  std::vector<Placed> all;

 private:
  const PeBuilder& builder_;
  std::uint32_t next_address_;
  std::uint32_t next_offset_;
};

}  // namespace

FileBytes bytes_of(std::initializer_list<unsigned> values) {
  FileBytes bytes;
  for (const unsigned value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

FileBytes bytes_of(std::string_view text) {
  FileBytes bytes;
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

BuiltPe PeBuilder::build() const {
  const std::uint32_t fixed_size = is_64 ? 112 : 96;
  const std::uint32_t own_optional_size = fixed_size + 8 * directory_count;
  const std::size_t generated = std::size_t{!exports.empty()} + std::size_t{!imports.empty()} +
                                std::size_t{!delay_imports.empty()} + std::size_t{!relocations.empty()};
  const std::size_t rows = sections.size() + generated;
  const auto headers_size = static_cast<std::uint32_t>(pe_offset + 24 + own_optional_size + 40 * rows);

  Placer placer(*this, headers_size);
  for (const BuilderSection& section : sections) placer.add(section);
  auto filled = directories;
  const auto generate = [&](std::size_t index, std::string name, std::uint32_t flags, auto&& make) {
    const std::uint32_t address = placer.next_address();
    FileBytes data = make(address);
    const auto size = static_cast<std::uint32_t>(data.size());
    if (!filled[index]) filled[index] = {address, size};
    placer.add({.name = std::move(name), .characteristics = flags, .data = std::move(data)});
  };
  if (!exports.empty()) {
    generate(0, ".edata", constant_section, [&](std::uint32_t at) { return export_table(exports, at); });
  }
  if (!imports.empty()) {
    generate(1, ".idata", data_section, [&](std::uint32_t at) { return import_table(imports, at, is_64, false, 0); });
  }
  if (!delay_imports.empty()) {
    generate(13, ".didat", data_section, [&](std::uint32_t at) {
      return import_table(delay_imports, at, is_64, true, delay_absolute ? image_base : 0);
    });
  }
  if (!relocations.empty()) {
    generate(5, ".reloc", constant_section, [&](std::uint32_t) { return relocation_table(relocations); });
  }

  BuiltPe built;
  Blob out(0);
  std::size_t symbol_offset = align(headers_size, file_alignment);
  for (const Placed& placed : placer.all) {
    symbol_offset =
        std::max<std::size_t>(symbol_offset, placed.raw_offset + align(placed.section.data.size(), file_alignment));
  }
  std::size_t record_count = 0;
  for (const BuilderSymbol& symbol : symbols) record_count += 1U + symbol.auxiliary;

  out.u16(0x5a4d);
  out.pad_to(0x3c);
  out.u32(pe_offset);
  out.pad_to(pe_offset);
  out.u32(0x4550);
  built.coff_header = out.bytes.size();
  out.u16(machine.value_or(static_cast<std::uint16_t>(is_64 ? 0x8664 : 0x14c)));
  out.u16(section_count.value_or(static_cast<std::uint16_t>(rows)));
  out.u32(0x12345678);
  out.u32(symbols.empty() ? 0 : symbol_offset);
  out.u32(record_count);
  out.u16(optional_header_size.value_or(static_cast<std::uint16_t>(own_optional_size)));
  out.u16(characteristics);
  built.optional_header = out.bytes.size();
  out.u16(magic.value_or(static_cast<std::uint16_t>(is_64 ? 0x20b : 0x10b)));
  out.pad_to(built.optional_header + (is_64 ? 24 : 28));
  out.put(image_base, is_64 ? 8 : 4);
  out.u32(section_alignment);
  out.u32(file_alignment);
  out.pad_to(built.optional_header + 56);
  out.u32(size_of_image.value_or(placer.next_address()));
  out.u32(size_of_headers.value_or(align(headers_size, file_alignment)));
  out.pad_to(built.optional_header + fixed_size - 4);
  out.u32(directory_count);
  built.directories = out.bytes.size();
  for (std::size_t i = 0; i < directory_count; ++i) {
    const auto directory = i < filled.size() && filled[i] ? *filled[i] : std::pair<std::uint32_t, std::uint32_t>{};
    out.u32(directory.first);
    out.u32(directory.second);
  }
  built.section_table = out.bytes.size();
  for (const Placed& placed : placer.all) {
    const std::size_t row = out.bytes.size();
    out.append(bytes_of(std::string_view(placed.section.name).substr(0, 8)));
    out.pad_to(row + 8);
    out.u32(placed.virtual_size);
    out.u32(placed.address);
    out.u32(placed.raw_size);
    out.u32(placed.raw_offset);
    out.pad_to(row + 36);
    out.u32(placed.section.characteristics);
    built.section_offsets.push_back(placed.raw_offset);
    built.section_addresses.push_back(placed.address);
  }
  for (const Placed& placed : placer.all) {
    if (placed.section.data.empty()) continue;
    out.pad_to(placed.raw_offset + align(placed.section.data.size(), file_alignment));
    std::ranges::copy(placed.section.data, out.bytes.begin() + placed.raw_offset);
  }
  if (!symbols.empty()) {
    out.pad_to(symbol_offset);
    built.symbol_table = symbol_offset;
    write_symbols(out, symbols);
  }
  out.append(overlay);
  built.bytes = std::move(out.bytes);
  return built;
}

void put_u16(FileBytes& bytes, std::size_t offset, std::uint32_t value) {
  for (std::size_t i = 0; i < 2; ++i) bytes.at(offset + i) = static_cast<std::byte>(value >> (8 * i));
}

void put_u32(FileBytes& bytes, std::size_t offset, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) bytes.at(offset + i) = static_cast<std::byte>(value >> (8 * i));
}

TemporaryFile::TemporaryFile(const FileBytes& bytes, std::uintmax_t size, std::string_view name) {
  static std::atomic<unsigned> count{0};
  folder_ = std::filesystem::temp_directory_path() /
            ("bitwitness-" + std::to_string(::getpid()) + "-" + std::to_string(count++));
  std::filesystem::create_directories(folder_);
  path_ = folder_ / name;
  write(bytes);
  if (size > bytes.size()) std::filesystem::resize_file(path_, size);
}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void TemporaryFile::write(const FileBytes& bytes) const {
  std::ofstream out(path_, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!out) throw std::runtime_error("cannot write " + path_.string());
}

}  // namespace bitwitness::tests
