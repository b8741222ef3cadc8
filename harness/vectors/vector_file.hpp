#pragma once
#include "harness/image.hpp"
#include "harness/machine.hpp"
#include "harness/report.hpp"
#include "harness/sha256.hpp"
#include "harness/subject.hpp"
#include "harness/values.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Vector files: values and the words that a witness gave for them, so that decoders can be checked without the
// executable. The format is in vectors/README.md.

namespace bitwitness {

namespace vectors {
class Source;
}

inline constexpr std::size_t vector_block_values = values_per_chunk;  ///< values of a block; the last has what is left
inline constexpr std::size_t vector_group_values = 32;      ///< values of a group; a block's last has what is left
inline constexpr std::size_t max_vector_packed_size = 256;  ///< bytes of a value
inline constexpr std::size_t max_vector_words = 256;        ///< words of a value

/// What a recording's run showed beside the words. All is empty where nobody ran anything.
struct RecordedRun {
  Isolation isolation;
  std::vector<std::string> path;  ///< notes about the first value
  std::vector<Fact> facts;        ///< sorted by what they say, each once
  std::uint64_t facts_left_out = 0;
  std::vector<Failure> failures;  ///< the smallest `limit` values without a result
  std::uint64_t limit = 0;
};

/// Where the words of a vector file come from. A text that is empty is unknown.
struct VectorHeader {
  std::string tool_version;
  Engine engine;
  std::string image_name;
  std::string image_sha256;  ///< empty or 64 lowercase hex digits
  ImageFormat image_format = ImageFormat::pe32;
  bool stand_in = false;
  std::string routine;
  std::uint64_t address = 0;
  std::string signature;       ///< empty, "auto", or one whose sizes are packed_size and word_count
  std::string routine_sha256;  ///< empty or 64 lowercase hex digits
  std::string witness;
  Environment environment;
  std::string decoder;                  ///< the decoder that the routine was recorded for
  std::vector<std::string> sources;     ///< of the values; of absolute paths only the file name is written
  std::string shard;                    ///< "I/N", empty when whole
  std::size_t packed_size = 0;          ///< bytes of a value, 1 … max_vector_packed_size
  std::size_t word_count = 0;           ///< words of a value, 1 … max_vector_words
  std::vector<std::string> word_names;  ///< one per word, no two the same
  WordKind word_kind = WordKind::f32;
  std::vector<BitField> fields;  ///< none, or such that cover every bit of the value in rising order
  RecordedRun recorded;
  std::vector<std::string> notes;
  std::uint64_t count = 0;  ///< values in the file
};

/// Returns a header's notes and, as sentences like those of a report, what its recording's run showed but for values
/// without a result and those that ran alone.
std::vector<std::string> notes_of(const VectorHeader& header);

/// Leaves out of what a run showed as much as makes the header too large for a file: values without a result from the
/// largest on, then facts, then what is said of the first value. What is left says how many.
void fit_header(VectorHeader& header);

/// Bytes of a header's 1 MiB that are kept for what a run adds to it.
inline constexpr std::size_t vector_header_reserve = std::size_t{1} << 16;

/// Throws Error for a header that contradicts itself, or has less than vector_header_reserve left.
void require_header(const VectorHeader& header);

/// What a vector file keeps of the words.
enum class VectorDetail : std::uint8_t {
  words,   ///< all of them
  digests  ///< one digest per group of vector_group_values values
};

/// Returns "words" or "digests", as a header writes it.
std::string_view to_string(VectorDetail detail);

/// Returns the SHA-256 over packed values, then their outcomes (one byte each), then their words, which are 0 for
/// values that did not return. In hex it is a block's part of RunReport::digest.
Sha256Bytes vector_digest(std::span<const std::byte> packed, std::span<const OutcomeKind> outcomes,
                          std::span<const std::uint32_t> words);

/// Consecutive values of a vector file.
struct VectorBlock {
  std::uint64_t first = 0;            ///< position of the first value in the file
  std::vector<std::byte> packed;      ///< packed_size bytes a value
  std::vector<OutcomeKind> outcomes;  ///< one a value
  std::vector<std::uint32_t> words;   ///< word_count a value, 0 for one that did not return; VectorDetail::words only
  std::vector<Sha256Bytes> groups;    ///< vector_digest of each vector_group_values values; VectorDetail::digests only
  Sha256Bytes digest{};               ///< vector_digest of all of them
};

/// Writes a binary vector file. The bytes depend on header, detail, values, outcomes and words only, not on how they
/// are cut into calls. Throws Error for a header that contradicts itself.
class VectorWriter {
 public:
  /// Takes the next bytes of the file.
  using Sink = std::function<void(std::span<const std::byte>)>;

  /// Writes the header, whose count must be that of the values to come.
  VectorWriter(const VectorHeader& header, VectorDetail detail, Sink sink);
  ~VectorWriter();
  VectorWriter(const VectorWriter&) = delete;
  VectorWriter& operator=(const VectorWriter&) = delete;

  /// Appends values: packed_size bytes, one outcome and word_count words each. The words of a value that did not return
  /// are ignored. Throws Error when a value is not above its predecessor as little-endian integer, when the spans do
  /// not fit together, and for more values than the header states.
  void add(std::span<const std::byte> packed, std::span<const OutcomeKind> outcomes,
           std::span<const std::uint32_t> words);

  /// Appends a block as VectorFile gives it for a file of the writer's detail, packed_size and word_count; this is the
  /// one way to copy digests. Throws Error like the other, and where no block begins: only the last may be short.
  void add(const VectorBlock& block);

  /// Writes what makes the file whole. Throws Error for fewer values than the header states. Once, last.
  void finish();

  /// Returns what RunReport::digest says of these values and words; after finish().
  [[nodiscard]] std::string digest() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A vector file: binary, or the text form (its values are then blocks like those of a binary one). Every Error is one
/// line that names the file and the offset and block, or the line. Copies share what they hold.
class VectorFile {
 public:
  /// Opens a file. Checks the header, the frame of every block, and that the file is whole; values and words are
  /// checked by `read`. Throws Error.
  static VectorFile open(const std::string& path);

  /// Opens bytes, which must outlive the file; `name` names them in messages. Throws Error.
  static VectorFile parse(std::span<const std::byte> bytes, std::string name);

  [[nodiscard]] const VectorHeader& header() const;
  [[nodiscard]] VectorDetail detail() const;
  [[nodiscard]] const std::string& name() const;

  /// Returns what RunReport::digest says of the values and words in the file: the same whatever the file's form and
  /// detail.
  [[nodiscard]] const std::string& digest() const;

  /// Tells whether known differences stand beside the vectors, as they may in the text form only.
  [[nodiscard]] bool has_known_differences() const;

  /// Returns the number of blocks: that of values divided by vector_block_values, rounded up.
  [[nodiscard]] std::size_t block_count() const;

  /// Says where a block is: "FILE: block 3 at offset 0x1234", or the lines of a text form, for messages about it.
  [[nodiscard]] std::string place(std::size_t index) const;

  /// Checks a block's digests and decodes it into `out`, reusing its memory. May be called from several threads. Throws
  /// Error for a damaged or edited block.
  void read(VectorBlock& out, std::size_t index) const;

  /// Returns a block that `read` fills.
  [[nodiscard]] VectorBlock block(std::size_t index) const;

 private:
  explicit VectorFile(std::shared_ptr<const vectors::Source> source) : source_(std::move(source)) {}
  std::shared_ptr<const vectors::Source> source_;
};

/// Largest text form, in bytes.
inline constexpr std::size_t max_vector_text = std::size_t{1} << 20;

/// Writes the text form, which VectorFile reads. Throws Error for a file of digests, for one with known differences
/// (which are not a VectorFile's), and for one whose text would exceed max_vector_text.
std::string to_toml(const VectorFile& file);

}  // namespace bitwitness
