#pragma once
#include "harness/report.hpp"
#include "harness/tally.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Values on which a decoder is known to differ from vectors, each with its reason. The format is in vectors/README.md.

namespace bitwitness {

/// One known difference, as a file states it.
struct KnownDifference {
  std::vector<std::byte> value;
  std::string decoder;
  std::string reason;  ///< may be missing: that breaks it
  std::string file;    ///< name of the vector file that it is about; empty for each that holds the value
  std::string place;   ///< where it is stated: "known.toml:3"
};

/// Reads the [[known_difference]] tables of a TOML text. `origin` names the file in messages; with `alone` the text may
/// hold nothing else. Throws Error that names file and line.
std::vector<KnownDifference> parse_known_differences(std::string_view text, std::string_view origin, bool alone);

/// What a run shows of a known difference.
enum class KnownState : std::uint8_t {
  absent,  ///< its value is not among those run
  failed,  ///< the witness gave no result for it
  agreed,  ///< the decoder gives the reference's words
  held     ///< the decoder differs
};

/// The known differences of one replay over several files and decoders. A difference holds when it has a reason, its
/// value differs in a run and agrees in none.
class KnownDifferences {
 public:
  /// Throws Error when two state the same value, decoder and file.
  explicit KnownDifferences(std::vector<KnownDifference> all);

  /// Returns the indices of those that concern a run of values of that size.
  [[nodiscard]] std::vector<std::size_t> concerning(std::string_view decoder, std::string_view file,
                                                    std::size_t packed_size) const;

  [[nodiscard]] const KnownDifference& operator[](std::size_t index) const { return all_[index]; }
  [[nodiscard]] bool empty() const { return all_.empty(); }

  /// Takes what a run showed of those that concern it, one state each, and adds to its report's notes and broken ones.
  void add(RunReport& report, std::span<const std::size_t> indices, std::span<const KnownState> states);

  /// Adds to the first run those that are in no file. Returns notes about those whose decoder was not run.
  std::vector<std::string> finish(std::span<RunReport> runs) const;

 private:
  std::vector<KnownDifference> all_;
  std::vector<bool> seen_;
  std::vector<bool> reason_told_;
};

}  // namespace bitwitness
