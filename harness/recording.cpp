#include "harness/recording.hpp"

#include "harness/disassembly.hpp"
#include "harness/error.hpp"
#include "harness/signature.hpp"
#include "harness/spill_file.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace bitwitness {
/// Chunks of results in a temporary file, each at its own place: threads that finish in any order leave equal bytes.
class RecordedChunks {
 public:
  RecordedChunks(std::size_t packed_size, std::size_t word_count)
      : packed_size_(packed_size), word_bytes_(word_count * sizeof(std::uint32_t)) {}

  void put(const ReferenceChunk& chunk) {
    std::uint64_t at = chunk.first * (packed_size_ + 1 + word_bytes_);
    for (const auto bytes : {chunk.packed, std::as_bytes(chunk.outcomes), std::as_bytes(chunk.words)}) {
      file_.write(at, bytes);
      at += bytes.size();
    }
  }

  /// Writes the chunks of so many values in order.
  void write(VectorWriter& writer, std::uint64_t count) const {
    std::vector<std::byte> packed;
    std::vector<OutcomeKind> outcomes;
    std::vector<std::uint32_t> words;
    for (std::uint64_t first = 0; first < count; first += values_per_chunk) {
      const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(values_per_chunk, count - first));
      packed.resize(size * packed_size_);
      outcomes.resize(size);
      words.resize(size * word_bytes_ / sizeof(std::uint32_t));
      std::uint64_t at = first * (packed_size_ + 1 + word_bytes_);
      for (const auto bytes :
           {std::span(packed), std::as_writable_bytes(std::span(outcomes)), std::as_writable_bytes(std::span(words))}) {
        file_.read(at, bytes);
        at += bytes.size();
      }
      writer.add(packed, outcomes, words);
    }
  }

 private:
  SpillFile file_;
  std::size_t packed_size_;
  std::size_t word_bytes_;
};

namespace {

void fill(VectorHeader& header, const Image& image, const Routine& routine, const Environment& environment,
          const ValueSet& values) {
  header.image_name = image.name();
  header.image_sha256 = image.sha256();
  header.image_format = image.format();
  header.stand_in = image.is_stand_in();
  header.routine = routine.name;
  header.address = routine.address;
  header.signature = to_string(routine.signature);
  header.routine_sha256 = routine_sha256(image, disassemble_routine(image, routine.address));
  header.environment = environment;
  header.sources.assign(values.sources().begin(), values.sources().end());
  if (const Shard shard = values.shard(); shard.count > 1)
    header.shard = fmt::format("{}/{}", shard.index, shard.count);
  header.packed_size = routine.signature.packed_size();
  header.word_count = routine.signature.word_count();
  header.count = values.size();
}

RecordedRun recorded_run(WitnessResult& result, std::size_t limit) {
  return {.isolation = result.isolation,
          .path = std::move(result.path),
          .facts = std::move(result.facts),
          .facts_left_out = 0,
          .failures = result.tally.failures.take(),
          .limit = limit};
}

}  // namespace

std::string Recording::write(const VectorWriter::Sink& sink, VectorDetail detail) const {
  if (!is_whole) throw Error("the recording was interrupted: it has no vector file");
  VectorWriter writer(header, detail, sink);
  chunks->write(writer, header.count);
  writer.finish();
  return writer.digest();
}

Recording record(VectorHeader header, const Image& image, const Routine& routine, const Environment& environment,
                 const ValueSet& values, const RunOptions& options) {
  if (values.packed_size() != routine.signature.packed_size()) {
    throw Error(fmt::format("the values have {} bytes, routine {} takes {}", values.packed_size(), routine.name,
                            routine.signature.packed_size()));
  }
  fill(header, image, routine, environment, values);
  require_header(header);  // before hours of work

  const auto chunks = std::make_shared<RecordedChunks>(header.packed_size, header.word_count);
  WitnessResult result = run_witness(
      image, routine, environment, values,
      [&chunks](Tally&, std::uint64_t, const ReferenceChunk& chunk) {
        chunks->put(chunk);
        return true;
      },
      options);
  Recording recording;
  recording.counts = result.tally.counts;
  recording.counts.not_run = header.count - recording.counts.run;
  recording.isolation = result.isolation;
  recording.is_whole = recording.counts.not_run == 0 && !options.stop.stop_requested();
  header.witness = result.witness;
  header.recorded = recorded_run(result, options.limit);
  fit_header(header);
  recording.header = std::move(header);
  recording.chunks = chunks;
  return recording;
}

}  // namespace bitwitness
