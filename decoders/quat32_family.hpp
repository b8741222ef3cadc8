#pragma once
#include "decoders/quat_family.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// A family of rules for three 10-bit components and an index in one little-endian u32: seed 000's kind 3, and what a
/// sister title suggests of it: a step of sqrt(2)/1024, other places of the index.
namespace bitwitness::decoders::quat32_family {

inline constexpr std::size_t packed_size = 4;
inline constexpr std::size_t word_count = 4;
inline constexpr int maximum = 1023;

/// One member of the family.
struct Quat32Rule {
  quat_family::ComponentRule component;
  quat_family::RootRule root;
  quat_family::Lanes lanes = quat_family::Lanes::insert;
  bool index_on_top = true;  ///< the index lies in bits 30 and 31 and the components below, or in bits 0 and 1
  bool a_on_top = true;      ///< the first component is the highest of the three
  bool operator==(const Quat32Rule&) const = default;
};

/// The rule of packed_quat32::decode.
inline constexpr Quat32Rule seed_rule{};

/// Decodes 4 bytes into 4 words. Returns false, and leaves the words as they are, where the rule refuses the value.
bool decode(const Quat32Rule& rule, std::span<const std::byte> packed, std::span<std::uint32_t> words);

/// Returns every sensible rule, each once.
std::vector<Quat32Rule> enumerate();

/// Names a rule: "quat32/step_f32.3f3504f3.f32/insert/index30/cba/zero.minus_abc.f64".
std::string name_of(const Quat32Rule& rule);

/// Says in a sentence what a rule computes.
std::string sentence_of(const Quat32Rule& rule);

/// Writes 4 bytes whose squares leave next to nothing of 1 by a rule, with any index.
void draw_near_unit(const Quat32Rule& rule, std::uint64_t random, std::span<std::byte> packed);

}  // namespace bitwitness::decoders::quat32_family
