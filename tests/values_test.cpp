#include "harness/values.hpp"

#include "harness/error.hpp"
#include "tests/catch.hpp"
#include "tests/values_support.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

using namespace bitwitness;
using namespace bitwitness::testing;

namespace {

// Orders packed values as little-endian integers.
struct RisingValue {
  bool operator()(const Bytes& left, const Bytes& right) const {
    return std::lexicographical_compare(left.rbegin(), left.rend(), right.rbegin(), right.rend());
  }
};
using Values = std::set<Bytes, RisingValue>;

const std::vector<BitField> quaternion_fields{{"a", 0, 15},         {"lane_low", 15, 1}, {"b", 16, 15},
                                              {"lane_high", 31, 1}, {"c", 32, 15},       {"unused", 47, 1}};

// Bytes for the tests, independent of the generator under test.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  unsigned below(unsigned bound) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<unsigned>((state_ >> 33) % bound);
  }

 private:
  std::uint64_t state_;
};

bool rises_strictly(const ValueSet& set) {
  const std::size_t size = set.packed_size();
  Bytes all(static_cast<std::size_t>(set.size()) * size);
  set.read(0, all);
  for (std::size_t at = size; at < all.size(); at += size) {
    const auto value = std::span(all).subspan(at, size);
    const auto before = std::span(all).subspan(at - size, size);
    if (!std::lexicographical_compare(before.rbegin(), before.rend(), value.rbegin(), value.rend())) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("values without a source are special, fields and a million random ones", "[values]") {
  const ValueSet set = ValueSet::build(6, quaternion_fields, {});
  CHECK(std::ranges::equal(set.sources(), Sources{"special", "fields", "random:1000000:1"}));
  CHECK(set.size() > 1'200'000);
  CHECK(set.size() < 1'300'000);
  CHECK(rises_strictly(set));
  const Sources named{"special", "fields", "random:1000000"};
  CHECK(ValueSet::build(6, quaternion_fields, named).size() == set.size());
}

TEST_CASE("values of every size are what was listed, distinct and rising", "[values]") {
  constexpr std::uint64_t seed = 4711;
  INFO("seed " << seed);
  Draws draws(seed);
  // Few different bytes make repeated values, long common parts and groups of every size.
  constexpr std::array<unsigned, 5> bytes{0x00, 0x01, 0x7F, 0x80, 0xFF};
  for (std::size_t size :
       {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 11u, 12u, 13u, 15u, 16u, 17u, 23u, 24u, 25u, 31u, 64u, 129u, 255u, 256u}) {
    for (unsigned variety : {1u, 2u, 5u, 256u}) {
      INFO("size " << size << ", variety " << variety);
      Values expected;
      std::string text;
      for (int line = 0; line < 600; ++line) {
        Bytes value(size);
        const std::size_t fixed = draws.below(3) == 0 ? 0 : size / 2;
        for (std::size_t at = fixed; at < size; ++at) {
          value[at] = static_cast<std::byte>(variety == 256 ? draws.below(256) : bytes.at(draws.below(variety)));
        }
        text += to_hex(value) + "\n";
        expected.insert(value);
      }
      const TemporaryFile file(text);
      const ValueSet set = build(size, {file.source(), file.source()});
      REQUIRE(set.size() == expected.size());
      const std::vector<Bytes> found = list(set);
      REQUIRE(std::equal(found.begin(), found.end(), expected.begin()));
    }
  }
}

TEST_CASE("values of several sources are their union", "[values]") {
  for (std::size_t size : {1u, 3u, 6u, 8u, 12u, 16u, 20u}) {
    const Bytes lonely(size, std::byte{0x5A});
    const TemporaryFile file(to_hex(Bytes(size, std::byte{0xA5})) + "\n" + to_hex(lonely));
    const Sources sources{"random:3000:9", "hex:" + to_hex(lonely), file.source(),
                          "special",       "random:1000:9",         "random:50:2"};
    Values expected;
    for (const std::string& source : sources) {
      for (Bytes& value : list(build(size, {source}))) expected.insert(std::move(value));
    }
    const ValueSet set = build(size, sources);
    INFO("size " << size);
    REQUIRE(set.size() == expected.size());
    const std::vector<Bytes> found = list(set);
    CHECK(std::equal(found.begin(), found.end(), expected.begin()));
    CHECK(std::ranges::equal(set.sources(), sources));
  }
}

TEST_CASE("values read alike one by one, in bulk and from several threads", "[values]") {
  const ValueSet set = build(6, {"random:5000"});
  const std::vector<Bytes> single = list(set);
  std::vector<Bytes> bulk(4, Bytes(static_cast<std::size_t>(set.size()) * 6));
  std::vector<std::jthread> threads;
  for (Bytes& out : bulk) threads.emplace_back([&] { set.read(0, out); });
  threads.clear();
  for (const Bytes& out : bulk) {
    for (std::size_t index = 0; index < single.size(); ++index) {
      REQUIRE(
          std::equal(single[index].begin(), single[index].end(), out.begin() + static_cast<std::ptrdiff_t>(6 * index)));
    }
  }
  Bytes two(12);
  set.read(set.size() - 2, two);
  CHECK(std::equal(two.begin() + 6, two.end(), single.back().begin()));
  CHECK_THROWS_AS(set.read(set.size() - 1, two), Error);
  CHECK_THROWS_AS(set.read(UINT64_MAX, two), Error);
  CHECK_THROWS_AS(set.read(0, std::span(two).first(5)), Error);
  set.read(set.size(), {});
}

TEST_CASE("values of all are every value, whatever else is named", "[values]") {
  for (std::size_t size : {1u, 2u}) {
    const ValueSet set = build(size, {"random:10", "all", "special"});
    CHECK(std::ranges::equal(set.sources(), Sources{"all"}));
    REQUIRE(set.size() == (std::uint64_t{1} << 8 * size));
    Bytes all(static_cast<std::size_t>(set.size()) * size);
    set.read(0, all);
    for (unsigned value = 0; value < set.size(); ++value) {
      REQUIRE(all[value * size] == static_cast<std::byte>(value & 0xFF));
      if (size == 2) REQUIRE(all[value * size + 1] == static_cast<std::byte>(value >> 8));
    }
  }
  const ValueSet wide = build(4, {"all"});
  CHECK(wide.size() == std::uint64_t{1} << 32);
  Bytes last(8);
  wide.read(wide.size() - 2, last);
  CHECK(to_hex(last) == "fe ff ff ff ff ff ff ff");
}

TEST_CASE("values of all are refused where they would take too long, with the time", "[values]") {
  CHECK(error_of([] { build(5, {"all"}); }) ==
        "all: 2^40 values would take about 25 days at half a million a second; at most 17179869184 are enumerated");
  CHECK(error_of([] { build(6, {"all"}); }).find("2^48 values would take about 18 years") != std::string::npos);
  CHECK(error_of([] { build(12, {"all"}); }).find("2^96 values would take more than a million years") !=
        std::string::npos);
  CHECK(error_of([] { build(256, {"all"}); }).find("2^2048 values") != std::string::npos);
}

TEST_CASE("shards are contiguous ranges of whole chunks that make up the whole", "[values]") {
  const auto check = [](std::size_t size, const Sources& sources) {
    const std::vector<Bytes> whole = list(build(size, sources));
    for (std::uint64_t count : {1u, 2u, 3u, 4u, 5u, 7u, 16u, 100u, 255u, 256u, 257u, 1000u}) {
      if (count > 16 && whole.size() > 1000) continue;  // building the set each time takes long
      std::vector<Bytes> joined;
      std::set<std::uint64_t> sizes;
      for (std::uint64_t index = 1; index <= count; ++index) {
        const ValueSet part = build(size, sources, {index, count});
        sizes.insert((part.size() + values_per_chunk - 1) / values_per_chunk);
        REQUIRE(part.shard().index == index);
        REQUIRE(part.shard().count == count);
        REQUIRE(part.whole_size() == whole.size());
        REQUIRE(part.whole_index() == joined.size());
        REQUIRE((part.size() == 0 || part.whole_index() % values_per_chunk == 0));
        std::ranges::move(list(part), std::back_inserter(joined));
      }
      INFO("size " << size << ", " << count << " shards");
      const bool same = joined == whole;
      REQUIRE(same);
      REQUIRE(*sizes.rbegin() - *sizes.begin() <= 1);
    }
  };
  check(1, {"all"});
  check(1, {"special"});
  check(6, {"random:257"});
  check(12, {"random:100"});
  check(20, {"random:100"});
  check(2, {"all"});
  check(6, {"random:20000"});
  CHECK(build(6, {"random:10"}, {1, 65536}).size() == 10);
  CHECK(build(6, {"random:10"}, {2, 65536}).size() == 0);
  CHECK(build(6, {"random:10"}, {65536, 65536}).size() == 0);
  CHECK(build(2, {"all"}, {2, 3}).whole_index() == 3 * values_per_chunk);
  const ValueSet last = build(4, {"all"}, {7, 7});
  Bytes value(4);
  last.read(last.size() - 1, value);
  CHECK(to_hex(value) == "ff ff ff ff");
}

TEST_CASE("shards are parsed strictly", "[values]") {
  CHECK(parse_shard("1/1").index == 1);
  CHECK(parse_shard("3/12").index == 3);
  CHECK(parse_shard("3/12").count == 12);
  CHECK(error_of([] { parse_shard("0/4"); }) == "shard 0/4: the first number is from 1 to the second");
  CHECK(error_of([] { parse_shard("5/4"); }) == "shard 5/4: the first number is from 1 to the second");
  CHECK(error_of([] { parse_shard("0/0"); }) == "shard 0/0: the first number is from 1 to the second");
  CHECK(error_of([] { parse_shard("1/65537"); }) == "shard 1/65537: at most 65536 shards are possible");
  CHECK(error_of([] { parse_shard(""); }) == "shard: nothing is given; expected I/N, two decimal numbers as in 1/4");
  for (const char* junk : {"/", "1", "1/", "/4", "1/4/", "1/4/2", "-1/4", "+1/4", "1 /4", " 1/4", "1/4 ", "0x1/4",
                           "a/b", "1/18446744073709551616", "1.0/4", "1\\4"}) {
    INFO(junk);
    CHECK(error_of([&] { parse_shard(junk); }) ==
          "shard " + std::string(junk) + ": expected I/N, two decimal numbers as in 1/4");
  }
  CHECK_THROWS_AS(build(6, {"special"}, {0, 1}), Error);
  CHECK_THROWS_AS(build(6, {"special"}, {1, 0}), Error);
}

TEST_CASE("values of no possible size and fields that do not fit are refused", "[values]") {
  CHECK(error_of([] { build(0, {"special"}); }) == "packed values of 0 bytes; possible are 1 to 256");
  CHECK(error_of([] { build(257, {"special"}); }) == "packed values of 257 bytes; possible are 1 to 256");
  const auto refusal = [](const std::vector<BitField>& fields) {
    return error_of([&] { ValueSet::build(1, fields, Sources{"special"}); });
  };
  CHECK(refusal({{"a", 0, 4}}) == "fields cover 4 of a packed value's 8 bits");
  const std::string gap = "field \"b\" (bit 5, 3 wide) does not continue the fields before it, which end at bit 4 of 8";
  CHECK(refusal({{"a", 0, 4}, {"b", 5, 3}}) == gap);
  CHECK(refusal({{"a", 0, 4}, {"b", 4, 5}}).find("does not continue") != std::string::npos);
  CHECK(refusal({{"a", 0, 8}, {"b", 8, 0}}).find("does not continue") != std::string::npos);
  CHECK(refusal({{"a", 0, 0xFFFFFFFFu}}).find("does not continue") != std::string::npos);
}
