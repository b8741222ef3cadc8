#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace bitwitness {

/// A temporary file without a name: it lies in the folder that TMPDIR names (or /tmp) and is gone when it is closed,
/// however the program ends. Not for several threads at a time.
class SpillFile {
 public:
  /// Creates the file. Throws Error that names the folder.
  SpillFile();
  ~SpillFile();
  SpillFile(SpillFile&& other) noexcept;
  SpillFile& operator=(SpillFile&& other) noexcept;

  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// Adds bytes to the end. Throws Error when they cannot be written.
  void append(std::span<const std::byte> bytes);

  /// Fills `out` from the file's bytes at `offset`. Throws Error when it cannot.
  void read(std::uint64_t offset, std::span<std::byte> out) const;

  /// Returns the whole file as memory that the system may drop and fetch again; it lives as long as it is held.
  /// Throws Error.
  [[nodiscard]] std::shared_ptr<const std::byte[]> map() const;

 private:
  int file_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace bitwitness
