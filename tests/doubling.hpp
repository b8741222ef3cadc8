#pragma once
#include "harness/error.hpp"
#include "harness/image.hpp"
#include "harness/machine.hpp"
#include "harness/subject.hpp"
#include "harness/values.hpp"
#include "harness/witness_run.hpp"

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// BITWITNESS_STAND_INS_DIR comes from CMake.

namespace bitwitness::tests {

/// A witness made of plain code, so that what verification does can be told apart from what an emulator does. It
/// doubles a u16; some values end in every other way.
class DoublingMachine final : public Machine {
 public:
  explicit DoublingMachine(bool unstable) : unstable_(unstable) {}

  void run(Batch& out, std::span<const std::byte> packed, const Environment&) override { fill(out, packed, unstable_); }
  void run_alone(Batch& out, std::span<const std::byte> packed, const Environment&) override {
    fill(out, packed, false);
  }
  [[nodiscard]] const std::map<std::string, Observation>& observations() const override { return observations_; }
  void forget_observations() override { observations_.clear(); }
  [[nodiscard]] std::string_view witness() const override { return "doubling"; }

  static constexpr std::uint16_t faults = 0x1234;
  static constexpr std::uint16_t runs_away = 0x2345;
  static constexpr std::uint16_t writes_nothing = 0x3456;
  static constexpr std::uint16_t is_odd_one = 0x4567;  // answers 7
  static constexpr std::uint16_t is_observed = 0x5678;

 private:
  void fill(Batch& out, std::span<const std::byte> packed, bool wrong_in_batch) {
    const std::size_t count = packed.size() / 2;
    out.words.resize(count);
    out.outcomes.assign(count, OutcomeKind::returned);
    out.incidents.clear();
    for (std::size_t i = 0; i < count; ++i) {
      std::uint16_t value = 0;
      std::memcpy(&value, packed.data() + 2 * i, 2);
      out.words[i] = value == is_odd_one ? 7U : 2U * value + (wrong_in_batch && value == 0xffff ? 1U : 0U);
      const auto end = [&](OutcomeKind kind, std::string reason) {
        out.outcomes[i] = kind;
        out.words[i] = 0xdeadbeef;
        out.incidents.push_back({i, kind, 0x401000, "nop", std::move(reason)});
      };
      if (value == faults) end(OutcomeKind::faulted, "faults");
      if (value == runs_away) end(OutcomeKind::out_of_budget, "runs away");
      if (value == writes_nothing) end(OutcomeKind::unwritten, "writes nothing");
      if (value == is_observed) {
        Observation& observation = observations_["hums"];
        ++observation.values;
        observation.first_value.assign(packed.begin() + static_cast<std::ptrdiff_t>(2 * i),
                                       packed.begin() + static_cast<std::ptrdiff_t>(2 * i + 2));
      }
    }
  }

  bool unstable_;
  std::map<std::string, Observation> observations_;
};

inline Image any_image() {
  return Image::load(BITWITNESS_STAND_INS_DIR "/stand_in_x87.exe");
}

inline Routine doubling() {
  return {"doubling", 0x103f1d0, parse_signature("cdecl(value u16) -> u32")};
}

inline Subject doubler() {
  Subject subject;
  subject.name = "doubler";
  subject.packed_size = 2;
  subject.word_names = {"twice"};
  subject.fields = {{"value", 0, 16}};
  subject.word_kind = WordKind::u32;
  subject.decode = [](std::span<const std::byte> packed, std::span<std::uint32_t> words) {
    std::uint16_t value = 0;
    std::memcpy(&value, packed.data(), 2);
    words[0] = 2U * value;
  };
  return subject;
}

inline RunOptions with_doubling(unsigned jobs = 1, bool unstable = false) {
  RunOptions options;
  options.jobs = jobs;
  options.make_machine = [unstable](const Image&, const Routine&, const MachineOptions&) {
    return std::make_unique<DoublingMachine>(unstable);
  };
  return options;
}

inline ValueSet values_of(const Subject& subject, const std::vector<std::string>& sources) {
  return ValueSet::build(subject.packed_size, subject.fields, sources);
}

}  // namespace bitwitness::tests
