// Vector files: their size, and replay against the least that it could be. Printed, never asserted.

#include "decoders/registry.hpp"
#include "harness/cli/decoder_subject.hpp"
#include "harness/file_bytes.hpp"
#include "harness/values.hpp"
#include "harness/vectors/vector_file.hpp"
#include "tests/bench/in_turn.hpp"
#include "tests/catch.hpp"
#include "tests/random.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

using namespace bitwitness;
using bench::in_turn;
using tests::Random;

namespace {

// As many as the distinct rotation values of Shaun White Skateboarding (seed 000).
constexpr std::size_t value_count = 891'984;
constexpr std::size_t packed_size = 6;
constexpr std::size_t word_count = 4;

struct Recorded {
  std::vector<std::byte> packed;
  std::vector<std::uint32_t> words;
  std::vector<OutcomeKind> outcomes = std::vector<OutcomeKind>(value_count, OutcomeKind::returned);
};

Subject packed_quat48() {
  return cli::subject_of(*decoders::find_decoder("packed_quat48"));
}

Recorded record(std::vector<std::byte> packed) {
  const Subject subject = packed_quat48();
  Recorded recorded;
  recorded.packed = std::move(packed);
  recorded.words.resize(value_count * word_count);
  for (std::size_t i = 0; i < value_count; ++i) {
    subject.decode(std::span(recorded.packed).subspan(i * packed_size, packed_size),
                   std::span(recorded.words).subspan(i * word_count, word_count));
  }
  return recorded;
}

Recorded from_sources() {
  const ValueSet values = ValueSet::build(packed_size, packed_quat48().fields,
                                          std::vector<std::string>{"special", "fields", "random:1000000"});
  std::vector<std::byte> packed(value_count * packed_size);
  values.read(0, packed);
  return record(std::move(packed));
}

Recorded from_random() {
  Random random(7);
  std::set<std::uint64_t> drawn;
  while (drawn.size() < value_count) drawn.insert(random.next() >> 16);
  std::vector<std::byte> packed(value_count * packed_size);
  std::size_t at = 0;
  for (const std::uint64_t value : drawn) {
    std::memcpy(packed.data() + at, &value, packed_size);
    at += packed_size;
  }
  return record(std::move(packed));
}

std::vector<std::byte> file_of(const Recorded& recorded, VectorDetail detail) {
  const Subject subject = packed_quat48();
  VectorHeader header;
  header.routine = header.decoder = subject.name;
  header.witness = "unicorn";
  header.packed_size = packed_size;
  header.word_count = word_count;
  header.word_names = subject.word_names;
  header.fields = subject.fields;
  header.count = value_count;
  std::vector<std::byte> file;
  VectorWriter writer(header, detail,
                      [&](std::span<const std::byte> bytes) { file.insert(file.end(), bytes.begin(), bytes.end()); });
  writer.add(recorded.packed, recorded.outcomes, recorded.words);
  writer.finish();
  return file;
}

// Calls `work` with every block's number, on so many threads.
void on_threads(unsigned threads, std::size_t blocks, const std::function<void(std::atomic<std::size_t>& next)>& work) {
  static_cast<void>(blocks);
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back([&] { work(next); });
  work(next);
}

// Opens, checks and decodes; compares with the decoder when there is one. Returns how many values agree.
std::size_t replay(std::span<const std::byte> bytes, unsigned threads, const Subject* subject) {
  const VectorFile file = VectorFile::parse(bytes, "bench");
  std::atomic<std::size_t> agreed{0};
  on_threads(threads, file.block_count(), [&](std::atomic<std::size_t>& next) {
    VectorBlock block;
    std::array<std::uint32_t, word_count> words{};
    std::size_t same = 0;
    for (std::size_t index = next++; index < file.block_count(); index = next++) {
      file.read(block, index);
      if (subject == nullptr) continue;
      for (std::size_t i = 0; i < block.outcomes.size(); ++i) {
        subject->decode(std::span(block.packed).subspan(i * packed_size, packed_size), words);
        if (std::memcmp(words.data(), block.words.data() + i * word_count, sizeof words) == 0) ++same;
      }
    }
    agreed += same;
  });
  return agreed;
}

double bits(std::size_t bytes) {
  return 8.0 * static_cast<double>(bytes) / static_cast<double>(value_count);
}

}  // namespace

TEST_CASE("size of vector files", "[!benchmark][replay]") {
  for (const bool random : {false, true}) {
    const Recorded recorded = random ? from_random() : from_sources();
    std::vector<std::byte> words;
    std::vector<std::byte> digests;
    const double time = bench::seconds([&] { words = file_of(recorded, VectorDetail::words); });
    const double digest_time = bench::seconds([&] { digests = file_of(recorded, VectorDetail::digests); });
    const std::size_t groups = (value_count + vector_group_values - 1) / vector_group_values * sizeof(Sha256Bytes);
    fmt::print("{} values of packed_quat48, {}: with words {:.2f} MB, digests only {:.2f} MB\n", value_count,
               random ? "drawn evenly" : "special, fields and random", static_cast<double>(words.size()) / 1e6,
               static_cast<double>(digests.size()) / 1e6);
    fmt::print("  bits a value: {:.1f} values and frame, {:.1f} words (of 128), {:.1f} digests\n",
               bits(digests.size() - groups), bits(words.size()) - bits(digests.size() - groups), bits(groups));
    fmt::print("  writing: {:.2f} s with words, {:.2f} s digests only\n", time, digest_time);
    CHECK(replay(words, 1, nullptr) == 0);
  }
}

TEST_CASE("replay against the bare decoder loop", "[!benchmark][replay]") {
  const Recorded recorded = from_sources();
  const std::vector<std::byte> file = file_of(recorded, VectorDetail::words);
  const Subject subject = packed_quat48();
  std::size_t one = 0;
  std::size_t two = 0;
  std::uint32_t sum = 0;
  const auto times = in_turn({
      [&] { static_cast<void>(VectorFile::parse(file, "bench")); },
      [&] { replay(file, 1, nullptr); },
      [&] { replay(file, 2, nullptr); },
      [&] { one = replay(file, 1, &subject); },
      [&] { two = replay(file, 2, &subject); },
      [&] {
        std::array<std::uint32_t, word_count> words{};
        for (std::size_t i = 0; i < value_count; ++i) {
          subject.decode(std::span(recorded.packed).subspan(i * packed_size, packed_size), words);
          sum += words[0];
        }
      },
  });
  CHECK(one == value_count);
  CHECK(two == value_count);
  CHECK(sum != 0);
  fmt::print("{} values: open {:.1f} ms; open, check and decompress {:.1f} ms, on two threads {:.1f} ms\n", value_count,
             times[0] * 1e3, times[1] * 1e3, times[2] * 1e3);
  fmt::print("  replay {:.1f} ms, on two threads {:.1f} ms; bare decoder loop {:.1f} ms\n", times[3] * 1e3,
             times[4] * 1e3, times[5] * 1e3);
  fmt::print("  replay on one thread / (decompression + bare loop): {:.2f} x its speed; two threads / one: {:.2f} x\n",
             (times[1] + times[5]) / times[3], times[3] / times[4]);
}
