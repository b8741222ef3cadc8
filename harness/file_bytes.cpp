#include "harness/file_bytes.hpp"

#include "harness/error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace bitwitness {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_read = std::size_t{1} << 20;

class Descriptor {
 public:
  explicit Descriptor(int file) : file_(file) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (file_ >= 0) ::close(file_);
  }
  [[nodiscard]] int get() const { return file_; }

 private:
  int file_;
};

[[noreturn]] void fail(const std::string& path, std::string_view why) {
  throw Error(fmt::format("{}: cannot read: {}", path, why));
}

std::shared_ptr<std::byte[]> read_all(int file, std::size_t& size, const std::string& path) {
  auto memory = std::make_shared_for_overwrite<std::byte[]>(std::max<std::size_t>(size, 1));
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(file, memory.get() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, std::strerror(errno));
    if (got == 0) break;  // it has become shorter
    done += static_cast<std::size_t>(got);
  }
  size = done;
  return memory;
}

class Lister {
 public:
  void add(const fs::path& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (error) return refuse(path, error.message());
    if (fs::is_regular_file(status)) return list_.files.push_back(path.string());
    if (!fs::is_directory(status)) return refuse(path, "neither a file nor a folder");
    add_folder(path);
  }

  FileList take() {
    std::ranges::sort(list_.files);
    const auto repeated = std::ranges::unique(list_.files);
    list_.files.erase(repeated.begin(), repeated.end());
    return std::move(list_);
  }

 private:
  void add_folder(const fs::path& folder) {
    std::error_code error;
    fs::directory_iterator entry(folder, error);
    if (error) return refuse(folder, error.message());
    for (; entry != fs::directory_iterator(); entry.increment(error)) {
      const fs::file_status status = entry->symlink_status(error);
      if (error) {
        refuse(entry->path(), error.message());
      } else if (fs::is_directory(status)) {
        add_folder(entry->path());
      } else if (!fs::is_symlink(status) || !fs::is_directory(entry->path(), error)) {
        add(entry->path());
      }
    }
    if (error) refuse(folder, error.message());
  }

  void refuse(const fs::path& path, std::string reason) {
    list_.unreachable.push_back({path.string(), std::move(reason)});
  }

  FileList list_;
};

}  // namespace

FileBytes FileBytes::open(const std::string& path) {
  // Opening a pipe would wait for a writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail(path, std::strerror(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail(path, "not a regular file");
  auto size = static_cast<std::size_t>(status.st_size);
  if (size <= largest_read) {
    auto memory = read_all(file.get(), size, path);
    return {std::move(memory), size};
  }
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) fail(path, std::strerror(errno));
  ::madvise(memory, size, MADV_SEQUENTIAL);
  return {std::shared_ptr<const std::byte[]>(static_cast<const std::byte*>(memory),
                                             [memory, size](const std::byte*) { ::munmap(memory, size); }),
          size};
}

FileList list_files(std::span<const std::string> paths) {
  Lister lister;
  for (const std::string& path : paths) lister.add(path);
  return lister.take();
}

}  // namespace bitwitness
