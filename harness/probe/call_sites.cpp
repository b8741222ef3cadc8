#include "harness/probe/call_sites.hpp"

#include "harness/probe/call_lines.hpp"
#include "harness/probe/location_scan.hpp"

#include <algorithm>

namespace bitwitness {
namespace {

constexpr std::size_t jump_size = 5;
constexpr std::byte call_opcode{0xe8};
constexpr std::byte jump_opcode{0xe9};

// Linkers put one jump in front of a function; each costs another pass over the code.
constexpr std::size_t most_thunks = 1;

/// Calls `found(address, opcode)` for each call or jump of five bytes that leads to a target.
template <class Found>
void sweep(const Image& image, std::uint64_t target, const Found& found) {
  for (const Segment* segment : location::near_segments(image)) {
    if (!segment->executable) continue;
    const auto bytes = location::used_bytes(*segment);
    if (bytes.size() < jump_size) continue;
    // The distance counts from the end of the instruction: it and the operand's place have a constant sum.
    const auto sum = static_cast<std::uint32_t>(target - segment->address - jump_size);
    const auto count = static_cast<std::uint32_t>(bytes.size() - jump_size + 1);
    for (std::uint32_t at = 0; at < count; ++at) {
      if (location::word_at(bytes, at + 1) + at != sum) continue;
      if (bytes[at] == call_opcode || bytes[at] == jump_opcode) found(segment->address + at, bytes[at]);
    }
  }
}

/// Tells whether nothing falls into an address: padding or another lone jump is before it.
bool stands_alone(const Image& image, std::uint64_t address) {
  const Segment& segment = *image.find(address);
  const auto offset = static_cast<std::size_t>(address - segment.address);
  if (offset == 0) return true;
  const std::byte before = segment.bytes[offset - 1];
  constexpr std::byte trap{0xcc};
  constexpr std::byte nop{0x90};
  constexpr std::byte zero{0};
  constexpr std::byte plain_return{0xc3};
  if (before == trap || before == nop || before == zero || before == plain_return) return true;
  return offset >= jump_size && segment.bytes[offset - jump_size] == jump_opcode;
}

/// Adds the jumps of two bytes that stand alone near a target and lead to it.
void add_short_jumps(const Image& image, std::uint64_t target, std::vector<std::uint64_t>& jumps) {
  constexpr std::byte short_jump{0xeb};
  constexpr std::uint64_t size = 2;
  constexpr std::uint64_t reach = 0x80;
  const Segment& segment = *image.find(target);
  const auto bytes = location::used_bytes(segment);
  const std::uint64_t offset = target - segment.address;
  for (std::uint64_t at = offset - std::min(offset, reach + size); at < offset + reach && at + size <= bytes.size();
       ++at) {
    // Distances from -80h to 7Fh count from the end of the jump.
    const bool is_near = offset + reach - at - size < 2 * reach;
    const std::uint64_t distance = (offset - at - size) & 0xff;
    if (bytes[at] != short_jump || !is_near || std::to_integer<std::uint64_t>(bytes[at + 1]) != distance) continue;
    if (stands_alone(image, segment.address + at)) jumps.push_back(segment.address + at);
  }
}

}  // namespace

std::size_t DirectCall::pushed() const {
  return static_cast<std::size_t>(std::ranges::find(stack, false, &PassedWord::is_pushed) - stack.begin());
}

DirectCalls find_call_sites(const Image& image, std::uint64_t routine) {
  std::vector<std::uint64_t> calls;
  std::vector<std::uint64_t> thunks;
  sweep(image, routine, [&](std::uint64_t address, std::byte opcode) {
    if (opcode == call_opcode) {
      calls.push_back(address);
    } else if (stands_alone(image, address)) {
      thunks.push_back(address);
    }
  });
  add_short_jumps(image, routine, thunks);
  if (thunks.size() <= most_thunks) {
    for (const std::uint64_t thunk : thunks) {
      sweep(image, thunk, [&calls](std::uint64_t address, std::byte opcode) {
        if (opcode == call_opcode) calls.push_back(address);
      });
    }
  }
  std::ranges::sort(calls);
  DirectCalls all;
  const call_lines::Reader reader(image);
  for (const std::uint64_t address : calls) {
    if (all.sites.size() == most_call_sites) {
      ++all.found;
    } else if (auto site = reader.read(address)) {
      ++all.found;
      all.sites.push_back(std::move(*site));
    }
  }
  return all;
}

}  // namespace bitwitness
