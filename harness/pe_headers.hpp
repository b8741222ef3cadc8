#pragma once
#include "harness/image.hpp"
#include "harness/pe_common.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bitwitness::pe {

/// A table that the optional header points to. `address` is relative to the image's base; both are 0 when absent.
struct Directory {
  std::uint32_t address = 0;
  std::uint32_t size = 0;
};

/// Indices of the directories that are used.
inline constexpr std::size_t export_directory = 0;
inline constexpr std::size_t import_directory = 1;
inline constexpr std::size_t relocation_directory = 5;
inline constexpr std::size_t delay_import_directory = 13;
inline constexpr std::size_t clr_directory = 14;
inline constexpr std::size_t directory_count = 16;

/// A row of the section table.
struct Section {
  std::string name;  ///< printable, long names resolved
  std::uint32_t address = 0;
  std::uint32_t virtual_size = 0;
  std::uint32_t raw_offset = 0;
  std::uint32_t raw_size = 0;
  std::uint32_t characteristics = 0;

  /// Bytes of memory it takes. A virtual size of zero means the size in the file.
  [[nodiscard]] std::uint32_t extent() const { return virtual_size != 0 ? virtual_size : raw_size; }
};

struct Headers {
  ImageFormat format = ImageFormat::pe32;
  std::uint64_t image_base = 0;
  std::uint32_t section_alignment = 0;
  std::uint32_t size_of_headers = 0;
  std::uint64_t table_end = 0;  ///< file offset just past the section table
  std::uint32_t symbol_offset = 0;
  std::uint32_t symbol_count = 0;
  bool relocations_stripped = false;
  std::array<Directory, directory_count> directories{};
  std::vector<Section> sections;  ///< in the order of the file
};

/// Size of one COFF symbol, and of each of its auxiliary records.
inline constexpr std::uint64_t symbol_size = 18;

/// Reads the headers of a PE file for x86 or x86-64. Throws Error, starting with `file_name`, for anything else.
Headers read_headers(std::span<const std::byte> file, const std::string& file_name);

}  // namespace bitwitness::pe
