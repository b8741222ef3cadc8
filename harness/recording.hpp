#pragma once
#include "harness/image.hpp"
#include "harness/machine.hpp"
#include "harness/report.hpp"
#include "harness/values.hpp"
#include "harness/vectors/vector_file.hpp"
#include "harness/witness_run.hpp"

#include <memory>
#include <string>
#include <vector>

namespace bitwitness {

class RecordedChunks;

/// What a witness gave for every value. The words lie in a temporary file (SpillFile) while this lives.
struct Recording {
  bool is_whole = false;  ///< false when it was interrupted
  VectorHeader header;
  Counts counts;  ///< run, those without a result by kind, not_run
  Isolation isolation;
  std::shared_ptr<const RecordedChunks> chunks;

  /// Writes the vector file of a whole one; its bytes do not depend on the number of threads. Returns
  /// RunReport::digest. Throws Error for one that is not whole.
  std::string write(const VectorWriter::Sink& sink, VectorDetail detail) const;
};

/// Runs a routine on every value. Of `header` what the caller knows is taken (tool, engine, decoder, names and kind of
/// the words, fields, notes), the rest is filled in: what happened beside the results, and values without one (at most
/// `limit`, and at most as many as a header has room for). Throws Error when sizes do not fit, the routine cannot be
/// called, or there is no room.
Recording record(VectorHeader header, const Image& image, const Routine& routine, const Environment& environment,
                 const ValueSet& values, const RunOptions& options = {});

}  // namespace bitwitness
