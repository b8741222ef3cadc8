// Batches of which every value comes back in order, as nearly all do: nothing is noted of each.
#include "harness/host/host_lane.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <limits>
#include <vector>

#include <emmintrin.h>

namespace bitwitness::host {
namespace {

/// A go in a hurry that has to be repeated costs as much as several that have not.
constexpr std::size_t well_for_each_in_vain = 4;
constexpr std::size_t first_in_vain = 4;
constexpr std::size_t never_again = std::numeric_limits<std::size_t>::max() / 2;

/// What words hold before calls, over as many values as fill whole vectors.
class PoisonPattern {
 public:
  static constexpr std::size_t values = 4;

  explicit PoisonPattern(std::size_t word_count)
      : poison_(word_count), unknown_(word_count, Vector{_mm_set1_epi32(-1)}), changed_(word_count) {}

  /// Words that are not set come from registers.
  void set(std::size_t word, std::uint32_t poison) {
    for (std::size_t value = 0; value < values; ++value) {
      put(poison_, value * poison_.size() + word, poison);
      put(unknown_, value * poison_.size() + word, 0);
    }
  }

  /// Takes in which bits of the words of that many values differ from it. Tells whether 16 bits of one look as if they
  /// had not been written.
  bool add(const std::uint32_t* words) {
    __m128i some_left = _mm_setzero_si128();
    for (std::size_t i = 0; i < poison_.size(); ++i) {
      const __m128i those = _mm_loadu_si128(reinterpret_cast<const __m128i*>(words) + i);
      const __m128i changed = _mm_or_si128(_mm_xor_si128(those, poison_[i].bits), unknown_[i].bits);
      some_left = _mm_or_si128(some_left, _mm_cmpeq_epi16(changed, _mm_setzero_si128()));
      changed_[i].bits = _mm_or_si128(changed_[i].bits, changed);
    }
    return _mm_movemask_epi8(some_left) != 0;
  }

  [[nodiscard]] std::uint32_t changed(std::size_t word) const {
    std::uint32_t bits = 0;
    for (std::size_t value = 0; value < values; ++value) bits |= get(changed_, value * changed_.size() + word);
    return bits;
  }

 private:
  struct Vector {
    __m128i bits = _mm_setzero_si128();
  };
  using Vectors = std::vector<Vector>;

  static void put(Vectors& vectors, std::size_t lane, std::uint32_t word) {
    std::memcpy(reinterpret_cast<std::byte*>(vectors.data()) + 4 * lane, &word, sizeof word);
  }
  static std::uint32_t get(const Vectors& vectors, std::size_t lane) {
    std::uint32_t word = 0;
    std::memcpy(&word, reinterpret_cast<const std::byte*>(vectors.data()) + 4 * lane, sizeof word);
    return word;
  }

  Vectors poison_;
  Vectors unknown_;
  Vectors changed_;
};

}  // namespace

bool HostLane::may_hurry() const {
  return code_.hurried_enter != 0 && hurried_in_vain_ < first_in_vain + hurried_well_ / well_for_each_in_vain;
}

HostLane::Went HostLane::hurry(std::size_t count) {
  begin(0, count);
  user_regs_struct registers = entry_;
  registers.rip = code_.hurried_enter;
  Stop stop;
  while (true) {
    stop = process_->run(registers);
    if (stop.signal == SIGTRAP && stop.registers.rip == code_.hurried_done) break;
    switch (cause_of(stop, registers, code_.hurried_enter)) {
      case Cause::request:
        return Went::nowhere;
      case Cause::memory_of_its_own:
        return Went::to_memory_of_its_own;
      case Cause::watchdog:
        hurried_in_vain_ = never_again;  // each such value would be waited for once more
        return Went::in_vain;
      case Cause::fault:
        ++hurried_in_vain_;
        return Went::in_vain;
      case Cause::nothing:
        break;
    }
    registers = stop.registers;
    registers.orig_rax = ~0ULL;
  }
  std::uint64_t odd = 0;
  std::memcpy(&odd, state(state_odd), sizeof odd);
  const bool is_in_order = odd == 0 && all_came_back() && keeps_processor(stop) && left() == 0 &&
                           keeps_state(count, 0) && keeps_callers_stack();
  if (written_before_output() || !is_in_order) {
    ++hurried_in_vain_;
    return Went::in_vain;
  }
  ++hurried_well_;
  return Went::on;
}

/// Tells whether control words, flags and the x87 stack are, after all calls, what they were before the first. The
/// sticky flags tell of stack faults: a register that a call has filled below the top makes a later one overflow.
bool HostLane::keeps_processor(const Stop& stop) const {
  constexpr std::uint16_t stack_fault = 0x40;
  constexpr std::uint64_t alignment_check = 0x40000;
  const user_fpregs_struct floating = process_->floating_point();
  return floating.cwd == environment_.fpcw && floating.ftw == 0 && (floating.swd & stack_fault) == 0 &&
         ((floating.mxcsr ^ environment_.mxcsr) & mxcsr_control_bits) == 0 &&
         (stop.registers.eflags & (direction_flag | alignment_check)) == 0;
}

/// Takes the words. Values of which some look as if they had not been written are suspect.
void HostLane::take_words(std::vector<Suspect>& suspects, std::size_t first, std::span<std::uint32_t> words) {
  std::memcpy(words.data(), memory_.at(layout_.words.address), words.size_bytes());
  const auto look_at_each = [&](std::size_t from, std::size_t end) {
    for (; from < end; from += plan_.word_count) {
      const bool is_poisoned = note_poison(words.subspan(from, plan_.word_count));
      if (is_poisoned) suspects.push_back({first + from / plan_.word_count, false});
    }
  };
  std::size_t done = 0;
  if (std::ranges::none_of(taps_, [](const Tap& tap) { return tap.size < sizeof(std::uint32_t); })) {
    PoisonPattern pattern(plan_.word_count);
    for (const Tap& tap : taps_) {
      pattern.set(tap.word, static_cast<std::uint32_t>(tap.poison));
      if (tap.size == sizeof tap.poison) pattern.set(tap.word + 1, static_cast<std::uint32_t>(tap.poison >> 32));
    }
    const std::size_t step = PoisonPattern::values * plan_.word_count;
    for (; words.size() - done >= step; done += step) {
      if (pattern.add(words.data() + done)) look_at_each(done, done + step);
    }
    for (Tap& tap : taps_) {
      tap.changed |= pattern.changed(tap.word);
      if (tap.size == sizeof tap.changed) tap.changed |= std::uint64_t{pattern.changed(tap.word + 1)} << 32;
    }
  }
  look_at_each(done, words.size());
}

/// Runs suspects once more with the opposite in their outputs. Words that are the same again were written: with so many
/// values, some of them look like what was there before.
void HostLane::ask_again(std::vector<Suspect>& suspects, std::size_t first, std::span<const std::uint32_t> words,
                         std::span<const std::byte> packed) {
  if (suspects.empty() || code_.hurried_enter == 0) return;
  std::byte* to = memory_.at(layout_.values.address);
  for (const Suspect& suspect : suspects) {
    std::memcpy(to, packed.data() + (suspect.index - first) * plan_.packed_size, plan_.packed_size);
    to += plan_.packed_size;
  }
  set_poison(opposite_poison());
  fill_stack();
  const Went went = hurry(suspects.size());
  set_poison(poison_of(kind_));
  if (went != Went::on) return;
  std::vector<std::uint32_t> again(suspects.size() * plan_.word_count);
  std::memcpy(again.data(), memory_.at(layout_.words.address), 4 * again.size());
  auto now = again.begin();
  std::erase_if(suspects, [&](const Suspect& suspect) {
    const auto before = words.subspan((suspect.index - first) * plan_.word_count, plan_.word_count);
    const bool is_same = std::equal(before.begin(), before.end(), now);
    now += static_cast<std::ptrdiff_t>(plan_.word_count);
    return is_same;
  });
}

std::array<std::uint8_t, 4> HostLane::opposite_poison() const {
  std::array<std::uint8_t, 4> opposite = poison_of(kind_);
  for (std::uint8_t& byte : opposite) byte = static_cast<std::uint8_t>(~byte);
  return opposite;
}

}  // namespace bitwitness::host
