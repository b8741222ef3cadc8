#include "harness/pe_headers.hpp"

#include "harness/printable.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

namespace bitwitness::pe {
namespace {

constexpr std::uint16_t machine_i386 = 0x14c;
constexpr std::uint16_t machine_amd64 = 0x8664;

constexpr std::array<std::pair<std::uint16_t, std::string_view>, 23> machines{{{machine_i386, "x86"},
                                                                               {machine_amd64, "x86-64"},
                                                                               {0x162, "MIPS R3000"},
                                                                               {0x166, "MIPS R4000"},
                                                                               {0x168, "MIPS R10000"},
                                                                               {0x184, "Alpha"},
                                                                               {0x1a2, "SH3"},
                                                                               {0x1a6, "SH4"},
                                                                               {0x1c0, "ARM"},
                                                                               {0x1c2, "ARM Thumb"},
                                                                               {0x1c4, "ARM Thumb-2"},
                                                                               {0x1f0, "PowerPC"},
                                                                               {0x1f1, "PowerPC with FPU"},
                                                                               {0x1f2, "PowerPC big-endian (Xbox 360)"},
                                                                               {0x200, "Itanium"},
                                                                               {0x284, "Alpha 64"},
                                                                               {0xebc, "EFI byte code"},
                                                                               {0x5032, "RISC-V 32"},
                                                                               {0x5064, "RISC-V 64"},
                                                                               {0x6264, "LoongArch 64"},
                                                                               {0xa641, "ARM64EC"},
                                                                               {0xa64e, "ARM64X"},
                                                                               {0xaa64, "ARM64"}}};

std::string_view machine_name(std::uint16_t machine) {
  const auto* const found =
      std::find_if(machines.begin(), machines.end(), [&](auto& row) { return row.first == machine; });
  return found == machines.end() ? std::string_view{} : found->second;
}

void require_bytes(const Bytes& file, const std::string& file_name, std::string_view what, std::uint64_t offset,
                   std::uint64_t count) {
  if (file.has(offset, count)) return;
  refuse(file_name, "is cut short: its {} takes file offsets {:#x} to {:#x}, but the file has {:#x} bytes", what,
         offset, offset + count, file.size());
}

/// What a file without an MZ signature is, as far as its first bytes tell.
std::string describe_foreign(const Bytes& file) {
  const std::string_view start = file.text(0, 8);
  if (start.starts_with("\x7f"
                        "ELF"))
    return "an ELF file";
  if (start.starts_with("!<arch>")) return "a library of object files";
  switch (file.u32(0)) {
    case 0xfeedface:
    case 0xfeedfacf:
    case 0xcefaedfe:
    case 0xcffaedfe:
    case 0xbebafeca:
      return "a Mach-O file";
    case 0xffff0000:
      return "an object file";
    default:
      break;
  }
  const std::string_view machine = machine_name(file.u16(0));
  if (!machine.empty() && file.size() >= 20 && file.u16(16) == 0) return fmt::format("an object file for {}", machine);
  return {};
}

std::uint64_t find_pe_header(const Bytes& file, const std::string& file_name) {
  if (file.size() == 0) refuse(file_name, "is not a PE executable: the file is empty");
  if (file.text(0, 2) != "MZ") {
    const std::string foreign = describe_foreign(file);
    if (!foreign.empty()) refuse(file_name, "is not a PE executable but {}", foreign);
    refuse(file_name, "is not a PE executable: no MZ signature at file offset 0");
  }
  require_bytes(file, file_name, "DOS header", 0, 0x40);
  const std::uint64_t offset = file.u32(0x3c);
  if (offset >= file.size()) {
    refuse(file_name,
           "is not a PE executable or is cut short: its PE header should be at file offset {:#x}, but the file "
           "has {:#x} bytes",
           offset, file.size());
  }
  const std::string_view signature = file.text(offset, 2);
  if (signature == "NE") refuse(file_name, "is not a PE executable but a 16-bit NE one");
  if (signature == "LE" || signature == "LX") refuse(file_name, "is not a PE executable but an {} one", signature);
  require_bytes(file, file_name, "PE header", offset, 24);
  if (file.u32(offset) != 0x4550)
    refuse(file_name, "is not a PE executable: no PE signature at file offset {:#x}", offset);
  return offset;
}

/// Section names of more than eight characters are "/" and a decimal offset into the string table behind the symbols.
std::string section_name(const Bytes& file, std::uint64_t row, std::uint64_t strings) {
  const std::string_view name = file.text(row, 8);
  if (strings != 0 && name.size() > 1 && name.front() == '/') {
    std::uint64_t offset = 0;
    const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), offset);
    if (error == std::errc{} && end == name.data() + name.size()) {
      const std::string_view long_name = file.text(strings + offset, 256);
      if (!long_name.empty()) return printable(long_name);
    }
  }
  return name.empty() ? "(unnamed)" : printable(name);
}

}  // namespace

Headers read_headers(std::span<const std::byte> bytes, const std::string& file_name) {
  const Bytes file(bytes);
  const std::uint64_t coff = find_pe_header(file, file_name) + 4;
  const std::uint64_t optional = coff + 20;

  const std::uint16_t machine = file.u16(coff);
  if (machine != machine_i386 && machine != machine_amd64) {
    const std::string_view name = machine_name(machine);
    refuse(file_name, "is for {} (machine type {:#x} at file offset {:#x}); only x86 and x86-64 can be run",
           name.empty() ? "an unknown machine" : name, machine, coff);
  }
  const std::uint16_t optional_size = file.u16(coff + 16);
  if (optional_size == 0)
    refuse(file_name, "is an object file: it has no optional header (file offset {:#x})", coff + 16);

  const bool is_64 = machine == machine_amd64;
  const std::uint64_t fixed_size = is_64 ? 112 : 96;
  require_bytes(file, file_name, "optional header", optional, fixed_size);
  const std::uint16_t magic = file.u16(optional);
  if (magic != (is_64 ? 0x20b : 0x10b)) {
    refuse(file_name, "has optional header type {:#x} at file offset {:#x}, which does not go with {}", magic, optional,
           machine_name(machine));
  }

  Headers headers;
  headers.format = is_64 ? ImageFormat::pe32_plus : ImageFormat::pe32;
  headers.image_base = is_64 ? file.get<std::uint64_t>(optional + 24) : file.u32(optional + 28);
  headers.section_alignment = file.u32(optional + 32);
  headers.size_of_headers = file.u32(optional + 60);
  headers.relocations_stripped = (file.u16(coff + 18) & 1U) != 0;
  const std::uint32_t size_of_image = file.u32(optional + 56);
  if (size_of_image > max_image_size) {
    refuse(file_name, "asks for an image of {:#x} bytes (file offset {:#x}); at most {:#x} are given", size_of_image,
           optional + 56, max_image_size);
  }

  const std::uint32_t directories = std::min<std::uint32_t>(file.u32(optional + fixed_size - 4), directory_count);
  for (std::uint32_t i = 0; i < directories; ++i) {
    const std::uint64_t row = optional + fixed_size + std::uint64_t{8} * i;
    headers.directories[i] = {file.u32(row), file.u32(row + 4)};
  }

  headers.symbol_offset = file.u32(coff + 8);
  headers.symbol_count = file.u32(coff + 12);
  const std::uint64_t strings =
      headers.symbol_offset == 0 ? 0 : headers.symbol_offset + symbol_size * headers.symbol_count;

  const std::uint16_t section_count = file.u16(coff + 2);
  if (section_count == 0) refuse(file_name, "has no sections (file offset {:#x})", coff + 2);
  const std::uint64_t table = optional + optional_size;
  headers.table_end = table + std::uint64_t{40} * section_count;
  require_bytes(file, file_name, "section table", table, headers.table_end - table);
  headers.sections.reserve(section_count);
  for (std::uint64_t row = table; row < headers.table_end; row += 40) {
    Section section;
    section.name = section_name(file, row, strings);
    section.virtual_size = file.u32(row + 8);
    section.address = file.u32(row + 12);
    section.raw_size = file.u32(row + 16);
    section.raw_offset = file.u32(row + 20);
    section.characteristics = file.u32(row + 36);
    headers.sections.push_back(std::move(section));
  }
  return headers;
}

}  // namespace bitwitness::pe
