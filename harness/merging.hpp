#pragma once
#include "harness/report.hpp"
#include "harness/vectors/vector_file.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace bitwitness {

/// A report and the name of its file, for messages.
struct NamedReport {
  std::string file;
  Report report;
};

/// Merges the reports of all shards I/N, given in any order, into that of the whole: to_json gives the bytes that the
/// run without shards gives (with the smallest --limit, and the processors' names joined where the shards ran on
/// different ones). Throws Error, one line that names a file, for a shard that is lost, there twice, interrupted or
/// overlaps another, and for one about another image, routine, decoder, environment, set of values, budget or N, or
/// made by another version.
Report merge_reports(std::vector<NamedReport> shards);

/// Merges the vector files of all shards I/N, given in any order, and hands the bytes of the whole recording's file to
/// `sink`. Throws Error as merge_reports does.
void merge_vectors(std::span<const VectorFile> shards, const VectorWriter::Sink& sink);

}  // namespace bitwitness
