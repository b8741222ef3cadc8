#include "harness/probe/location_behaviour.hpp"

#include "harness/error.hpp"
#include "harness/machine.hpp"
#include "harness/value_generators.hpp"

#include <algorithm>
#include <chrono>
#include <set>

#include <fmt/format.h>

namespace bitwitness::location {
namespace {

// One value in so many is a boundary, the others are drawn. Fixed, so that equal runs are equal.
constexpr std::size_t boundary_share = 3;
constexpr std::uint64_t seed = 20240617;

// A candidate goes on to the next stage when any value of the stage before returned, or agreed.
constexpr std::size_t first_stage = 2;
constexpr std::size_t second_stage = 8;

using Value = std::vector<std::byte>;

void put_bits(Value& value, const BitField& field, std::uint64_t code) {
  for (unsigned i = 0; i < field.width; ++i) {
    const unsigned bit = field.offset + i;
    const auto mask = static_cast<std::byte>(1U << bit % 8);
    if ((code >> i & 1) != 0) value[bit / 8] |= mask;
  }
}

/// Values whose fields all stand at boundaries, then any values, distinct.
std::set<Value> draw_values(const Subject& subject, std::size_t count) {
  const std::vector<BitField> fields = checked_fields(subject.packed_size, subject.fields);
  RandomWords random(seed);
  std::set<Value> values;
  // Small formats have fewer values than are wanted.
  const std::size_t draws = 8 * count + 64;
  for (std::size_t i = 0; i < draws && values.size() < count; ++i) {
    Value value(subject.packed_size);
    for (const BitField& field : fields) {
      if (values.size() < count / boundary_share) {
        const std::vector<std::uint64_t> codes = boundary_codes(field.width, 3);
        put_bits(value, field, codes[random.below(static_cast<std::uint32_t>(codes.size()))]);
      } else {
        put_bits(value, field, random.next());
      }
    }
    values.insert(std::move(value));
  }
  return values;
}

/// Sorted values would put all of one kind into the first stages.
void shuffle(std::vector<Value>& values) {
  RandomWords random(seed);
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1], values[random.below(static_cast<std::uint32_t>(i))]);
  }
}

}  // namespace

Behaviour::Behaviour(const Image& image, const WantedRoutine& wanted, const LocateOptions& options)
    : image_(image), wanted_(wanted), options_(options) {
  const Subject& subject = wanted.subject;
  const std::set<Value> chosen = draw_values(subject, options.values);
  std::vector<Value> values(chosen.begin(), chosen.end());
  shuffle(values);
  count_ = values.size();
  const std::size_t words = subject.word_names.size();
  expected_.resize(count_ * words);
  std::set<std::vector<std::uint32_t>> distinct;
  for (std::size_t i = 0; i < count_; ++i) {
    packed_.insert(packed_.end(), values[i].begin(), values[i].end());
    const auto out = std::span(expected_).subspan(i * words, words);
    subject.decode(values[i], out);
    distinct.emplace(out.begin(), out.end());
  }
  if (distinct.size() < 2) {
    throw Error(fmt::format("routine {}: {} gives the same words for every value tried", wanted.name, subject.name));
  }
}

std::optional<TriedSignature> Behaviour::best_of(std::uint64_t address, const SignatureProposer& proposer) const {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(options_.candidate_seconds);
  std::optional<TriedSignature> best;
  for (const Signature& signature : proposer(image_, address)) {
    if (options_.stop.stop_requested() || Clock::now() > end) break;
    const auto tried = try_signature(address, signature);
    if (!tried) continue;
    // Shares as products: no rounding decides.
    if (!best || tried->agreed * best->tried > best->agreed * tried->tried) best = tried;
    if (best->is_full()) break;
  }
  return best;
}

std::optional<TriedSignature> Behaviour::try_signature(std::uint64_t address, const Signature& signature) const {
  const std::size_t words = wanted_.subject.word_names.size();
  const std::size_t size = wanted_.subject.packed_size;
  if (signature.packed_size() != size || signature.word_count() != words) return std::nullopt;
  TriedSignature tried{signature, 0, 0};
  try {
    MachineOptions machine_options;
    machine_options.budget = options_.budget;
    machine_options.stop = options_.stop;
    const auto machine = make_unicorn_machine(image_, {wanted_.name, address, signature}, machine_options);
    Batch batch;
    std::size_t returned = 0;
    for (const std::size_t stage : {first_stage, second_stage, count_}) {
      const std::size_t last = std::min(stage, count_);
      if (last <= tried.tried) continue;
      machine->run(batch, std::span(packed_).subspan(tried.tried * size, (last - tried.tried) * size),
                   options_.environment);
      if (batch.unfinished) return std::nullopt;
      for (std::size_t i = tried.tried; i < last; ++i) {
        if (batch.outcomes[i - tried.tried] != OutcomeKind::returned) continue;
        ++returned;
        const auto got = std::span(batch.words).subspan((i - tried.tried) * words, words);
        if (std::ranges::equal(got, std::span(expected_).subspan(i * words, words))) ++tried.agreed;
      }
      tried.tried = last;
      if (stage == first_stage ? returned == 0 : tried.agreed == 0) break;
    }
  } catch (const Error&) {
    // No code, or a signature that this image cannot have.
    return std::nullopt;
  }
  return tried;
}

}  // namespace bitwitness::location
