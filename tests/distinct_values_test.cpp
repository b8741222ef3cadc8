#include "harness/distinct_values.hpp"

#include "harness/error.hpp"
#include "harness/subject.hpp"
#include "harness/value_generators.hpp"
#include "harness/values.hpp"
#include "tests/catch.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace bitwitness;

namespace {

using Bytes = std::vector<std::byte>;

/// Values of few distinct ones, so that repeated ones meet within a portion, between portions and between threads.
Bytes some_values(std::size_t packed_size, std::size_t count, std::uint64_t different, std::uint64_t seed) {
  RandomWords random(seed);
  Bytes bytes(count * packed_size);
  for (std::size_t i = 0; i < count; ++i) {
    RandomWords value(random.next() % different);
    for (std::size_t at = 0; at < packed_size; ++at) {
      bytes[i * packed_size + at] = static_cast<std::byte>(static_cast<unsigned char>(value.next() >> 56));
    }
  }
  return bytes;
}

struct Less {
  bool operator()(const Bytes& a, const Bytes& b) const { return is_less(a, b); }
};

Bytes expected_of(std::span<const Bytes> parts, std::size_t packed_size, std::size_t step) {
  std::set<Bytes, Less> all;
  for (const Bytes& part : parts) {
    for (std::size_t at = 0; at + packed_size <= part.size(); at += step) {
      all.insert(Bytes(part.begin() + static_cast<std::ptrdiff_t>(at),
                       part.begin() + static_cast<std::ptrdiff_t>(at + packed_size)));
    }
  }
  Bytes joined;
  for (const Bytes& value : all) joined.insert(joined.end(), value.begin(), value.end());
  return joined;
}

Bytes collect(std::span<const Bytes> parts, std::size_t packed_size, std::size_t step, MemoryBudget& budget) {
  DistinctValues values(packed_size, budget);
  {
    std::vector<std::jthread> threads;
    for (const Bytes& part : parts) {
      threads.emplace_back([&] {
        DistinctValues::Feeder feeder(values);
        // In uneven pieces, as tracks come; a piece ends with a whole value.
        const std::size_t whole = std::size_t{997} * step;
        for (std::size_t at = 0; at < part.size(); at += whole) {
          const std::size_t size = std::min(whole + packed_size - step, part.size() - at);
          feeder.add(std::span(part).subspan(at, size), step == packed_size ? 0 : step);
        }
        feeder.close();
      });
    }
  }
  const PackedValues packed = values.finish();
  if (packed.count == 0) return {};
  return {packed.bytes.get(), packed.bytes.get() + packed.count * packed_size};
}

std::size_t files_open() {
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

}  // namespace

TEST_CASE("values of several threads are given once each, in order", "[values]") {
  for (const std::size_t packed_size : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 9U, 12U, 16U, 17U, 24U, 64U}) {
    INFO("size " << packed_size);
    const std::vector<Bytes> parts{some_values(packed_size, 20'000, 9'000, 1),
                                   some_values(packed_size, 7, 3, 2),
                                   {},
                                   some_values(packed_size, 15'000, 9'000, 3)};
    MemoryBudget budget;
    const bool same = collect(parts, packed_size, packed_size, budget) == expected_of(parts, packed_size, packed_size);
    CHECK(same);  // printing such values would take minutes
  }
}

TEST_CASE("values may overlap, as pairs of consecutive keys do", "[values]") {
  const std::vector<Bytes> parts{some_values(6, 30'000, 20'000, 4), some_values(6, 1, 1, 5)};
  MemoryBudget budget;
  const Bytes found = collect(parts, 12, 6, budget);
  const bool same = found == expected_of(parts, 12, 6);
  CHECK(same);
  CHECK(found.size() > std::size_t{12} * 25'000);
}

TEST_CASE("what exceeds the budget goes to files and comes back the same", "[values]") {
  for (const std::size_t packed_size : {6U, 12U, 20U}) {
    INFO("size " << packed_size);
    const std::vector<Bytes> parts{some_values(packed_size, 1'500'000, 1'000'000, 6),
                                   some_values(packed_size, 600'000, 1'000'000, 7)};
    MemoryBudget large;
    const std::size_t open_before = files_open();
    const Bytes expected = collect(parts, packed_size, packed_size, large);
    CHECK(files_open() == open_before);
    MemoryBudget small(std::uint64_t{1} << 20);
    const bool same = collect(parts, packed_size, packed_size, small) == expected;
    CHECK(same);
    CHECK(files_open() == open_before);
    CHECK(expected.size() / packed_size > 700'000);
    CHECK(std::ranges::is_sorted(std::views::iota(std::size_t{0}, expected.size() / packed_size), [&](auto a, auto b) {
      return is_less(std::span(expected).subspan(a * packed_size, packed_size),
                     std::span(expected).subspan(b * packed_size, packed_size));
    }));
    CHECK_FALSE(large.exceeded());
    CHECK_FALSE(small.exceeded());
  }
}

TEST_CASE("rows of other sources join the values", "[values]") {
  MemoryBudget budget;
  DistinctValues values(2, budget);
  DistinctValues::Feeder feeder(values);
  ValueRows rows(2);
  for (const std::byte low : {std::byte{7}, std::byte{3}, std::byte{7}, std::byte{5}}) {
    rows.append_value(Bytes{low, std::byte{1}});
  }
  feeder.add(std::move(rows));
  feeder.add(Bytes{std::byte{4}, std::byte{1}, std::byte{5}, std::byte{1}});
  feeder.close();
  const PackedValues packed = values.finish();
  REQUIRE(packed.count == 4);
  CHECK(to_hex({packed.bytes.get(), 8}) == "03 01 04 01 05 01 07 01");
}

TEST_CASE("no values are none", "[values]") {
  MemoryBudget budget;
  DistinctValues values(6, budget);
  DistinctValues::Feeder feeder(values);
  feeder.add(Bytes(5));
  feeder.close();
  CHECK(values.finish().count == 0);
}

TEST_CASE("a folder for temporary files that is not there is named", "[values]") {
  const char* const before = std::getenv("TMPDIR");
  const std::optional<std::string> kept = before == nullptr ? std::nullopt : std::optional<std::string>(before);
  setenv("TMPDIR", "/nonexistent/folder", 1);
  std::string message;
  try {
    const SpillFile file;
  } catch (const Error& error) {
    message = error.what();
  }
  kept ? setenv("TMPDIR", kept->c_str(), 1) : unsetenv("TMPDIR");
  CHECK(message == "temporary file in /nonexistent/folder: cannot be made: No such file or directory");
}
