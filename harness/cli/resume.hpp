#pragma once
#include "harness/cli/options.hpp"
#include "harness/image.hpp"
#include "harness/resume_file.hpp"
#include "harness/subject.hpp"
#include "harness/values.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

// What --resume FILE does for a command that runs routines.

namespace bitwitness::cli {

/// One routine of a command, with all that its result depends on.
struct ResumedRoutine {
  const Routine& routine;
  const Subject& subject;
  const ValueSet& values;
};

/// Returns what the results of a command's runs depend on: this program and its libraries, the image and what stands
/// around it, routines, decoders, values, environments and settings. Reads the files that are told by their SHA-256.
RunFingerprint fingerprint_of(const Image& image, const ImageArguments& arguments, const RunSettings& settings,
                              std::span<const Environment> environments, std::span<const ResumedRoutine> routines);

/// Keeps the runs of a command in a file: soon after they began, then about every half minute, and when they end. Says
/// on standard error what it goes on with. Used by one thread at a time.
class Resumption {
 public:
  /// Opens the file. Throws Error that names the option and the file, as all of these do.
  explicit Resumption(const std::string& path);

  /// Reads what is kept of these runs.
  void begin(const RunFingerprint& fingerprint, std::span<const ResumedRoutine> routines, std::size_t environments,
             std::size_t limit);

  /// Returns what run_witness_environments is to be told of a routine's run.
  RunKeeping& keeping(std::size_t run) { return runs_[run].keeping; }

  /// Returns how many values of a routine were done before; in every environment.
  [[nodiscard]] std::uint64_t done_before(std::size_t run) const { return runs_[run].done_before; }

  /// Says how to go on when the runs were interrupted. Throws what went wrong when the file was last written.
  void end() const;

 private:
  struct Run {
    RunKeeping keeping;
    std::uint64_t values = 0;
    std::uint64_t done_before = 0;
    std::uint64_t done = 0;
    bool is_complete = false;
  };

  void keep(std::size_t run, const RunState& state);
  [[nodiscard]] std::string done_text(std::uint64_t Run::*done) const;
  [[nodiscard]] bool is_complete() const;

  std::unique_ptr<ResumeFile> file_;
  std::deque<Run> runs_;
  std::exception_ptr failure_;  // of the last attempt to write
  std::chrono::steady_clock::duration pause_;
  std::chrono::steady_clock::time_point due_;
};

}  // namespace bitwitness::cli
