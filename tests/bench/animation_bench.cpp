// Speed of reading, of gathering distinct values and of native decoding, as ratios within one run where there is
// something to compare with. Nothing is asserted about time: the machine may be busy.

#include "decoders/packed_quat48.hpp"
#include "decoders/packed_quat48_batch.hpp"
#include "decoders/registry.hpp"
#include "decoders/rr_animation.hpp"
#include "decoders/scan.hpp"
#include "decoders/sws_animation.hpp"
#include "harness/distinct_values.hpp"
#include "harness/file_bytes.hpp"
#include "harness/sha256.hpp"
#include "harness/value_generators.hpp"
#include "tests/bench/in_turn.hpp"
#include "tests/catch.hpp"
#include "tests/fixtures/corpus/corpus.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace bitwitness;
using bench::in_turn;
using bench::seconds;

namespace {

namespace fs = std::filesystem;

constexpr double gigabyte = 1e9;

/// Clips of one game side by side in one file, often enough to be worth timing.
class ClipFile {
 public:
  explicit ClipFile(const std::string& game) {
    fs::remove_all(folder_);
    (void)corpus::make_corpus(folder_, {});
    std::string all;
    std::vector<std::size_t> sizes;
    const std::vector<std::string> paths{(folder_ / game).string()};
    for (const std::string& path : list_files(paths).files) {
      if (!path.ends_with(".anim")) continue;
      const FileBytes file = FileBytes::open(path);
      all.append(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
      sizes.push_back(file.bytes().size());
    }
    std::ofstream out(path_, std::ios::binary);
    std::size_t at = 0;
    for (std::size_t copy = 0; copy < least_bytes / all.size() + 1; ++copy) {
      out << all;
      for (const std::size_t size : sizes) {
        clips_.emplace_back(at, size);
        at += size;
      }
    }
    REQUIRE(out.flush());
  }
  ~ClipFile() { fs::remove_all(folder_); }
  ClipFile(const ClipFile&) = delete;
  ClipFile& operator=(const ClipFile&) = delete;

  [[nodiscard]] std::string path() const { return path_.string(); }

  /// Offset and size of each clip.
  [[nodiscard]] const std::vector<std::pair<std::size_t, std::size_t>>& clips() const { return clips_; }

 private:
  static constexpr std::size_t least_bytes = 300'000'000;
  fs::path folder_ = fs::temp_directory_path() / ("bitwitness-bench-" + std::to_string(getpid()));
  fs::path path_ = folder_ / "clips";
  std::vector<std::pair<std::size_t, std::size_t>> clips_;
};

/// Adler-32, a checksum that files carry: two sums over bytes.
std::uint32_t adler32(std::span<const std::byte> bytes) {
  constexpr std::uint32_t modulus = 65521;
  constexpr std::size_t block = 5552;  // the most bytes whose sums fit 32 bits
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  while (!bytes.empty()) {
    for (const std::byte byte : bytes.first(std::min(block, bytes.size()))) {
      a += std::to_integer<std::uint32_t>(byte);
      b += a;
    }
    a %= modulus;
    b %= modulus;
    bytes = bytes.subspan(std::min(block, bytes.size()));
  }
  return b << 16 | a;
}

std::uint64_t sum64(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    sum += word;
  }
  return sum;
}

template <typename Read>
void time_reading(const std::string& game, Read read) {
  const ClipFile file(game);
  std::uint64_t keys = 0;
  std::uint64_t objects = 0;
  std::uint64_t sums = 0;
  std::uint64_t bytes = 0;
  const auto times = in_turn({
      [&] {
        const FileBytes mapped = FileBytes::open(file.path());
        for (const auto& [at, size] : file.clips()) keys += read(mapped.bytes().subspan(at, size));
      },
      [&] {
        const FileBytes mapped = FileBytes::open(file.path());
        sums += adler32(mapped.bytes());
      },
      [&] {
        const FileBytes mapped = FileBytes::open(file.path());
        bytes = mapped.bytes().size();
        sums += sum64(mapped.bytes());
      },
      [&] {
        const FileBytes mapped = FileBytes::open(file.path());
        objects = decoders::scan(mapped.bytes(), {}).objects;
      },
  });
  CHECK(keys > 0);
  CHECK(sums > 0);
  CHECK(objects > 0);
  const auto rate = [&](std::size_t i) { return static_cast<double>(bytes) / times[i] / gigabyte; };
  fmt::print("{}: {} MB mapped anew each time, {} clips\n", game, bytes / 1'000'000, file.clips().size());
  fmt::print("  read {:.2f} GB/s: {:.2f} x Adler-32 ({:.2f} GB/s), {:.2f} x a sum of 64-bit words ({:.2f} GB/s)\n",
             rate(0), times[1] / times[0], rate(1), times[2] / times[0], rate(2));
  fmt::print("  scan {:.2f} GB/s, {} objects\n", rate(3), objects);
}

/// Keys of six bytes, drawn from half as many different ones.
std::vector<std::byte> draw_keys(std::uint64_t keys) {
  RandomWords random(1);
  std::vector<std::byte> bytes(keys * 6 + 2);
  for (std::uint64_t key = 0; key < keys; ++key) {
    const std::uint64_t word = RandomWords(random.next() % (keys / 2)).next() >> 16;
    std::memcpy(bytes.data() + 6 * key, &word, sizeof word);
  }
  bytes.resize(keys * 6);
  return bytes;
}

/// Adds keys as tracks hold them: a hundred at a time.
void feed(DistinctValues& values, std::span<const std::byte> keys) {
  constexpr std::size_t track = 600;
  DistinctValues::Feeder feeder(values);
  for (std::size_t at = 0; at < keys.size(); at += track) {
    feeder.add(keys.subspan(at, std::min(track, keys.size() - at)));
  }
  feeder.close();
}

}  // namespace

TEST_CASE("reading against a checksum of the same bytes", "[!benchmark][reading]") {
  time_reading("sws", [](std::span<const std::byte> bytes) {
    const auto clip = decoders::read_sws_animation(bytes);
    return clip ? clip->key_count : 0;
  });
  time_reading("rr", [](std::span<const std::byte> bytes) {
    const auto clip = decoders::read_rr_animation(bytes);
    return clip ? clip->key_count : 0;
  });
}

TEST_CASE("distinct values of fifty million keys", "[!benchmark][distinct]") {
  constexpr std::uint64_t keys = 50'000'000;
  for (const unsigned threads : {1U, 2U}) {
    // In a process of its own, whose memory can be told.
    std::fflush(stdout);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const std::vector<std::byte> bytes = draw_keys(keys);
      const std::size_t part = bytes.size() / threads;
      MemoryBudget budget;
      std::uint64_t count = 0;
      const double time = seconds([&] {
        DistinctValues values(6, budget);
        {
          std::vector<std::jthread> feeders;
          for (unsigned i = 0; i < threads; ++i) {
            feeders.emplace_back([&, i] { feed(values, std::span(bytes).subspan(i * part, part)); });
          }
        }
        count = values.finish().count;
      });
      fmt::print("{} keys, {} distinct, {} thread{}: {:.2f} s", keys, count, threads, threads == 1 ? "" : "s", time);
      std::fflush(stdout);
      _exit(0);
    }
    int status = 0;
    rusage usage{};
    REQUIRE(wait4(child, &status, 0, &usage) == child);
    CHECK(status == 0);
    fmt::print(", at most {:.0f} MB beside the keys\n",
               static_cast<double>(usage.ru_maxrss) * 1024 / 1e6 - 6e-6 * static_cast<double>(keys));
  }
}

TEST_CASE("native decoding of packed_quat48", "[!benchmark][decoding]") {
  constexpr std::size_t count = 4'000'000;
  const decoders::Decoder& decoder = *decoders::find_decoder("packed_quat48");
  std::vector<std::byte> packed(count * 6 + 2);
  RandomWords random(1);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t word = random.next() >> 16;
    std::memcpy(packed.data() + 6 * i, &word, sizeof word);
  }
  packed.resize(count * 6);
  std::vector<std::uint32_t> one(count * 4);
  std::vector<std::uint32_t> scalar(count * 4);
  std::vector<std::uint32_t> batch(count * 4);
  const auto times = in_turn({
      [&] {
        for (std::size_t i = 0; i < count; ++i) {
          decoder.decode(std::span(packed).subspan(6 * i, 6), std::span(one).subspan(4 * i, 4));
        }
      },
      [&] { decoders::packed_quat48::decode_batch(packed, scalar, decoders::packed_quat48::BatchPath::scalar); },
      [&] { decoders::packed_quat48::decode_batch(packed, batch); },
  });
  const bool same = one == scalar && one == batch;
  CHECK(same);
  const auto rate = [&](std::size_t i) { return static_cast<double>(count) / times[i] / 1e6; };
  fmt::print(
      "packed_quat48 through the registry {:.0f} M values/s, inlined {:.0f}, batch {:.0f} ({:.1f} x, {:.1f} x)\n",
      rate(0), rate(1), rate(2), times[0] / times[2], times[1] / times[2]);
}
