#pragma once
#include "harness/sha256.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace bitwitness {

/// Digests of numbered chunks, one for each environment, and with them which chunks are done. Chained in order,
/// whichever thread finishes first. Takes 33 bytes an environment for each chunk that comes before a lower one, and
/// with `keep` 32 bytes for every chunk; nothing else grows.
class ChunkDigests {
 public:
  /// With `keep` the digests themselves are there in the end, too.
  ChunkDigests(std::size_t environments, bool keep);

  /// Takes the digests of a chunk that is not there yet.
  void add(std::uint64_t chunk, std::span<const Sha256Bytes> digests);

  [[nodiscard]] bool has(std::uint64_t chunk) const;

  /// Returns how many chunks are there.
  [[nodiscard]] std::uint64_t count() const;

  /// Returns which chunks are there, as half-open ranges that rise and do not touch.
  [[nodiscard]] std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges() const;

  /// Returns the SHA-256 over the hex digits of an environment's digests, in order, up to the first chunk that is
  /// missing.
  [[nodiscard]] std::string hex(std::size_t environment) const;

  /// Returns those digests in hex, which were to be kept.
  [[nodiscard]] std::vector<std::string> kept(std::size_t environment) const;

  /// Hands the digests of each chunk, by rising number, to `take`. They were to be kept.
  template <typename Take>
  void visit(const Take& take) const {
    const std::span all(kept_);
    for (std::size_t at = 0; at < all.size(); at += environments_) take(all.subspan(at, environments_));
    std::vector<Sha256Bytes> one(environments_);
    for (std::size_t i = 0; i < is_there_.size(); ++i) {
      if (!is_there_[i]) continue;
      for (std::size_t k = 0; k < environments_; ++k) one[k] = ahead_[i * environments_ + k];
      take(std::span<const Sha256Bytes>(one));
    }
  }

 private:
  std::size_t environments_;
  bool keep_;
  std::deque<Sha256> chained_;     // one per environment
  std::vector<Sha256Bytes> kept_;  // of the chunks below `next_`
  std::uint64_t next_ = 0;         // the first chunk that is missing
  std::deque<bool> is_there_;      // of the chunks from `next_` on
  std::deque<Sha256Bytes> ahead_;  // their digests
  std::uint64_t ahead_count_ = 0;
};

}  // namespace bitwitness
