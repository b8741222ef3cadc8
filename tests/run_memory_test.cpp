#include "harness/chunk_digests.hpp"
#include "harness/verification.hpp"
#include "tests/catch.hpp"
#include "tests/doubling.hpp"
#include "tests/held_memory.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

// What a run holds must not grow with its values.

#if BITWITNESS_MEASURES_MEMORY
#include <malloc.h>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

/// Gives a u32 back; every 4096th value is a failure, every 4099th is observed.
class EchoMachine final : public Machine {
 public:
  void run(Batch& out, std::span<const std::byte> packed, const Environment&) override {
    const std::size_t count = packed.size() / 4;
    out.words.resize(count);
    std::memcpy(out.words.data(), packed.data(), packed.size());
    out.outcomes.assign(count, OutcomeKind::returned);
    out.incidents.clear();
    for (std::size_t i = 0; i < count; ++i) {
      if (out.words[i] % 4096 == 0) {
        out.outcomes[i] = OutcomeKind::faulted;
        out.incidents.push_back({i, OutcomeKind::faulted, 0x401000, "nop", "faults"});
      }
      if (out.words[i] % 4099 == 0) {
        Observation& observation = observations_["hums"];
        if (observation.values++ == 0) observation.first_value.assign(packed.begin(), packed.begin() + 4);
      }
    }
  }
  void run_alone(Batch& out, std::span<const std::byte> packed, const Environment& environment) override {
    run(out, packed, environment);
  }
  [[nodiscard]] const std::map<std::string, Observation>& observations() const override { return observations_; }
  void forget_observations() override { observations_.clear(); }
  [[nodiscard]] std::string_view witness() const override { return "echo"; }

 private:
  std::map<std::string, Observation> observations_;
};

}  // namespace

TEST_CASE("a run over all values of 32 bits holds no more after many chunks than after a few", "[values]") {
  const Image image = any_image();
  Subject subject;
  subject.name = "echo";
  subject.packed_size = 4;
  subject.word_names = {"word"};
  subject.fields = {{"value", 0, 32}};
  subject.decode = [](std::span<const std::byte> packed, std::span<std::uint32_t> words) {
    std::memcpy(words.data(), packed.data(), 4);
  };
  std::stop_source stop;
  RunOptions options;
  options.jobs = 2;
  options.make_machine = [](const Image&, const Routine&, const MachineOptions&) {
    return std::make_unique<EchoMachine>();
  };
  options.stop = stop.get_token();
  std::uint64_t after_few = 0;
  std::uint64_t after_many = 0;
  // Asked after each chunk; a run that is kept takes 32 bytes a chunk besides.
  RunKeeping keeping;
  constexpr std::uint64_t few = 200;
  constexpr std::uint64_t many = 4200;
  std::uint64_t chunks = 0;
  const auto look = [&] {
    if (++chunks == few) after_few = held_memory();
    if (chunks == many) {
      after_many = held_memory();
      stop.request_stop();
    }
    return false;
  };
  keeping.is_due = look;
  keeping.keep = [](const RunState&) {};
  options.keeping = &keeping;
  const RunReport report = verify(image, {"echo", 0x103f1d0, parse_signature("cdecl(value u32) -> u32")}, subject, {},
                                  ValueSet::build(4, subject.fields, std::vector<std::string>{"all"}), options);
  CHECK(report.counts.run >= many * values_per_chunk);
  CHECK(report.counts.faulted >= many * 2);
  REQUIRE(after_few > 0);
  const std::uint64_t more = after_many - std::min(after_many, after_few);
  std::cout << "4000 chunks more took " << more << " bytes\n";
  // Twice 32 bytes while the list of digests grows.
  CHECK(more <= 2 * 32 * (many - few) + 100'000);
}

TEST_CASE("chunks ahead of one that takes long hold 33 bytes each, and nothing once it is there", "[values]") {
  constexpr std::uint64_t count = 200'000;
  malloc_trim(0);
  ChunkDigests digests(1, false);
  const std::uint64_t before = held_memory();
  REQUIRE(before > 0);
  const std::vector<Sha256Bytes> one(1);
  for (std::uint64_t chunk = 1; chunk <= count; ++chunk) digests.add(chunk, one);
  CHECK(held_memory() - before <= count * 40);
  CHECK(digests.count() == count);
  CHECK(digests.ranges() == std::vector<std::pair<std::uint64_t, std::uint64_t>>{{1, count + 1}});
  digests.add(0, one);
  malloc_trim(0);
  const std::uint64_t after = held_memory();
  CHECK(after - std::min(after, before) <= 400'000);
  CHECK(digests.ranges() == std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0, count + 1}});
}
#else
TEST_CASE("a run over all values of 32 bits holds no more after many chunks than after a few", "[values]") {
  bitwitness::tests::skip("memory is measured with glibc and without sanitizers only");
}
#endif
