#include "harness/image.hpp"

#include "harness/image_impl.hpp"
#include "harness/pe_excerpt.hpp"
#include "harness/pe_headers.hpp"
#include "harness/pe_layout.hpp"
#include "harness/pe_tables.hpp"
#include "harness/printable.hpp"
#include "harness/sha256.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace bitwitness {
namespace {

using pe::refuse;

constexpr std::uint64_t max_file_size = std::uint64_t{1} << 31;
constexpr std::uint64_t base_granularity = 0x10000;
constexpr std::string_view stand_in_section = ".standin";
constexpr std::string_view stand_in_text = "bitwitness stand-in";

struct FileBytes {
  std::unique_ptr<std::byte[]> data;
  std::size_t size = 0;
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data.get(), size}; }
};

FileBytes read_file(const std::filesystem::path& path, const std::string& shown) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) refuse(shown, "no such file");
  if (error) refuse(shown, "cannot be read: {}", error.message());
  if (std::filesystem::is_directory(status)) refuse(shown, "is not a PE executable but a directory");
  if (!std::filesystem::is_regular_file(status)) refuse(shown, "is not a regular file");
  const std::uint64_t size = std::filesystem::file_size(path, error);
  if (error) refuse(shown, "cannot be read: {}", error.message());
  if (size > max_file_size) refuse(shown, "has {:#x} bytes; files above {:#x} are not read", size, max_file_size);
  std::ifstream in(path, std::ios::binary);
  if (!in) refuse(shown, "cannot be opened");
  FileBytes file{std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(size)),
                 static_cast<std::size_t>(size)};
  in.read(reinterpret_cast<char*>(file.data.get()), static_cast<std::streamsize>(size));
  if (static_cast<std::uint64_t>(in.gcount()) != size)
    refuse(shown, "cannot be read beyond file offset {:#x}", in.gcount());
  return file;
}

void refuse_managed_only(const pe::Headers& headers, std::span<const std::byte> memory, const std::string& shown) {
  const pe::Directory clr = headers.directories[pe::clr_directory];
  if (clr.address == 0 || clr.size == 0) return;
  constexpr std::uint32_t il_only = 1;
  if ((pe::Bytes(memory).u32(clr.address + 16ULL) & il_only) != 0) {
    refuse(shown, "holds only .NET code (CLR header at rva:{:#x}); there is no machine code to run", clr.address);
  }
}

std::uint64_t choose_base(const pe::Headers& headers, std::uint64_t size, const ImageOptions& options,
                          const std::string& shown) {
  const std::uint64_t base = options.base.value_or(headers.image_base);
  // 47 bits are what x86-64 gives a program.
  const std::uint64_t end = headers.format == ImageFormat::pe32 ? std::uint64_t{1} << 32 : std::uint64_t{1} << 47;
  if (base > end || size > end - base) refuse(shown, "does not fit at base {:#x}: it takes {:#x} bytes", base, size);
  if (base == headers.image_base) {
    if (base % pe::page_size != 0) refuse(shown, "has image base {:#x}, which is not a multiple of a page", base);
    return base;
  }
  if (base % base_granularity != 0) refuse(shown, "cannot be moved to base {:#x}: not a multiple of 0x10000", base);
  if (headers.relocations_stripped || headers.directories[pe::relocation_directory].address == 0 ||
      headers.directories[pe::relocation_directory].size < 8) {
    refuse(shown, "cannot be moved to base {:#x}: it has no relocations and only runs at {:#x}", base,
           headers.image_base);
  }
  return base;
}

bool in_one_range(const pe::Layout& layout, std::uint64_t address, std::uint64_t count) {
  const auto after = std::ranges::upper_bound(layout.ranges, address, {}, &pe::MappedRange::address);
  if (after == layout.ranges.begin()) return false;
  const pe::MappedRange& range = *std::prev(after);
  return address - range.address < range.size && count <= range.size - (address - range.address);
}

template <typename Integer>
void add_at(std::byte* at, std::uint64_t delta) {
  Integer value = 0;
  std::memcpy(&value, at, sizeof value);
  value = static_cast<Integer>(value + delta);
  std::memcpy(at, &value, sizeof value);
}

void relocate(const pe::Layout& layout, std::span<const pe::RelocationRow> rows, std::uint64_t delta,
              const std::string& shown) {
  constexpr std::array<std::uint64_t, 11> widths{0, 2, 2, 4, 0, 0, 0, 0, 0, 0, 8};
  for (const pe::RelocationRow& row : rows) {
    const std::uint64_t width = row.type < widths.size() ? widths[row.type] : 0;
    if (width == 0) continue;
    if (!in_one_range(layout, row.address, width)) {
      refuse(shown, "cannot be moved to another base: a relocation names rva:{:#x}, which is not mapped", row.address);
    }
    std::byte* const at = layout.memory.bytes().data() + row.address;
    if (row.type == 1) add_at<std::uint16_t>(at, delta >> 16U);
    if (row.type == 2) add_at<std::uint16_t>(at, delta);
    if (row.type == 3) add_at<std::uint32_t>(at, delta);
    if (row.type == 10) add_at<std::uint64_t>(at, delta);
  }
}

bool has_stand_in_marker(const pe::Headers& headers, std::span<const std::byte> memory) {
  return std::ranges::any_of(headers.sections, [&](const pe::Section& section) {
    return section.name == stand_in_section &&
           pe::Bytes(memory).text(section.address, stand_in_text.size()) == stand_in_text;
  });
}

}  // namespace

void Image::Impl::set_segments(const pe::Layout& layout) {
  for (const pe::MappedRange& range : layout.ranges) {
    segments.push_back({.name = range.name,
                        .address = base + range.address,
                        .bytes = layout.memory.bytes().subspan(range.address, range.size),
                        .used = range.used,
                        .writable = range.writable,
                        .executable = range.executable});
  }
}

void Image::Impl::set_tables(const pe::Headers& headers, pe::Tables tables) {
  const std::uint64_t size = memory.bytes().size();
  const pe::Directory directory = headers.directories[pe::export_directory];
  for (pe::ExportRow& row : tables.exports) {
    if (row.address == 0 || row.address >= size) continue;
    const bool elsewhere = row.address >= directory.address && row.address - directory.address < directory.size;
    (elsewhere ? forwarded : exports).push_back({std::move(row.name), base + row.address});
  }
  for (pe::SymbolRow& row : tables.symbols) {
    if (row.section == 0 || row.section > headers.sections.size()) continue;
    const std::uint64_t address = std::uint64_t{headers.sections[row.section - 1].address} + row.value;
    if (address < size) symbols.push_back({std::move(row.name), base + address});
  }
  for (const pe::ImportRow& row : tables.imports) {
    imports.push_back({printable(row.library), printable(row.name), base + row.slot});
  }
  const auto order = [](const NamedAddress& a, const NamedAddress& b) {
    return std::tie(a.name, a.address) < std::tie(b.name, b.address);
  };
  for (auto* list : {&exports, &forwarded, &symbols}) {
    std::ranges::sort(*list, order);
    const auto same = [](const NamedAddress& a, const NamedAddress& b) {
      return a.name == b.name && a.address == b.address;
    };
    list->erase(std::unique(list->begin(), list->end(), same), list->end());
  }
}

void Image::Impl::note_damage(const pe::Excerpt& excerpt) {
  export_damage = excerpt.export_damage;
  symbol_damage = excerpt.symbol_damage;
  if (!export_damage.empty()) notes.push_back("the export table was not read: " + export_damage);
  if (!symbol_damage.empty()) notes.push_back("the COFF symbol table was not read: " + symbol_damage);
  constexpr std::size_t most = 8;
  for (const std::string& damage : excerpt.import_damage) {
    if (notes.size() < most) notes.push_back("not read: " + damage);
  }
}

Image Image::load(const std::filesystem::path& path, const ImageOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->path = path.string();
  impl->name = path.filename().string();
  const std::string shown = printable(impl->path, true);
  try {
    const FileBytes file = read_file(path, shown);
    const pe::Headers headers = pe::read_headers(file.bytes(), shown);
    pe::Layout layout = pe::lay_out(headers, file.bytes(), shown, impl->notes);
    const std::span<const std::byte> memory = layout.memory.bytes();
    refuse_managed_only(headers, memory, shown);
    impl->format = headers.format;
    impl->base = choose_base(headers, memory.size(), options, shown);
    impl->stand_in = has_stand_in_marker(headers, memory);
    impl->sha256 = sha256_hex(file.bytes());

    const bool moved = impl->base != headers.image_base;
    const pe::Excerpt excerpt =
        pe::make_excerpt({.headers = headers, .memory = memory, .file = file.bytes(), .relocations = moved}, shown);
    impl->note_damage(excerpt);
    pe::Tables tables = pe::read_tables(excerpt, shown);
    if (moved) relocate(layout, tables.relocations, impl->base - headers.image_base, shown);
    impl->set_segments(layout);
    impl->memory = std::move(layout.memory);
    impl->set_tables(headers, std::move(tables));
  } catch (const std::bad_alloc&) {
    refuse(shown, "does not fit into memory");
  }
  return Image(std::move(impl));
}

Image::Image(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Image::Image(Image&&) noexcept = default;
Image& Image::operator=(Image&&) noexcept = default;
Image::~Image() = default;

const std::string& Image::path() const {
  return impl_->path;
}
const std::string& Image::name() const {
  return impl_->name;
}
const std::string& Image::sha256() const {
  return impl_->sha256;
}
ImageFormat Image::format() const {
  return impl_->format;
}
std::uint64_t Image::base() const {
  return impl_->base;
}
std::uint64_t Image::size() const {
  return impl_->memory.bytes().size();
}
std::span<const Segment> Image::segments() const {
  return impl_->segments;
}
std::span<const NamedAddress> Image::exports() const {
  return impl_->exports;
}
std::span<const NamedAddress> Image::symbols() const {
  return impl_->symbols;
}
std::span<const Import> Image::imports() const {
  return impl_->imports;
}
std::span<const Import> Image::bound_imports() const {
  return impl_->bound_imports;
}
std::span<const AddressRange> Image::patched_ranges() const {
  return impl_->patched_ranges;
}
std::span<const std::string> Image::notes() const {
  return impl_->notes;
}
bool Image::is_stand_in() const {
  return impl_->stand_in;
}

std::string_view to_string(ImageFormat format) {
  return format == ImageFormat::pe32 ? "pe32" : "pe32+";
}

std::string_view lief_version() {
  return pe::library_version();
}

}  // namespace bitwitness
