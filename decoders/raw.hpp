#pragma once
#include "decoders/bytes.hpp"
#include "decoders/registry.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

/// Passes on the bytes of track kinds whose meaning is unknown: little-endian words, a last one of 1 or 2 bytes widened
/// with zeros. Nothing is decoded. Source: seed 000, Track blocks and Shaun White Skateboarding.
namespace bitwitness::decoders::raw {

/// Copies `Bytes` bytes into words of up to 4 bytes.
template <std::size_t Bytes>
constexpr void decode(std::span<const std::byte> packed, std::span<std::uint32_t> words) {
  static_assert(Bytes <= 2 || Bytes % 4 == 0);
  if constexpr (Bytes == 1) {
    words[0] = std::to_integer<std::uint32_t>(packed[0]);
  } else if constexpr (Bytes == 2) {
    words[0] = load_u16(packed, 0);
  } else {
    for (std::size_t word = 0; word < Bytes / 4; ++word) words[word] = load_u32(packed, 4 * word);
  }
}

inline constexpr std::array<std::string_view, 3> word_names{"word0", "word1", "word2"};
inline constexpr std::array<Field, 3> fields{{{"word0", 0, 32}, {"word1", 32, 32}, {"word2", 64, 32}}};
inline constexpr std::array<Field, 1> byte_fields{{{"word0", 0, 8}}};
inline constexpr std::array<Field, 1> short_fields{{{"word0", 0, 16}}};

/// Describes the pass of a kind of `Bytes` bytes a value.
template <std::size_t Bytes>
constexpr Decoder row(std::string_view name, Word word, std::string_view summary) {
  constexpr std::size_t words = (Bytes + 3) / 4;
  Decoder decoder{name,          Bytes,  std::span(word_names).first(words), word, std::span(fields).first(words),
                  decode<Bytes>, summary};
  if constexpr (Bytes == 1) decoder.fields = byte_fields;
  if constexpr (Bytes == 2) decoder.fields = short_fields;
  return decoder;
}

/// Every pass, by name: game and kind.
inline constexpr std::array<Decoder, 10> rows{
    row<1>("raw_rr_16", Word::u32,
           "Riders Republic kind 16, not decoded: one byte; its meaning is unknown (seed 000)."),
    row<2>("raw_rr_17", Word::u32, "Riders Republic kind 17, not decoded: one u16; its meaning is unknown (seed 000)."),
    row<1>("raw_rr_18", Word::u32,
           "Riders Republic kind 18, not decoded: one byte; its meaning is unknown (seed 000)."),
    row<4>("raw_rr_21", Word::u32,
           "Riders Republic kind 21, not decoded: four bytes of tracks that map to no bone; unknown (seed 000)."),
    row<4>("raw_rr_22", Word::u32,
           "Riders Republic kind 22, not decoded: four bytes of tracks that map to no bone; unknown (seed 000)."),
    row<8>("raw_rr_25", Word::u32,
           "Riders Republic kind 25, not decoded: eight bytes, seen on eight tracks; packing unknown (seed 000)."),
    row<4>(
        "raw_sws_10", Word::f32,
        "Shaun White Skateboarding kind 10, not decoded: one f32 of tracks that map to no bone; unknown (seed 000)."),
    row<1>(
        "raw_sws_11", Word::u32,
        "Shaun White Skateboarding kind 11, not decoded: one byte of tracks that map to no bone; unknown (seed 000)."),
    row<1>(
        "raw_sws_17", Word::u32,
        "Shaun White Skateboarding kind 17, not decoded: one byte of tracks that map to no bone; unknown (seed 000)."),
    row<12>("raw_sws_7", Word::f32,
            "Shaun White Skateboarding kind 7, not decoded: three f32 on a few bones, no unit quaternion's x y z; "
            "unknown (seed 000)."),
};

}  // namespace bitwitness::decoders::raw
