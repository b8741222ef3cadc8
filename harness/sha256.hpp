#pragma once
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace bitwitness {

using Sha256Bytes = std::array<std::byte, 32>;

/// Hashes bytes that arrive in pieces.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  /// Appends bytes to what is hashed.
  void update(std::span<const std::byte> bytes);

  /// Returns the hash of everything so far, as 64 lowercase hex digits. More bytes may follow.
  [[nodiscard]] std::string hex() const;

  /// Returns the hash of everything so far. More bytes may follow.
  [[nodiscard]] Sha256Bytes digest() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Returns the SHA-256 of bytes, as 64 lowercase hex digits.
std::string sha256_hex(std::span<const std::byte> bytes);

/// Returns a hash as 64 lowercase hex digits.
std::string to_hex(const Sha256Bytes& hash);

}  // namespace bitwitness
