#include "harness/mapped_memory.hpp"

#include "harness/call_plan.hpp"

#include <algorithm>

namespace bitwitness {

MappedMemories::Page::Page(std::span<const std::byte> original) : storage(2 * page_size) {
  const auto start = reinterpret_cast<std::uintptr_t>(storage.data());
  bytes = std::span(storage).subspan((page_size - start % page_size) % page_size, page_size);
  std::ranges::copy(original, bytes.begin());
}

void MappedMemories::blot_out(std::uint64_t address, std::uint32_t writable) {
  blotted_.push_back(address);
  const auto holds = [address](const MappedMemory& mapping) {
    return address - mapping.address < mapping.memory.size();
  };
  const auto found = std::ranges::find_if(mappings_, holds);
  const std::uint64_t offset = address % page_size;
  if (found == mappings_.end() || (found->permissions & writable) != 0 || offset + 2 > page_size) return;
  const MappedMemory whole = *found;
  const std::size_t before = address - offset - whole.address;
  Page& page = pages_.emplace_back(whole.memory.subspan(before, page_size));
  page.bytes[offset] = std::byte{0x0f};  // ud2
  page.bytes[offset + 1] = std::byte{0x0b};
  std::vector<MappedMemory> parts;
  if (before != 0) parts.push_back({whole.address, whole.memory.first(before), whole.permissions});
  parts.push_back({address - offset, page.bytes, whole.permissions});
  if (const auto rest = whole.memory.subspan(before + page_size); !rest.empty()) {
    parts.push_back({address - offset + page_size, rest, whole.permissions});
  }
  mappings_.insert(mappings_.erase(found), parts.begin(), parts.end());
}

bool MappedMemories::is_blotted(std::uint64_t address) const {
  return std::ranges::find(blotted_, address) != blotted_.end();
}

}  // namespace bitwitness
