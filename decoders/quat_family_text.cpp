#include "decoders/quat_family.hpp"

namespace bitwitness::decoders::quat_family {

namespace {

std::string_view name_of(Width width) {
  switch (width) {
    case Width::f32:
      return "f32";
    case Width::f64:
      return "f64";
    case Width::x87:
      break;
  }
  return "x87";
}

std::string_view name_of(Scale scale) {
  switch (scale) {
    case Scale::step_f32:
      return "step_f32";
    case Scale::step_f64:
      return "step_f64";
    case Scale::step_power:
      return "step_power";
    case Scale::centred_quotient:
      return "centred_quotient";
    case Scale::centred_product:
      return "centred_product";
    case Scale::centred_power:
      return "centred_power";
    case Scale::exact:
      break;
  }
  return "exact";
}

std::string_view name_of(Half half) {
  switch (half) {
    case Half::below:
      return "3f3504f3";
    case Half::above:
      return "3f3504f4";
    case Half::f64:
      break;
  }
  return "3fe6a09e667f3bcd";
}

std::string_view name_of(Sum sum) {
  switch (sum) {
    case Sum::minus_abc:
      return "minus_abc";
    case Sum::minus_cba:
      return "minus_cba";
    case Sum::of_abc:
      return "of_abc";
    case Sum::of_bca:
      return "of_bca";
    case Sum::of_acb:
      break;
  }
  return "of_acb";
}

std::string_view name_of(Negative negative) {
  switch (negative) {
    case Negative::zero:
      return "zero";
    case Negative::nan:
      return "nan";
    case Negative::absolute:
      return "absolute";
    case Negative::refused:
      break;
  }
  return "refused";
}

std::string_view sentence_of(Width width) {
  switch (width) {
    case Width::f32:
      return "f32";
    case Width::f64:
      return "double";
    case Width::x87:
      break;
  }
  return "64-bit x87 precision";
}

std::string_view sentence_of(Sum sum) {
  switch (sum) {
    case Sum::minus_abc:
      return "((1-aa)-bb)-cc";
    case Sum::minus_cba:
      return "((1-cc)-bb)-aa";
    case Sum::of_abc:
      return "1-((aa+bb)+cc)";
    case Sum::of_bca:
      return "1-((bb+cc)+aa)";
    case Sum::of_acb:
      break;
  }
  return "1-((aa+cc)+bb)";
}

std::string_view sentence_of(Negative negative) {
  switch (negative) {
    case Negative::zero:
      return "0 where that is negative";
    case Negative::nan:
      return "NaN where that is negative";
    case Negative::absolute:
      return "of its absolute value";
    case Negative::refused:
      break;
  }
  return "no result where that is negative";
}

std::string formula_of(const ComponentRule& rule, int maximum) {
  const std::string top = std::to_string(maximum);
  const std::string above = std::to_string(maximum + 1);
  const std::string centre = std::to_string(maximum / 2);
  const std::string half(name_of(rule.half));
  switch (rule.scale) {
    case Scale::step_f32:
      return "v * f32(sqrt2/" + top + ") - " + half;
    case Scale::step_f64:
      return "v * double(sqrt2/" + top + ") - " + half;
    case Scale::step_power:
      return "v * f32(sqrt2/" + above + ") - " + half;
    case Scale::centred_quotient:
      return "(v-" + centre + ") / " + centre + " / (2*" + half + ")";
    case Scale::centred_product:
      return "(v-" + centre + ") * (1/" + centre + ") * " + half;
    case Scale::centred_power:
      return "(v-" + centre + ") * (2*" + half + "/" + above + ")";
    case Scale::exact:
      break;
  }
  return "(v/" + top + "*2-1) / (2*" + half + ")";
}

}  // namespace

std::string name_of(const ComponentRule& rule) {
  return std::string(name_of(rule.scale)) + '.' + std::string(name_of(rule.half)) + '.' +
         std::string(name_of(rule.width)) + (rule.kept ? "_kept" : "");
}

std::string name_of(const RootRule& rule) {
  std::string name(name_of(rule.negative));
  if (rule.width != Width::x87) name += '.' + std::string(name_of(rule.sum));
  name += '.' + std::string(name_of(rule.width));
  if (rule.narrowed) name += "_then_f32";
  if (rule.root == Root::reciprocal) name += ".reciprocal";
  return name;
}

std::string_view name_of(Lanes lanes) {
  return lanes == Lanes::insert ? "insert" : "rotate";
}

std::string sentence_of(const ComponentRule& rule, int maximum) {
  std::string text = "components " + formula_of(rule, maximum) + " in " + std::string(sentence_of(rule.width));
  if (rule.width == Width::f32 && rule.scale == Scale::step_f64) text += " (product in double, rounded)";
  if (rule.width != Width::f32) text += rule.kept ? " and squared unrounded" : " and rounded to f32";
  return text;
}

std::string sentence_of(const RootRule& rule, bool exact) {
  std::string text = rule.root == Root::sqrt ? "omitted one the root of " : "omitted one x*(1/sqrt(x)) of ";
  if (exact && rule.width != Width::f32) {
    text += "1-aa-bb-cc, exact in any order,";
  } else {
    text += rule.width == Width::x87 ? "1-aa-bb-cc (order of the sum not told)" : sentence_of(rule.sum);
  }
  text += " in " + std::string(sentence_of(rule.width));
  if (rule.narrowed) text += ", root in f32";
  return text + ", " + std::string(sentence_of(rule.negative));
}

std::string_view sentence_of(Lanes lanes) {
  return lanes == Lanes::insert ? "inserted at its index" : "the others rotated by its index";
}

}  // namespace bitwitness::decoders::quat_family
