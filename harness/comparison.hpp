#pragma once
#include "harness/report.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bitwitness {

/// What became of a value on which a decoder differed in an old report or differs in a new one.
enum class Change : std::uint8_t {
  appeared,   ///< agreed before, differs now
  worse,      ///< differs in more words, or farther, than before
  better,     ///< differs in fewer words or less far, and in neither more
  changed,    ///< differs in as many words and as far, by other words
  unchanged,  ///< the same words as before
  fixed,      ///< differed before, agrees now
  gone        ///< differed before, was not run now
};
inline constexpr std::size_t change_count = 7;

/// Returns "new", "worse", "better", "changed", "unchanged", "fixed" or "gone".
std::string_view to_string(Change change);

/// One value with both decoders' words, of which a side that agreed, or did not run the value, has none.
struct ValueChange {
  Change change = Change::appeared;
  std::vector<std::byte> value;
  std::vector<std::uint32_t> reference;
  std::vector<std::uint32_t> before;
  std::vector<std::uint32_t> after;
};

/// What one report says of a run.
struct RunSide {
  bool present = false;
  Counts counts;
  std::vector<std::uint64_t> differing;  ///< per word
  std::uint64_t max_ulp = 0;
  std::uint64_t unstable = 0;
  std::uint64_t listed = 0;  ///< differences that the report lists
  std::uint64_t untold = 0;  ///< values that differ, of which the lists do not tell how they were on the other side
  Verdict verdict = Verdict::vacuous;
};

/// One routine in one environment with one decoder, in both reports or in one.
struct RunComparison {
  std::string routine;
  std::uint64_t address = 0;
  std::string decoder;
  std::string witness;
  Environment environment;
  std::string vector_file;
  std::vector<std::string> word_names;
  WordKind word_kind = WordKind::f32;
  RunSide before;
  RunSide after;
  std::vector<ValueChange> changes;                ///< of the listed values that can be told, by rising value
  std::array<std::uint64_t, change_count> told{};  ///< how many of them, by Change
  std::vector<std::string> worse;                  ///< why the run is worse; empty when it is not

  [[nodiscard]] std::uint64_t count(Change change) const { return told[static_cast<std::size_t>(change)]; }
};

/// Which report one side is.
struct ComparedReport {
  std::string file;  ///< without folders
  std::string tool_version;
  std::string image_name;
  std::string image_sha256;
  bool stand_in = false;
  Verdict verdict = Verdict::vacuous;
};

enum class ComparisonVerdict : std::uint8_t { same, better, worse, not_comparable };

/// Returns "same", "better", "worse" or "not comparable".
std::string_view to_string(ComparisonVerdict verdict);

/// An old report and a new one.
struct Comparison {
  std::string tool_version;  ///< of this program
  ComparedReport before;
  ComparedReport after;
  std::vector<RunComparison> runs;        ///< in the old report's order, then what only the new one has
  std::vector<std::string> notes;         ///< what else is not the same, one sentence each; judges nothing
  std::vector<std::string> incomparable;  ///< why they cannot be compared, one sentence each; empty when they can

  [[nodiscard]] ComparisonVerdict verdict() const;
};

/// Compares two reports whose files have these names. Runs are matched by routine name and address, decoder, witness,
/// environment and vector file. Reports about other images, routines, environments or values are not comparable.
/// What emulators answered otherwise than a processor in one report alone is a note.
/// Nothing is said of a value that the reports' lists, which hold the smallest differing values up to a limit, do not
/// tell.
Comparison compare(const Report& before, const std::string& before_file, const Report& after,
                   const std::string& after_file);

/// Writes the text a person reads, with at most `limit` values a run and the verdict as the last line.
std::string to_text(const Comparison& comparison, std::size_t limit);

/// Writes JSON "bitwitness-comparison/1" with every value that can be told.
std::string to_json(const Comparison& comparison);

/// Writes Markdown for a comment to a pull request: verdict first, a table of the runs, at most `limit` values a run,
/// and never more than such a comment may hold.
std::string to_markdown(const Comparison& comparison, std::size_t limit);

}  // namespace bitwitness
