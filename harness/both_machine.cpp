#include "harness/disassembly.hpp"
#include "harness/machine.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace bitwitness {
namespace {

/// States of a call that are kept to find where two calls part.
constexpr std::size_t most_states = 4096;

std::string words_text(std::span<const std::uint32_t> words) {
  std::string text;
  for (const std::uint32_t word : words) text += fmt::format("{}{:08x}", text.empty() ? "" : " ", word);
  return text;
}

/// Tells whether two states differ in what an instruction has computed. Flags are not looked at: many are undefined.
bool is_same(const FollowedState& a, const FollowedState& b) {
  return a.general == b.general && a.xmm == b.xmm && a.x87 == b.x87 && a.memory == b.memory;
}

class BothMachine final : public Machine {
 public:
  BothMachine(const Image& image, const Routine& routine, const MachineOptions& options)
      : image_(image),
        word_count_(routine.signature.word_count()),
        emulator_(make_unicorn_machine(image, routine, options)),
        processor_(make_host_machine(image, routine, options)) {}

  void run(Batch& out, std::span<const std::byte> packed, const Environment& environment) override {
    emulator_->run(out, packed, environment);
    if (out.unfinished) return;
    processor_->run(theirs_, packed, environment);
    merge(out);
  }

  void run_alone(Batch& out, std::span<const std::byte> packed, const Environment& environment) override {
    emulator_->run_alone(out, packed, environment);
    if (out.unfinished) return;
    processor_->run_alone(theirs_, packed, environment);
    merge(out);
  }

  std::vector<std::string> path(std::span<const std::byte> packed, const Environment& environment) override {
    return emulator_->path(packed, environment);
  }

  void follow(std::span<const std::byte> packed, const Environment& environment, const Follower& follower) override {
    emulator_->follow(packed, environment, follower);
  }

  /// Looks for the first instruction after which the two hold something else.
  void explain(Incident& incident, std::span<const std::byte> packed, const Environment& environment) override {
    if (incident.kind != OutcomeKind::disputed) return;
    std::vector<FollowedState> states;
    emulator_->follow(packed, environment, [&states](const FollowedState& state) {
      states.push_back(state);
      return states.size() < most_states;
    });
    std::size_t at = 0;
    bool has_parted = false;
    processor_->follow(packed, environment, [&](const FollowedState& state) {
      // The last state of each is back at its caller, which is not the same place.
      const bool is_last = image_.find(state.pc) == nullptr;
      has_parted = at == states.size() || !is_same(states[at], state) || (states[at].pc != state.pc && !is_last);
      return !has_parted && ++at < most_states;
    });
    has_parted |= at < states.size();
    if (!has_parted || at == 0) {
      if (at >= most_states) {
        incident.reason += fmt::format("; the first {} instructions do not tell them apart", most_states);
      } else if (at != 0) {
        incident.reason += "; followed one by one, no instruction tells them apart";
      }
      return;
    }
    incident.address = states[at - 1].pc;
    if (const auto instruction = disassemble_one(image_, incident.address)) incident.instruction = instruction->text;
  }

  [[nodiscard]] const std::map<std::string, Observation>& observations() const override {
    observations_ = emulator_->observations();
    for (const auto& [what, seen] : processor_->observations()) {
      if (!emulator_->observations().contains(what)) observations_.emplace(what + " (on the processor alone)", seen);
    }
    return observations_;
  }

  void forget_observations() override {
    emulator_->forget_observations();
    processor_->forget_observations();
  }

  [[nodiscard]] std::string_view witness() const override { return "both"; }

 private:
  void merge(Batch& out) {
    out.unfinished = theirs_.unfinished;
    if (out.unfinished) return;
    std::vector<Incident> incidents;
    auto ours = out.incidents.begin();
    auto their = theirs_.incidents.begin();
    for (std::size_t i = 0; i < out.outcomes.size(); ++i) {
      const Incident* const our_incident = ours != out.incidents.end() && ours->index == i ? &*ours++ : nullptr;
      const Incident* const their_incident =
          their != theirs_.incidents.end() && their->index == i ? &*their++ : nullptr;
      const auto our_words = std::span(out.words).subspan(i * word_count_, word_count_);
      const auto their_words = std::span(theirs_.words).subspan(i * word_count_, word_count_);
      const bool is_same_kind = out.outcomes[i] == theirs_.outcomes[i];
      if (is_same_kind && (our_incident != nullptr || std::ranges::equal(our_words, their_words))) {
        if (our_incident != nullptr) incidents.push_back(*our_incident);
        if (our_incident != nullptr && is_other_end(*our_incident, *their_incident)) {
          incidents.back().reason += "; the processor " + said(their_incident, {});
        }
        continue;
      }
      out.outcomes[i] = OutcomeKind::disputed;
      incidents.push_back({i,
                           OutcomeKind::disputed,
                           0,
                           {},
                           fmt::format("the emulator {}; the processor {}", said(our_incident, our_words),
                                       said(their_incident, their_words))});
    }
    out.incidents = std::move(incidents);
  }

  /// Tells whether two calls without a result ended at other places or for other reasons. How far a call gets that does
  /// not end is chance on a processor.
  static bool is_other_end(const Incident& ours, const Incident& theirs) {
    return ours.kind != OutcomeKind::out_of_budget && (ours.address != theirs.address || ours.reason != theirs.reason);
  }

  static std::string said(const Incident* incident, std::span<const std::uint32_t> words) {
    if (incident == nullptr) return "gives " + words_text(words);
    return incident->instruction.empty()
               ? incident->reason
               : fmt::format("stops at {}, which {}", incident->instruction, incident->reason);
  }

  const Image& image_;
  std::size_t word_count_;
  std::unique_ptr<Machine> emulator_;
  std::unique_ptr<Machine> processor_;
  Batch theirs_;
  mutable std::map<std::string, Observation> observations_;
};

}  // namespace

std::unique_ptr<Machine> make_both_machine(const Image& image, const Routine& routine, const MachineOptions& options) {
  return std::make_unique<BothMachine>(image, routine, options);
}

}  // namespace bitwitness
