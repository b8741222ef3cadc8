#pragma once
#include "harness/image.hpp"
#include "harness/machine.hpp"
#include "harness/subject.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bitwitness {

enum class Verdict : std::uint8_t {
  agree,       ///< every value ran, was compared, and agreed
  differ,      ///< a difference, or a value without a result
  incomplete,  ///< interrupted; what ran agreed
  vacuous      ///< nothing was compared
};

std::string_view to_string(Verdict verdict);

/// A value on which reference and subject differ, with both sides' words.
struct Difference {
  std::vector<std::byte> value;
  std::vector<std::uint32_t> reference;
  std::vector<std::uint32_t> subject;
};

/// A value that gave no result.
struct Failure {
  std::vector<std::byte> value;
  OutcomeKind kind = OutcomeKind::faulted;
  std::uint64_t address = 0;
  std::string instruction;
  std::string reason;
};

/// Every value of a run falls into exactly one of agreed … unwritten, disputed and known; those are `run`. `not_run` is
/// what an interruption left.
struct Counts {
  std::uint64_t run = 0;
  std::uint64_t agreed = 0;
  std::uint64_t differed = 0;
  std::uint64_t faulted = 0;
  std::uint64_t out_of_budget = 0;
  std::uint64_t unwritten = 0;
  std::uint64_t not_run = 0;
  std::uint64_t disputed = 0;  ///< two witnesses do not say the same
  std::uint64_t known = 0;     ///< of `run`: differed as a known difference says

  /// Values that were run and have no words to compare with.
  [[nodiscard]] std::uint64_t without_result() const { return faulted + out_of_budget + unwritten + disputed; }
};

/// How far the results of a sample of values stand on their own.
struct Isolation {
  std::uint64_t sampled = 0;           ///< values run again, alone, from a fresh image
  std::uint64_t unstable = 0;          ///< of those, how many gave other words than in the batch
  std::vector<std::byte> first_value;  ///< the smallest unstable one
};

/// What a report says of something that happened on some values beside their results.
struct Fact {
  std::string what;  ///< a clause with the routine as its subject
  std::uint64_t values = 0;
  std::vector<std::byte> first_value;  ///< the smallest of them
  bool operator==(const Fact&) const = default;
};

/// What a shard's report has besides, so that the reports of all shards can be merged to that of the whole.
struct ShardPart {
  std::uint64_t first = 0;          ///< index of the shard's first value among all
  std::uint64_t whole = 0;          ///< number of values in all shards
  std::string values_sha256;        ///< over the values of all shards; empty for `all`
  std::uint64_t limit = 0;          ///< differences and failures that were to be kept
  std::uint64_t budget = 0;         ///< instructions that a value was allowed
  std::vector<std::string> chunks;  ///< what RunReport::digest is over: a hex digest per values_per_chunk values
  std::uint64_t path_notes = 0;     ///< how many of the notes, before those of the facts, are about the first value
  std::vector<Fact> facts;          ///< sorted; the last notes say them
};

/// The image of one run, of a report about several images.
struct RunImage {
  std::string name;
  std::string sha256;
  ImageFormat format = ImageFormat::pe32;
  bool stand_in = false;
};

/// One routine in one environment against one decoder.
struct RunReport {
  std::string routine;
  std::uint64_t address = 0;
  std::string signature;
  std::string routine_sha256;
  std::string decoder;
  std::string decoder_option;  ///< what --decoder says where that is not the name; for commands, not in JSON
  std::string witness;
  Environment environment;
  std::vector<std::string> sources;
  std::string shard;              ///< "I/N", empty when whole
  std::optional<ShardPart> part;  ///< of a shard that ran to its end
  std::uint64_t distinct = 0;
  Counts counts;
  /// SHA-256 over the hex digests, in order, of each 8,192 values: of their bytes, then their outcomes (one byte each),
  /// then their reference words (0 without a result). The same on any number of threads; empty when interrupted, and
  /// when only some of a vector file's values were asked for.
  std::string digest;
  std::vector<BitField> fields;         ///< of the packed value; shown beside a value that differs
  std::vector<std::string> word_names;  ///< one per output word
  WordKind word_kind = WordKind::f32;
  std::vector<std::uint64_t> differing;  ///< per output word, how many values differ in it
  std::uint64_t max_ulp = 0;             ///< largest ulp distance of any word
  std::vector<Difference> differences;   ///< the smallest `limit` ones
  std::vector<Failure> failures;         ///< the smallest `limit` ones
  Isolation isolation;
  std::vector<std::string> broken;  ///< known differences that do not hold, a sentence each
  std::optional<RunImage> image;    ///< where it is not the report's
  std::string vector_file;          ///< that the reference words were read from; empty when a witness ran
  std::string vector_sha256;        ///< of that file's bytes; empty when unknown
  bool by_group = false;  ///< the file has digests only: what differs is a group of values, of which all are counted
  std::vector<std::string> notes;

  [[nodiscard]] Verdict verdict() const;
};

/// How what a routine gives depends on the environment: over runs that follow each other in a report, one per
/// environment, and that ran the same values in one pass.
struct EnvironmentEffects {
  std::size_t first_run = 0;  ///< index of the first environment's run; those of the others follow it
  std::vector<std::uint64_t>
      changed;                  ///< per environment: values of other words, or another outcome, than in the first
  std::uint64_t depending = 0;  ///< values that any environment changes; of those that were run
};

/// What came of the emulator's self-test (self_test.hpp).
struct SelfTestSummary {
  std::uint64_t vectors = 0;
  std::uint64_t as_hardware = 0;    ///< of them, how many the emulator answered as a processor does
  std::vector<std::string> quirks;  ///< what the others show, sorted; "unknown: NAME" is a vector in no known quirk
  bool operator==(const SelfTestSummary&) const = default;
};

/// What a report was made with. A field that is empty is left empty.
struct Engine {
  std::string unicorn;                            ///< version of the emulator
  std::string capstone;                           ///< version of the disassembler
  std::string lief;                               ///< version of the executable reader
  std::string cpu;                                ///< brand string of the host's processor
  std::optional<SelfTestSummary> self_test = {};  ///< of the emulator, where it took part
};

/// What `verify` found: versioned, without wall-clock time, so that equal runs give equal bytes.
struct Report {
  std::string tool_version;
  Engine engine;
  std::string image_name;
  std::string image_path;     ///< as given; used for the commands that repeat a value, not in JSON
  bool is_repeatable = true;  ///< whether there are such commands
  /// Further arguments that those commands need, e.g. {"--base", "0x500000"}.
  std::vector<std::string> repeat_options;
  std::string image_sha256;
  ImageFormat image_format = ImageFormat::pe32;
  bool stand_in = false;
  std::vector<std::string> notes;  ///< about the image and the target: anchors that do not hold
  std::vector<RunReport> runs;
  std::vector<EnvironmentEffects> environments;  ///< of each routine that ran in more than one

  /// The worst of the runs' verdicts: differ, incomplete, vacuous (also when there is no run), agree. An interruption
  /// that left a whole run undone is incomplete, not vacuous, as long as something ran.
  [[nodiscard]] Verdict verdict() const;
};

/// Returns the ulp distance between two binary32 bit patterns, on the line of ordered floats where -0 and +0 are
/// neighbours (distance 1); NaN against anything else is the largest value, equal bits are 0. Between integer words:
/// their difference.
std::uint64_t ulp_distance(std::uint32_t a, std::uint32_t b, WordKind kind = WordKind::f32);

/// Writes JSON "bitwitness-report/1", two-space indented, with a final newline. A distance that is the largest value (a
/// NaN) is null; bytes that are not UTF-8 are replaced; of absolute paths in the sources only the file name is kept.
/// "engine" has the versions "unicorn", "capstone" and "lief" and the processor "cpu". Where the emulator took part it
/// has "self_test", with how many "vectors" were run and how many of them the emulator answered "as_hardware", and
/// "quirks", the sorted names of what the others show (`bitwitness --self-test` explains them); "unknown: NAME" is a
/// vector that no known quirk accounts for.
/// Where routines ran in more than one environment, "environments" has one object for each such routine: its name and
/// address, "first_run" (index in "runs"), how many values were "run" and are "depending", and "table" with a row for
/// each run from there on: fpcw, mxcsr, name, group (the same letter for the same digest), agreed, differed (known ones
/// included), no_result, and how many values the environment has "changed".
std::string to_json(const Report& report);

/// Writes JUnit XML: one test case per routine and environment, with a failure when something differs and an error when
/// it was interrupted or compared nothing. A report without runs is one test case with an error.
std::string to_junit(const Report& report);

/// Writes the text a person reads: the image (and whether it is a stand-in), each run's counts, differences, failures
/// and notes, and the verdict as the last line. Each difference ends with a command that repeats just that value.
std::string to_text(const Report& report);

}  // namespace bitwitness
