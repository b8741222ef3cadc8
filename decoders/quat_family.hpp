#pragma once
#include "decoders/assumptions.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// What the families of smallest-three quaternion rules share: how a code becomes a component, how the omitted
/// component is rebuilt, and where the four words go. Each member is one way in which executables of one codec family
/// are known to differ; the seeds' rules are members among others.
namespace bitwitness::decoders::quat_family {

/// The widest format in which components are held: it carries every f32, f64 and 64-bit x87 value exactly.
using Widest = long double;

/// Tells whether `Widest` is the x87 format, whose 64-bit significand the rules of that width need.
inline constexpr bool has_x87 = std::numeric_limits<Widest>::digits == 64;

/// The format to which every single operation rounds.
enum class Width : std::uint8_t { f32, f64, x87 };

/// How a code becomes a component, for codes up to a maximum M and a half range H, which is 1/sqrt(2).
enum class Scale : std::uint8_t {
  step_f32,          ///< v·C − H, C the f32 nearest sqrt(2)/M
  step_f64,          ///< the same with C in double; at width f32 the product is taken in double and rounded
  step_power,        ///< the same with C the f32 nearest sqrt(2)/(M + 1)
  centred_quotient,  ///< (v − M/2) / (M/2) / sqrt(2)
  centred_product,   ///< (v − M/2) · (1/(M/2)) · H
  centred_power,     ///< (v − M/2) · (sqrt(2)/(M + 1))
  exact              ///< (v / M · 2 − 1) / sqrt(2)
};

/// Which constant stands for H; sqrt(2) is the same constant doubled.
enum class Half : std::uint8_t {
  below,  ///< the f32 0x3F3504F3
  above,  ///< the f32 0x3F3504F4, to which the literal 0.7071068f rounds
  f64     ///< the double nearest 1/sqrt(2)
};

/// How a code becomes a component. A component that is not `kept` is rounded to f32 before it is squared.
struct ComponentRule {
  Scale scale = Scale::step_f32;
  Half half = Half::below;
  Width width = Width::f32;
  bool kept = false;
  bool operator==(const ComponentRule&) const = default;
};

/// In which order the squares leave 1.
enum class Sum : std::uint8_t {
  minus_abc,  ///< ((1 − aa) − bb) − cc
  minus_cba,  ///< ((1 − cc) − bb) − aa
  of_abc,     ///< 1 − ((aa + bb) + cc)
  of_bca,     ///< 1 − ((bb + cc) + aa)
  of_acb      ///< 1 − ((aa + cc) + bb)
};

/// What happens when the squares exceed 1.
enum class Negative : std::uint8_t {
  zero,      ///< the omitted component is 0
  nan,       ///< its root is taken all the same: the default NaN of x86
  absolute,  ///< the root of the absolute value is taken
  refused    ///< the value gives no result
};

enum class Root : std::uint8_t {
  sqrt,       ///< the square root
  reciprocal  ///< x · (1 / sqrt(x))
};

/// How the omitted component is rebuilt.
struct RootRule {
  Width width = Width::f64;
  bool narrowed = false;  ///< what is left of 1 is rounded to f32 and its root taken in f32
  Sum sum = Sum::minus_abc;
  Negative negative = Negative::zero;
  Root root = Root::sqrt;
  bool operator==(const RootRule&) const = default;
};

/// Where the omitted component's index puts the four words.
enum class Lanes : std::uint8_t {
  insert,  ///< the kept ones stay in component order
  rotate   ///< the kept ones follow the omitted one, cyclically
};

/// What an x86 CPU gives for the root of a negative number, narrowed to f32.
inline constexpr std::uint32_t default_nan = 0xFFC00000u;

/// Turns a code into a component of `maximum` (32767 or 1023), rounded to f32 unless the rule keeps it.
Widest component(const ComponentRule& rule, int maximum, int code);

/// Rebuilds the omitted component from the kept ones: its f32 bits, or nothing where the rule refuses the value.
std::optional<std::uint32_t> rebuild(const RootRule& rule, Widest a, Widest b, Widest c);

/// Writes four words: `omitted` at the lane of its index 0 … 3, the kept ones where the rule says.
void place(std::span<std::uint32_t> words, Lanes lanes, unsigned index, std::uint32_t omitted,
           const std::array<std::uint32_t, 3>& kept);

/// Returns the f32 bits of a component.
std::uint32_t word_of(Widest component);

/// Returns every sensible component rule that is a function of its own on the codes `low` … `high`: of rules that give
/// every code the same component, the first.
std::vector<ComponentRule> distinct_components(int maximum, int low, int high);

/// Tells whether 1 − aa − bb − cc loses nothing in f64, whatever its order: every component of the codes `low` … `high`
/// is a multiple of 2^-25, as the seed's are. Then wider arithmetic gives the same as well.
bool sums_exactly(const ComponentRule& rule, int maximum, int low, int high);

/// Returns every sensible way of rebuilding from components of such a rule; `exact` when they sum exactly. In 64-bit
/// x87 precision the order of the sum is left out: values that tell it are too rare to find.
std::vector<RootRule> roots_for(const ComponentRule& rule, bool exact);

/// Name parts joined with dots, for example "step_f32.3f3504f3.f32".
std::string name_of(const ComponentRule& rule);
std::string name_of(const RootRule& rule);
std::string_view name_of(Lanes lanes);

/// Clauses of a sentence, for example "v * f32(sqrt2/32767) - 3f3504f3, every step rounded to f32".
std::string sentence_of(const ComponentRule& rule, int maximum);
std::string sentence_of(const RootRule& rule, bool exact);
std::string_view sentence_of(Lanes lanes);

/// Returns codes a, b, c of components whose squares leave next to nothing of 1, where ways of rebuilding differ most.
/// `random` is any number; equal numbers give equal codes.
std::array<std::uint16_t, 3> codes_near_unit(const ComponentRule& rule, int maximum, std::uint64_t random);

}  // namespace bitwitness::decoders::quat_family
