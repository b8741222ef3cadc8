#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "harness/call_text.hpp"
#include "harness/disassembly.hpp"
#include "harness/error.hpp"
#include "harness/machine.hpp"
#include "harness/unicorn_lane.hpp"
#include "harness/watchdog.hpp"

namespace bitwitness {
namespace {

/// Instructions of a routine and what it calls that are looked at for encodings the emulator gets wrong.
constexpr std::size_t listing_limit = 65536;

/// The emulator never executes an instruction in less than a nanosecond; below the floor a stall is not worth a look.
std::chrono::nanoseconds stall_limit(std::uint64_t budget) {
  constexpr std::uint64_t floor = 5'000'000;
  constexpr std::uint64_t ceiling = 3'600'000'000'000;
  return std::chrono::nanoseconds(std::clamp(budget, floor, ceiling));
}

/// Finds an address range for the surroundings: apart from the image, within reach of a 32-bit displacement of it, and below
/// the addresses that filler registers hold.
std::uint64_t find_base(const Image& image, std::uint64_t size) {
  constexpr std::uint64_t step = 0x0100'0000;
  constexpr std::uint64_t limit_32_bit = 0xb000'0000;
  const std::uint64_t image_end = image.base() + image.size();
  if (image.format() == ImageFormat::pe32_plus) return (image_end + 2 * step) & ~(step - 1);
  for (std::uint64_t base = 0x2000'0000; base + size <= limit_32_bit; base += step) {
    if (base + size + step <= image.base() || base >= image_end + step) return base;
  }
  throw Error(fmt::format("{}: the image leaves no room for a caller below {:#x}", image.path(), limit_32_bit));
}

/// VEX and EVEX prefixes; in 32-bit code the same bytes are les, lds and bound unless two register bits follow.
bool is_vex(std::span<const std::byte> code, bool is_64_bit) {
  if (code.size() < 2) return false;
  const auto first = std::to_integer<unsigned>(code[0]);
  if (first != 0xc4 && first != 0xc5 && first != 0x62) return false;
  return is_64_bit || (std::to_integer<unsigned>(code[1]) & 0xc0) == 0xc0;
}

std::vector<std::uint64_t> find_vex(const Image& image, std::uint64_t address) {
  std::vector<std::uint64_t> found;
  for (const Instruction& instruction : disassemble_routine(image, address, listing_limit, true).instructions) {
    if (is_vex(image.read(instruction.address, instruction.size), image.format() == ImageFormat::pe32_plus)) {
      found.push_back(instruction.address);
    }
  }
  return found;
}

/// Orders packed values as little-endian integers.
bool is_less(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
}

class WatchedLane final : public Watched {
 public:
  explicit WatchedLane(Lane& lane) : lane_(lane) {}
  [[nodiscard]] std::uint64_t progress() const override { return lane_.progress().load(std::memory_order_relaxed); }
  void interrupt() override { lane_.interrupt(); }

 private:
  Lane& lane_;
};

class UnicornMachine final : public Machine {
 public:
  UnicornMachine(const Image& image, Routine routine, const MachineOptions& options)
      : image_(image),
        routine_(std::move(routine)),
        options_(options),
        text_(image_, routine_),
        vex_(find_vex(image_, routine_.address)),
        watchdog_(stall_limit(options.budget)) {
    const bool is_64_bit = image.format() == ImageFormat::pe32_plus;
    const CallPlan sizes = plan_call(routine_.signature, is_64_bit, 0, image.imports().size(), {});
    base_ = find_base(image, sizes.layout.whole.size);
    packed_size_ = sizes.packed_size;
    word_count_ = sizes.word_count;
    batch_ = make_lane(LaneKind::batch);
  }

  void run(Batch& out, std::span<const std::byte> packed, const Environment& environment) override {
    const std::size_t count = begin(out, packed);
    if (permissive_ == nullptr) {
      watch_run(*batch_, out, packed, environment);
      if (run_.writes_memory_of_its_own) permissive_ = make_lane(LaneKind::permissive);
    }
    if (permissive_ != nullptr) watch_run(*permissive_, out, packed, environment);
    const Lane& lane = permissive_ != nullptr ? *permissive_ : *batch_;
    for (const auto& [index, trait] : run_.traits) observe(lane, trait, packed.subspan(index * packed_size_, packed_size_));
    for (const std::size_t index : run_.suspects) decide(out, packed, index, environment, true);
    out.outcomes.resize(count);
  }

  void run_alone(Batch& out, std::span<const std::byte> packed, const Environment& environment) override {
    const std::size_t count = begin(out, packed);
    for (std::size_t index = 0; index < count; ++index) decide(out, packed, index, environment, false);
  }

  [[nodiscard]] const std::map<std::string, Observation>& observations() const override { return observations_; }

  [[nodiscard]] std::string_view witness() const override { return "unicorn"; }

 private:
  std::unique_ptr<Lane> make_lane(LaneKind kind) {
    return std::make_unique<Lane>(image_, routine_, kind, base_, vex_, options_.budget);
  }

  std::size_t begin(Batch& out, std::span<const std::byte> packed) const {
    const std::size_t count = packed.size() / packed_size_;
    out.words.resize(count * word_count_);
    out.outcomes.assign(count, OutcomeKind::returned);
    out.incidents.clear();
    return count;
  }

  void watch_run(Lane& lane, Batch& out, std::span<const std::byte> packed, const Environment& environment) {
    WatchedLane watched(lane);
    watchdog_.arm(watched);
    lane.run(run_, out.words, packed, environment);
    watchdog_.disarm();
  }

  void decide(Batch& out, std::span<const std::byte> packed, std::size_t index, const Environment& environment,
              bool counted) {
    if (alone_ == nullptr) alone_ = make_lane(LaneKind::alone);
    const auto value = packed.subspan(index * packed_size_, packed_size_);
    const auto words = std::span(out.words).subspan(index * word_count_, word_count_);
    const CallEnd end = alone_->run_one(words, value, environment);
    Incident incident = text_.incident(*alone_, end);
    out.outcomes[index] = incident.kind;
    if (incident.kind != OutcomeKind::returned) {
      incident.index = index;
      out.incidents.push_back(std::move(incident));
    } else if (counted) {
      for (const Trait& trait : end.traits) observe(*alone_, trait, value);
    }
  }

  void observe(const Lane& lane, const Trait& trait, std::span<const std::byte> value) {
    auto [known, is_new] = known_.try_emplace(trait, nullptr);
    if (is_new) known->second = &observations_[text_.trait(lane, trait)];
    Observation& observation = *known->second;
    ++observation.values;
    if (observation.first_value.empty() || is_less(value, observation.first_value)) {
      observation.first_value.assign(value.begin(), value.end());
    }
  }

  const Image& image_;
  Routine routine_;
  MachineOptions options_;
  CallText text_;
  std::vector<std::uint64_t> vex_;
  std::uint64_t base_ = 0;
  std::size_t packed_size_ = 0;
  std::size_t word_count_ = 0;
  std::unique_ptr<Lane> batch_;
  std::unique_ptr<Lane> permissive_;  // once a value has needed it, every batch does
  std::unique_ptr<Lane> alone_;
  Lane::Run run_;
  std::map<std::string, Observation> observations_;
  std::map<Trait, Observation*> known_;
  Watchdog watchdog_;
};

}  // namespace

std::string_view to_string(OutcomeKind kind) {
  switch (kind) {
    case OutcomeKind::returned:
      return "returned";
    case OutcomeKind::faulted:
      return "faulted";
    case OutcomeKind::out_of_budget:
      return "out_of_budget";
    case OutcomeKind::unwritten:
      return "unwritten";
  }
  return "";
}

std::unique_ptr<Machine> make_unicorn_machine(const Image& image, const Routine& routine, const MachineOptions& options) {
  image.require_code(routine.address, fmt::format("routine {}", routine.name));
  require_callable(routine.signature, image.format() == ImageFormat::pe32_plus);
  return std::make_unique<UnicornMachine>(image, routine, options);
}

}  // namespace bitwitness
