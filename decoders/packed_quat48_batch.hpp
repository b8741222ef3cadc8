#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace bitwitness::decoders::packed_quat48 {

/// How a batch is decoded. Every path gives the bits of `decode`, key by key.
enum class BatchPath : std::uint8_t {
  scalar,  ///< one key at a time, on every processor
  avx2,    ///< eight keys at a time, on x86-64 processors with AVX2
};

/// Returns the fastest path of this processor.
BatchPath fastest_batch_path();

/// Decodes keys that lie side by side, 6 bytes each, into 4 words each. Throws std::invalid_argument where the words
/// are not 4 for every whole key, or the processor lacks the path.
void decode_batch(std::span<const std::byte> packed, std::span<std::uint32_t> words,
                  BatchPath path = fastest_batch_path());

}  // namespace bitwitness::decoders::packed_quat48
