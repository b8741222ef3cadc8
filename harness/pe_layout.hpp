#pragma once
#include "harness/pe_headers.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace bitwitness::pe {

/// Zeroed memory whose first byte lies on a page boundary. Pages that nobody writes to cost nothing.
class PageMemory {
 public:
  PageMemory() = default;

  /// Throws std::bad_alloc when there is not enough memory.
  explicit PageMemory(std::size_t size);

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(void* block) const { std::free(block); }
  };
  std::unique_ptr<void, Free> block_;
  std::span<std::byte> bytes_;
};

/// A mapped range. Addresses are relative to the image's base.
struct MappedRange {
  std::string name;
  std::uint32_t address = 0;
  std::uint32_t size = 0;  ///< whole pages
  std::uint32_t used = 0;  ///< bytes that the headers give it
  bool writable = false;
  bool executable = false;
};

/// An image as it lies in memory at its preferred base: byte N of `memory` is the byte at address N from the base.
struct Layout {
  PageMemory memory;
  std::vector<MappedRange> ranges;  ///< by rising address; what lies between them is not mapped
};

/// Lays an image out as Windows does: headers, then sections zero-filled to their virtual size. Throws Error, starting
/// with `file_name`, for sections that are cut short, overlap, or ask for more memory than max_image_size. What is odd
/// and harmless is added to `notes`.
Layout lay_out(const Headers& headers, std::span<const std::byte> file, const std::string& file_name,
               std::vector<std::string>& notes);

}  // namespace bitwitness::pe
