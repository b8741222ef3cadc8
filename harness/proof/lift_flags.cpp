#include "harness/proof/lift_flags.hpp"

namespace bitwitness::proof {

void Flags::set_recipe(Flag flag, Recipe::From from, NodeId x, NodeId y, NodeId result) {
  at(flag) = {from, x, y, result, {}};
  compared_ = Compared::nothing;
}

void Flags::set_result(NodeId result) {
  for (const Flag flag : {Flag::zero, Flag::sign, Flag::parity}) {
    set_recipe(flag, Recipe::From::result, 0, 0, result);
  }
  set_undefined(Flag::adjust, "AF, which lifts do not follow");
}

void Flags::set_sum(NodeId x, NodeId y, NodeId result, bool keep_carry) {
  set_result(result);
  set_recipe(Flag::overflow, Recipe::From::sum, x, y, result);
  if (!keep_carry) set_recipe(Flag::carry, Recipe::From::sum, x, y, result);
}

void Flags::set_difference(NodeId x, NodeId y, NodeId result, bool keep_carry) {
  set_result(result);
  set_recipe(Flag::overflow, Recipe::From::difference, x, y, result);
  if (keep_carry) return;
  set_recipe(Flag::carry, Recipe::From::difference, x, y, result);
  compared_ = Compared::integers;
  x_ = x;
  y_ = y;
}

void Flags::set_logic(NodeId result) {
  set_result(result);
  for (const Flag flag : {Flag::carry, Flag::overflow}) set_recipe(flag, Recipe::From::clear, 0, 0, 0);
}

void Flags::set(Flag flag, NodeId bit) {
  set_recipe(flag, Recipe::From::node, 0, 0, bit);
}

void Flags::set_undefined(Flag flag, const std::string& why) {
  at(flag) = {Recipe::From::undefined, 0, 0, 0, why};
  compared_ = Compared::nothing;
}

void Flags::set_all_undefined(const std::string& why) {
  for (std::size_t i = 0; i < flag_count; ++i) set_undefined(static_cast<Flag>(i), why);
}

void Flags::set_comparison(Store& store, NodeId x, NodeId y, const FloatMode& mode) {
  const NodeId unordered = store.float_compare(Kind::float_unordered, x, y, mode);
  const NodeId less = store.float_compare(Kind::float_less, x, y, mode);
  const NodeId equal = store.float_compare(Kind::float_equal, x, y, mode);
  set(Flag::zero, store.bit_or(unordered, equal));
  set(Flag::parity, unordered);
  set(Flag::carry, store.bit_or(unordered, less));
  for (const Flag flag : {Flag::sign, Flag::overflow, Flag::adjust}) set(flag, store.bit(false));
  compared_ = Compared::floats;
  x_ = x;
  y_ = y;
  mode_ = mode;
}

NodeId Flags::make(Store& store, Flag flag, const Recipe& recipe) const {
  const auto sign_of = [&store](NodeId id) { return store.extract(id, store.width(id) - 1, 1); };
  if (recipe.from == Recipe::From::undefined) return store.unknown(1, recipe.why);
  if (recipe.from == Recipe::From::clear) return store.bit(false);
  switch (flag) {
    case Flag::zero:
      if (compared_ == Compared::integers) return store.equal(x_, y_);
      return store.equal(recipe.result, store.constant(store.width(recipe.result), 0));
    case Flag::sign:
      return sign_of(recipe.result);
    case Flag::parity: {
      NodeId odd = store.extract(recipe.result, 0, 1);
      for (unsigned i = 1; i < 8; ++i) odd = store.bit_xor(odd, store.extract(recipe.result, i, 1));
      return store.bit_not(odd);
    }
    case Flag::carry:
      if (recipe.from == Recipe::From::sum) return store.less_unsigned(recipe.result, recipe.x);
      return store.less_unsigned(recipe.x, recipe.y);
    case Flag::overflow: {
      // A sum of two of one sign with the other sign; a difference of two of unlike signs with that of the second.
      const NodeId changed = store.bit_xor(sign_of(recipe.x), sign_of(recipe.result));
      const NodeId other = recipe.from == Recipe::From::sum ? store.bit_xor(sign_of(recipe.y), sign_of(recipe.result))
                                                            : store.bit_xor(sign_of(recipe.x), sign_of(recipe.y));
      return store.bit_and(changed, other);
    }
    case Flag::adjust:
      break;
  }
  return store.unknown(1, "AF, which lifts do not follow");
}

NodeId Flags::get(Store& store, Flag flag) {
  Recipe& recipe = at(flag);
  if (recipe.from != Recipe::From::node) {
    const NodeId made = make(store, flag, recipe);
    recipe = {Recipe::From::node, 0, 0, made, {}};  // compared_ still holds
  }
  return recipe.result;
}

NodeId Flags::condition(Store& store, Condition condition) {
  const auto code = static_cast<unsigned>(condition);
  if ((code & 1) != 0) return store.bit_not(this->condition(store, static_cast<Condition>(code - 1)));
  switch (condition) {
    case Condition::o:
      return get(store, Flag::overflow);
    case Condition::b:
      return get(store, Flag::carry);
    case Condition::e:
      return get(store, Flag::zero);
    case Condition::s:
      return get(store, Flag::sign);
    case Condition::p:
      return get(store, Flag::parity);
    case Condition::be:
      if (compared_ == Compared::integers) return store.bit_not(store.less_unsigned(y_, x_));
      if (compared_ == Compared::floats) return store.bit_not(store.float_compare(Kind::float_less, y_, x_, mode_));
      return store.bit_or(get(store, Flag::carry), get(store, Flag::zero));
    case Condition::l:
      if (compared_ == Compared::integers) return store.less_signed(x_, y_);
      return store.bit_xor(get(store, Flag::sign), get(store, Flag::overflow));
    default: {  // le
      if (compared_ == Compared::integers) return store.bit_not(store.less_signed(y_, x_));
      const NodeId less = this->condition(store, Condition::l);
      return store.bit_or(less, get(store, Flag::zero));
    }
  }
}

}  // namespace bitwitness::proof
