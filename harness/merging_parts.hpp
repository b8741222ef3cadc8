#pragma once
#include "harness/report.hpp"
#include "harness/values.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// What merging reports and merging vector files share. Not for other modules.

namespace bitwitness::merging_parts {

/// A file and the shard in it.
struct ShardFile {
  std::string file;
  std::string shard;  ///< "I/N"; empty for a whole
};

/// Returns the order, as indices of `files`, in which they make up the whole. Throws Error that names the file which is
/// no shard, has another N than the first, or is there twice, and the shards that are missing.
std::vector<std::size_t> order_of(std::span<const ShardFile> files);

/// Throws Error unless a shard of a whole of so many values is the range that it must be.
void require_range(const ShardFile& file, std::uint64_t whole, std::uint64_t first, std::uint64_t count);

/// Throws Error "FILE: WHAT is X, FIRST has Y" when two texts are not the same.
void require_same(const ShardFile& first, const ShardFile& other, std::string_view what, std::string_view of_first,
                  std::string_view of_other);

/// Throws the same unless both have the same facts about where values come from.
void require_same(const ShardFile& first, const ShardFile& other, std::string_view what,
                  const std::vector<std::string>& of_first, const std::vector<std::string>& of_other);

}  // namespace bitwitness::merging_parts
