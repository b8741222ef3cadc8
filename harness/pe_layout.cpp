#include "harness/pe_layout.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>

namespace bitwitness::pe {
namespace {

constexpr std::uint32_t contains_code = 0x20;
constexpr std::uint32_t may_execute = 0x20000000;
constexpr std::uint32_t may_write = 0x80000000;

/// A section, or the headers, with the bytes of the file that belong there.
struct Part {
  std::string name;
  std::uint64_t address = 0;
  std::uint64_t used = 0;
  std::uint64_t file_offset = 0;
  std::uint64_t file_count = 0;
  std::uint32_t characteristics = 0;

  [[nodiscard]] std::uint64_t end() const { return address + used; }
};

/// Windows reads a section from the start of the 512-byte sector its offset lies in, unless sections are not
/// page-aligned.
std::uint64_t raw_offset(const Headers& headers, const Section& section) {
  return headers.section_alignment < page_size ? section.raw_offset : section.raw_offset & ~std::uint64_t{0x1ff};
}

Part plan_section(const Headers& headers, const Section& section, std::uint64_t file_size, const std::string& file_name,
                  std::vector<std::string>& notes) {
  Part part;
  part.name = section.name;
  part.address = section.address;
  part.used = section.extent();
  part.characteristics = section.characteristics;
  if (part.end() > max_image_size) {
    refuse(file_name, "section {} asks for {:#x} bytes at rva:{:#x}; an image may have {:#x} bytes", part.name,
           part.used, part.address, max_image_size);
  }
  if (section.raw_offset == 0) return part;

  // Bytes of the file up to the end of the last page are seen by the program too; those beyond it are not mapped.
  part.file_offset = raw_offset(headers, section);
  part.file_count = std::min<std::uint64_t>(section.raw_size, round_to_pages(part.used));
  const std::uint64_t needed = std::min<std::uint64_t>(section.raw_size, part.used);
  if (needed != 0 && part.file_offset + needed > file_size) {
    refuse(file_name, "section {} is cut short: it takes file offsets {:#x} to {:#x}, but the file has {:#x} bytes",
           part.name, part.file_offset, part.file_offset + needed, file_size);
  }
  if (part.file_offset + part.file_count > file_size) {
    notes.push_back(fmt::format("the file ends inside the padding of section {}", part.name));
    part.file_count = file_size > part.file_offset ? file_size - part.file_offset : 0;
  }
  return part;
}

Part plan_headers(const Headers& headers, std::uint64_t first_section, std::uint64_t file_size) {
  Part part;
  part.name = "headers";
  part.used = std::min(std::max<std::uint64_t>(headers.size_of_headers, headers.table_end), first_section);
  part.file_count = std::min(part.used, file_size);
  return part;
}

std::vector<Part> plan(const Headers& headers, std::uint64_t file_size, const std::string& file_name,
                       std::vector<std::string>& notes) {
  std::vector<Part> parts;
  for (const Section& section : headers.sections) {
    if (section.extent() != 0) parts.push_back(plan_section(headers, section, file_size, file_name, notes));
  }
  if (parts.empty()) refuse(file_name, "has only empty sections");
  std::ranges::stable_sort(parts, {}, &Part::address);
  if (parts.front().address != 0) {
    parts.insert(parts.begin(), plan_headers(headers, parts.front().address, file_size));
  }
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const Part& before = parts[i - 1];
    if (before.end() > parts[i].address) {
      refuse(file_name, "sections {} (rva:{:#x} to rva:{:#x}) and {} (rva:{:#x} to rva:{:#x}) overlap", before.name,
             before.address, before.end(), parts[i].name, parts[i].address, parts[i].end());
    }
  }
  return parts;
}

void extend(MappedRange& range, const Part& part) {
  range.size = static_cast<std::uint32_t>(round_to_pages(part.end()) - range.address);
  range.used = static_cast<std::uint32_t>(part.end() - range.address);
  range.writable = range.writable || (part.characteristics & may_write) != 0;
  range.executable = range.executable || (part.characteristics & (may_execute | contains_code)) != 0;
}

/// Gives each part pages of its own; parts that share a page, as in drivers with small alignment, become one range.
std::vector<MappedRange> join(const std::vector<Part>& parts, std::vector<std::string>& notes) {
  std::vector<MappedRange> ranges;
  std::size_t shared = 0;
  for (const Part& part : parts) {
    const std::uint64_t page = part.address & ~(page_size - 1);
    if (!ranges.empty() && page < std::uint64_t{ranges.back().address} + ranges.back().size) {
      if (ranges.back().name.size() < 64) ranges.back().name += "+" + part.name;
      ++shared;
    } else {
      ranges.push_back({.name = part.name, .address = static_cast<std::uint32_t>(page)});
    }
    extend(ranges.back(), part);
  }
  if (shared != 0)
    notes.push_back(fmt::format("{} sections share a page with the one before and its permissions", shared));
  return ranges;
}

}  // namespace

PageMemory::PageMemory(std::size_t size) : block_(std::calloc(1, size + page_size)) {
  void* first = block_.get();
  std::size_t space = size + page_size;
  if (first == nullptr || std::align(page_size, size, first, space) == nullptr) throw std::bad_alloc();
  bytes_ = {static_cast<std::byte*>(first), size};
}

Layout lay_out(const Headers& headers, std::span<const std::byte> file, const std::string& file_name,
               std::vector<std::string>& notes) {
  const std::vector<Part> parts = plan(headers, file.size(), file_name, notes);
  Layout layout;
  layout.ranges = join(parts, notes);
  layout.memory = PageMemory(static_cast<std::size_t>(round_to_pages(parts.back().end())));
  const std::span<std::byte> memory = layout.memory.bytes();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    const std::uint64_t limit = i + 1 < parts.size() ? parts[i + 1].address : memory.size();
    const auto count = static_cast<std::size_t>(std::min(part.file_count, limit - part.address));
    if (count != 0) std::memcpy(memory.data() + part.address, file.data() + part.file_offset, count);
  }
  return layout;
}

}  // namespace bitwitness::pe
