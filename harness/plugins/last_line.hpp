#pragma once
#include "harness/plugins/child_process.hpp"

#include <cstddef>
#include <string>

// Inside of harness/plugins/ only.

namespace bitwitness::plugins {

/// Reads what a process says on its standard error and keeps the last line of it.
class LastLine {
 public:
  LastLine() = default;
  explicit LastLine(Descriptor from);

  /// Descriptor to wait for; -1 when nothing more comes.
  [[nodiscard]] int descriptor() const { return from_.get(); }

  /// Takes what is there without waiting.
  void read();

  /// Returns "; its last line: …", nothing when it said nothing.
  std::string clause();

 private:
  void take(std::string_view text);

  Descriptor from_;
  std::string line_;  ///< the one that is being written
  std::string last_;  ///< the last one that is not blank
};

}  // namespace bitwitness::plugins
