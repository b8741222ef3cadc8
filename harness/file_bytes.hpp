#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bitwitness {

/// A path that cannot be looked at, and why.
struct UnreachablePath {
  std::string path;
  std::string reason;  ///< without the path: "No such file or directory"
};

/// Says on one line that a path cannot be read and why.
std::string describe(const UnreachablePath& unreachable);

/// A file's contents. Small files are read; large ones are mapped, so that they cost address space only. A mapped file
/// must not be made shorter while it is held.
class FileBytes {
 public:
  /// Opens a regular file. Throws Error that names it.
  static FileBytes open(const std::string& path);

  /// Opens a regular file, or fills `reason` and returns nothing.
  static std::optional<FileBytes> open(std::string& reason, const std::string& path);

  [[nodiscard]] std::span<const std::byte> bytes() const { return {memory_.get(), size_}; }

 private:
  FileBytes(std::shared_ptr<const std::byte[]> memory, std::size_t size) : memory_(std::move(memory)), size_(size) {}

  std::shared_ptr<const std::byte[]> memory_;
  std::size_t size_;
};

/// Returns a path without its folders, as reports name files.
std::string file_name_of(std::string_view path);

struct FileList {
  std::vector<std::string> files;            ///< sorted, each once
  std::vector<UnreachablePath> unreachable;  ///< in the order met
};

/// Lists the regular files that paths name: files themselves, and all below folders. Links to folders are not followed
/// below a path given. A file that paths reach under several spellings ("a", "./a", "b/../a", "/here/a") is listed
/// under the first of them; one that links reach under another name is another file.
FileList list_files(std::span<const std::string> paths);

}  // namespace bitwitness
