#include "harness/code_statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace bitwitness {
namespace {

// Random bytes have at least 7.4 bits per byte in 512 bytes and 7.9 in 64 KiB; all code of the DLLs that come with
// MinGW stays below 6.71 and 6.61.
constexpr std::size_t around_size = 0x10000;
constexpr std::size_t local_size = 512;
constexpr double most_around = 7.2;
constexpr double most_local = 7.0;

/// The `size` bytes of the section that start at `first`, or that end with it when fewer follow.
std::span<const std::byte> window(std::span<const std::byte> section, std::size_t first, std::size_t size) {
  const std::size_t count = std::min(size, section.size());
  return section.subspan(std::min(first, section.size() - count), count);
}

}  // namespace

double byte_entropy(std::span<const std::byte> bytes) {
  std::array<std::size_t, 256> counts{};
  for (const std::byte b : bytes) ++counts[std::to_integer<std::size_t>(b)];
  double bits = 0;
  for (const std::size_t count : counts) {
    if (count == 0) continue;
    const double share = static_cast<double>(count) / static_cast<double>(bytes.size());
    bits -= share * std::log2(share);
  }
  return bits;
}

bool looks_packed(std::span<const std::byte> section, std::size_t offset) {
  if (section.size() < local_size) return false;
  const std::size_t start = offset > around_size / 2 ? offset - around_size / 2 : 0;
  return byte_entropy(window(section, start, around_size)) > most_around &&
         byte_entropy(window(section, offset, local_size)) > most_local;
}

}  // namespace bitwitness
