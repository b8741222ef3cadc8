#pragma once
#include "harness/report.hpp"
#include "harness/values.hpp"

#include <algorithm>
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

/// Throws Error that says where two lists are not the same.
void require_same(const ShardFile& first, const ShardFile& other, std::string_view what,
                  const std::vector<std::string>& of_first, const std::vector<std::string>& of_other);

/// What the reports and the vector files of one run both say of it: empty texts are compared like others.
struct RunSource {
  std::string image_name;
  std::string image_sha256;
  ImageFormat image_format = ImageFormat::pe32;
  bool stand_in = false;
  std::string tool_version;
  Engine engine;
};

/// What they both say of its routine and words.
struct RunSubject {
  std::string routine;
  std::uint64_t address = 0;
  std::string signature;
  std::string routine_sha256;
  std::string decoder;
  std::string witness;
  Environment environment;
  std::vector<std::string> sources;
  std::vector<std::string> word_names;
  WordKind word_kind = WordKind::f32;
};

/// Throws Error unless two shards are about the same executable and were made by the same program. The processor may be
/// another.
void require_same(const ShardFile& first, const ShardFile& other, const RunSource& of_first, const RunSource& of_other);

/// Throws Error unless two shards are about the same routine. `prefix` stands before what the message names.
void require_same(const ShardFile& first, const ShardFile& other, std::string_view prefix, const RunSubject& of_first,
                  const RunSubject& of_other);

/// Takes what one of the reports or headers says.
template <typename Source>
RunSource source_of(const Source& from) {
  return {from.image_name, from.image_sha256, from.image_format, from.stand_in, from.tool_version, from.engine};
}

template <typename Source>
RunSubject subject_of(const Source& from) {
  return {from.routine, from.address,     from.signature, from.routine_sha256, from.decoder,
          from.witness, from.environment, from.sources,   from.word_names,     from.word_kind};
}

/// Appends the findings of the next shard, up to a number in all.
template <typename Finding>
void append_up_to(std::vector<Finding>& out, std::size_t limit, const std::vector<Finding>& more) {
  const std::size_t count = std::min(limit - out.size(), more.size());
  out.insert(out.end(), more.begin(), more.begin() + static_cast<std::ptrdiff_t>(count));
}

}  // namespace bitwitness::merging_parts
