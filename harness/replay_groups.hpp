#pragma once
#include "harness/tally.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bitwitness {

/// What the groups of a vector file that holds digests showed.
class GroupTally {
 public:
  /// Keeps the first `limit` groups that differ.
  explicit GroupTally(std::size_t limit) : listed_(limit) {}

  /// Counts a group that differs: the position of its first value, and its values of `packed_size` bytes.
  void add(std::uint64_t position, std::span<const std::byte> packed, std::size_t packed_size);

  void merge(GroupTally&& other);

  /// Returns the notes about them. Once, last.
  std::vector<std::string> take_notes();

 private:
  struct Group {
    std::size_t count = 0;
    std::vector<std::byte> first;
    std::vector<std::byte> last;
  };

  std::uint64_t differing_ = 0;
  Smallest<Group> listed_;
};

}  // namespace bitwitness
