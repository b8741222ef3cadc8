#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace bitwitness {

/// A file's contents. Small files are read; large ones are mapped, so that they cost address space only. A mapped file
/// must not be made shorter while it is held.
class FileBytes {
 public:
  /// Opens a regular file. Throws Error that names it.
  static FileBytes open(const std::string& path);

  [[nodiscard]] std::span<const std::byte> bytes() const { return {memory_.get(), size_}; }

 private:
  FileBytes(std::shared_ptr<const std::byte[]> memory, std::size_t size) : memory_(std::move(memory)), size_(size) {}

  std::shared_ptr<const std::byte[]> memory_;
  std::size_t size_;
};

/// A path that cannot be looked at, and why.
struct UnreachablePath {
  std::string path;
  std::string reason;
};

struct FileList {
  std::vector<std::string> files;            ///< sorted, each once
  std::vector<UnreachablePath> unreachable;  ///< in the order met
};

/// Lists the regular files that paths name: files themselves, and all below folders. Links to folders are not followed
/// below a path given.
FileList list_files(std::span<const std::string> paths);

}  // namespace bitwitness
