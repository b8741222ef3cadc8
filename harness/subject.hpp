#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
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

/// A decoder under examination, as the harness knows one: bytes in, words out.
struct Subject {
  std::string name;
  std::size_t packed_size = 0;          ///< bytes
  std::vector<std::string> word_names;  ///< one per output word, e.g. "x", "y", "z", "w"
  std::vector<BitField> fields;         ///< cover every bit of the packed value, in rising order
  WordKind word_kind = WordKind::f32;
  /// Decodes one packed value. Called from several threads at once; never throws, unless there is a `decode_batch`.
  std::function<void(std::span<const std::byte> packed, std::span<std::uint32_t> words)> decode;

  // Of a decoder outside of this program (harness/plugins/) only.

  /// Decodes any number of packed values; set when that is to be called instead of `decode`. Called from several
  /// threads at once. Returns false when a stop was requested meanwhile: the words are then unspecified. Throws Error
  /// when the decoder does not do its part; what was compared before proves nothing then.
  std::function<bool(std::span<const std::byte> packed, std::span<std::uint32_t> words, const std::stop_token& stop)>
      decode_batch;
  /// Ends the decoder's processes after the last value of a run, with no call under way; the next call starts new ones.
  /// Throws Error when they do not end as they should, which a run must report. May be empty.
  std::function<void()> finish;
  std::string option;              ///< what names it on the command line, where that is not its name
  std::vector<std::string> notes;  ///< what reports say of it
};

}  // namespace bitwitness
