#include "harness/value_generators.hpp"

#include "harness/values.hpp"
#include "tests/catch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

using namespace bitwitness;

namespace {

using Bytes = std::vector<std::byte>;
using Codes = std::vector<std::uint64_t>;

struct Layout {
  std::size_t packed_size;
  std::vector<unsigned> widths;
};

// Fields within a byte, across bytes, and across the 64-bit words that the generators work in.
const std::vector<Layout> crossed_layouts{{1, {8}}, {1, {1, 1, 1, 5}}, {6, {15, 1, 15, 1, 16}}, {10, {30, 31, 7, 12}}};
const std::vector<Layout> swept_layouts{
    {1, {8}}, {1, {1, 1, 1, 5}}, {3, {7, 1, 10, 6}}, {6, {15, 1, 15, 1, 16}}, {10, {12, 12, 12, 12, 13, 7, 12}}};

std::vector<BitField> fields_of(const std::vector<unsigned>& widths) {
  std::vector<BitField> fields;
  unsigned offset = 0;
  for (const unsigned width : widths) {
    fields.push_back({"f" + std::to_string(fields.size()), offset, width});
    offset += width;
  }
  return fields;
}

// Places codes bit by bit.
Bytes value_of(std::size_t packed_size, const std::vector<BitField>& fields, const Codes& codes) {
  Bytes value(packed_size);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    for (unsigned bit = 0; bit < fields[i].width; ++bit) {
      const unsigned at = fields[i].offset + bit;
      if ((codes[i] >> bit & 1) != 0) value[at / 8] |= static_cast<std::byte>(1u << at % 8);
    }
  }
  return value;
}

std::uint64_t code_of(const Bytes& value, const BitField& field) {
  std::uint64_t code = 0;
  for (unsigned bit = 0; bit < field.width; ++bit) {
    const unsigned at = field.offset + bit;
    code |= std::uint64_t{std::to_integer<unsigned>(value[at / 8]) >> at % 8 & 1} << bit;
  }
  return code;
}

std::set<Bytes> values_of(std::size_t packed_size, const std::vector<BitField>& fields, const std::string& source) {
  const ValueSet set = ValueSet::build(packed_size, fields, std::vector{source});
  std::set<Bytes> values;
  Bytes value(packed_size);
  for (std::uint64_t index = 0; index < set.size(); ++index) {
    set.read(index, value);
    values.insert(value);
  }
  REQUIRE(values.size() == set.size());
  return values;
}

std::uint64_t maximum_of(unsigned width) {
  return width == 64 ? UINT64_MAX : (std::uint64_t{1} << width) - 1;
}

std::set<std::uint64_t> all_boundaries(unsigned width) {
  const std::uint64_t maximum = maximum_of(width);
  const std::uint64_t middle = maximum / 2 + 1;
  std::set<std::uint64_t> codes;
  for (const std::uint64_t code :
       {std::uint64_t{0}, std::uint64_t{1}, middle - 1, middle, middle + 1, maximum - 1, maximum}) {
    if (code <= maximum) codes.insert(code);
  }
  return codes;
}

unsigned bit_changes(const Bytes& value) {
  unsigned changes = 0;
  for (unsigned at = 1; at < 8 * value.size(); ++at) {
    const auto bit = [&](unsigned i) { return std::to_integer<unsigned>(value[i / 8]) >> i % 8 & 1; };
    changes += bit(at) != bit(at - 1);
  }
  return changes;
}

}  // namespace

TEST_CASE("random words are those of SplitMix64", "[values]") {
  RandomWords zero(0);
  CHECK(zero.next() == 0xE220A8397B1DCDAFu);
  CHECK(zero.next() == 0x6E789E6AA1B965F4u);
  CHECK(zero.next() == 0x06C45D188009454Fu);
  RandomWords other(1234567);
  CHECK(other.next() == 6457827717110365317u);
  CHECK(other.next() == 3203168211198807973u);
  CHECK(other.next() == 9817491932198370423u);
  CHECK(other.next() == 4593380528125082431u);
  CHECK(other.next() == 16408922859458223821u);
  RandomWords bounded(1);
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(bounded.below(7));
  CHECK(seen == std::set<std::uint32_t>{0, 1, 2, 3, 4, 5, 6});
}

TEST_CASE("special crosses every boundary of every field", "[values]") {
  for (const Layout& layout : crossed_layouts) {
    const std::vector<BitField> fields = fields_of(layout.widths);
    std::vector<Codes> crossed{{}};
    for (const BitField& field : fields) {
      std::vector<Codes> next;
      for (const Codes& codes : crossed) {
        for (const std::uint64_t code : all_boundaries(field.width)) {
          next.push_back(codes);
          next.back().push_back(code);
        }
      }
      crossed = std::move(next);
    }
    std::set<Bytes> expected;
    for (const Codes& codes : crossed) expected.insert(value_of(layout.packed_size, fields, codes));
    INFO("size " << layout.packed_size << ", fields " << fields.size());
    const bool as_expected = values_of(layout.packed_size, fields, "special") == expected;
    CHECK(as_expected);
  }
}

TEST_CASE("special gives fewer boundaries a field when the crossing exceeds its bound", "[values]") {
  CHECK(boundary_codes(15, 3) == Codes{0, 1, 0x3FFF, 0x4000, 0x4001, 0x7FFE, 0x7FFF});
  CHECK(boundary_codes(15, 2) == Codes{0, 1, 0x3FFF, 0x4000, 0x7FFF});
  CHECK(boundary_codes(15, 1) == Codes{0, 0x4000, 0x7FFF});
  CHECK(boundary_codes(15, 0) == Codes{0, 0x7FFF});
  CHECK(boundary_codes(1, 3) == Codes{0, 1});
  CHECK(boundary_codes(2, 3) == Codes{0, 1, 2, 3});
  CHECK(boundary_codes(64, 0) == Codes{0, UINT64_MAX});

  const auto plan = [](std::size_t fields, unsigned width) {
    return plan_special(fields_of(std::vector(fields, width)));
  };
  CHECK(plan(7, 16).count == 823'543);
  CHECK(plan(8, 16).detail == 2);
  CHECK(plan(8, 16).count == 390'625);
  CHECK(plan(12, 16).detail == 1);
  CHECK(plan(12, 16).count == 531'441);
  CHECK(plan(20, 16).detail == 0);
  CHECK(plan(20, 16).count == max_special);
  CHECK_FALSE(plan(20, 16).grouped);
  CHECK(plan(21, 16).grouped);
  CHECK(plan(128, 16).count == max_special);
}

TEST_CASE("special moves fields in twenty groups when there are more", "[values]") {
  const std::vector<BitField> fields = fields_of(std::vector<unsigned>(24, 1));
  const ValueSet set = ValueSet::build(3, fields, std::vector<std::string>{"special"});
  REQUIRE(set.size() == max_special);
  Bytes value(3);
  std::set<std::uint64_t> groups;
  for (std::uint64_t index = 0; index < set.size(); ++index) {
    set.read(index, value);
    const std::uint64_t code = code_of(value, {"all", 0, 24});
    REQUIRE((code >> 20) == (code & 0xF));
    groups.insert(code & 0xFFFFF);
  }
  CHECK(groups.size() == max_special);
}

TEST_CASE("fields sweeps each field with all others at each level, and gives nothing else", "[values]") {
  for (const Layout& layout : swept_layouts) {
    const std::vector<BitField> fields = fields_of(layout.widths);
    std::set<Bytes> expected;
    for (std::size_t swept = 0; swept < fields.size(); ++swept) {
      for (const int level : {0, 1, 2}) {
        Codes codes;
        for (const BitField& field : fields) {
          const std::uint64_t maximum = maximum_of(field.width);
          codes.push_back(level == 0 ? 0 : level == 1 ? maximum / 2 + 1 : maximum);
        }
        for (codes[swept] = 0; codes[swept] <= maximum_of(fields[swept].width); ++codes[swept]) {
          expected.insert(value_of(layout.packed_size, fields, codes));
        }
      }
    }
    INFO("size " << layout.packed_size << ", fields " << fields.size());
    const bool as_expected = values_of(layout.packed_size, fields, "fields") == expected;
    CHECK(as_expected);
  }
}

TEST_CASE("fields sweeps wide fields at even steps, both ends and around every power of two", "[values]") {
  for (const unsigned width : {21u, 24u, 32u, 53u, 63u, 64u}) {
    const Codes codes = sweep_codes(width, max_swept_bits);
    INFO("width " << width);
    const std::uint64_t maximum = maximum_of(width);
    CHECK(codes.front() == 0);
    CHECK(codes.back() == maximum);
    CHECK(codes.size() >= std::uint64_t{1} << 20);
    CHECK(codes.size() <= (std::uint64_t{1} << 20) + 3 * width);
    const std::uint64_t step = maximum / ((1u << 20) - 1) + 1;
    std::uint64_t widest = 0;
    bool rising = true;
    for (std::size_t i = 1; i < codes.size(); ++i) {
      rising = rising && codes[i] > codes[i - 1];
      widest = std::max(widest, codes[i] - codes[i - 1]);
    }
    CHECK(rising);
    CHECK(widest <= step);
    for (unsigned bit = 0; bit < width; ++bit) {
      const std::uint64_t power = std::uint64_t{1} << bit;
      REQUIRE(std::ranges::binary_search(codes, power));
      REQUIRE(std::ranges::binary_search(codes, power - 1));
      REQUIRE(std::ranges::binary_search(codes, power + 1));
    }
  }
  Codes every(std::size_t{1} << 20);
  for (std::size_t code = 0; code < every.size(); ++code) every[code] = code;
  const bool all_swept = sweep_codes(20, max_swept_bits) == every;
  CHECK(all_swept);
  CHECK(sweep_codes(1, max_swept_bits) == Codes{0, 1});
}

TEST_CASE("fields sweeps with fewer codes when all sweeps exceed their bound", "[values]") {
  CHECK(plan_sweeps(fields_of({20, 20, 20, 4})).swept_bits == 20);
  CHECK(plan_sweeps(fields_of(std::vector(3, 32u))).swept_bits == 20);
  CHECK(plan_sweeps(fields_of(std::vector(8, 32u))).swept_bits == 19);
  CHECK(plan_sweeps(fields_of(std::vector(128, 16u))).swept_bits == 15);
  CHECK(plan_sweeps(fields_of(std::vector(2048, 1u))).swept_bits == 20);
  CHECK(plan_sweeps(fields_of(std::vector(32, 64u))).at_most <= max_swept);
}

TEST_CASE("fields wider than a word are swept in parts", "[values]") {
  const std::vector<BitField> parts = checked_fields(17, fields_of({1, 62, 2, 71}));
  REQUIRE(parts.size() == 5);
  CHECK(parts[3].offset == 65);
  CHECK(parts[3].width == 64);
  CHECK(parts[4].offset == 129);
  CHECK(parts[4].width == 7);
  const std::vector<BitField> whole = checked_fields(256, {});
  CHECK(whole.size() == 32);
  const ValueSet set = ValueSet::build(17, fields_of({1, 62, 2, 71}), std::vector<std::string>{"special"});
  std::set<std::uint64_t> highest;
  Bytes value(17);
  for (std::uint64_t index = 0; index < set.size(); ++index) {
    set.read(index, value);
    highest.insert(code_of(value, {"", 129, 7}));
  }
  CHECK(set.size() == 2 * 7 * 4 * 7 * 7);
  CHECK(highest == all_boundaries(7));
}

TEST_CASE("random values of a smaller number are among those of a larger", "[values]") {
  const std::vector<BitField> fields = fields_of({15, 1, 15, 1, 16});
  const std::set<Bytes> some = values_of(6, fields, "random:1000:3");
  const std::set<Bytes> more = values_of(6, fields, "random:1003:3");
  CHECK(std::ranges::includes(more, some));
  CHECK(some.size() > 950);
}

TEST_CASE("random values are uniform but for a weighted eighth", "[values]") {
  constexpr std::uint64_t count = 80'000;
  for (const Layout& layout : {Layout{6, {15, 1, 15, 1, 16}}, Layout{12, {30, 30, 36}}, Layout{20, {64, 64, 32}}}) {
    const std::vector<BitField> fields = fields_of(layout.widths);
    ValueRows rows(layout.packed_size);
    append_random(rows, fields, count, 5);
    REQUIRE(rows.size() == count);
    const std::size_t stride = rows.stride();
    const std::size_t bits = 8 * layout.packed_size;
    std::vector<std::uint64_t> uniform_ones(bits);
    std::uint64_t few_changes = 0;
    std::uint64_t at_boundaries = 0;
    std::uint64_t anywhere = 0;
    std::uint64_t high_anywhere = 0;
    std::uint64_t beyond = 0;
    for (std::size_t draw = 0; draw < count; ++draw) {
      Bytes value(8 * stride);
      for (std::size_t at = 0; at < value.size(); ++at) {
        value[at] = static_cast<std::byte>(rows.words()[draw * stride + at / 8] >> 8 * (at % 8));
        if (at >= layout.packed_size) beyond += value[at] != std::byte{0};
      }
      value.resize(layout.packed_size);
      if (draw % weighted_share != weighted_share - 1) {
        for (unsigned bit = 0; bit < bits; ++bit) uniform_ones[bit] += code_of(value, {"", bit, 1});
        continue;
      }
      const auto at_boundary = [&](const BitField& field) {
        return all_boundaries(field.width).count(code_of(value, field)) != 0;
      };
      at_boundaries += std::ranges::all_of(fields, at_boundary);
      if (bit_changes(value) <= bits / 8) {
        ++few_changes;
      } else if (!at_boundary(fields[0])) {
        ++anywhere;
        high_anywhere += code_of(value, fields[0]) >> (fields[0].width - 1);
      }
    }
    INFO("size " << layout.packed_size);
    CHECK(beyond == 0);
    const double uniform = count * (1.0 - 1.0 / weighted_share);
    for (const std::uint64_t ones : uniform_ones) {
      REQUIRE(static_cast<double>(ones) > 0.49 * uniform);
      REQUIRE(static_cast<double>(ones) < 0.51 * uniform);
    }
    // Of 10,000 weighted draws, half are runs; of the others one in 2^fields has every field at a boundary.
    CHECK(few_changes > 4'500);
    CHECK(at_boundaries > 5'000 / (1u << fields.size()) * 3 / 4);
    CHECK(at_boundaries < 5'000 * 3 / 4);
    CHECK(anywhere > 1'000);
    CHECK(high_anywhere > anywhere * 4 / 10);
    CHECK(high_anywhere < anywhere * 6 / 10);
  }
}
