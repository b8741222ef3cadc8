#pragma once
#include "decoders/evidence.hpp"
#include "decoders/track_kinds.hpp"
#include "harness/cli/corpus.hpp"
#include "harness/distinct_values.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bitwitness::cli {

/// How keys lie in time: the time forms of tracks, or .mab's presence bytes.
enum class KeyForm : std::uint8_t { u8, u16, mask, presence };

/// Names a form as reports do: "u8".
std::string_view name(KeyForm form);

/// Tracks of one kind and form.
struct KindCount {
  decoders::Game game = decoders::Game::sws;
  unsigned kind = 0;
  KeyForm form = KeyForm::u8;
  std::uint64_t tracks = 0;
  std::uint64_t keys = 0;
  std::uint64_t distinct = 0;  ///< packed values
};

/// Distinct packed values of one kind, in whatever form of times: fewer than its forms' together where they share some.
struct KindTotal {
  decoders::Game game = decoders::Game::sws;
  unsigned kind = 0;
  std::uint64_t distinct = 0;
};

/// A kind that --kind names; the game is left open by a number alone.
struct KindChoice {
  std::optional<decoders::Game> game;
  unsigned kind = 0;
};

struct CensusOptions {
  CorpusOptions corpus;
  bool evidence = false;
  std::optional<KindChoice> values_of;  ///< the kind whose values are wanted
  std::size_t limit = 1000;             ///< refusals to keep; counts are never capped
  std::uint64_t memory = default_values_memory;
};

/// What files hold.
struct Census {
  CorpusSummary read;
  std::uint64_t clips = 0;
  std::uint64_t distinct_clips = 0;  ///< no two of the same bytes
  std::uint64_t tracks = 0;          ///< of all clips, as keys are
  std::uint64_t keys = 0;
  std::uint64_t anim_sets = 0;
  std::uint64_t anim_pairs = 0;
  std::vector<KindCount> kinds;             ///< by game, kind and form
  std::vector<KindTotal> distinct_by_kind;  ///< by game and kind
  std::uint64_t refused = 0;
  std::vector<FileRefusal> refusals;                 ///< the first ones, by file and offset
  std::optional<decoders::EvidenceResult> evidence;  ///< of the distinct clips
  std::size_t packed_size = 0;                       ///< of `values`
  PackedValues values;                               ///< of the kind wanted, distinct and sorted
};

/// Reads "4" or "sws:4". Throws Error that names --kind when it is neither, when no game has such a kind, and when
/// games have it with values of different meaning.
KindChoice parse_kind(std::string_view text);

/// Reads files and counts what is in them. The result does not depend on the number of threads.
Census take_census(std::span<const std::string> files, const CensusOptions& options);

/// Tells clips apart by their bytes. For several threads.
class DistinctClips {
 public:
  DistinctClips();
  ~DistinctClips();
  DistinctClips(const DistinctClips&) = delete;
  DistinctClips& operator=(const DistinctClips&) = delete;

  /// Returns true the first time that it is given these bytes.
  bool add(std::span<const std::byte> bytes);

  [[nodiscard]] std::uint64_t count() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bitwitness::cli
