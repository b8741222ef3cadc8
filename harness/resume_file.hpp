#pragma once
#include "harness/run_state.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bitwitness {

/// What the result of some runs depends on: names and texts, in order.
using RunFingerprint = std::vector<std::pair<std::string, std::string>>;

/// The file that keeps the states of one command's runs (vectors/README.md has the format), which no other process
/// uses meanwhile. Every message of an Error begins with the path.
class ResumeFile {
 public:
  /// Opens a file, or makes an empty one, and locks it. Throws Error when it is no regular file, cannot be read and
  /// written, or another process has it.
  explicit ResumeFile(std::string path);

  /// Unlocks the file, and removes it when it was made here and nothing was kept.
  ~ResumeFile();
  ResumeFile(const ResumeFile&) = delete;
  ResumeFile& operator=(const ResumeFile&) = delete;

  /// Reads what an earlier command has kept and returns whether there was anything: an empty file has nothing. Throws
  /// Error with the offset for a file that is damaged, foreign or of another version, and with what differs for one of
  /// runs with another fingerprint.
  bool load(const RunFingerprint& fingerprint, std::size_t runs);

  /// Returns the state of a run that was loaded.
  [[nodiscard]] RunState state(std::size_t run, const RunStateShape& shape) const;

  /// Sets a run's state and writes the file: a reader sees the old one or the new one, also when the system stops.
  /// Throws Error when it cannot be written; then the old one is still there.
  void keep(std::size_t run, const RunState& state);

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  void require_bounded(std::span<const std::byte> bytes, std::size_t runs) const;
  void write();

  std::string path_;        // as given
  std::string final_path_;  // behind links
  int file_ = -1;
  bool is_made_ = false;  // by this object, and still empty
  std::string header_;
  std::vector<std::string> runs_;       // as bytes; empty where nothing is kept
  std::vector<std::uint64_t> offsets_;  // of the runs loaded
};

}  // namespace bitwitness
