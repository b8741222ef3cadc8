#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bitwitness::tests {

using FileBytes = std::vector<std::byte>;

inline constexpr std::uint32_t code_section = 0x60000020;
inline constexpr std::uint32_t data_section = 0xc0000040;
inline constexpr std::uint32_t constant_section = 0x40000040;

/// Makes bytes from numbers.
FileBytes bytes_of(std::initializer_list<unsigned> values);

/// Makes bytes from text, without a final zero.
FileBytes bytes_of(std::string_view text);

/// A section of a PeBuilder. What is not set is chosen as a linker would.
struct BuilderSection {
  std::string name{};
  std::uint32_t characteristics = code_section;
  FileBytes data{};
  std::optional<std::uint32_t> address{};
  std::optional<std::uint32_t> virtual_size{};
  std::optional<std::uint32_t> raw_offset{};
  std::optional<std::uint32_t> raw_size{};
};

struct BuilderExport {
  std::string name{};
  std::uint32_t address = 0;
  std::string forward{};  ///< "OTHER.Function" instead of an address
};

struct BuilderLibrary {
  std::string name{};
  std::vector<std::string> functions{};  ///< "#12" for an ordinal
  bool lookup_table = true;              ///< when false, as some linkers do, the address table is the only one
};

struct BuilderSymbol {
  std::string name{};
  std::int16_t section = 1;
  std::uint32_t value = 0;
  std::uint16_t type = 0x20;
  std::uint8_t storage = 2;
  std::uint8_t auxiliary = 0;
};

struct BuilderRelocation {
  std::uint32_t address = 0;
  unsigned type = 3;
};

/// Addresses and file offsets of what a PeBuilder wrote, for tests that damage it.
struct BuiltPe {
  FileBytes bytes;
  std::size_t coff_header = 0;
  std::size_t optional_header = 0;
  std::size_t directories = 0;  ///< file offset of the first data directory
  std::size_t section_table = 0;
  std::size_t symbol_table = 0;
  std::vector<std::size_t> section_offsets;  ///< raw offsets, generated sections last
  std::vector<std::uint32_t> section_addresses;
};

/// Builds small PE files in memory. Every field a reader may trip over can be set.
struct PeBuilder {
  bool is_64 = false;
  std::uint32_t pe_offset = 0x80;
  std::optional<std::uint16_t> machine;
  std::optional<std::uint16_t> magic;
  std::uint16_t characteristics = 0x2102;
  std::uint64_t image_base = 0x400000;
  std::uint32_t section_alignment = 0x1000;
  std::uint32_t file_alignment = 0x200;
  std::optional<std::uint32_t> size_of_headers;
  std::optional<std::uint32_t> size_of_image;
  std::optional<std::uint16_t> section_count;
  std::optional<std::uint16_t> optional_header_size;
  std::uint32_t directory_count = 16;
  std::array<std::optional<std::pair<std::uint32_t, std::uint32_t>>, 16> directories;

  std::vector<BuilderSection> sections;
  std::vector<BuilderExport> exports;
  std::vector<BuilderLibrary> imports;
  std::vector<BuilderLibrary> delay_imports;
  bool delay_absolute = false;  ///< delay-load tables with absolute addresses, as Visual C++ 6 wrote them
  std::vector<BuilderSymbol> symbols;
  std::vector<BuilderRelocation> relocations;
  FileBytes overlay;

  /// Lays everything out. Tables go into sections of their own: .edata, .idata, .didat, .reloc, in this order.
  [[nodiscard]] BuiltPe build() const;
};

/// Overwrites bytes at an offset, little-endian.
void put_u16(FileBytes& bytes, std::size_t offset, std::uint32_t value);
void put_u32(FileBytes& bytes, std::size_t offset, std::uint32_t value);

/// A file in the temporary directory that is removed again.
class TemporaryFile {
 public:
  /// Writes the bytes, then extends the file with a hole to `size` when that is more.
  explicit TemporaryFile(const FileBytes& bytes, std::uintmax_t size = 0, std::string_view name = "image.exe");
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// Replaces the content.
  void write(const FileBytes& bytes) const;

 private:
  std::filesystem::path folder_;
  std::filesystem::path path_;
};

}  // namespace bitwitness::tests
