#include "harness/distinct_values.hpp"

#include "harness/error.hpp"
#include "harness/subject.hpp"
#include "harness/value_generators.hpp"
#include "harness/values.hpp"
#include "tests/catch.hpp"
#include "tests/held_memory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace bitwitness;
using bitwitness::tests::contains_text;

namespace {

// The sanitizers hold memory of their own.
#if defined(__has_feature)
#define BITWITNESS_HAS_FEATURE(name) __has_feature(name)
#else
#define BITWITNESS_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || BITWITNESS_HAS_FEATURE(address_sanitizer) || \
    BITWITNESS_HAS_FEATURE(thread_sanitizer)
constexpr bool measures_memory = false;
#else
constexpr bool measures_memory = true;
#endif

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

/// In the thread that calls, so that what is thrown comes out.
Bytes collect_here(std::span<const Bytes> parts, std::size_t packed_size, MemoryBudget& budget) {
  DistinctValues values(packed_size, budget);
  for (const Bytes& part : parts) {
    DistinctValues::Feeder feeder(values);
    feeder.add(part);
    feeder.close();
  }
  const PackedValues packed = values.finish();
  return {packed.bytes.get(), packed.bytes.get() + packed.count * packed_size};
}

/// While it lives, no temporary file can be made.
class NoTemporaryFolder {
 public:
  NoTemporaryFolder() {
    if (const char* const before = std::getenv("TMPDIR")) kept_ = before;
    setenv("TMPDIR", "/nonexistent/folder", 1);
  }
  ~NoTemporaryFolder() { kept_ ? setenv("TMPDIR", kept_->c_str(), 1) : unsetenv("TMPDIR"); }
  NoTemporaryFolder(const NoTemporaryFolder&) = delete;
  NoTemporaryFolder& operator=(const NoTemporaryFolder&) = delete;

 private:
  std::optional<std::string> kept_;
};

/// Gives what was freed back and makes what is held now the peak. Returns false where that cannot be done.
bool reset_peak() {
  if (!measures_memory) return false;
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  std::ofstream reset("/proc/self/clear_refs");
  return static_cast<bool>(reset << "5" << std::flush);
}

std::size_t files_open() {
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

}  // namespace

TEST_CASE("values of several threads are given once each, in order", "[values]") {
  for (const std::size_t packed_size : std::vector<std::size_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 24, 64}) {
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
  for (const std::size_t packed_size : std::vector<std::size_t>{6, 12, 20}) {
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
    bool is_sorted = true;
    for (std::size_t at = packed_size; at < expected.size(); at += packed_size) {
      is_sorted = is_sorted && !is_less(std::span(expected).subspan(at, packed_size),
                                        std::span(expected).subspan(at - packed_size, packed_size));
    }
    CHECK(is_sorted);
    CHECK_FALSE(large.exceeded());
    CHECK_FALSE(small.exceeded());
  }
}

TEST_CASE("what exceeds the budget really goes to a file", "[values]") {
  const NoTemporaryFolder none;
  const std::vector<Bytes> parts{some_values(6, 300'000, 250'000, 8)};
  MemoryBudget large;
  CHECK(collect_here(parts, 6, large).size() > 6 * 100'000);
  MemoryBudget small(std::uint64_t{1} << 20);
  CHECK_THROWS_WITH(collect_here(parts, 6, small),
                    contains_text("temporary file in /nonexistent/folder: cannot be made"));
  CHECK(small.held() == 0);
}

TEST_CASE("portions that are still open count", "[values]") {
  MemoryBudget budget;
  {
    DistinctValues values(6, budget);
    DistinctValues::Feeder feeder(values);
    feeder.add(Bytes(600));
    CHECK(budget.held() == 100 * sizeof(std::uint64_t));
    feeder.close();
    CHECK(budget.held() == sizeof(std::uint64_t));  // one value a hundred times
    CHECK(values.finish().count == 1);
    CHECK(budget.held() == 0);
    DistinctValues::Feeder dropped(values);
    dropped.add(Bytes(600));
  }
  CHECK(budget.held() == 0);
}

TEST_CASE("a feeder that has little writes no file because others have much", "[values]") {
  const NoTemporaryFolder none;
  MemoryBudget budget(std::uint64_t{1} << 20);
  DistinctValues much(8, budget);
  DistinctValues little(8, budget);
  DistinctValues::Feeder large(much);
  DistinctValues::Feeder small(little);
  CHECK(budget.share() == (std::uint64_t{1} << 18));
  large.add(some_values(8, 65'536, 1'000'000, 9));  // half the budget, not more
  CHECK_FALSE(budget.exceeded());
  small.add(some_values(8, 1000, 1'000'000, 10));
  CHECK(budget.exceeded());
  small.add(some_values(8, 31'000, 1'000'000, 11));  // to its share, not to it
  CHECK(budget.exceeded());
  CHECK_THROWS_WITH(small.add(some_values(8, 1000, 1'000'000, 12)), contains_text("cannot be made"));
}

TEST_CASE("a merge is not bound by what sources may list", "[values]") {
  // Never touched, so that it takes no memory.
  const ValueRows rows = ValueRows::sized(1, max_listed + 1);
  CHECK(rows.size() == max_listed + 1);
}

TEST_CASE("many spills take few descriptors and little memory", "[values]") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const bool measured = reset_peak();
    const std::uint64_t before = tests::held_memory();
    const std::size_t open = files_open();
    const rlimit limits{open + 1, open + 1};  // counting took one: two are left, for a file and what it is merged into
    if (setrlimit(RLIMIT_NOFILE, &limits) != 0) _exit(2);
    MemoryBudget budget(std::uint64_t{1} << 20);
    DistinctValues values(6, budget);
    constexpr std::uint64_t count = 5'000'000;  // of 8 bytes: about 76 spills of half a megabyte, so two passes
    {
      DistinctValues::Feeder feeder(values);
      std::vector<std::byte> bytes(6 * 1000 + 2);
      for (std::uint64_t first = 0; first < count; first += 1000) {
        for (std::uint64_t i = 0; i < 1000; ++i) {
          // Odd, so that no two of 2^48 are one.
          const std::uint64_t value = (first + i) * 0x5851f42d4c95 & 0xFFFF'FFFF'FFFF;
          std::memcpy(bytes.data() + 6 * i, &value, sizeof value);
        }
        feeder.add(std::span(bytes).first(6000));
      }
      feeder.close();
    }
    const PackedValues packed = values.finish();
    const std::uint64_t peak = tests::peak_memory();
    if (packed.count != count) _exit(3);
    for (std::uint64_t i = 1; i < count; ++i) {
      const std::byte* const at = packed.bytes.get() + 6 * i;
      if (!is_less({at - 6, 6}, {at, 6})) _exit(4);
    }
    // The budget, a portion's sorting, and the buffers of a merge; all rows would be 40 MB.
    constexpr std::uint64_t most =
        (std::uint64_t{1} << 20) + (std::uint64_t{4} << 20) + most_runs_at_once * run_buffer + (std::uint64_t{4} << 20);
    _exit(measured && peak > before + most ? 5 : 0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a set with a spilled corpus has the values, and the shards, of one in memory", "[values]") {
  const Bytes bytes = some_values(6, 400'000, 300'000, 13);
  ValueOptions options;
  options.corpus = [&](DistinctValues& values, const std::string& path) {
    DistinctValues::Feeder feeder(values);
    for (std::size_t at = 0; at < bytes.size(); at += 6000) {
      feeder.add(std::span(bytes).subspan(at, std::min<std::size_t>(6000, bytes.size() - at)));
    }
    feeder.close();
    return std::vector<std::string>{"read " + path};
  };
  const std::vector<std::string> sources{"corpus:here", "special"};
  const auto values_of = [&](Shard shard, std::uint64_t memory) {
    options.shard = shard;
    options.memory = memory;
    const ValueSet set = ValueSet::build(6, {}, sources, options);
    CHECK(set.notes().size() == 1);
    Bytes all(set.size() * 6);
    set.read(0, all);
    return all;
  };
  const Bytes expected = values_of({}, default_values_memory);
  CHECK(expected.size() > std::size_t{6} * 200'000);
  Bytes joined;
  for (std::uint64_t index = 1; index <= 3; ++index) {
    const Bytes shard = values_of({index, 3}, std::uint64_t{1} << 20);
    CHECK(shard.size() / 6 + values_per_chunk >= expected.size() / 6 / 3);
    joined.insert(joined.end(), shard.begin(), shard.end());
  }
  const bool same = joined == expected;
  CHECK(same);
  const NoTemporaryFolder none;
  CHECK_THROWS_WITH(values_of({}, std::uint64_t{1} << 20), contains_text("cannot be made"));
}

TEST_CASE("rows of other sources join the values", "[values]") {
  MemoryBudget budget;
  DistinctValues values(2, budget);
  DistinctValues::Feeder feeder(values);
  ValueRows rows(2);
  for (const auto low : std::vector<unsigned char>{7, 3, 7, 5}) rows.append_value(Bytes{std::byte{low}, std::byte{1}});
  feeder.add(std::move(rows));
  feeder.add(Bytes{std::byte{4}, std::byte{1}, std::byte{5}, std::byte{1}});
  feeder.close();
  const PackedValues packed = values.finish();
  REQUIRE(packed.count == 4);
  CHECK(to_hex({packed.bytes.get(), 8}) == "03 01 04 01 05 01 07 01");
}

TEST_CASE("lists are counted together, a value of several once", "[values]") {
  const std::vector<Bytes> parts{
      some_values(12, 3000, 2000, 14), some_values(12, 10, 5, 15), {}, some_values(12, 4000, 2500, 16)};
  std::vector<PackedValues> lists;
  for (const Bytes& part : parts) {
    MemoryBudget budget;
    DistinctValues values(12, budget);
    DistinctValues::Feeder feeder(values);
    feeder.add(part);
    feeder.close();
    lists.push_back(values.finish());
  }
  const std::uint64_t together = expected_of(parts, 12, 12).size() / 12;
  CHECK(count_distinct(lists, 12) == together);
  CHECK(together < lists[0].count + lists[1].count + lists[3].count);
  CHECK(count_distinct(std::span(lists).first(1), 12) == lists[0].count);
  CHECK(count_distinct({}, 12) == 0);
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
  const NoTemporaryFolder none;
  std::string message;
  try {
    const SpillFile file;
  } catch (const Error& error) {
    message = error.what();
  }
  CHECK(message == "temporary file in /nonexistent/folder: cannot be made: No such file or directory");
}

TEST_CASE("a temporary file that ends too early says so", "[values]") {
  SpillFile file;
  CHECK(file.claim(3) == 0);
  file.write(0, Bytes(3, std::byte{7}));
  CHECK(file.size() == 3);
  Bytes read(3);
  file.read(0, read);
  CHECK(read == Bytes(3, std::byte{7}));
  errno = EIO;  // left by something else
  CHECK_THROWS_WITH(file.read(1, read), contains_text("cannot be read: it ends before what was asked for"));
}
