#include "harness/spill_file.hpp"

#include "harness/error.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace bitwitness {
namespace {

std::string folder() {
  const char* const named = std::getenv("TMPDIR");
  return named == nullptr || *named == '\0' ? "/tmp" : named;
}

[[noreturn]] void fail(const char* what, const char* why) {
  throw Error(fmt::format("temporary file in {}: {}: {}", folder(), what, why));
}

[[noreturn]] void fail(const char* what) {
  fail(what, std::strerror(errno));
}

}  // namespace

SpillFile::SpillFile() {
  std::string name = folder() + "/bitwitness-XXXXXX";
  file_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (file_ < 0) fail("cannot be made");
  ::unlink(name.c_str());
}

SpillFile::~SpillFile() {
  if (file_ >= 0) ::close(file_);
}

SpillFile::SpillFile(SpillFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)), size_(std::exchange(other.size_, 0)) {}

SpillFile& SpillFile::operator=(SpillFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(size_, other.size_);
  return *this;
}

void SpillFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot be written");
    if (written == 0) fail("cannot be written", "nothing was taken");
    offset += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void SpillFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(file_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("cannot be read");
    if (got == 0) fail("cannot be read", "it ends before what was asked for");
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
}

std::shared_ptr<const std::byte[]> SpillFile::map() const {
  if (size_ == 0) return std::make_shared<std::byte[]>(1);
  const auto bytes = static_cast<std::size_t>(size_);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file_, 0);
  if (memory == MAP_FAILED) fail("cannot be mapped");
  return std::shared_ptr<const std::byte[]>(static_cast<const std::byte*>(memory),
                                            [memory, bytes](const std::byte*) { ::munmap(memory, bytes); });
}

}  // namespace bitwitness
