#pragma once
#include "decoders/quat_family.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// A family of rules for three 15-bit components in three u16: seed 000's and seed 004's, and the near misses of other
/// executables with the same codec. Two of the words carry the omitted component's index in bit 15; the third is spare.
namespace bitwitness::decoders::quat48_family {

inline constexpr std::size_t packed_size = 6;
inline constexpr std::size_t word_count = 4;
inline constexpr int maximum = 32767;

/// What becomes of bit 15 of the word that carries no bit of the index.
enum class Spare : std::uint8_t {
  masked,     ///< it is ignored
  is_signed,  ///< the word is an i16 and not masked
  is_wide,    ///< the word is a u16 and not masked
  negates     ///< it is the sign of the rebuilt component
};

/// One member of the family.
struct Quat48Rule {
  quat_family::ComponentRule component;
  quat_family::RootRule root;
  Spare spare = Spare::masked;
  quat_family::Lanes lanes = quat_family::Lanes::insert;
  std::uint8_t low_word = 0;   ///< whose bit 15 is the index's low bit: 0, 1 or 2
  std::uint8_t high_word = 1;  ///< whose bit 15 is its high bit; another one
  bool operator==(const Quat48Rule&) const = default;
};

/// The rule of seed 000's executed unpack: the words of packed_quat48::decode.
inline constexpr Quat48Rule seed_rule{};

/// The rule of seed 004's section: the words of dunia_quat48::decode.
inline constexpr Quat48Rule dunia_rule{
    .component = {}, .root = {.negative = quat_family::Negative::nan}, .spare = Spare::is_signed};

/// Decodes 6 bytes into 4 words. Returns false, and leaves the words as they are, where the rule refuses the value.
bool decode(const Quat48Rule& rule, std::span<const std::byte> packed, std::span<std::uint32_t> words);

/// Returns every sensible rule, each once: those that give the same components for every code are one.
std::vector<Quat48Rule> enumerate();

/// Names a rule: "quat48/step_f32.3f3504f3.f32/masked/insert/index01/zero.minus_abc.f64".
std::string name_of(const Quat48Rule& rule);

/// Says in a sentence what a rule computes.
std::string sentence_of(const Quat48Rule& rule);

/// Writes 6 bytes whose squares leave next to nothing of 1 by a rule, with any index.
void draw_near_unit(const Quat48Rule& rule, std::uint64_t random, std::span<std::byte> packed);

}  // namespace bitwitness::decoders::quat48_family
