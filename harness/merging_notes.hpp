#pragma once
#include <span>
#include <string>
#include <vector>

namespace bitwitness::merging_parts {

/// The notes of one shard's vector file.
struct ShardNotes {
  std::string shard;      ///< "I/N"
  bool is_empty = false;  ///< the shard has no values, and so none that notes could be about
  std::vector<std::string> notes;
};

/// Merges the notes of a recording's shards, given in order, into those of the whole recording: notes that all have
/// come first, then those about the first value of all, facts with their values added up, and values without a result.
/// What cannot be added up because a shard's list was cut short, or a sample was run alone, stays as each shard has it,
/// after "shard I/N: ".
std::vector<std::string> merge_notes(std::span<const ShardNotes> shards);

}  // namespace bitwitness::merging_parts
