// Mutated objects of every format, given to every reader: nothing crashes, allocates, or is accepted and then written
// back otherwise. A bounded loop; tests/animation_fuzzer.cpp looks further.
#include "decoders/scan.hpp"
#include "tests/animation_samples.hpp"
#include "tests/catch.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace {

std::size_t allocations = 0;

}  // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size == 0 ? 1 : size);
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace bitwitness::tests {
namespace {

using namespace decoders;

constexpr std::uint64_t seed = 0x5eed5a5a05;

Bytes any_object(Random& random) {
  switch (random.below(5)) {
    case 0:
      return make_sws(random).bytes;
    case 1:
      return make_rr(random).bytes;
    case 2:
      return make_mab(random).bytes;
    case 3:
      return make_anim_set(random, 4);
    default: {
      Bytes blob = random.bytes(random.below(20));
      for (std::size_t parts = 1 + random.below(3); parts > 0; --parts) {
        const Bytes more = random.one_in(2) ? make_sws(random).bytes : make_rr(random).bytes;
        const Bytes front = from_hex("7f06a30f");
        blob.insert(blob.end(), front.begin(), front.end());
        blob.insert(blob.end(), more.begin(), more.end());
      }
      return blob;
    }
  }
}

void mutate(Bytes& bytes, Random& random) {
  constexpr std::array<std::uint32_t, 12> words{0,          1,          0xFF,       0xFFFF,     0x7FFFFFFF, 0x80000000,
                                                0xFFFFFFFF, 0x0181EFE8, 0x653CAA76, 0x0FA3067F, 0x31984F55, 0x10000};
  for (std::size_t changes = random.below(4); changes > 0 && bytes.size() > 8; --changes) {
    const std::size_t at = random.below(bytes.size() - 4);
    const auto here = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    switch (random.below(6)) {
      case 0:
        bytes[at] ^= std::byte(1U << random.below(8));
        break;
      case 1:
        set(bytes, at, words[random.below(words.size())]);
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.erase(here, here + static_cast<std::ptrdiff_t>(1 + random.below(4)));
        break;
      case 4: {
        const Bytes more(here, here + 4);
        bytes.insert(here, more.begin(), more.end());
        break;
      }
      default:
        bytes[at] = std::byte(static_cast<std::uint8_t>(random.below(8)));
    }
  }
}

// Reads without keeping anything, as the loop over allocations needs.
std::size_t read_all(std::span<const std::byte> bytes) {
  std::size_t accepted = 0;
  accepted += bool(read_sws_animation(bytes));
  accepted += bool(read_sws_anim_set(bytes));
  accepted += bool(read_sws_anim_pair(bytes));
  accepted += bool(read_rr_animation(bytes));
  accepted += bool(read_rr_anim_component(bytes));
  accepted += bool(read_mab(bytes));
  accepted += scan(bytes, {}).objects != 0;
  return accepted;
}

}  // namespace

TEST_CASE("mutated objects are read or refused") {
  Random random(seed);
  std::size_t clean = 0;
  for (int round = 0; round < 20000; ++round) {
    Bytes bytes = any_object(random);
    mutate(bytes, random);
    const std::string wrong = check_any_bytes(bytes);
    if (wrong.empty()) {
      ++clean;
      continue;
    }
    FAIL("seed " << seed << ", round " << round << ": " << wrong);
  }
  CHECK(clean == 20000);
}

TEST_CASE("no count makes a reader allocate") {
  Random random(seed);
  std::size_t accepted = 0;
  for (const Bytes& whole : {make_sws(random).bytes, make_rr(random).bytes, make_mab(random).bytes,
                             make_anim_set(random, 4), random.bytes(300)}) {
    for (std::size_t at = 0; at + 4 <= whole.size(); ++at) {
      Bytes hostile = whole;
      set<std::uint32_t>(hostile, at, 0xFFFFFFFF);
      const std::size_t before = allocations;
      accepted += read_all(hostile);
      const std::size_t made = allocations - before;
      INFO("word at " << at);
      REQUIRE(made == 0);
    }
    const std::size_t before = allocations;
    accepted += read_all(Bytes(whole.size(), std::byte{0xFF}));
    CHECK(allocations - before == 1);  // the bytes themselves
  }
  CHECK(accepted > 100);
}

}  // namespace bitwitness::tests
