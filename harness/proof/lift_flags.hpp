#pragma once
#include "harness/proof/expression.hpp"

#include <array>
#include <cstdint>
#include <string>

namespace bitwitness::proof {

enum class Flag : std::uint8_t { carry, parity, adjust, zero, sign, overflow };
inline constexpr std::size_t flag_count = 6;

/// Conditions as instructions encode them: o no b ae e ne be a s ns p np l ge le g.
enum class Condition : std::uint8_t { o, no, b, ae, e, ne, be, a, s, ns, p, np, l, ge, le, g };

/// The status flags. What instructions leave in them becomes expressions only where something asks.
class Flags {
 public:
  /// As x + y = result, or x - y, leaves them; `keep_carry` as inc and dec do.
  void set_sum(NodeId x, NodeId y, NodeId result, bool keep_carry = false);
  void set_difference(NodeId x, NodeId y, NodeId result, bool keep_carry = false);
  /// Zero, sign and parity of a result; carry and overflow clear.
  void set_logic(NodeId result);
  /// Zero, sign and parity alone.
  void set_result(NodeId result);
  void set(Flag flag, NodeId bit);
  void set_undefined(Flag flag, const std::string& why);
  void set_all_undefined(const std::string& why);
  /// As comiss and fcomi leave them.
  void set_comparison(Store& store, NodeId x, NodeId y, const FloatMode& mode);

  NodeId get(Store& store, Flag flag);
  NodeId condition(Store& store, Condition condition);

 private:
  struct Recipe {
    enum class From : std::uint8_t { node, undefined, clear, result, sum, difference };
    From from = From::undefined;
    NodeId x = 0;
    NodeId y = 0;
    NodeId result = 0;  // or the node itself
    std::string why = "flags at entry";
  };
  enum class Compared : std::uint8_t { nothing, integers, floats };

  NodeId make(Store& store, Flag flag, const Recipe& recipe) const;
  Recipe& at(Flag flag) { return recipes_.at(static_cast<std::size_t>(flag)); }
  void set_recipe(Flag flag, Recipe::From from, NodeId x, NodeId y, NodeId result);

  std::array<Recipe, flag_count> recipes_;
  Compared compared_ = Compared::nothing;  // all flags together are those of a comparison of x_ and y_
  NodeId x_ = 0;
  NodeId y_ = 0;
  FloatMode mode_;
};

}  // namespace bitwitness::proof
