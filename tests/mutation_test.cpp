// Every change to packed_quat48 that changes a result fails replay of the recorded vectors.

#include "decoders/packed_quat48.hpp"
#include "harness/replaying.hpp"
#include "harness/vectors/vector_file.hpp"
#include "tests/catch.hpp"
#include "tests/mutants.hpp"
#include "tests/random.hpp"

#include <algorithm>
#include <array>
#include <iostream>
#include <string>
#include <vector>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

constexpr std::size_t random_values = std::size_t{1} << 17;
constexpr std::size_t packed_size = decoders::packed_quat48::packed_size;

Subject subject_of(const Mutant& mutant) {
  Subject subject;
  subject.name = mutant.change;
  subject.packed_size = packed_size;
  subject.word_names = {"x", "y", "z", "w"};
  subject.decode = [decode = mutant.decode](std::span<const std::byte> packed, std::span<std::uint32_t> words) {
    decode(packed, MutantWords(words));
  };
  return subject;
}

std::vector<std::byte> random_bytes() {
  std::vector<std::byte> bytes(random_values * packed_size);
  Random random(20261130);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next() & 0xff);
  return bytes;
}

bool changes_a_result(const Mutant& mutant, const std::vector<std::byte>& values) {
  std::array<std::uint32_t, 4> expected{};
  std::array<std::uint32_t, 4> words{};
  for (std::size_t at = 0; at < values.size(); at += packed_size) {
    const auto value = std::span(values).subspan(at, packed_size);
    decoders::packed_quat48::decode(value, expected);
    words = {0xdead, 0xdead, 0xdead, 0xdead};
    mutant.decode(value, MutantWords(words));
    if (words != expected) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("every change to packed_quat48 that changes a result fails replay") {
  const std::vector<VectorFile> files = {
      VectorFile::open(BITWITNESS_SOURCE_DIR "/vectors/recorded/stand_in_x87.packed_quat48.bwv"),
      VectorFile::open(BITWITNESS_SOURCE_DIR "/vectors/recorded/stand_in_sse2.packed_quat48.bwv")};
  const std::vector<std::byte> values = random_bytes();
  const auto all = mutants();
  REQUIRE(all.size() > 300);
  for (const VectorFile& file : files) {
    INFO(file.name());
    CHECK(replay(file, subject_of(all.front())).report.verdict() == Verdict::agree);
    std::size_t killed = 0;
    std::vector<std::string> equivalent;
    std::vector<std::string> survivors;
    for (const Mutant& mutant : all.subspan(1)) {
      if (replay(file, subject_of(mutant)).report.verdict() == Verdict::differ) {
        ++killed;
      } else {
        (changes_a_result(mutant, values) ? survivors : equivalent).emplace_back(mutant.change);
      }
    }
    std::string told = std::to_string(all.size() - 1) + " changes, " + std::to_string(killed) + " told by replay, " +
                       std::to_string(equivalent.size()) + " change no result:\n";
    for (const std::string& change : equivalent) told += "  " + change + '\n';
    INFO(told);
    CHECK(survivors.empty());
    for (const std::string& change : survivors) CHECK(change == "told by replay");
    // Orders of exact differences, sums of bits that are never both set, and the like: counted, so that none hides
    // here.
    CHECK(equivalent.size() == 10);
    std::cout << all.size() - 1 << " changes, " << killed << " told by replay of " << file.header().image_name << '\n';
  }
}
