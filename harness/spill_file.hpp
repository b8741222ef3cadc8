#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace bitwitness {

/// A temporary file without a name: it lies in the folder that TMPDIR names (or /tmp) and is gone when it is closed,
/// however the program ends. Several threads may read and write at a time, but for `claim`.
class SpillFile {
 public:
  /// Creates the file. Throws Error that names the folder.
  SpillFile();
  ~SpillFile();
  SpillFile(SpillFile&& other) noexcept;
  SpillFile& operator=(SpillFile&& other) noexcept;

  /// Bytes claimed.
  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// Makes the file larger by so many bytes and returns where they begin.
  std::uint64_t claim(std::uint64_t bytes) { return std::exchange(size_, size_ + bytes); }

  /// Writes bytes at an offset, claimed or not. Throws Error when they cannot be written.
  void write(std::uint64_t offset, std::span<const std::byte> bytes);

  /// Fills `out` from the file's bytes at `offset`. Throws Error when it cannot, and when the file ends before.
  void read(std::uint64_t offset, std::span<std::byte> out) const;

  /// Returns the whole file as memory that the system may drop and fetch again; it lives as long as it is held.
  /// Throws Error.
  [[nodiscard]] std::shared_ptr<const std::byte[]> map() const;

 private:
  int file_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace bitwitness
