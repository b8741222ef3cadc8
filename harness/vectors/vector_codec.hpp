#pragma once
#include "harness/vectors/vector_file.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

// The payload of one block: planes of bytes, each constant, as it is, or compressed. vectors/README.md has the layout.

namespace bitwitness::vectors {

/// What a payload's size depends on besides its content.
struct BlockShape {
  std::size_t count = 0;  ///< values, 1 … vector_block_values
  std::size_t packed_size = 0;
  std::size_t word_count = 0;
  VectorDetail detail = VectorDetail::words;
};

/// Makes payloads. Equal blocks give equal bytes with one version of zstd.
class BlockEncoder {
 public:
  BlockEncoder();
  ~BlockEncoder();

  /// Replaces `payload` by that of a block, whose values rise; of words and groups, what the shape says is used.
  void encode(std::vector<std::byte>& payload, const VectorBlock& block, const BlockShape& shape);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Reads payloads, which may hold anything.
class BlockDecoder {
 public:
  BlockDecoder();
  ~BlockDecoder();

  /// Fills values, outcomes and words or groups of a block; `first_value` is its first one. Takes no more memory than
  /// the shape implies. Throws Error, which says what is wrong but not where.
  void decode(VectorBlock& block, std::span<const std::byte> payload, std::span<const std::byte> first_value,
              const BlockShape& shape);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bitwitness::vectors
