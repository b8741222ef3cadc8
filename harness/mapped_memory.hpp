#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace bitwitness {

/// Host memory that stands for guest addresses, as an engine is given it.
struct MappedMemory {
  std::uint64_t address = 0;
  std::span<std::byte> memory;
  std::uint32_t permissions = 0;
};

/// Mappings that a second engine can be given again.
class MappedMemories {
 public:
  MappedMemories() = default;
  MappedMemories(const MappedMemories&) = delete;  // mappings point into pages
  MappedMemories& operator=(const MappedMemories&) = delete;

  void add(const MappedMemory& mapping) { mappings_.push_back(mapping); }
  [[nodiscard]] std::span<const MappedMemory> all() const { return mappings_; }

  /// Makes what stands at an address an invalid instruction of two bytes, in a copy of its page: host memory may be
  /// shared. Leaves everything as it is where nothing is mapped, in memory with any of the permissions `writable`, and
  /// at the end of a page.
  void blot_out(std::uint64_t address, std::uint32_t writable);

  /// Tells whether blot_out was called for an address.
  [[nodiscard]] bool is_blotted(std::uint64_t address) const;

 private:
  /// A copy of a page, aligned as pages are.
  struct Page {
    explicit Page(std::span<const std::byte> original);
    std::vector<std::byte> storage;
    std::span<std::byte> bytes;
  };

  std::vector<MappedMemory> mappings_;
  std::vector<std::uint64_t> blotted_;
  std::deque<Page> pages_;
};

}  // namespace bitwitness
