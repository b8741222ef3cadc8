#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace bitwitness {

/// A run of bits in a packed value, which is read as one little-endian integer: bit 0 is the low bit of the first byte.
struct BitField {
  std::string name;
  unsigned offset = 0;
  unsigned width = 0;
};

/// How the bits of an output word are to be shown. Words are compared as bits whatever this says.
enum class WordKind : std::uint8_t { f32, i32, u32 };

/// A native decoder under examination, as the harness knows one: bytes in, words out.
struct Subject {
  std::string name;
  std::size_t packed_size = 0;          ///< bytes
  std::vector<std::string> word_names;  ///< one per output word, e.g. "x", "y", "z", "w"
  std::vector<BitField> fields;         ///< cover every bit of the packed value, in rising order
  WordKind word_kind = WordKind::f32;
  /// Decodes one packed value. Called from several threads at once; never throws.
  std::function<void(std::span<const std::byte> packed, std::span<std::uint32_t> words)> decode;
};

}  // namespace bitwitness
