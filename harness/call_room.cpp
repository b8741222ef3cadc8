#include "harness/call_room.hpp"

#include "harness/disassembly.hpp"
#include "harness/error.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace bitwitness {

std::uint64_t find_base(const Image& image, std::uint64_t size) {
  constexpr std::uint64_t step = 0x0100'0000;
  constexpr std::uint64_t limit_32_bit = 0xb000'0000;
  const auto is_free = [&](std::uint64_t base) {
    return std::ranges::none_of(image.segments(), [&](const Segment& segment) {
      return segment.address < base + size + step && base < segment.address + segment.bytes.size() + step;
    });
  };
  if (image.format() == ImageFormat::pe32_plus) {
    std::uint64_t base = (image.base() + image.size() + 2 * step) & ~(step - 1);
    while (!is_free(base)) base += step;
    return base;
  }
  for (std::uint64_t base = 0x2000'0000; base + size <= limit_32_bit; base += step) {
    if (is_free(base)) return base;
  }
  throw Error(fmt::format("{}: the image leaves no room for a caller below {:#x}", image.path(), limit_32_bit));
}

bool uses_thread_block(const Image& image, std::uint64_t address) {
  constexpr std::size_t most_instructions = 2048;
  const Listing listing = disassemble_routine(image, address, most_instructions, true, true);
  return std::ranges::any_of(listing.instructions, [&image](const Instruction& instruction) {
    return names_thread_block(instruction.text, image.format() == ImageFormat::pe32_plus);
  });
}

bool names_thread_block(std::string_view text, bool is_64_bit) {
  return text.find(is_64_bit ? "gs:[" : "fs:[") != std::string_view::npos;
}

}  // namespace bitwitness
