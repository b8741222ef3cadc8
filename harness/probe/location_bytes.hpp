#pragma once
#include "harness/image.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

// A routine's instructions as bytes, without what another place or another build changes. For the location module only.

namespace bitwitness::location {

/// A routine's bytes from its start. Those that hold addresses, distances to other functions or no code are left open.
struct MaskedCode {
  std::vector<std::byte> bytes;
  std::vector<bool> is_fixed;
  std::size_t fixed = 0;  ///< how many are

  /// Returns the share of the fixed bytes that stand at an address of an image.
  [[nodiscard]] double share_at(const Image& image, std::uint64_t address) const;

  /// Returns how many of the first fixed bytes stand at an address.
  [[nodiscard]] std::size_t head_at(const Image& image, std::uint64_t address) const;
};

/// Reads a routine. Throws Error when there is no code at the address.
MaskedCode mask_routine(const Image& image, std::uint64_t address);

/// A place that has a routine's bytes, or most of them in order.
struct AlikeCode {
  std::uint64_t address = 0;
  double share = 0;  ///< of the fixed bytes; 1 for the same instructions
};

/// Returns the places in an image's code that are most like a routine, best first, at most `most`.
std::vector<AlikeCode> find_alike(const Image& image, const MaskedCode& code, std::size_t most);

}  // namespace bitwitness::location
