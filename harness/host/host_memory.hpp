#pragma once
#include "harness/call_plan.hpp"
#include "harness/host/host_code.hpp"
#include "harness/host/traced_process.hpp"
#include "harness/image.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

// Inside of harness/host/ only.

namespace bitwitness::host {

/// What fs holds in 32-bit code, when there is something for it to lead to.
inline constexpr std::uint64_t thread_selector = 0x63;  // the first of a thread's own segment descriptors, 12

/// A file in memory, which processes map.
class MemoryFile {
 public:
  /// Throws Error when there is no memory.
  explicit MemoryFile(std::uint64_t size);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

/// An image's segments one behind the other, zero pages left out. Shared by everything that runs the same image.
std::shared_ptr<MemoryFile> image_file(const Image& image);

/// The memory of a routine and its caller in a process of their own: the image, with every import bound to a trap, and
/// the surroundings of a call, which this process sees as well.
class HostMemory {
 public:
  /// With `writable` the image's writable segments, the input and the thread's block may be written.
  HostMemory(const Image& image, const CallPlan& plan, const HostLayout& layout, bool writable, bool thread_block);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  /// Memory of the surroundings or the caller, as this process sees it.
  [[nodiscard]] std::byte* at(std::uint64_t address) const;

  /// Gives the process this memory and takes everything else from it: its own memory, its files, and every system call.
  /// The caller's code must be in place. Throws Error when an address is not to be had.
  void enter(TracedProcess& process, const HostCode& code) const;

  /// Makes the thread's block what it is before anything has run.
  void fill_thread_block();

  /// The thread's block; empty when there is none.
  [[nodiscard]] std::span<std::byte> thread_block() const;

  /// Tells whether an address lies in memory that is only read-only because `writable` was not asked for.
  [[nodiscard]] bool may_become_writable(std::uint64_t address) const;

  /// Pages of the image that the process has written so far, by rising address.
  [[nodiscard]] std::vector<std::uint64_t> written_pages(const TracedProcess& process) const;

  /// What such a page holds before anything has run.
  [[nodiscard]] std::vector<std::byte> original(std::uint64_t page) const;

 private:
  struct Block {
    Region region;
    int file = -1;
    std::uint64_t offset = 0;
    int protection = 0;
    bool is_shared = true;  ///< with this process; else its writes stay its own
  };

  void add_surroundings(const CallPlan& plan, const HostLayout& layout, bool writable, bool thread_block);
  void add_image(const Image& image, const CallPlan& plan, bool writable);
  std::uint64_t reserve(std::uint64_t size);
  void map(TracedProcess& process, const Block& block) const;
  Region map_stage(TracedProcess& process) const;

  const Image& image_;
  bool is_64_bit_;
  HostLayout layout_;
  std::vector<std::byte> thread_block_;  // empty when there is none
  std::shared_ptr<MemoryFile> image_file_;
  std::vector<Block> blocks_;
  std::vector<Region> held_back_;
  std::map<std::uint64_t, std::vector<std::byte>> bound_pages_;  // pages with import slots, as they are to be
  std::uint64_t own_size_ = 0;
  std::unique_ptr<MemoryFile> own_file_;
  std::byte* own_ = nullptr;
};

}  // namespace bitwitness::host
