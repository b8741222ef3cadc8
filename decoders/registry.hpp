#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace bitwitness::decoders {

/// A run of bits of a packed value read as one little-endian integer: bit 0 is the low bit of the first byte.
struct Field {
  std::string_view name;
  unsigned offset = 0;  ///< bits
  unsigned width = 0;   ///< bits
};

/// How an output word is to be read.
enum class Word : std::uint8_t { f32, i32, u32 };

/// Decodes one packed value into its words. Total: any bytes decode; never throws.
using Decode = void (*)(std::span<const std::byte> packed, std::span<std::uint32_t> words);

/// One native decoder.
struct Decoder {
  std::string_view name;
  std::size_t packed_size = 0;                   ///< bytes of one packed value
  std::span<const std::string_view> word_names;  ///< one per output word
  Word word = Word::f32;
  std::span<const Field> fields;  ///< cover every bit, in rising order
  Decode decode = nullptr;
  std::string_view summary;  ///< one sentence: what is decoded, and what is proven, observed or assumed
};

/// Every decoder, by name.
std::span<const Decoder> registry();

/// Returns the decoder of that name, or null.
const Decoder* find_decoder(std::string_view name);

}  // namespace bitwitness::decoders
