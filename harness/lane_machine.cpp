#include "harness/lane_machine.hpp"

#include "harness/call_plan.hpp"
#include "harness/call_room.hpp"
#include "harness/call_text.hpp"
#include "harness/values.hpp"
#include "harness/watchdog.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace bitwitness {
namespace {

constexpr std::size_t longest_instruction = 15;

/// Has a watchdog watch a lane for as long as it lives.
class WatchedLane final : public Watched {
 public:
  WatchedLane(Lane& lane, Watchdog& watchdog) : lane_(lane), watchdog_(watchdog) {
    if (!lane.ends_runaways()) watchdog_.arm(*this, lane.clock());
  }
  WatchedLane(const WatchedLane&) = delete;
  WatchedLane& operator=(const WatchedLane&) = delete;
  ~WatchedLane() override { watchdog_.disarm(); }

  [[nodiscard]] std::uint64_t progress() const override { return lane_.progress(); }
  void interrupt() override { lane_.interrupt(); }

 private:
  Lane& lane_;
  Watchdog& watchdog_;
};

class LaneMachine final : public Machine {
 public:
  LaneMachine(const Image& image, Routine routine, const MachineOptions& options, Witness witness)
      : witness_(std::move(witness)),
        routine_(std::move(routine)),
        options_(options),
        text_(image, routine_),
        watchdog_(witness_.stall_limit, options.stop) {
    const bool is_64_bit = image.format() == ImageFormat::pe32_plus;
    const CallPlan sizes = plan_call(routine_.signature, is_64_bit, 0, image.imports().size(), {});
    surroundings_ = sizes.layout.whole.size;
    base_ = find_base(image, 2 * surroundings_);
    packed_size_ = sizes.packed_size;
    word_count_ = sizes.word_count;
    thread_block_ = uses_thread_block(image, routine_.address);
    batch_ = make_lane(LaneKind::batch);
  }

  void run(Batch& out, std::span<const std::byte> packed, const Environment& environment) override {
    begin(out, packed);
    if (permissive_ == nullptr) {
      run_batch(out, packed, environment);
      if (run_.writes_memory_of_its_own) {
        permissive_ = make_lane(LaneKind::permissive);
        batch_.reset();
      }
    }
    if (permissive_ != nullptr) {
      if (permissive_->is_spent()) permissive_ = make_lane(LaneKind::permissive);
      const WatchedLane watched(*permissive_, watchdog_);
      permissive_->run(run_, out.words, packed, environment);
    }
    Lane& lane = permissive_ != nullptr ? *permissive_ : *batch_;
    for (const auto& [index, trait] : run_.traits) observe(lane, trait, value_of(packed, index));
    for (const auto& [index, end] : run_.ends) record(out, index, incident(lane, end));
    for (const Lane::Suspect& suspect : run_.suspects) {
      decide(out, packed, suspect, environment);
      if (options_.stop.stop_requested()) break;
      if (options_.pulse) options_.pulse();
    }
    out.unfinished = run_.unfinished || options_.stop.stop_requested();
  }

  void run_alone(Batch& out, std::span<const std::byte> packed, const Environment& environment) override {
    const std::size_t count = begin(out, packed);
    for (std::size_t index = 0; index < count; ++index) {
      const CallEnd end = run_one(words_of(out, index), value_of(packed, index), environment);
      record(out, index, incident(*alone_, end));
    }
    out.unfinished = options_.stop.stop_requested();
  }

  std::vector<std::string> path(std::span<const std::byte> packed, const Environment& environment) override {
    scratch_.resize(word_count_);
    if (alone_ == nullptr || alone_->is_spent()) alone_ = make_lane(LaneKind::alone);
    return alone_->run_recorded(scratch_, packed, environment);
  }

  void follow(std::span<const std::byte> packed, const Environment& environment, const Follower& follower) override {
    if (alone_ == nullptr || alone_->is_spent()) alone_ = make_lane(LaneKind::alone);
    const WatchedLane watched(*alone_, watchdog_);
    alone_->follow(packed, environment, follower);
  }

  [[nodiscard]] const std::map<std::string, Observation>& observations() const override { return observations_; }

  void forget_observations() override {
    known_.clear();
    observations_.clear();
  }

  [[nodiscard]] std::string_view witness() const override { return witness_.name; }

 private:
  std::unique_ptr<Lane> make_lane(LaneKind kind) {
    // Elsewhere than in a batch, so that a routine whose result depends on addresses is told.
    const std::uint64_t base = kind == LaneKind::alone ? base_ + surroundings_ : base_;
    return witness_.make_lane({routine_, kind, base, refused_, thread_block_});
  }

  std::size_t begin(Batch& out, std::span<const std::byte> packed) const {
    const std::size_t count = packed.size() / packed_size_;
    out.words.resize(count * word_count_);
    out.outcomes.assign(count, OutcomeKind::returned);
    out.incidents.clear();
    out.unfinished = false;
    return count;
  }

  /// Code that the emulator must not execute is known once it is met. Hooks cannot be added to code that has been
  /// translated, so the lane is then made again.
  void run_batch(Batch& out, std::span<const std::byte> packed, const Environment& environment) {
    while (true) {
      {
        const WatchedLane watched(*batch_, watchdog_);
        batch_->run(run_, out.words, packed, environment);
      }
      if (run_.refused.empty() || run_.unfinished) return;
      refused_.insert(refused_.end(), run_.refused.begin(), run_.refused.end());
      batch_ = make_lane(LaneKind::batch);
    }
  }

  CallEnd run_one(std::span<std::uint32_t> words, std::span<const std::byte> value, const Environment& environment) {
    if (alone_ == nullptr || alone_->is_spent()) alone_ = make_lane(LaneKind::alone);
    const WatchedLane watched(*alone_, watchdog_);
    return alone_->run_one(words, value, environment);
  }

  void decide(Batch& out, std::span<const std::byte> packed, const Lane::Suspect& suspect,
              const Environment& environment) {
    scratch_.resize(word_count_);
    const auto words = suspect.only_slow ? std::span(scratch_) : words_of(out, suspect.index);
    const auto value = value_of(packed, suspect.index);
    const CallEnd end = run_one(words, value, environment);
    // How long a value takes is up to the machine it runs on: nothing but its count of instructions may depend on it.
    if (suspect.only_slow && !end.over_budget) return;
    record(out, suspect.index, incident(*alone_, end));
    if (!end.is_return()) return;
    for (const Trait& trait : end.traits) observe(*alone_, trait, value);
  }

  Incident incident(Lane& lane, const CallEnd& end) const {
    return text_.incident(lane.context(), end, lane.surrounding_bytes(end.instruction, longest_instruction));
  }

  static void record(Batch& out, std::size_t index, Incident incident) {
    out.outcomes[index] = incident.kind;
    if (incident.kind == OutcomeKind::returned) return;
    incident.index = index;
    out.incidents.push_back(std::move(incident));
  }

  [[nodiscard]] std::span<const std::byte> value_of(std::span<const std::byte> packed, std::size_t index) const {
    return packed.subspan(index * packed_size_, packed_size_);
  }

  [[nodiscard]] std::span<std::uint32_t> words_of(Batch& out, std::size_t index) const {
    return std::span(out.words).subspan(index * word_count_, word_count_);
  }

  void observe(const Lane& lane, const Trait& trait, std::span<const std::byte> value) {
    auto [known, is_new] = known_.try_emplace(trait, nullptr);
    if (is_new) known->second = &observations_[text_.trait(lane.context(), trait)];
    Observation& observation = *known->second;
    ++observation.values;
    if (observation.first_value.empty() || is_less(value, observation.first_value)) {
      observation.first_value.assign(value.begin(), value.end());
    }
  }

  Witness witness_;
  Routine routine_;
  MachineOptions options_;
  CallText text_;
  std::vector<std::uint64_t> refused_;
  std::uint64_t base_ = 0;
  bool thread_block_ = false;
  std::uint64_t surroundings_ = 0;  // bytes of one lane's
  std::size_t packed_size_ = 0;
  std::size_t word_count_ = 0;
  std::unique_ptr<Lane> batch_;
  std::unique_ptr<Lane> permissive_;  // once a value has needed it, every batch does
  std::unique_ptr<Lane> alone_;
  Lane::Run run_;
  std::vector<std::uint32_t> scratch_;
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
    case OutcomeKind::disputed:
      return "disputed";
  }
  return "";
}

std::unique_ptr<Machine> make_lane_machine(const Image& image, const Routine& routine, const MachineOptions& options,
                                           Witness witness) {
  image.require_code(routine.address, fmt::format("routine {}", routine.name));
  require_callable(routine.signature, image.format() == ImageFormat::pe32_plus);
  return std::make_unique<LaneMachine>(image, routine, options, std::move(witness));
}

}  // namespace bitwitness
