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

std::vector<std::uint64_t> jump_table_targets(const Image& image, const Instruction& jump) {
  std::vector<std::uint64_t> targets;
  if (image.format() != ImageFormat::pe32 || jump.flow != Flow::indirect_jump) return targets;
  if (jump.memory_references.size() != 1 || !jumps_through_table(jump.text)) return targets;
  const std::uint64_t table = jump.memory_references.front();
  const Segment* const segment = image.find(table);
  if (segment == nullptr || segment->writable || table - segment->address >= segment->used) return targets;
  const std::uint64_t end = segment->address + segment->used;
  for (std::uint64_t at = table; at + entry_size <= end && targets.size() < max_table_entries; at += entry_size) {
    const auto bytes = segment->bytes.subspan(static_cast<std::size_t>(at - segment->address), entry_size);
    std::uint64_t target = 0;
    for (std::size_t i = 0; i < entry_size; ++i) target |= std::to_integer<std::uint64_t>(bytes[i]) << 8 * i;
    if (!is_code(image, target)) break;
    targets.push_back(target);
  }
  return targets;
}

}  // namespace bitwitness
