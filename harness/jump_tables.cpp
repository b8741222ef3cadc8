#include "harness/jump_tables.hpp"

#include <algorithm>
#include <span>
#include <string_view>

namespace bitwitness {
namespace {

constexpr std::size_t entry_size = 4;

/// Tells whether a text is "jmp dword ptr [REGISTER*4 + ADDRESS]".
bool jumps_through_table(std::string_view text) {
  constexpr std::string_view start = "jmp dword ptr [";
  constexpr std::string_view scale = "*4 + 0x";
  constexpr std::size_t register_size = 3;
  return text.starts_with(start) && text.substr(start.size() + register_size).starts_with(scale) &&
         text.find('+') == text.rfind('+') && text.find('-') == std::string_view::npos;
}

bool is_code(const Image& image, std::uint64_t address) {
  const Segment* const segment = image.find(address);
  return segment != nullptr && segment->executable && address - segment->address < segment->used;
}

}  // namespace

JumpTable jump_table_of(const Image& image, const Instruction& jump) {
  JumpTable table;
  if (image.format() != ImageFormat::pe32 || jump.flow != Flow::indirect_jump) return table;
  if (jump.memory_references.size() != 1 || !jumps_through_table(jump.text)) return table;
  const std::uint64_t begin = jump.memory_references.front();
  const Segment* const segment = image.find(begin);
  if (segment == nullptr || segment->writable || begin - segment->address >= segment->used) return table;
  const auto entry_is_code = [&](std::uint64_t at, std::uint64_t& target) {
    if (at < segment->address || at + entry_size > segment->address + segment->used) return false;
    const auto bytes = segment->bytes.subspan(static_cast<std::size_t>(at - segment->address), entry_size);
    target = 0;
    for (std::size_t i = 0; i < entry_size; ++i) target |= std::to_integer<std::uint64_t>(bytes[i]) << 8 * i;
    return is_code(image, target);
  };
  std::uint64_t target = 0;
  for (std::uint64_t at = begin; table.targets.size() < max_table_entries && entry_is_code(at, target);
       at += entry_size) {
    table.targets.push_back(target);
  }
  // Some tables are entered from their end.
  const bool may_begin_before = entry_is_code(begin - entry_size, target);
  table.is_whole = !table.targets.empty() && table.targets.size() < max_table_entries && !may_begin_before;
  return table;
}

}  // namespace bitwitness
