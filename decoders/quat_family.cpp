#include "decoders/quat_family.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <map>
#include <type_traits>

namespace bitwitness::decoders::quat_family {

namespace {

constexpr double sqrt_2 = 0x1.6a09e667f3bcdp+0;
constexpr double half_f64 = 0x1.6a09e667f3bcdp-1;
constexpr float half_below = std::bit_cast<float>(0x3F3504F3u);
constexpr float half_above = std::bit_cast<float>(0x3F3504F4u);

double half_range(Half half) {
  switch (half) {
    case Half::below:
      return half_below;
    case Half::above:
      return half_above;
    case Half::f64:
      break;
  }
  return half_f64;
}

/// Every operation below rounds to T once; `assumptions.hpp` makes sure of it.
template <typename T>
T component_in(const ComponentRule& rule, int maximum, int code) {
  const auto half = static_cast<T>(half_range(rule.half));
  const int centre = maximum / 2;
  const auto value = static_cast<T>(code);
  const auto centred = static_cast<T>(code - centre);
  switch (rule.scale) {
    case Scale::step_f32:
      return value * static_cast<T>(static_cast<float>(sqrt_2 / maximum)) - half;
    case Scale::step_f64:
      if constexpr (std::is_same_v<T, float>) return static_cast<float>(code * (sqrt_2 / maximum)) - half;
      return value * static_cast<T>(sqrt_2 / maximum) - half;
    case Scale::step_power:
      return value * static_cast<T>(static_cast<float>(sqrt_2 / (maximum + 1))) - half;
    case Scale::centred_quotient:
      return centred / static_cast<T>(centre) / (T{2} * half);
    case Scale::centred_product:
      return centred * static_cast<T>(T{1} / static_cast<T>(centre)) * half;
    case Scale::centred_power:
      return centred * (T{2} * half / static_cast<T>(maximum + 1));
    case Scale::exact:
      break;
  }
  return (value / static_cast<T>(maximum) * T{2} - T{1}) / (T{2} * half);
}

template <typename T>
T left_of_one(Sum sum, Widest wide_a, Widest wide_b, Widest wide_c) {
  const auto a = static_cast<T>(wide_a);
  const auto b = static_cast<T>(wide_b);
  const auto c = static_cast<T>(wide_c);
  switch (sum) {
    case Sum::minus_abc:
      return ((T{1} - a * a) - b * b) - c * c;
    case Sum::minus_cba:
      return ((T{1} - c * c) - b * b) - a * a;
    case Sum::of_abc:
      return T{1} - ((a * a + b * b) + c * c);
    case Sum::of_bca:
      return T{1} - ((b * b + c * c) + a * a);
    case Sum::of_acb:
      break;
  }
  return T{1} - ((a * a + c * c) + b * b);
}

template <typename T>
std::optional<std::uint32_t> root_of(const RootRule& rule, T left) {
  if (std::isnan(left)) return default_nan;
  switch (rule.negative) {
    case Negative::zero:
      if (!(left > T{0})) return 0;
      break;
    case Negative::nan:
      if (left < T{0}) return default_nan;
      break;
    case Negative::absolute:
      left = std::fabs(left);
      break;
    case Negative::refused:
      if (left < T{0}) return std::nullopt;
      break;
  }
  const T root = rule.root == Root::sqrt ? std::sqrt(left) : left * (T{1} / std::sqrt(left));
  return std::isnan(root) ? default_nan : std::bit_cast<std::uint32_t>(static_cast<float>(root));
}

template <typename T>
std::optional<std::uint32_t> rebuild_in(const RootRule& rule, Widest a, Widest b, Widest c) {
  const T left = left_of_one<T>(rule.sum, a, b, c);
  return rule.narrowed ? root_of(rule, static_cast<float>(left)) : root_of(rule, left);
}

/// Tells whether a rule's constants exist in its width: a double for H has no place in f32 steps.
bool is_sensible(const ComponentRule& rule) {
  if (rule.width == Width::x87 && !has_x87) return false;
  return rule.width != Width::f32 || (rule.half != Half::f64 && !rule.kept);
}

bool is_same(const ComponentRule& a, const ComponentRule& b, int maximum, int low, int high) {
  for (int code = low; code <= high; ++code) {
    if (component(a, maximum, code) != component(b, maximum, code)) return false;
  }
  return true;
}

/// Sums up a rule's components. Rules with other sums differ; equal sums are looked into.
std::uint64_t sum_of(const ComponentRule& rule, int maximum, int low, int high) {
  constexpr std::uint64_t multiplier = 0x9E3779B97F4A7C15u;
  std::uint64_t sum = 0;
  for (int code = low; code <= high; ++code) {
    const Widest value = component(rule, maximum, code);
    const auto most = static_cast<double>(value);
    const auto rest = static_cast<double>(value - static_cast<Widest>(most));
    sum = (sum ^ std::bit_cast<std::uint64_t>(most)) * multiplier;
    sum = (sum ^ std::bit_cast<std::uint64_t>(rest)) * multiplier;
  }
  return sum;
}

}  // namespace

Widest component(const ComponentRule& rule, int maximum, int code) {
  Widest wide = 0;
  switch (rule.width) {
    case Width::f32:
      return static_cast<Widest>(component_in<float>(rule, maximum, code));
    case Width::f64:
      wide = static_cast<Widest>(component_in<double>(rule, maximum, code));
      break;
    case Width::x87:
      wide = component_in<Widest>(rule, maximum, code);
      break;
  }
  return rule.kept ? wide : static_cast<Widest>(static_cast<float>(wide));
}

std::optional<std::uint32_t> rebuild(const RootRule& rule, Widest a, Widest b, Widest c) {
  switch (rule.width) {
    case Width::f32:
      return rebuild_in<float>(rule, a, b, c);
    case Width::f64:
      return rebuild_in<double>(rule, a, b, c);
    case Width::x87:
      break;
  }
  return rebuild_in<Widest>(rule, a, b, c);
}

void place(std::span<std::uint32_t> words, Lanes lanes, unsigned index, std::uint32_t omitted,
           const std::array<std::uint32_t, 3>& kept) {
  words[index] = omitted;
  for (unsigned i = 0; i < kept.size(); ++i) {
    const unsigned lane = lanes == Lanes::insert ? i + static_cast<unsigned>(i >= index) : (index + 1 + i) & 3;
    words[lane] = kept[i];
  }
}

std::uint32_t word_of(Widest component) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(component));
}

std::vector<ComponentRule> distinct_components(int maximum, int low, int high) {
  std::vector<ComponentRule> rules;
  std::multimap<std::uint64_t, ComponentRule> by_sum;
  const auto add = [&](const ComponentRule& rule) {
    if (!is_sensible(rule)) return;
    const std::uint64_t sum = sum_of(rule, maximum, low, high);
    const auto [first, last] = by_sum.equal_range(sum);
    // The rules added first, narrowed ones of f32 and f64, are rebuilt in every way that later ones are.
    const bool known = std::any_of(first, last, [&](const auto& entry) {
      const ComponentRule& other = entry.second;
      const bool covers = other.width == rule.width || (!other.kept && other.width != Width::x87);
      return covers && is_same(other, rule, maximum, low, high);
    });
    if (known) return;
    by_sum.emplace(sum, rule);
    rules.push_back(rule);
  };
  for (const bool kept : {false, true}) {
    for (const Width width : {Width::f32, Width::f64, Width::x87}) {
      for (const Scale scale : {Scale::step_f32, Scale::step_f64, Scale::step_power, Scale::centred_quotient,
                                Scale::centred_product, Scale::centred_power, Scale::exact}) {
        for (const Half half : {Half::below, Half::above, Half::f64}) add({scale, half, width, kept});
      }
    }
  }
  return rules;
}

bool sums_exactly(const ComponentRule& rule, int maximum, int low, int high) {
  // Squares are multiples of 2^-50 and sums of them stay below 8: 53 bits.
  constexpr Widest grains = 1 << 25;
  for (int code = low; code <= high; ++code) {
    const Widest value = component(rule, maximum, code) * grains;
    if (std::trunc(value) != value) return false;
  }
  return true;
}

std::vector<RootRule> roots_for(const ComponentRule& rule, bool exact) {
  std::vector<RootRule> roots;
  const auto add = [&roots](Width width, bool narrowed, Sum sum, Root root) {
    for (const Negative negative : {Negative::zero, Negative::nan, Negative::absolute, Negative::refused}) {
      roots.push_back({width, narrowed, sum, negative, root});
    }
  };
  constexpr std::array sums = {Sum::minus_abc, Sum::minus_cba, Sum::of_abc, Sum::of_bca, Sum::of_acb};
  // In f64 x·(1/sqrt(x)) and the root differ by less than an f32 can show.
  for (const Sum sum : sums) {
    if (rule.width == Width::x87) break;
    if (!exact || sum == Sum::minus_abc) {
      add(Width::f64, false, sum, Root::sqrt);
      add(Width::f64, true, sum, Root::sqrt);
      add(Width::f64, true, sum, Root::reciprocal);
    }
    if (rule.kept) continue;
    add(Width::f32, false, sum, Root::sqrt);
    add(Width::f32, false, sum, Root::reciprocal);
  }
  if (has_x87 && !exact && !(rule.kept && rule.width == Width::f64)) add(Width::x87, false, Sum::minus_abc, Root::sqrt);
  return roots;
}

std::array<std::uint16_t, 3> codes_near_unit(const ComponentRule& rule, int maximum, std::uint64_t random) {
  constexpr int tries = 48;  // of second codes, for the smallest rest
  const auto value_of = [&](int code) { return static_cast<double>(component(rule, maximum, code)); };
  const double least = value_of(0);
  const double range = value_of(maximum) - least;
  const auto code_of = [&](double value) {
    const double code = (value - least) / range * maximum;
    return std::clamp(static_cast<int>(value < 0.0 ? std::ceil(code) : std::floor(code)), 0, maximum);
  };
  const auto part = [&random](unsigned bits) {
    const std::uint64_t taken = random & ((std::uint64_t{1} << bits) - 1);
    random >>= bits;
    return static_cast<double>(taken) / static_cast<double>(std::uint64_t{1} << bits);
  };
  const int first = static_cast<int>(part(20) * (maximum + 1));
  const double a = value_of(first);
  // The second is chosen so that the third need not exceed its range.
  const double lowest = std::sqrt(std::max(0.0, 0.5 - a * a));
  const double start = (lowest + part(20) * (half_f64 - lowest)) * (part(1) < 0.5 ? 1.0 : -1.0);
  const double sign = part(1) < 0.5 ? 1.0 : -1.0;
  std::array<int, 3> best = {first, code_of(start), 0};
  double smallest = 2.0;
  for (int i = 0; i < tries; ++i) {
    const int second = (code_of(start) + i) % (maximum + 1);
    const double b = value_of(second);
    const int third = code_of(sign * std::sqrt(std::max(0.0, 1.0 - a * a - b * b)));
    const double c = value_of(third);
    const double rest = 1.0 - a * a - b * b - c * c;
    if (!(rest > 0.0 && rest < smallest)) continue;
    smallest = rest;
    best = {first, second, third};
  }
  // Any of the three may be the one that was solved for.
  std::rotate(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(part(10) * 3.0), best.end());
  return {static_cast<std::uint16_t>(best[0]), static_cast<std::uint16_t>(best[1]),
          static_cast<std::uint16_t>(best[2])};
}

}  // namespace bitwitness::decoders::quat_family
