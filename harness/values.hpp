#pragma once
#include "harness/subject.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bitwitness {

/// Values that are run, hashed and recorded together: the smallest thing that is never divided. The report must not
/// depend on the number of threads, and what a routine with memory of its own gives depends on which values share a
/// batch.
inline constexpr std::size_t values_per_chunk = 8192;

/// Which part of the sorted distinct values to take: the index-th of count contiguous ranges. They are cut between
/// chunks, so that shards together run, hash and record what the whole does; their sizes differ by at most one chunk,
/// and shards beyond the number of chunks are empty.
struct Shard {
  std::uint64_t index = 1;  ///< 1 … count
  std::uint64_t count = 1;
};

/// Returns the half-open range of the values 0 … total that a shard takes; the first shards have one chunk more.
std::pair<std::uint64_t, std::uint64_t> shard_range(Shard shard, std::uint64_t total);

/// Parses "I/N". Throws Error.
Shard parse_shard(std::string_view text);

/// Most values that `all` enumerates; beyond it the request is refused with an estimate of the time.
inline constexpr std::uint64_t max_enumerated = std::uint64_t{1} << 34;

/// Most values that sources other than `all` may list together, repeated ones counted: while a set is built, values of
/// up to 16 bytes take up to 40 bytes each.
inline constexpr std::uint64_t max_listed = std::uint64_t{1} << 28;

class DistinctValues;

/// Adds the packed values that files at a path hold to a collection; returns what a report should say of them. Throws
/// Error.
using CorpusReader = std::function<std::vector<std::string>(DistinctValues& values, const std::string& path)>;

/// Bytes that collecting values may take unless another number is given.
inline constexpr std::uint64_t default_values_memory = std::uint64_t{1} << 30;

/// What a set may be told besides its sources.
struct ValueOptions {
  Shard shard;
  CorpusReader corpus;                           ///< reads `corpus:`; without it that source is refused
  std::uint64_t memory = default_values_memory;  ///< bytes for collecting a corpus, as MemoryBudget bounds them
};

/// Distinct packed values, sorted as little-endian integers. Immutable; `read` may be called from several threads.
class ValueSet {
 public:
  /// Builds the union of sources for packed values of that size and those fields (which cover every bit, in rising
  /// order; without fields, the value is one).
  ///
  ///   hex:BYTES      one value, hex digits in memory order; blanks are ignored
  ///   file:PATH      one value a line in the same form; `#` starts a comment
  ///   special        every field at 0, 1, middle - 1, middle, middle + 1, maximum - 1, maximum, crossed; at fewer of
  ///                  these where that would exceed 2^20 values
  ///   fields         each field swept whole while the others stand at 0, middle and maximum; a field wider than 20
  ///   bits
  ///                  in 2^20 even steps and around every power of two
  ///   random:N[:S]   N draws of an own generator with seed S, every eighth weighted towards limits and runs of equal
  ///                  bits; a value drawn twice counts once
  ///   corpus:PATH    what the corpus reader finds in the files at a path
  ///   all            every value, whatever else is named
  ///
  /// No source means `special`, `fields` and `random:1000000`. Throws Error for a malformed source (with the file's
  /// line), a value of another width, an unreadable file, more than max_listed values, and `all` over more than
  /// max_enumerated.
  static ValueSet build(std::size_t packed_size, std::span<const BitField> fields, std::span<const std::string> sources,
                        const ValueOptions& options = {});

  [[nodiscard]] std::size_t packed_size() const;
  [[nodiscard]] std::uint64_t size() const;  ///< number of values in this shard
  [[nodiscard]] Shard shard() const;
  [[nodiscard]] std::uint64_t whole_size() const;   ///< number of values in all shards
  [[nodiscard]] std::uint64_t whole_index() const;  ///< index among all of this shard's first value
  /// SHA-256 over the values of all shards, in hex; empty for `all`, and where there is one shard.
  [[nodiscard]] const std::string& whole_sha256() const;

  /// Copies values `first`, `first + 1`, … into `out`, whose size is a multiple of packed_size.
  void read(std::uint64_t first, std::span<std::byte> out) const;

  /// The sources, with what they left open filled in, e.g. "random:1000000:1".
  [[nodiscard]] std::span<const std::string> sources() const;

  /// What a report should say of where the values came from.
  [[nodiscard]] std::span<const std::string> notes() const;

  ValueSet(ValueSet&&) noexcept;
  ValueSet& operator=(ValueSet&&) noexcept;
  ~ValueSet();

 private:
  struct Impl;
  explicit ValueSet(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Orders packed values of one size as little-endian integers.
bool is_less(std::span<const std::byte> a, std::span<const std::byte> b);

/// Prints packed bytes in memory order, separated by blanks: "34 12 78".
std::string to_hex(std::span<const std::byte> bytes);

/// Reads hex digits in memory order; blanks are ignored. Throws Error for other characters and half bytes.
std::vector<std::byte> parse_hex(std::string_view text);

}  // namespace bitwitness
