#pragma once
#include "harness/image.hpp"
#include "harness/probe/location.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

// What one pass over an image's bytes tells, before anything is disassembled. For the location module only.

namespace bitwitness::location {

/// Bytes of a segment that the file's headers give it.
std::span<const std::byte> used_bytes(const Segment& segment);

/// Segments whose distance from the image's base fits 32 bits: all of the file's own.
std::vector<const Segment*> near_segments(const Image& image);

/// Tells whether an address lies in the used part of executable memory.
bool is_code(const Image& image, std::uint64_t address);

/// Reads a 32-bit word at an offset.
inline std::uint32_t word_at(std::span<const std::byte> bytes, std::size_t offset) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes.data() + offset, sizeof word);
  return word;
}

/// 32-bit words to look for at every byte, each with numbers of the caller's.
class WordTable {
 public:
  WordTable() : low_halves_(0x10000) {}

  void add(std::uint32_t word, std::uint32_t number);

  /// Sorts what was added; before it nothing is found.
  void finish();

  [[nodiscard]] bool empty() const { return rows_.empty(); }

  /// Calls `found(offset, number)` for each word that stands in the bytes. With `origin`, words are distances from the
  /// address behind them: `origin` is the low half of the address of the first byte.
  template <class Found>
  void search(std::span<const std::byte> bytes, std::optional<std::uint32_t> origin, const Found& found) const {
    if (rows_.empty() || bytes.size() < 4) return;
    const std::uint32_t step = origin ? 1 : 0;
    std::uint32_t shift = origin ? *origin + 4 : 0;
    for (std::size_t offset = 0; offset + 4 <= bytes.size(); ++offset, shift += step) {
      const std::uint32_t word = word_at(bytes, offset) + shift;
      if (low_halves_[word & 0xffff] == 0) continue;
      for (const Row& row : rows_of(word)) found(offset, row.number);
    }
  }

 private:
  struct Row {
    std::uint32_t word = 0;
    std::uint32_t number = 0;
  };
  [[nodiscard]] std::span<const Row> rows_of(std::uint32_t word) const;

  std::vector<std::uint8_t> low_halves_;
  std::vector<Row> rows_;
};

/// A direct call or jump, or what decodes as one: addresses relative to the image's base.
struct DirectJump {
  std::uint32_t target = 0;
  std::uint32_t site = 0;
  bool is_call = true;
};

/// A pointer to code that stands in data.
struct CodePointer {
  std::uint32_t target = 0;
  std::uint32_t slot = 0;
};

/// What code refers to code: every E8 and E9 whose target is code, every aligned pointer to code in data, and the
/// function table of 64-bit images. Found without disassembling, so that a few rows are no code.
class CodeMap {
 public:
  explicit CodeMap(const Image& image);

  [[nodiscard]] const Image& image() const { return image_; }
  [[nodiscard]] std::uint64_t code_bytes() const { return code_bytes_; }

  /// Tells whether there were more calls or pointers than are kept.
  [[nodiscard]] bool is_cut() const { return is_cut_; }

  /// Rows whose target lies in [first, last], by rising target.
  [[nodiscard]] std::span<const DirectJump> jumps_to(std::uint64_t first, std::uint64_t last) const;
  [[nodiscard]] std::span<const CodePointer> pointers_to(std::uint64_t first, std::uint64_t last) const;

  /// Starts of functions in [first, last] that the image's function table names.
  [[nodiscard]] std::span<const std::uint32_t> listed_starts(std::uint64_t first, std::uint64_t last) const;

 private:
  void sweep_code(const Segment& segment);
  void sweep_pointers(const Segment& segment);
  void read_function_table(const Segment& segment);

  const Image& image_;
  std::uint64_t code_bytes_ = 0;
  bool is_cut_ = false;
  std::vector<DirectJump> jumps_;
  std::vector<CodePointer> pointers_;
  std::vector<std::uint32_t> listed_;
};

/// A place in code that may refer to a constant or hold it.
struct Reference {
  std::size_t constant = 0;                ///< index
  std::uint64_t position = 0;              ///< address of the operand's bytes
  std::optional<std::uint64_t> stored_at;  ///< where the constant lies; nothing for an immediate
};

/// Most references that are kept, far above what an executable has: bytes that are all alike must not take all memory.
inline constexpr std::size_t most_references = std::size_t{1} << 22;

/// Returns the places in code whose bytes may refer to one of the constants, by rising position, at most
/// most_references.
std::vector<Reference> find_references(const Image& image, std::span<const KnownConstant> constants);

}  // namespace bitwitness::location
