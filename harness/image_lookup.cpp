#include "harness/close_names.hpp"
#include "harness/code_statistics.hpp"
#include "harness/disassembly.hpp"
#include "harness/error.hpp"
#include "harness/image_impl.hpp"
#include "harness/printable.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace bitwitness {
namespace {

std::span<const NamedAddress> named(std::span<const NamedAddress> names, std::string_view wanted) {
  const auto first = std::ranges::lower_bound(names, wanted, {}, &NamedAddress::name);
  const auto last = std::ranges::upper_bound(names, wanted, {}, &NamedAddress::name);
  return {first, last};
}

std::uint64_t parse_address(std::string_view text, std::string_view location) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  if (text.starts_with("0x") || text.starts_with("0X")) {
    const auto [stop, error] = std::from_chars(text.data() + 2, end, value, 16);
    if (error == std::errc{} && stop == end) return value;
  }
  throw Error(fmt::format("location '{}': '{}' is not 0x and up to 16 hexadecimal digits", printable(location, true),
                          printable(text, true)));
}

/// Names of one kind, and why there may be fewer than the file has.
struct NameTable {
  std::span<const NamedAddress> names;
  std::string_view kind;
  std::string_view damage;
};

std::string why_not_one(const NameTable& table, std::string_view wanted) {
  const auto found = named(table.names, wanted);
  if (found.size() > 1) {
    return fmt::format("{} {}s have that name: at {:#x}, {:#x}{}", found.size(), table.kind, found[0].address,
                       found[1].address, found.size() > 2 ? ", …" : "");
  }
  if (!table.damage.empty()) return fmt::format("the {} table was not read: {}", table.kind, table.damage);
  if (table.names.empty()) return fmt::format("it has no {}s", table.kind);
  std::vector<std::string_view> known;
  known.reserve(table.names.size());
  for (const NamedAddress& row : table.names) known.push_back(row.name);
  std::vector<std::string> close;
  for (const std::string_view name : close_names(wanted, known)) close.push_back(printable(name));
  return fmt::format("no such {} among {}{}{}", table.kind, table.names.size(),
                     close.empty() ? "" : "; close: ", fmt::join(close, ", "));
}

}  // namespace

const Segment* Image::find(std::uint64_t address) const {
  const auto after = std::ranges::upper_bound(impl_->segments, address, {}, &Segment::address);
  if (after == impl_->segments.begin()) return nullptr;
  const Segment& segment = *std::prev(after);
  return address - segment.address < segment.bytes.size() ? &segment : nullptr;
}

std::span<const std::byte> Image::read(std::uint64_t address, std::size_t count) const {
  const Segment* const segment = find(address);
  if (segment == nullptr) throw Error(fmt::format("{}: {:#x} is not mapped", impl_->shown(), address));
  const auto offset = static_cast<std::size_t>(address - segment->address);
  if (count > segment->bytes.size() - offset) {
    throw Error(fmt::format("{}: {} bytes at {:#x} run past the end of {} at {:#x}", impl_->shown(), count, address,
                            segment->name, segment->address + segment->bytes.size()));
  }
  return segment->bytes.subspan(offset, count);
}

std::uint64_t Image::resolve(std::string_view location) const {
  if (location.starts_with("0x") || location.starts_with("0X")) return parse_address(location, location);
  if (location.starts_with("rva:")) {
    const std::uint64_t rva = parse_address(location.substr(4), location);
    if (rva <= 0xffffffff) return base() + rva;
    throw Error(fmt::format("location '{}': a relative address has at most 32 bits", printable(location, true)));
  }
  const bool is_export = location.starts_with("export:");
  if (!is_export && !location.starts_with("symbol:")) {
    throw Error(
        fmt::format("location '{}' is none of 0x…, rva:0x…, export:NAME, symbol:NAME", printable(location, true)));
  }
  const std::string_view wanted = location.substr(7);
  const NameTable table = is_export ? NameTable{impl_->exports, "export", impl_->export_damage}
                                    : NameTable{impl_->symbols, "symbol", impl_->symbol_damage};
  const auto found = named(table.names, wanted);
  if (found.size() == 1) return found.front().address;
  std::string reason;
  const auto forwarded = is_export ? named(impl_->forwarded, wanted) : std::span<const NamedAddress>{};
  if (found.empty() && !forwarded.empty()) {
    const pe::Bytes memory(impl_->memory.bytes());
    reason = fmt::format("the code is in another file, as {}",
                         printable(memory.text(forwarded.front().address - base(), 256)));
  } else {
    reason = why_not_one(table, wanted);
  }
  throw Error(fmt::format("{}: {}: {}", impl_->shown(), printable(location, true), reason));
}

namespace {

/// Tells whether bytes decode from one end of a stretch to the other. Of random bytes, one stretch in dozens does.
bool decode_throughout(std::span<const std::byte> bytes, std::uint64_t address, bool is_64_bit) {
  constexpr std::size_t stretch = 256;
  std::size_t at = 0;
  while (at < std::min(stretch, bytes.size())) {
    const auto instruction = disassemble_one(bytes.subspan(at), address + at, is_64_bit);
    if (!instruction) return false;
    at += instruction->size;
  }
  return true;
}

}  // namespace

void Image::require_code(std::uint64_t address, std::string_view what) const {
  const auto fail = [&](const std::string& reason) {
    throw Error(fmt::format("{}: {}: {:#x} {}", impl_->shown(), printable(what, true), address, reason));
  };
  const Segment* const segment = find(address);
  if (segment == nullptr) {
    return fail(fmt::format("is not mapped; the image takes {:#x} to {:#x}", base(), base() + size()));
  }
  if (!segment->executable) fail(fmt::format("lies in {}, which is not executable", segment->name));
  const auto offset = static_cast<std::size_t>(address - segment->address);
  if (offset >= segment->used) {
    fail(fmt::format("lies behind the end of {}, in the padding of its last page", segment->name));
  }
  const auto section = segment->bytes.first(static_cast<std::size_t>(segment->used));
  constexpr std::size_t looked_at = 8;
  const auto here = section.subspan(offset, std::min(looked_at, section.size() - offset));
  if (std::ranges::all_of(here, [](std::byte b) { return b == std::byte{0}; })) {
    fail(fmt::format("holds only zeros in {}: code that is not in the file, or not unpacked", segment->name));
  }
  if (looks_packed(section, offset) &&
      !decode_throughout(section.subspan(offset), address, format() == ImageFormat::pe32_plus)) {
    fail(fmt::format("does not hold readable code: section {} looks packed or encrypted", segment->name));
  }
}

}  // namespace bitwitness
