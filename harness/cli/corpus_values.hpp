#pragma once
#include "harness/cli/corpus.hpp"
#include "harness/distinct_values.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace bitwitness::cli {

/// Adds the packed values that the animation files at a path hold for a decoder: those of its kinds of track, in every
/// game; for packed_quat48_pair each two consecutive keys of a track. Returns what a report should say of the files,
/// refusals beside values included. Throws Error when the path cannot be read, no track kind has the decoder, there is
/// no file, or all files together give not one value for the decoder: other sources beside it would hide that nothing
/// of it was tried. After a stop request what was read by then is added, were it nothing.
std::vector<std::string> add_corpus_values(DistinctValues& values, const std::string& path, std::string_view decoder,
                                           const CorpusOptions& options);

}  // namespace bitwitness::cli
