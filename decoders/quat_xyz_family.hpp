#pragma once
#include "decoders/quat_family.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

/// A family of rules for three f32 and an omitted component: seed 000's, whose omitted one is always w, and what a
/// sister title suggests: the omitted one's index in the lowest mantissa bits of the first two.
namespace bitwitness::decoders::quat_xyz_family {

inline constexpr std::size_t packed_size = 12;
inline constexpr std::size_t word_count = 4;

/// Which component is omitted.
enum class Index : std::uint8_t {
  always_w,   ///< the fourth
  low_first,  ///< the first float's lowest bit is the index's low bit, the second's its high bit
  high_first  ///< the other way round
};

/// One member of the family.
struct QuatXyzRule {
  quat_family::RootRule root;
  Index index = Index::always_w;
  bool cleared = false;  ///< the bits of the index are cleared in the floats; always false without an index
  quat_family::Lanes lanes = quat_family::Lanes::insert;
  bool operator==(const QuatXyzRule&) const = default;
};

/// The rule of quat_xyz::decode, on finite numbers.
inline constexpr QuatXyzRule seed_rule{};

/// Decodes 12 bytes into 4 words. Returns false, and leaves the words as they are, where the rule refuses the value.
/// A component that is not a number gives the default NaN.
bool decode(const QuatXyzRule& rule, std::span<const std::byte> packed, std::span<std::uint32_t> words);

/// Returns every sensible rule.
std::vector<QuatXyzRule> enumerate();

/// Names a rule: "quat_xyz/always_w/insert/zero.minus_abc.f64".
std::string name_of(const QuatXyzRule& rule);

/// Says in a sentence what a rule computes.
std::string sentence_of(const QuatXyzRule& rule);

/// Writes 12 bytes: three numbers of -1 … 1 with any lowest bits.
void draw_finite(std::uint64_t random, std::span<std::byte> packed);

/// Writes 12 bytes: three such numbers whose squares add up to nearly 1, whatever the rule.
void draw_near_unit(const QuatXyzRule& rule, std::uint64_t random, std::span<std::byte> packed);

}  // namespace bitwitness::decoders::quat_xyz_family
