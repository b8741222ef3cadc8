#pragma once
#include "decoders/animation_writer.hpp"
#include "tests/random.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

// Random animation objects from a seed, and what must hold for any bytes a reader is given.

namespace bitwitness::tests {

using Bytes = std::vector<std::byte>;

/// Keeps the bytes that the spans of a made object point to.
class Store {
 public:
  std::span<const std::byte> keep(Bytes bytes) { return kept_.emplace_back(std::move(bytes)); }

 private:
  std::deque<Bytes> kept_;
};

/// How large the made objects are.
struct SampleSize {
  std::size_t most_tracks = 6;
  std::size_t most_keys = 40;
};

struct SwsSample {
  Store store;
  decoders::SwsAnimation clip;
  std::vector<decoders::SwsMapping> mappings;
  std::vector<decoders::Track> tracks;
  Bytes bytes;  ///< as the writer gives it
};

struct RrSample {
  Store store;
  decoders::RrAnimation clip;
  std::vector<decoders::RrMapping> mappings;
  std::vector<decoders::Track> tracks;
  Bytes bytes;
};

struct MabSample {
  Store store;
  decoders::Mab clip;
  decoders::MabOptions options;
  std::vector<decoders::MabGroup> groups;
  Bytes bytes;
};

/// Makes an Animation with every field random that may be.
SwsSample make_sws(Random& random, const SampleSize& size = {});
RrSample make_rr(Random& random, const SampleSize& size = {});
MabSample make_mab(Random& random, const SampleSize& size = {});

/// Makes the bytes of an AnimSet with up to `most_pairs` pairs.
Bytes make_anim_set(Random& random, std::size_t most_pairs);

/// Gives any bytes to every reader and to the scan. Returns what went wrong: an offset outside the bytes, an accepted
/// object that is not written back byte for byte, tracks that do not add up. Empty when all is well.
std::string check_any_bytes(std::span<const std::byte> bytes);

/// Overwrites a number in bytes.
template <typename Number>
void set(Bytes& bytes, std::size_t at, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) {
    bytes.at(at + i) = std::byte(static_cast<std::uint8_t>(static_cast<std::uint64_t>(number) >> (8 * i)));
  }
}

/// Reads bytes written as hexadecimal digits in pairs, spaces between them ignored.
Bytes from_hex(std::string_view text);

}  // namespace bitwitness::tests
