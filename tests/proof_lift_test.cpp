// What is lifted from machine code equals what the machine gives, bit for bit, on every path that is found.

#include "harness/error.hpp"
#include "harness/proof/evaluate.hpp"
#include "harness/proof/lifter.hpp"
#include "tests/catch.hpp"
#include "tests/random.hpp"
#include "tests/real_executables.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

using namespace bitwitness;
using proof::Lift;
using proof::Lifter;
using proof::NodeId;
using proof::Store;

namespace {

/// Words and conditions of one path, ready to be evaluated.
struct Path {
  Lift lift;
  std::unique_ptr<proof::Evaluation> evaluation;  // words, then conditions
  std::size_t values = 0;                         // that took it

  bool holds() const {
    for (std::size_t i = 0; i < lift.path.size(); ++i) {
      if (((*evaluation)[lift.words.size() + i] != 0) != lift.path[i].taken) return false;
    }
    return true;
  }
};

struct Trial {
  std::vector<Path> paths;
  std::size_t values = 0;
  std::size_t differences = 0;
  std::string first_failure;
};

std::vector<std::byte> draw(tests::Random& random, std::size_t size) {
  std::vector<std::byte> value = random.bytes(size);
  // Words near the middle, so that three squares leave something for the fourth; one value in three.
  if (size % 2 == 0 && random.one_in(3)) {
    for (std::size_t i = 0; i < size; i += 2) {
      const std::uint32_t word = random.between(16384 - 9000, 16384 + 9000) | (random.one_in(2) ? 0x8000U : 0U);
      value[i] = static_cast<std::byte>(word & 0xff);
      value[i + 1] = static_cast<std::byte>(word >> 8);
    }
  }
  return value;
}

/// Runs random values on a machine and on lifted expressions. Each value takes exactly one path; one that takes none of
/// those known so far is lifted.
Trial try_routine(Store& store, const Image& image, const Routine& routine, const Environment& environment,
                  std::size_t count, std::uint64_t seed, const std::vector<std::vector<std::byte>>& given = {}) {
  Trial trial;
  const proof::Program program = proof::program_of(image);
  Lifter lifter(store, program, routine.address, routine.signature);
  const auto machine = make_unicorn_machine(image, routine);
  const std::size_t size = routine.signature.packed_size();
  tests::Random random(seed);
  std::vector<std::byte> packed;
  for (const auto& value : given) packed.insert(packed.end(), value.begin(), value.end());
  while (packed.size() < count * size) {
    const auto value = draw(random, size);
    packed.insert(packed.end(), value.begin(), value.end());
  }
  Batch batch;
  machine->run(batch, packed, environment);
  const std::size_t words = routine.signature.word_count();
  for (std::size_t i = 0; i < packed.size() / size; ++i) {
    REQUIRE(batch.outcomes[i] == OutcomeKind::returned);
    const auto value = std::span(packed).subspan(i * size, size);
    ++trial.values;
    Path* taken = nullptr;
    for (Path& path : trial.paths) {
      path.evaluation->run(value);
      if (!path.holds()) continue;
      REQUIRE(taken == nullptr);
      taken = &path;
    }
    if (taken == nullptr) {
      Path path;
      path.lift = lifter.run(value, environment);
      if (!path.lift.lifted) {
        trial.first_failure = fmt::format("0x{:x} {}: {}", path.lift.address, path.lift.instruction, path.lift.reason);
        return trial;
      }
      REQUIRE(path.lift.words.size() == words);
      std::vector<NodeId> roots = path.lift.words;
      for (const auto& condition : path.lift.path) roots.push_back(condition.condition);
      path.evaluation = std::make_unique<proof::Evaluation>(store, roots);
      path.evaluation->run(value);
      REQUIRE(path.holds());
      taken = &trial.paths.emplace_back(std::move(path));
    }
    ++taken->values;
    for (std::size_t word = 0; word < words; ++word) {
      if ((*taken->evaluation)[word] != batch.words[i * words + word]) ++trial.differences;
    }
  }
  return trial;
}

void check_agrees(const Trial& trial, std::size_t paths) {
  CHECK(trial.first_failure.empty());
  CHECK(trial.differences == 0);
  CHECK(trial.paths.size() == paths);
  for (const Path& path : trial.paths) CHECK(path.lift.writable_reads.empty());
}

struct Form {
  std::string image;
  std::uint64_t address;
  std::string signature;
  std::size_t paths;
};

const std::vector<Form> stand_ins = {
    {"x87", 0x103f1d0, "cdecl(in u8[6], out f32[4])", 8},
    {"x87", 0x103f340, "stdcall(in u8[6], in u8[6], out f32[4], out f32[4])", 64},
    {"sse2", 0x103f1d0, "thiscall(in u8[6], out f32[4])", 4},
    {"sse2", 0x103f340, "fastcall(in u8[12], out f32[8])", 16},
};

}  // namespace

TEST_CASE("both forms of both stand-ins are lifted to what the machine computes") {
  for (const Form& form : stand_ins) {
    const Image image = Image::load(BITWITNESS_STAND_INS_DIR "/stand_in_" + form.image + ".exe");
    for (const std::uint16_t fpcw : std::vector<std::uint16_t>{0x027f, 0x007f, 0x037f}) {
      INFO(form.image << " " << form.signature << " at " << std::hex << fpcw);
      Store store;
      const Routine routine{"unpack", form.address, parse_signature(form.signature)};
      const Trial trial = try_routine(store, image, routine, {fpcw, 0x1f80}, 6000, 1 + fpcw);
      check_agrees(trial, form.paths);
      if (form.signature.starts_with("cdecl") && fpcw == 0x27f)
        for (auto& p : trial.paths) {
          std::cout << "PATH " << p.values << " executed " << p.lift.executed << "\n";
          for (auto& c : p.lift.path)
            std::cout << "  if " << c.taken << " kind " << int(c.kind) << " " << to_text(store, c.condition, 30)
                      << "\n";
          for (auto w : p.lift.words) std::cout << "   " << to_text(store, w, 30) << "\n";
          break;
        }
    }
  }
}
