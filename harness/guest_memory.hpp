#pragma once
#include "harness/call_plan.hpp"
#include "harness/emulator.hpp"
#include "harness/image.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace bitwitness {

/// Zeroed pages of host memory.
class HostPages {
 public:
  explicit HostPages(std::uint64_t size);
  ~HostPages();
  HostPages(HostPages&& other) noexcept;
  HostPages& operator=(HostPages&&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

/// Where what code finds through its thread's segment register stands: fs at address 0, where the emulator looks for it
/// in 32-bit code, gs behind the surroundings in 64-bit code.
Region thread_block_of(const CallPlan& plan);

/// What fs (32-bit) or gs (64-bit) leads to: no handler of exceptions, the stack's ends, and its own address.
std::vector<std::byte> thread_block_bytes(const CallPlan& plan, std::uint64_t address);

/// The memory a routine sees: the image, with every import bound to a trap, and the surroundings of a call.
class GuestMemory {
 public:
  /// Maps everything into the engine. Memory that the guest cannot change is shared with the image. With
  /// `image_is_writable` the image's writable segments get a copy of their own and may be written, and so may the
  /// input. With `thread_block` what code finds through fs (32-bit) or gs (64-bit) is there, and may be written as the
  /// image's segments.
  GuestMemory(Emulator& emulator, const Image& image, const CallPlan& plan, bool image_is_writable, bool thread_block);

  /// Host memory of an address in the surroundings.
  [[nodiscard]] std::byte* host(std::uint64_t address) { return surroundings_.bytes().data() + (address - base_); }

  /// Tells whether an address lies in memory that is only read-only because `image_is_writable` was not asked for.
  [[nodiscard]] bool may_become_writable(std::uint64_t address) const;

  /// Keeps the pages that a store is about to change, so that `restore` can put them back.
  void before_write(std::uint64_t address, unsigned size);

  /// Puts back every page that was written since the last call.
  void restore();

  /// Tells whether code has been written. The engine then keeps what it has translated of it, and its reports of stores
  /// have gaps: neither can be put back.
  [[nodiscard]] bool code_was_written() const { return code_was_written_; }

 private:
  struct Mapping {
    Region region;
    std::byte* host = nullptr;
    bool executable = false;
  };

  void map_surroundings(Emulator& emulator, const CallPlan& plan, bool input_is_writable);
  void map_image(Emulator& emulator, const Image& image, const CallPlan& plan, bool image_is_writable);
  void map_thread_block(Emulator& emulator, const CallPlan& plan, bool writable);
  void map_segment(Emulator& emulator, const Segment& segment,
                   std::span<const std::pair<std::uint64_t, std::uint64_t>> slots, unsigned slot_size, bool own_copy);
  const Mapping* find(std::uint64_t address) const;

  std::uint64_t base_;
  std::vector<Region> held_back_;
  HostPages surroundings_;
  HostPages gap_;
  std::vector<HostPages> copies_;
  std::vector<Mapping> writable_;
  std::unordered_map<std::uint64_t, std::vector<std::byte>> originals_;  // page address -> its bytes before any write
  std::unordered_set<std::uint64_t> dirty_;
  bool code_was_written_ = false;
  static constexpr std::uint64_t no_page = 1;
  std::uint64_t last_kept_ = no_page;  // the page of the store before, if it is in `dirty_`
};

}  // namespace bitwitness
