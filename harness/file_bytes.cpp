#include "harness/file_bytes.hpp"

#include "harness/error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <tuple>
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

// Null, with `errno` set, where reading fails.
std::shared_ptr<std::byte[]> read_all(int file, std::size_t& size) {
  auto memory = std::make_shared_for_overwrite<std::byte[]>(std::max<std::size_t>(size, 1));
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(file, memory.get() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return nullptr;
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
    if (fs::is_regular_file(status)) return found_.push_back({(here_ / path).lexically_normal(), path});
    if (!fs::is_directory(status)) return refuse(path, "neither a file nor a folder");
    add_folder(path);
  }

  FileList take() {
    std::ranges::sort(found_, {}, [](const Found& file) { return std::tie(file.normal, file.path); });
    // Behind a link, ".." leads elsewhere than its spelling tells.
    const auto is_same = [](const Found& left, const Found& right) {
      std::error_code error;
      if (left.normal != right.normal) return false;
      return left.path == right.path || fs::equivalent(left.path, right.path, error);
    };
    found_.erase(std::unique(found_.begin(), found_.end(), is_same), found_.end());
    for (const Found& file : found_) list_.files.push_back(file.path.string());
    std::ranges::sort(list_.files);
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

  struct Found {
    fs::path normal;  // absolute, without "." and ".."
    fs::path path;
  };

  static fs::path current_folder() {
    std::error_code ignored;
    return fs::current_path(ignored);
  }

  fs::path here_ = current_folder();
  std::vector<Found> found_;
  FileList list_;
};

}  // namespace

std::string file_name_of(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

std::string describe(const UnreachablePath& unreachable) {
  return fmt::format("{}: cannot read: {}", unreachable.path, unreachable.reason);
}

FileBytes FileBytes::open(const std::string& path) {
  std::string reason;
  std::optional<FileBytes> file = open(reason, path);
  if (!file) throw Error(describe({path, reason}));
  return *std::move(file);
}

std::optional<FileBytes> FileBytes::open(std::string& reason, const std::string& path) {
  const auto refuse = [&](std::string_view why) {
    reason = why;
    return std::nullopt;
  };
  // Opening a pipe would wait for a writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return refuse(std::strerror(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return refuse(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return refuse("not a regular file");
  auto size = static_cast<std::size_t>(status.st_size);
  if (size <= largest_read) {
    auto memory = read_all(file.get(), size);
    if (!memory) return refuse(std::strerror(errno));
    return FileBytes(std::move(memory), size);
  }
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) return refuse(std::strerror(errno));
  ::madvise(memory, size, MADV_SEQUENTIAL);
  return FileBytes(std::shared_ptr<const std::byte[]>(static_cast<const std::byte*>(memory),
                                                      [memory, size](const std::byte*) { ::munmap(memory, size); }),
                   size);
}

FileList list_files(std::span<const std::string> paths) {
  Lister lister;
  for (const std::string& path : paths) lister.add(path);
  return lister.take();
}

}  // namespace bitwitness
