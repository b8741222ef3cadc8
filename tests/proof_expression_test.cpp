// Expressions are simplified to what is equal for every value: random ones against a reference of their own, and the
// forms that others rely on.
#include "harness/error.hpp"
#include "harness/proof/bounds.hpp"
#include "harness/proof/evaluate.hpp"
#include "harness/proof/expression.hpp"
#include "tests/catch.hpp"
#include "tests/random.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <vector>

using namespace bitwitness;
using namespace bitwitness::proof;

namespace {

constexpr std::size_t packed_size = 16;
constexpr std::size_t packed_count = 6;

/// An expression and what it is to be worth on each packed value.
struct Sample {
  NodeId id = 0;
  unsigned width = 0;
  std::array<Bits, packed_count> values{};
};

__extension__ typedef __int128 SignedBits;

SignedBits sign_extended(Bits value, unsigned width) {
  return (value >> (width - 1) & 1) != 0 ? static_cast<SignedBits>(value | ~ones(width))
                                         : static_cast<SignedBits>(value);
}

/// Two operands of one width, by the words of the documentation.
Bits reference(Kind kind, unsigned width, Bits a, Bits b) {
  const Bits mask = ones(width);
  switch (kind) {
    case Kind::bit_and:
      return a & b;
    case Kind::bit_or:
      return a | b;
    case Kind::bit_xor:
      return a ^ b;
    case Kind::add:
      return (a + b) & mask;
    case Kind::subtract:
      return (a + (~b & mask) + 1) & mask;
    case Kind::multiply: {
      Bits product = 0;
      for (unsigned i = 0; i < width; ++i) product += (b >> i & 1) != 0 ? a << i : 0;
      return product & mask;
    }
    case Kind::shift_left:
      for (Bits i = 0; i < b && i < width; ++i) a = a << 1 & mask;
      return a;
    case Kind::shift_right:
      for (Bits i = 0; i < b && i < width; ++i) a >>= 1;
      return a;
    case Kind::shift_right_signed:
      for (Bits i = 0; i < b && i < width; ++i) a = a >> 1 | (a & Bits{1} << (width - 1));
      return a;
    case Kind::rotate_left:
      for (Bits i = 0; i < b % width; ++i) a = (a << 1 & mask) | a >> (width - 1);
      return a;
    case Kind::equal:
      return a == b ? 1 : 0;
    case Kind::less_unsigned:
      return a < b ? 1 : 0;
    default:
      return sign_extended(a, width) < sign_extended(b, width) ? 1 : 0;
  }
}

class Maker {
 public:
  Maker(Store& store, std::uint64_t seed) : store_(store), random_(seed) {
    for (auto& packed : packed_) packed = random_.bytes(packed_size);
    packed_[0].assign(packed_size, std::byte{0});
    packed_[1].assign(packed_size, std::byte{0xff});
    for (int i = 0; i < 12; ++i) add_leaf();
  }

  void step();
  void check() const;

 private:
  const Sample& any() {
    return samples_[samples_.size() - 1 - random_.below(std::min<std::size_t>(samples_.size(), 40))];
  }
  Sample of_width(unsigned width);
  void add_leaf();
  void add(NodeId id, unsigned width, const std::array<Bits, packed_count>& values) {
    samples_.push_back({id, width, values});
  }
  Bits draw_constant(unsigned width);

  Store& store_;
  tests::Random random_;
  std::array<std::vector<std::byte>, packed_count> packed_;
  std::vector<Sample> samples_;
};

Bits Maker::draw_constant(unsigned width) {
  const std::uint64_t low = random_.next();
  const std::uint64_t high = random_.next();
  const Bits any_bits = Bits{high} << 64 | low;
  switch (random_.below(6)) {
    case 0:
      return any_bits & ones(width);
    case 1:
      return random_.below(4) & ones(width);
    case 2:
      return ones(width);
    case 3:
      return Bits{1} << random_.below(width);
    case 4:
      return ones(1 + static_cast<unsigned>(random_.below(width)));
    default:
      return (ones(1 + static_cast<unsigned>(random_.below(width))) << random_.below(width)) & ones(width);
  }
}

void Maker::add_leaf() {
  Sample leaf;
  leaf.width = 1 + static_cast<unsigned>(random_.below(random_.one_in(4) ? max_width : 32));
  if (random_.one_in(3)) {
    const Bits value = draw_constant(leaf.width);
    leaf.id = store_.constant(leaf.width, value);
    leaf.values.fill(value);
  } else {
    const std::size_t first = random_.below(8 * packed_size - leaf.width + 1);
    leaf.id = store_.input(first, leaf.width);
    for (std::size_t i = 0; i < packed_count; ++i) {
      for (unsigned bit = 0; bit < leaf.width; ++bit) {
        const auto byte = static_cast<unsigned>(packed_[i][(first + bit) / 8]);
        leaf.values[i] |= Bits{byte >> (first + bit) % 8 & 1} << bit;
      }
    }
  }
  samples_.push_back(leaf);
}

/// Some sample, cut or extended to a width.
Sample Maker::of_width(unsigned width) {
  Sample sample = any();
  if (sample.width == width) return sample;
  if (sample.width > width) {
    const auto first = static_cast<unsigned>(random_.below(sample.width - width + 1));
    sample.id = store_.extract(sample.id, first, width);
    for (Bits& value : sample.values) value = value >> first & ones(width);
  } else if (random_.one_in(2)) {
    sample.id = store_.zero_extend(sample.id, width);
  } else {
    sample.id = store_.sign_extend(sample.id, width);
    for (Bits& value : sample.values) value = static_cast<Bits>(sign_extended(value, sample.width)) & ones(width);
  }
  sample.width = width;
  return sample;
}

void Maker::step() {
  using Binary = NodeId (Store::*)(NodeId, NodeId);
  static constexpr std::array<std::pair<Kind, Binary>, 13> binaries = {
      {{Kind::bit_and, &Store::bit_and},
       {Kind::bit_or, &Store::bit_or},
       {Kind::bit_xor, &Store::bit_xor},
       {Kind::add, &Store::add},
       {Kind::subtract, &Store::subtract},
       {Kind::multiply, &Store::multiply},
       {Kind::shift_left, &Store::shift_left},
       {Kind::shift_right, &Store::shift_right},
       {Kind::shift_right_signed, &Store::shift_right_signed},
       {Kind::rotate_left, &Store::rotate_left},
       {Kind::equal, &Store::equal},
       {Kind::less_unsigned, &Store::less_unsigned},
       {Kind::less_signed, &Store::less_signed}}};
  const Sample a = any();
  std::array<Bits, packed_count> values{};
  const std::size_t which = random_.below(binaries.size() + 5);
  if (which < binaries.size()) {
    const auto& [kind, make] = binaries.at(which);
    Sample b = of_width(a.width);
    if (random_.one_in(3)) {
      b.values.fill(draw_constant(a.width));
      b.id = store_.constant(a.width, b.values[0]);
    }
    const bool swaps = random_.one_in(2);
    const Sample& x = swaps ? b : a;
    const Sample& y = swaps ? a : b;
    for (std::size_t i = 0; i < packed_count; ++i) values[i] = reference(kind, a.width, x.values[i], y.values[i]);
    add((store_.*make)(x.id, y.id), kind >= Kind::equal ? 1 : a.width, values);
  } else if (which == binaries.size()) {
    const Sample b = any();
    if (a.width + b.width > max_width) return;
    for (std::size_t i = 0; i < packed_count; ++i) values[i] = a.values[i] << b.width | b.values[i];
    add(store_.concat(a.id, b.id), a.width + b.width, values);
  } else if (which == binaries.size() + 1) {
    for (std::size_t i = 0; i < packed_count; ++i) values[i] = a.values[i] ^ ones(a.width);
    add(store_.bit_not(a.id), a.width, values);
  } else if (which == binaries.size() + 2) {
    const Sample bit = of_width(1);
    const Sample b = of_width(a.width);
    for (std::size_t i = 0; i < packed_count; ++i) values[i] = bit.values[i] != 0 ? a.values[i] : b.values[i];
    add(store_.choose(bit.id, a.id, b.id), a.width, values);
  } else if (which == binaries.size() + 3) {
    samples_.push_back(of_width(1 + static_cast<unsigned>(random_.below(max_width))));
  } else {
    add_leaf();
  }
}

void Maker::check() const {
  std::vector<NodeId> roots;
  for (const Sample& sample : samples_) {
    roots.push_back(sample.id);
    REQUIRE(store_.width(sample.id) == sample.width);
  }
  Evaluation evaluation(store_, roots);
  for (std::size_t i = 0; i < packed_count; ++i) {
    evaluation.run(packed_[i]);
    GuideValues guide(store_, packed_[i]);
    for (std::size_t root = 0; root < roots.size(); ++root) {
      if (evaluation[root] != samples_[root].values[i]) FAIL(to_text(store_, roots[root], 5));
      if (*guide(roots[root]) != samples_[root].values[i]) FAIL(to_text(store_, roots[root], 5));
      const Bounds bounds = bounds_of(store_, roots[root]);
      if (bounds.lowest > evaluation[root] || bounds.highest < evaluation[root]) FAIL(to_text(store_, roots[root], 5));
    }
  }
}

Bits f32_bits(float value) {
  return std::bit_cast<std::uint32_t>(value);
}
Bits f64_bits(double value) {
  return std::bit_cast<std::uint64_t>(value);
}

constexpr FloatMode f32{Format::f32, 24};
constexpr FloatMode f64{Format::f64, 53};
constexpr FloatMode x80{Format::x80, 64};

}  // namespace

TEST_CASE("simplified expressions are worth what they were made from") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    Store store;
    Maker maker(store, seed);
    for (int i = 0; i < 400; ++i) maker.step();
    maker.check();
    // Made again from their own operands they are worth the same; most are the same.
    std::size_t same = 0;
    const std::size_t count = store.size();
    for (NodeId id = 0; id < count; ++id) {
      const Node node = store[id];
      if (store.rebuild(node, node.parts()) == id) ++same;
    }
    CHECK(same > count * 95 / 100);
  }
}

TEST_CASE("equal expressions have one id") {
  Store store;
  const NodeId word = store.input(0, 32);
  const auto constant = [&](std::uint64_t value) { return store.constant(32, value); };
  CHECK(store.input(0, 32) == word);
  CHECK(store.add(word, store.input(32, 32)) == store.add(store.input(32, 32), word));
  CHECK(store.concat(store.input(16, 16), store.input(0, 16)) == word);
  CHECK(store.bit_and(word, constant(0x7fff)) == store.zero_extend(store.input(0, 15), 32));
  CHECK(store.shift_right(word, constant(15)) == store.zero_extend(store.input(15, 17), 32));
  CHECK(store.shift_right(store.shift_left(word, constant(8)), constant(8)) == store.bit_and(word, constant(0xffffff)));
  CHECK(store.bit_and(store.zero_extend(store.input(0, 16), 32), constant(0xffff)) ==
        store.zero_extend(store.input(0, 16), 32));
  CHECK(store.bit_xor(word, word) == constant(0));
  CHECK(store.add(store.add(word, constant(5)), constant(0xfffffffb)) == word);
  CHECK(store.subtract(store.add(word, constant(5)), constant(5)) == word);
  CHECK(store.add(store.shift_left(store.zero_extend(store.input(16, 16), 32), constant(16)),
                  store.zero_extend(store.input(0, 16), 32)) == word);
  CHECK(store.equal(store.zero_extend(store.input(7, 1), 32), constant(0)) == store.bit_not(store.input(7, 1)));
  CHECK(store.less_signed(word, constant(0)) == store.input(31, 1));
  CHECK(store.choose(store.input(3, 1), constant(1), constant(0)) == store.zero_extend(store.input(3, 1), 32));
  const NodeId sign = store.sign_extend(store.input(31, 1), 32);
  CHECK(store.concat(sign, word) == store.sign_extend(word, 64));
}

TEST_CASE("numbers stay recognisable through their bits") {
  Store store;
  const NodeId integer = store.input(0, 32);
  const NodeId number = store.float_from_integer(integer, f32);
  std::array<NodeId, 4> bytes{};
  for (unsigned i = 0; i < 4; ++i) bytes.at(i) = store.extract(number, 8 * i, 8);
  CHECK(store.join(bytes) == number);
  const NodeId negated = store.bit_xor(number, store.constant(32, 0x80000000));
  CHECK(store[negated].kind == Kind::bit_xor);
  for (unsigned i = 0; i < 4; ++i) bytes.at(i) = store.extract(negated, 8 * i, 8);
  CHECK(store.join(bytes) == negated);
  CHECK(store.bit_xor(negated, store.constant(32, 0x80000000)) == number);
  // Through x87 registers and back nothing is rounded, and nothing signals that comes from arithmetic.
  CHECK(store.float_convert(store.float_convert(number, Format::f32, x80), Format::x80, f32) == number);
  CHECK(store.float_convert(store.float_convert(number, Format::f32, f64), Format::f64, f32) == number);
  FloatMode flushing = f32;
  flushing.flush_to_zero = true;
  CHECK(store.float_convert(store.float_convert(number, Format::f32, f64), Format::f64, flushing) != number);
  const NodeId bits = store.float_convert(store.float_convert(integer, Format::f32, x80), Format::x80, f32);
  CHECK(bits != integer);  // what comes in may signal
  CHECK(store.float_widen(number, Format::f32) == store.float_convert(number, Format::f32, x80));
  CHECK(store.float_widen(integer, Format::f32) != store.float_convert(integer, Format::f32, x80));
  CHECK(store.float_to_integer(store.float_from_integer(integer, f64), f64, 32) == integer);
  CHECK(store.float_to_integer(number, f32, 32) != integer);  // 32 bits do not fit into 24
}

TEST_CASE("numbers are computed as this compiler computes them") {
  Store store;
  tests::Random random(5);
  for (int i = 0; i < 20000; ++i) {
    const float a = std::ldexp(static_cast<float>(random.signed_unit()), static_cast<int>(random.below(250)) - 125);
    const float b = std::ldexp(static_cast<float>(random.signed_unit()), static_cast<int>(random.below(250)) - 125);
    const double c = std::ldexp(random.signed_unit(), static_cast<int>(random.below(600)) - 300);
    const double d = std::ldexp(random.signed_unit(), static_cast<int>(random.below(600)) - 300);
    const NodeId na = store.constant(32, f32_bits(a));
    const NodeId nb = store.constant(32, f32_bits(b));
    const NodeId nc = store.constant(64, f64_bits(c));
    const NodeId nd = store.constant(64, f64_bits(d));
    const auto single = [&](Kind kind) { return store[store.float_binary(kind, na, nb, f32)].value(); };
    const auto wide = [&](Kind kind) { return store[store.float_binary(kind, nc, nd, f64)].value(); };
    // Numbers of 53 bits, computed with 53 bits in x87 registers.
    const auto extended = [&](Kind kind) {
      const FloatMode mode{Format::x80, 53};
      const NodeId x = store.float_convert(nc, Format::f64, mode);
      const NodeId result = store.float_binary(kind, x, store.float_convert(nd, Format::f64, mode), mode);
      return store[store.float_convert(result, Format::x80, f64)].value();
    };
    REQUIRE(single(Kind::float_add) == f32_bits(a + b));
    REQUIRE(single(Kind::float_subtract) == f32_bits(a - b));
    REQUIRE(single(Kind::float_multiply) == f32_bits(a * b));
    REQUIRE(single(Kind::float_divide) == f32_bits(a / b));
    REQUIRE(wide(Kind::float_add) == f64_bits(c + d));
    REQUIRE(wide(Kind::float_subtract) == f64_bits(c - d));
    REQUIRE(wide(Kind::float_multiply) == f64_bits(c * d));
    REQUIRE(wide(Kind::float_divide) == f64_bits(c / d));
    REQUIRE(extended(Kind::float_add) == f64_bits(c + d));
    REQUIRE(extended(Kind::float_subtract) == f64_bits(c - d));
    REQUIRE(extended(Kind::float_multiply) == f64_bits(c * d));
    REQUIRE(extended(Kind::float_divide) == f64_bits(c / d));
    REQUIRE(store[store.float_convert(nc, Format::f64, f32)].value() == f32_bits(static_cast<float>(c)));
    REQUIRE(store[store.float_sqrt(nc, f64)].value() == (c < 0 ? 0xfff8000000000000 : f64_bits(std::sqrt(c))));
    REQUIRE(store.is_constant(store.float_compare(Kind::float_less, na, nb, f32), a < b ? 1 : 0));
    REQUIRE(store.is_constant(store.float_compare(Kind::float_equal, na, nb, f32), a == b ? 1 : 0));
  }
}

TEST_CASE("tables are looked up within their bytes") {
  Store store;
  const std::array bytes = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}, std::byte{6}};
  const std::size_t table = store.add_table(0x1000, bytes);
  CHECK(store.add_table(0x1000, bytes) == table);
  const NodeId index = store.zero_extend(store.input(0, 8), 32);
  const NodeId found = store.look_up(store.add(index, store.constant(32, 0x1000)), table, 2);
  const std::array roots = {found};
  Evaluation evaluation(store, roots);
  const std::array expected = {0x0201, 0x0302, 0x0403, 0x0504, 0x0605, 0, 0};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::array packed = {static_cast<std::byte>(i)};
    evaluation.run(packed);
    CHECK(evaluation[0] == static_cast<Bits>(expected.at(i)));
  }
}

TEST_CASE("what has no value is not evaluated") {
  Store store;
  const NodeId unknown = store.unknown(8, "ebx at entry");
  CHECK(store.unknown(8, "ebx at entry") != unknown);
  const NodeId sum = store.add(unknown, store.input(0, 8));
  CHECK(store[sum].has_unknown);
  CHECK_FALSE(store[store.bit_and(unknown, store.constant(8, 0))].has_unknown);
  const std::array roots = {sum};
  CHECK_THROWS_AS(Evaluation(store, roots), Error);
  const std::array packed = {std::byte{1}};
  CHECK_FALSE(GuideValues(store, packed)(sum));
  CHECK_THROWS_AS(store.add(sum, store.input(0, 16)), MisfitError);
  CHECK_THROWS_AS(input_bits(packed, 4, 8), Error);
}
