#include "harness/host/host_memory.hpp"

#include "harness/error.hpp"
#include "harness/guest_memory.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <utility>

#include <asm/ldt.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace bitwitness::host {
namespace {

constexpr std::uint64_t user_end = 0x7fff'ffff'f000;
constexpr std::uint32_t set_thread_area_32_bit = 243;
constexpr std::uint64_t fixed_and_free = 0x100000;  // MAP_FIXED_NOREPLACE, which older headers lack

[[noreturn]] void no_memory(int error) {
  throw Error(fmt::format("--witness host: no memory for a file in memory: {}", std::strerror(error)));
}

/// What exceeds the limit of a file's size is told, which would otherwise end this program with a signal.
void require_file_size(std::uint64_t size) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur) {
    no_memory(EFBIG);
  }
}

bool is_zero(std::span<const std::byte> page) {
  static constexpr std::array<std::byte, page_size> zero{};
  return std::memcmp(page.data(), zero.data(), page.size()) == 0;
}

std::uint64_t page_of(std::uint64_t address) {
  return address & ~(page_size - 1);
}

std::uint64_t argument(int number) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(number));
}

}  // namespace

MemoryFile::MemoryFile(std::uint64_t size) {
  require_file_size(size);
  descriptor_ = ::memfd_create("bitwitness", MFD_CLOEXEC);
  if (descriptor_ < 0 || ::ftruncate(descriptor_, static_cast<off_t>(size)) != 0) {
    const int error = errno;
    if (descriptor_ >= 0) ::close(descriptor_);
    no_memory(error);
  }
}

MemoryFile::~MemoryFile() {
  ::close(descriptor_);
}

void MemoryFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done <= 0) no_memory(done < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    offset += static_cast<std::uint64_t>(done);
  }
}

std::shared_ptr<MemoryFile> image_file(const Image& image) {
  static std::mutex mutex;
  static std::map<const std::byte*, std::weak_ptr<MemoryFile>> known;  // by the memory of the first segment
  const std::scoped_lock lock(mutex);
  std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
  const std::byte* const key = image.segments().front().bytes.data();
  if (auto file = known[key].lock()) return file;
  std::uint64_t size = 0;
  for (const Segment& segment : image.segments()) size += segment.bytes.size();
  auto file = std::make_shared<MemoryFile>(size);
  std::uint64_t offset = 0;
  for (const Segment& segment : image.segments()) {
    for (std::size_t at = 0; at < segment.bytes.size(); at += page_size) {
      const auto page = segment.bytes.subspan(at, page_size);
      if (!is_zero(page)) file->write(offset + at, page);
    }
    offset += segment.bytes.size();
  }
  known[key] = file;
  return file;
}

HostMemory::HostMemory(const Image& image, const CallPlan& plan, const HostLayout& layout, bool writable,
                       bool thread_block)
    : image_(image),
      is_64_bit_(plan.is_64_bit),
      layout_(layout),
      thread_block_(thread_block ? thread_block_bytes(plan, layout.thread.address) : std::vector<std::byte>()),
      image_file_(image_file(image)) {
  add_surroundings(plan, layout, writable, thread_block);
  add_image(image, plan, writable);
  own_file_ = std::make_unique<MemoryFile>(own_size_);
  void* const mapped = ::mmap(nullptr, own_size_, PROT_READ | PROT_WRITE, MAP_SHARED, own_file_->descriptor(), 0);
  if (mapped == MAP_FAILED) no_memory(errno);
  own_ = static_cast<std::byte*>(mapped);
  for (Block& block : blocks_) {
    if (block.file < 0) block.file = own_file_->descriptor();
  }
  for (const auto& [page, bytes] : bound_pages_) {
    const auto block = std::ranges::find_if(blocks_, [&](const Block& each) { return each.region.contains(page); });
    std::memcpy(own_ + block->offset, bytes.data(), page_size);
  }
  fill_thread_block();
}

HostMemory::~HostMemory() {
  if (own_ != nullptr) ::munmap(own_, own_size_);
}

std::uint64_t HostMemory::reserve(std::uint64_t size) {
  return std::exchange(own_size_, own_size_ + round_up_to_page(size));
}

void HostMemory::add_surroundings(const CallPlan& plan, const HostLayout& layout, bool writable, bool thread_block) {
  constexpr int read_write = PROT_READ | PROT_WRITE;
  const auto add = [this](const Region& region, int protection) {
    blocks_.push_back({region, -1, reserve(region.size), protection});
  };
  add(layout.code, PROT_READ | PROT_EXEC);  // first: the process is entered through it
  add(layout.state, read_write);
  add(layout.records, read_write);
  add(layout.values, PROT_READ);
  add(layout.words, read_write);
  add(layout.input, read_write);
  blocks_.push_back({plan.layout.input, -1, blocks_.back().offset, writable ? read_write : PROT_READ});
  if (!writable) held_back_.push_back(plan.layout.input);
  for (const Slot& slot : plan.slots) {
    if (slot.role == Role::in) continue;
    const std::uint64_t size = round_up_to_page(slot.region.size);
    add({slot.region.end() - size, size}, read_write);
  }
  add(plan.layout.stack, read_write);
  if (!thread_block) return;
  add(layout.thread, writable ? read_write : PROT_READ);
  if (!writable) held_back_.push_back(layout.thread);
}

void HostMemory::fill_thread_block() {
  if (thread_block_.empty()) return;
  std::byte* const block = at(layout_.thread.address);
  std::memset(block, 0, layout_.thread.size);
  std::memcpy(block, thread_block_.data(), thread_block_.size());
}

std::span<std::byte> HostMemory::thread_block() const {
  if (thread_block_.empty()) return {};
  return {at(layout_.thread.address), static_cast<std::size_t>(layout_.thread.size)};
}

void HostMemory::add_image(const Image& image, const CallPlan& plan, bool writable) {
  const std::size_t width = plan.is_64_bit ? 8 : 4;
  for (std::size_t i = 0; i < image.imports().size(); ++i) {
    const std::uint64_t slot = image.imports()[i].slot;
    const Segment* const segment = image.find(slot);
    if (segment == nullptr) continue;
    const std::uint64_t trap = plan.layout.traps.address + i * trap_stride;
    const std::uint64_t page = page_of(slot);
    auto [bound, is_new] = bound_pages_.try_emplace(page);
    if (is_new) {
      const auto bytes = segment->bytes.subspan(static_cast<std::size_t>(page - segment->address), page_size);
      bound->second.assign(bytes.begin(), bytes.end());
    }
    if (slot - page + width <= page_size) std::memcpy(bound->second.data() + (slot - page), &trap, width);
  }
  std::uint64_t offset = 0;
  for (const Segment& segment : image.segments()) {
    const bool may_write = writable && segment.writable;
    if (segment.writable && !writable) held_back_.push_back({segment.address, segment.bytes.size()});
    const int protection = PROT_READ | (may_write ? PROT_WRITE : 0) | (segment.executable ? PROT_EXEC : 0);
    const std::uint64_t end = segment.address + segment.bytes.size();
    for (std::uint64_t at = segment.address; at < end;) {
      const auto bound = bound_pages_.lower_bound(at);
      if (bound != bound_pages_.end() && bound->first == at) {
        blocks_.push_back({{at, page_size}, -1, reserve(page_size), protection, false});
        at += page_size;
        continue;
      }
      const std::uint64_t next = bound == bound_pages_.end() ? end : std::min(end, bound->first);
      blocks_.push_back(
          {{at, next - at}, image_file_->descriptor(), offset + (at - segment.address), protection, false});
      at = next;
    }
    offset += segment.bytes.size();
  }
}

std::byte* HostMemory::at(std::uint64_t address) const {
  for (const Block& block : blocks_) {
    if (block.is_shared && block.region.contains(address)) {
      return own_ + block.offset + (address - block.region.address);
    }
  }
  return nullptr;
}

void HostMemory::map(TracedProcess& process, const Block& block) const {
  const std::uint64_t flags = fixed_and_free | (block.is_shared ? MAP_SHARED : MAP_PRIVATE);
  const std::int64_t got = process.call(SYS_mmap, {block.region.address, block.region.size, argument(block.protection),
                                                   flags, argument(block.file), block.offset});
  if (got == static_cast<std::int64_t>(block.region.address)) return;
  throw Error(fmt::format("--witness host: {:#x} bytes at {:#x} cannot be mapped on this system: {}", block.region.size,
                          block.region.address, std::strerror(got < 0 ? static_cast<int>(-got) : EEXIST)));
}

/// Maps the caller's code where nothing lies, and nothing will.
Region HostMemory::map_stage(TracedProcess& process) const {
  constexpr std::uint64_t step = 0x1'0000'0000;
  const Block& code = blocks_.front();
  std::int64_t got = -EEXIST;
  for (Region stage{step, code.region.size}; got == -EEXIST && stage.end() < user_end; stage.address += step) {
    const bool is_taken = std::ranges::any_of(blocks_, [&stage](const Block& block) {
      return block.region.address < stage.end() && stage.address < block.region.end();
    });
    if (is_taken) continue;
    got = process.call(SYS_mmap, {stage.address, stage.size, argument(code.protection), fixed_and_free | MAP_SHARED,
                                  argument(code.file), code.offset});
    if (got == static_cast<std::int64_t>(stage.address)) return stage;
    if (got >= 0) break;  // a kernel that takes the address for a wish
  }
  throw Error(fmt::format("--witness host: this system does not let a process map memory: {}",
                          std::strerror(got < 0 ? static_cast<int>(-got) : EEXIST)));
}

void HostMemory::enter(TracedProcess& process, const HostCode& code) const {
  // The system calls are made from a copy of the caller's code, since what this program has mapped may lie where that
  // is to be.
  const Region stage = map_stage(process);
  const auto unmap = [&process](std::uint64_t from, std::uint64_t to) {
    const std::int64_t failed = process.call(SYS_munmap, {from, to - from, 0, 0, 0, 0});
    if (failed == 0) return;
    throw Error(fmt::format("--witness host: this system does not let memory be unmapped: {}",
                            std::strerror(static_cast<int>(-failed))));
  };
  process.set_call_address(stage.address + (code.call_64 - layout_.code.address));
  unmap(0, stage.address);
  unmap(stage.end(), user_end);
  for (const Block& block : blocks_) map(process, block);
  process.set_call_address(code.call_64);
  unmap(stage.address, stage.end());
  if (process.call(SYS_close_range, {0, ~0U, 0, 0, 0, 0}) != 0) {
    std::error_code error;
    for (std::filesystem::directory_iterator files(fmt::format("/proc/{}/fd", process.pid()), error), end;
         !error && files != end; files.increment(error)) {
      process.call(SYS_close, {std::stoull(files->path().filename().string()), 0, 0, 0, 0, 0});
    }
    if (error) throw Error("--witness host: this system does not tell which files are open: " + error.message());
  }
  std::byte* const scratch = at(layout_.state.address);
  if (!thread_block_.empty() && !is_64_bit_) {
    user_desc segment{};
    segment.entry_number = thread_selector >> 3;
    segment.base_addr = static_cast<unsigned>(layout_.thread.address);
    segment.limit = static_cast<unsigned>(layout_.thread.size - 1);
    segment.seg_32bit = 1;
    segment.useable = 1;
    std::memcpy(scratch, &segment, sizeof segment);
    const std::int64_t failed =
        process.call_32_bit(code.call_32, set_thread_area_32_bit, static_cast<std::uint32_t>(layout_.state.address));
    if (failed != 0) {
      throw Error(
          fmt::format("--witness host: this system gives fs no segment: {}", std::strerror(static_cast<int>(-failed))));
    }
  }
  for (const auto limit : {RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_FSIZE, RLIMIT_MEMLOCK}) {
    constexpr rlimit nothing{0, 0};
    if (::prlimit(process.pid(), limit, &nothing, nullptr) == 0) continue;
    throw Error(fmt::format("--witness host: this system does not let a process be limited: {}", std::strerror(errno)));
  }
  // Every system call ends as SIGSYS from here on, whichever way it is made.
  const sock_filter refuse = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
  sock_fprog program{};
  program.len = 1;
  program.filter = reinterpret_cast<sock_filter*>(layout_.state.address + 64);
  std::memcpy(scratch, &program, sizeof program);
  std::memcpy(scratch + 64, &refuse, sizeof refuse);
  std::int64_t failed = process.call(SYS_prctl, {PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0});
  if (failed == 0) failed = process.call(SYS_seccomp, {SECCOMP_SET_MODE_FILTER, 0, layout_.state.address, 0, 0, 0});
  if (failed != 0) {
    throw Error(fmt::format("--witness host: this system does not let system calls be refused (seccomp): {}",
                            std::strerror(static_cast<int>(-failed))));
  }
  std::memset(scratch, 0, 128);
}

bool HostMemory::may_become_writable(std::uint64_t address) const {
  return std::ranges::any_of(held_back_, [address](const Region& region) { return region.contains(address); });
}

std::vector<std::uint64_t> HostMemory::written_pages(const TracedProcess& process) const {
  // An entry says whether a page is there, and whether it is still the file's or has become the process's own.
  constexpr std::uint64_t is_present = std::uint64_t{1} << 63;
  constexpr std::uint64_t is_swapped = std::uint64_t{1} << 62;
  constexpr std::uint64_t is_of_file = std::uint64_t{1} << 61;
  std::vector<std::uint64_t> pages;
  const int file = ::open(fmt::format("/proc/{}/pagemap", process.pid()).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw Error("--witness host: this system does not tell which pages were written (/proc/PID/pagemap)");
  std::vector<std::uint64_t> entries;
  for (const Block& block : blocks_) {
    if (block.is_shared || (block.protection & PROT_WRITE) == 0) continue;
    entries.resize(block.region.size / page_size);
    const std::size_t size = entries.size() * sizeof(std::uint64_t);
    const auto from = static_cast<off_t>(block.region.address / page_size * sizeof(std::uint64_t));
    if (::pread(file, entries.data(), size, from) != static_cast<ssize_t>(size)) {
      ::close(file);
      throw Error("--witness host: this system does not tell which pages were written (/proc/PID/pagemap)");
    }
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if ((entries[i] & (is_present | is_swapped)) != 0 && (entries[i] & is_of_file) == 0) {
        pages.push_back(block.region.address + i * page_size);
      }
    }
  }
  ::close(file);
  std::ranges::sort(pages);
  return pages;
}

std::vector<std::byte> HostMemory::original(std::uint64_t page) const {
  if (const auto bound = bound_pages_.find(page); bound != bound_pages_.end()) return bound->second;
  const auto bytes = image_.read(page, page_size);
  return {bytes.begin(), bytes.end()};
}

}  // namespace bitwitness::host
