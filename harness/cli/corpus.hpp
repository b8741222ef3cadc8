#pragma once
#include "decoders/mab.hpp"
#include "decoders/rr_animation.hpp"
#include "decoders/sws_animation.hpp"
#include "decoders/track_kinds.hpp"
#include "harness/file_bytes.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace bitwitness::cli {

/// An object of an animation file. What it points to lives while its visitor is called.
using AnimationObject =
    std::variant<decoders::SwsAnimation, decoders::SwsAnimSet, decoders::RrAnimation, decoders::Mab>;

/// Bytes of a file that are no object.
struct FileRefusal {
  std::size_t file = 0;  ///< index into the list of files
  std::uint64_t offset = 0;
  std::string_view rule;  ///< the rule's name: "size word"
  std::string reason;     ///< what it demands, and what was found
};

/// What one thread does with what it meets.
class CorpusVisitor {
 public:
  CorpusVisitor() = default;
  CorpusVisitor(const CorpusVisitor&) = delete;
  CorpusVisitor& operator=(const CorpusVisitor&) = delete;
  virtual ~CorpusVisitor() = default;

  /// Takes an object and the bytes that it was read from.
  virtual void visit(const AnimationObject& object, std::span<const std::byte> bytes) = 0;

  /// Takes a refusal.
  virtual void refuse(FileRefusal refusal) = 0;

  /// Hands over what was gathered. Called once, in the visitor's thread, unless reading was given up with an error.
  virtual void finish() = 0;
};

struct CorpusProgress {
  std::size_t files = 0;  ///< done
  std::size_t of_files = 0;
  std::uint64_t bytes = 0;  ///< of the files done, and what is searched of those that are being scanned
};

struct CorpusOptions {
  std::optional<decoders::Game> format;  ///< guessed from a file's first bytes when not given
  bool scan = false;                     ///< a file that is not exactly one object is searched for objects
  unsigned jobs = 1;
  std::stop_token stop;
  std::function<void(const CorpusProgress&)> progress;  ///< called from one thread at a time, a few times a second
};

/// What reading went through.
struct CorpusSummary {
  std::size_t files = 0;     ///< read
  std::size_t not_read = 0;  ///< left, or left in the middle, after a stop request
  std::uint64_t bytes = 0;   ///< of the files read
  bool made = false;         ///< a file told that files with it are made from a seed; it counts in nothing above
  std::vector<UnreachablePath> unreachable;  ///< files that could not be opened, in the list's order
};

/// What reports say of files that are made from a seed.
inline constexpr std::string_view made_warning = "MADE from a seed, not a game's files";

/// Tells whether a file says that those around it are made: it opens with "bitwitness made corpus: " and has less than
/// 4 KiB. Made corpora (tests/fixtures/corpus) have one in each folder.
bool is_made_marker(std::span<const std::byte> bytes);

/// Returns the line that shows how far reading is: "12 of 2720 files, 34 MB".
std::string progress_text(const CorpusProgress& progress);

/// Reads "auto", "sws", "rr" or "mab". Throws Error.
std::optional<decoders::Game> parse_format(std::string_view text);

/// Reads files on several threads, each with a visitor of its own. A file is exactly one object, a chain of .mab clips,
/// each of them an object, or with `scan` any bytes with objects in them. Refused are: a file that is nothing of that;
/// a file opening as .mab that breaks its rules, scanned or not; with `scan` else what the scan refuses, or, where it
/// neither finds an object wanted nor refuses anything, what would be refused without. A stop request is looked at
/// between files and every few megabytes of a scan; objects visited before it stay visited. Throws what a visitor
/// throws.
CorpusSummary read_corpus(std::span<const std::string> files, const CorpusOptions& options,
                          const std::function<std::unique_ptr<CorpusVisitor>()>& make_visitor);

}  // namespace bitwitness::cli
