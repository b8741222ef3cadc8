#include "harness/guest_memory.hpp"

#include "harness/error.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>

namespace bitwitness {
namespace {

// Unicorn takes memory that the guest may only read as a pointer to non-const.
std::span<std::byte> shared(std::span<const std::byte> bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

/// Copies page by page and leaves zero pages untouched, so that uninitialised sections cost no memory.
void copy_sparse(std::span<std::byte> to, std::span<const std::byte> from) {
  static constexpr std::array<std::byte, page_size> zero{};
  for (std::size_t at = 0; at < from.size(); at += page_size) {
    if (std::memcmp(from.data() + at, zero.data(), page_size) != 0)
      std::memcpy(to.data() + at, from.data() + at, page_size);
  }
}

}  // namespace

HostPages::HostPages(std::uint64_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw Error(fmt::format("no memory for {} bytes of guest pages", size));
  bytes_ = {static_cast<std::byte*>(memory), static_cast<std::size_t>(size)};
}

HostPages::~HostPages() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

HostPages::HostPages(HostPages&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

Region thread_block_of(const CallPlan& plan) {
  if (!plan.is_64_bit) return {0, page_size};
  return {plan.layout.whole.end(), 2 * page_size};
}

std::vector<std::byte> thread_block_bytes(const CallPlan& plan, std::uint64_t address) {
  const Region& stack = plan.layout.stack;
  // Handlers of exceptions are a chain, which ends so, in 32-bit code alone.
  const std::array<std::uint64_t, 7> words{
      plan.is_64_bit ? 0 : 0xffffffff, stack.end(), stack.address, 0, 0, 0, address};
  const std::size_t width = plan.is_64_bit ? 8 : 4;
  std::vector<std::byte> bytes(words.size() * width);
  for (std::size_t i = 0; i < words.size(); ++i) std::memcpy(bytes.data() + i * width, &words.at(i), width);
  return bytes;
}

GuestMemory::GuestMemory(Emulator& emulator, const Image& image, const CallPlan& plan, bool image_is_writable,
                         bool thread_block)
    : base_(plan.layout.whole.address),
      surroundings_(plan.layout.traps.address - plan.layout.whole.address),
      gap_(plan.layout.gap.size) {
  map_image(emulator, image, plan, image_is_writable);
  map_surroundings(emulator, plan, image_is_writable);
  if (thread_block && image.find(thread_block_of(plan).address) == nullptr) {
    map_thread_block(emulator, plan, image_is_writable);
  }
}

void GuestMemory::map_thread_block(Emulator& emulator, const CallPlan& plan, bool writable) {
  const Region region = thread_block_of(plan);
  copies_.emplace_back(region.size);
  const std::span<std::byte> memory = copies_.back().bytes();
  const std::vector<std::byte> block = thread_block_bytes(plan, region.address);
  std::memcpy(memory.data(), block.data(), block.size());
  if (plan.is_64_bit) emulator.set_gs_base(region.address);
  emulator.map(region.address, memory, writable, false);
  if (writable) {
    writable_.push_back({region, memory.data(), false});
  } else {
    held_back_.push_back(region);
  }
}

void GuestMemory::map_surroundings(Emulator& emulator, const CallPlan& plan, bool input_is_writable) {
  const auto map = [&](const Region& region, bool writable, bool executable) {
    emulator.map(region.address, {host(region.address), static_cast<std::size_t>(region.size)}, writable, executable);
    if (writable) writable_.push_back({region, host(region.address), executable});
  };
  const CallLayout& layout = plan.layout;
  map(layout.code, false, true);
  // Unicorn numbers pages in the order they are mapped and keeps what it knows of translated code per 4 MiB of them. A
  // store into such a range looks for code to throw away and costs up to half more, so data goes behind a gap.
  emulator.reserve(layout.gap.address, gap_.bytes());
  map(layout.control, false, false);
  map(layout.input, input_is_writable, false);
  if (!input_is_writable) held_back_.push_back(layout.input);
  for (const Slot& slot : plan.slots) {
    if (slot.role == Role::in) continue;
    const std::uint64_t size = round_up_to_page(slot.region.size);
    map({slot.region.end() - size, size}, true, false);
  }
  map(layout.result, true, false);
  map(layout.stack, true, false);
}

void GuestMemory::map_image(Emulator& emulator, const Image& image, const CallPlan& plan, bool image_is_writable) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> slots;  // import address table entry, trap
  for (std::size_t i = 0; i < image.imports().size(); ++i) {
    slots.emplace_back(image.imports()[i].slot, plan.layout.traps.address + i * trap_stride);
  }
  std::ranges::sort(slots);
  for (const Segment& segment : image.segments()) {
    const auto first =
        std::ranges::lower_bound(slots, segment.address, {}, &std::pair<std::uint64_t, std::uint64_t>::first);
    const auto last = std::ranges::lower_bound(slots, segment.address + segment.bytes.size(), {},
                                               &std::pair<std::uint64_t, std::uint64_t>::first);
    if (!image_is_writable && segment.writable) held_back_.push_back({segment.address, segment.bytes.size()});
    map_segment(emulator, segment, {first, last}, plan.is_64_bit ? 8 : 4, image_is_writable && segment.writable);
  }
}

void GuestMemory::map_segment(Emulator& emulator, const Segment& segment,
                              std::span<const std::pair<std::uint64_t, std::uint64_t>> slots, unsigned slot_size,
                              bool own_copy) {
  // Runs of pages that hold import slots are copied, the rest is shared unless the guest may write it.
  const auto page_of = [](std::uint64_t address) { return address & ~(page_size - 1); };
  const std::uint64_t end = segment.address + segment.bytes.size();
  std::uint64_t at = segment.address;
  while (at < end) {
    const bool bound = !slots.empty() && page_of(slots.front().first) == at;
    std::uint64_t next = end;
    if (bound) {
      next = at + page_size;
    } else if (!slots.empty()) {
      next = page_of(slots.front().first);
    }
    auto bytes = segment.bytes.subspan(at - segment.address, next - at);
    const bool writable = own_copy;
    std::span<std::byte> memory = shared(bytes);
    if (bound || own_copy) {
      copies_.emplace_back(bytes.size());
      memory = copies_.back().bytes();
      copy_sparse(memory, bytes);
    }
    while (!slots.empty() && slots.front().first < next) {
      const std::size_t offset = slots.front().first - at;
      if (offset + slot_size <= memory.size()) std::memcpy(memory.data() + offset, &slots.front().second, slot_size);
      slots = slots.subspan(1);
    }
    emulator.map(at, memory, writable, segment.executable);
    if (writable) writable_.push_back({{at, bytes.size()}, memory.data(), segment.executable});
    at = next;
  }
}

const GuestMemory::Mapping* GuestMemory::find(std::uint64_t address) const {
  const auto found =
      std::ranges::find_if(writable_, [address](const Mapping& mapping) { return mapping.region.contains(address); });
  return found == writable_.end() ? nullptr : &*found;
}

bool GuestMemory::may_become_writable(std::uint64_t address) const {
  return std::ranges::any_of(held_back_, [address](const Region& region) { return region.contains(address); });
}

void GuestMemory::before_write(std::uint64_t address, unsigned size) {
  const std::uint64_t first = address & ~(page_size - 1);
  // Counted and not compared with an end, which in the last page there is would lie beyond what 64 bits can say.
  const std::uint64_t pages = (address - first + size + page_size - 1) / page_size;
  if (first == last_kept_ && pages <= 1) return;
  for (std::uint64_t page = first, left = pages; left != 0; page += page_size, --left) {
    if (dirty_.contains(page)) continue;
    const Mapping* mapping = find(page);
    if (mapping == nullptr) continue;  // about to fault
    const std::byte* memory = mapping->host + (page - mapping->region.address);
    dirty_.insert(page);
    code_was_written_ |= mapping->executable;
    originals_.try_emplace(page, memory, memory + page_size);
  }
  if (dirty_.contains(first)) last_kept_ = first;
}

void GuestMemory::restore() {
  for (const std::uint64_t page : dirty_) {
    const Mapping& mapping = *find(page);
    std::memcpy(mapping.host + (page - mapping.region.address), originals_.at(page).data(), page_size);
  }
  dirty_.clear();
  last_kept_ = no_page;
}

}  // namespace bitwitness
