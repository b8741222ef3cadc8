#pragma once
#include "harness/image.hpp"
#include "harness/pe_excerpt.hpp"
#include "harness/pe_headers.hpp"
#include "harness/pe_layout.hpp"
#include "harness/pe_tables.hpp"
#include "harness/printable.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace bitwitness {

/// An Image's state, shared by the two files that implement it.
struct Image::Impl {
  std::string path;
  std::string name;
  std::string sha256;
  ImageFormat format = ImageFormat::pe32;
  std::uint64_t base = 0;
  pe::PageMemory memory;
  std::vector<Segment> segments;
  std::vector<NamedAddress> exports;
  std::vector<NamedAddress> forwarded;  ///< exports that are another library's; the address is that of its name
  std::vector<NamedAddress> symbols;
  std::vector<Import> imports;
  std::vector<Import> bound_imports;
  std::vector<AddressRange> patched_ranges;
  std::vector<std::string> notes;
  std::string export_damage;
  std::string symbol_damage;
  bool stand_in = false;
  std::vector<std::unique_ptr<Impl>> libraries;  ///< whose memory `segments` shows as well
  std::vector<pe::PageMemory> pages;             ///< further memory that `segments` shows

  /// The path, fit for a message.
  [[nodiscard]] std::string shown() const { return printable(path, true); }

  void set_segments(const pe::Layout& layout);
  void set_tables(const pe::Headers& headers, pe::Tables tables);
  void note_damage(const pe::Excerpt& excerpt);
};

}  // namespace bitwitness
