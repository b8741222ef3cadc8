#include "harness/probe/trial.hpp"

#include "harness/error.hpp"
#include "harness/machine.hpp"
#include "harness/value_generators.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include <fmt/format.h>

namespace bitwitness {
namespace {

constexpr std::size_t values_tried = 384;
constexpr std::size_t values_tried_alone = 48;
constexpr std::size_t bases_flipped = 8;
constexpr std::size_t bases_flipped_of_few = 40;
constexpr std::size_t few_bytes = 16;
constexpr std::uint64_t instructions_of_flips = 20'000'000;
constexpr std::size_t most_failures_of_flips = 64;
constexpr std::size_t values_per_batch = 32;
/// Values that do not return take long; after so many of them the rest is not worth it.
constexpr std::size_t most_failures = 8;

/// Ends and middles of integers and floats of every width, to be cut to the width of a part.
constexpr std::array<std::uint64_t, 20> special_numbers = {0,
                                                           ~std::uint64_t{0},
                                                           1,
                                                           0x80,
                                                           0x7f,
                                                           0x8000,
                                                           0x7fff,
                                                           0x80000000,
                                                           0x7fffffff,
                                                           0x7c00,
                                                           0xfc00,
                                                           0x7f800000,
                                                           0xff800000,
                                                           0x7fc00000,
                                                           0x8000'0000'0000'0000,
                                                           0x7fff'ffff'ffff'ffff,
                                                           0x7ff0'0000'0000'0000,
                                                           0xfff0'0000'0000'0000,
                                                           0x0010'0000'0000'0000,
                                                           0x00800000};

/// Fills the parts of `width` bytes of a value, all of them or one, with a number.
void set_parts(std::span<std::byte> value, std::size_t width, std::optional<std::size_t> part, std::uint64_t number) {
  for (std::size_t at = 0; at < value.size(); at += width) {
    if (part && at / width != *part) continue;
    for (std::size_t i = 0; i < std::min(width, value.size() - at); ++i) {
      value[at + i] = static_cast<std::byte>(number >> 8 * i);
    }
  }
}

/// Random values, among them zeros, ones, and special numbers in all parts of a width or in one of them.
std::vector<std::byte> make_values(std::size_t size, std::size_t count, std::uint64_t seed) {
  RandomWords random(seed);
  std::vector<std::byte> values(size * count);
  for (std::size_t index = 0; index < count; ++index) {
    const std::span<std::byte> value = std::span(values).subspan(index * size, size);
    for (std::byte& byte : value) {
      std::uint64_t bits = random.next();
      if (index % 16 == 14) bits &= bits >> 8 & bits >> 16 & bits >> 24;
      if (index % 16 == 15) bits |= bits >> 8 | bits >> 16 | bits >> 24;
      byte = static_cast<std::byte>(bits);
    }
    const std::size_t width = std::size_t{1} << index / 2 % 4;
    const std::uint64_t number = special_numbers[index / 8 % special_numbers.size()];
    if (index % 2 == 0) {
      const bool is_first_round = index / 8 < special_numbers.size();
      const std::size_t parts = (size + width - 1) / width;
      set_parts(value, width, is_first_round ? std::nullopt : std::optional(random.next() % parts), number);
    }
  }
  return values;
}

std::unique_ptr<Machine> machine_of(const Signature& signature, const Image& image, std::uint64_t address,
                                    std::uint64_t budget) {
  MachineOptions options;
  options.budget = budget;
  return make_unicorn_machine(image, {"the routine", address, signature}, options);
}

/// What running values batch by batch gave.
struct Tried {
  std::vector<std::uint32_t> words;
  std::size_t values = 0;
  std::size_t failures = 0;
  std::string reason;  ///< of the first failure
};

Tried run_values(Machine& machine, std::span<const std::byte> values, std::size_t size,
                 const Environment& environment) {
  Tried tried;
  Batch batch;
  while (!values.empty() && tried.failures < most_failures) {
    const std::size_t bytes = std::min(values.size(), values_per_batch * size);
    machine.run(batch, values.first(bytes), environment);
    if (!batch.incidents.empty() && tried.failures == 0) tried.reason = batch.incidents.front().reason;
    tried.failures += batch.incidents.size();
    tried.values += bytes / size;
    tried.words.insert(tried.words.end(), batch.words.begin(), batch.words.end());
    values = values.subspan(bytes);
  }
  return tried;
}

}  // namespace

void try_out(Candidate& candidate, const Image& image, std::uint64_t address, const InferenceOptions& options) {
  const auto lower = [&candidate](Confidence confidence, std::string why) {
    candidate.confidence = std::max(candidate.confidence, confidence);
    if (confidence != Confidence::certain) candidate.doubts.push_back(why);
    candidate.support.push_back(std::move(why));
  };
  std::unique_ptr<Machine> machine;
  try {
    machine = machine_of(candidate.signature, image, address, options.budget);
  } catch (const Error& error) {
    return lower(Confidence::possible, error.what());
  }
  const std::size_t words = candidate.signature.word_count();
  const std::vector<std::byte> values = make_values(candidate.signature.packed_size(), values_tried, options.seed);
  const Tried tried = run_values(*machine, values, candidate.signature.packed_size(), options.environment);
  if (tried.failures != 0) {
    const bool are_many = 4 * tried.failures > tried.values;
    return lower(are_many ? Confidence::possible : Confidence::likely,
                 fmt::format("on {} of {} values it {}", tried.failures, tried.values, tried.reason));
  }
  const auto some = std::span(values).first(values_tried_alone * candidate.signature.packed_size());
  Batch alone;
  machine->run_alone(alone, some, options.environment);
  std::size_t unstable = alone.incidents.size();
  for (std::size_t i = 0; i < values_tried_alone && alone.incidents.empty(); ++i) {
    const auto part = [&](const std::vector<std::uint32_t>& from) { return std::span(from).subspan(i * words, words); };
    if (!std::ranges::equal(part(tried.words), part(alone.words))) ++unstable;
  }
  if (unstable != 0) {
    return lower(
        Confidence::possible,
        fmt::format("gives other words, or none, when a value runs alone: it depends on what it was not given"));
  }
  bool varies = false;
  for (std::size_t i = words; i < tried.words.size() && !varies; ++i) varies = tried.words[i] != tried.words[i % words];
  if (!varies) lower(Confidence::possible, "gives the same words for every value");
  for (const auto& [what, observation] : machine->observations()) {
    const bool is_contrary =
        what.find("x87 stack") != std::string::npos || what.find("writes beside") != std::string::npos ||
        what.find("above its arguments") != std::string::npos || what.find("to its input") != std::string::npos;
    const std::string text =
        fmt::format("on {} of {} values it {}", observation.values, values_tried + values_tried_alone, what);
    lower(is_contrary ? Confidence::likely : Confidence::certain, text);
  }
  candidate.support.push_back(fmt::format("returns on {} values tried, {} of them also alone with the same words",
                                          values_tried, values_tried_alone));
}

std::vector<std::string> path_of(const Signature& signature, const Image& image, std::uint64_t address,
                                 const InferenceOptions& options) {
  try {
    const std::vector<std::byte> value = make_values(signature.packed_size(), 1, options.seed);
    return machine_of(signature, image, address, options.budget)->path(value, options.environment);
  } catch (const Error&) {
    return {};
  }
}

std::vector<std::vector<bool>> dependencies_of(const Signature& signature, const Image& image, std::uint64_t address,
                                               const InferenceOptions& options, std::uint64_t instructions_per_call) {
  std::unique_ptr<Machine> machine;
  try {
    machine = machine_of(signature, image, address, options.budget);
  } catch (const Error&) {
    return {};
  }
  const std::size_t size = signature.packed_size();
  const std::size_t words = signature.word_count();
  std::vector<std::vector<bool>> changed(words, std::vector<bool>(8 * size));
  const std::uint64_t affordable = instructions_of_flips / ((instructions_per_call + 1) * (8 * size + 1));
  const std::size_t most = size <= few_bytes ? bases_flipped_of_few : bases_flipped;
  const auto count = static_cast<std::size_t>(std::clamp<std::uint64_t>(affordable, 1, most));
  std::size_t failures = 0;
  const std::vector<std::byte> bases = make_values(size, count, options.seed + 1);
  std::vector<std::byte> values;
  Batch batch;
  for (std::size_t base = 0; base < count && failures < most_failures_of_flips; ++base) {
    const auto value = std::span(bases).subspan(base * size, size);
    values.clear();
    for (std::size_t bit = 0; bit <= 8 * size; ++bit) {  // the last one unchanged
      values.insert(values.end(), value.begin(), value.end());
      if (bit < 8 * size) values[bit * size + bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    }
    machine->run(batch, values, options.environment);
    failures += batch.incidents.size();
    for (std::size_t bit = 0; bit < 8 * size; ++bit) {
      if (batch.outcomes[bit] != OutcomeKind::returned || batch.outcomes.back() != OutcomeKind::returned) continue;
      for (std::size_t word = 0; word < words; ++word) {
        if (batch.words[bit * words + word] != batch.words[8 * size * words + word]) changed[word][bit] = true;
      }
    }
  }
  return changed;
}

}  // namespace bitwitness
