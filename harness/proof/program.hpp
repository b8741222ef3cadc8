#pragma once
#include "harness/image.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bitwitness::proof {

/// Bytes that are mapped before a call. They must outlive the Program.
struct ProgramRange {
  std::uint64_t address = 0;
  std::span<const std::byte> bytes;
  bool writable = false;
  std::string name;  ///< of a section, for messages
};

/// A place that holds the address of a function of another library.
struct ProgramImport {
  std::uint64_t slot = 0;
  std::string name;  ///< "KERNEL32.dll!Sleep"
};

/// What a routine is lifted from: an image, or this process's own code mapped in any way.
struct Program {
  bool is_64_bit = false;
  std::vector<ProgramRange> ranges;  ///< by rising address, apart from each other
  std::vector<ProgramImport> imports;

  /// Returns the range that holds an address, or null.
  [[nodiscard]] const ProgramRange* find(std::uint64_t address) const;
};

/// The image as a program; it must outlive the program.
Program program_of(const Image& image);

}  // namespace bitwitness::proof
