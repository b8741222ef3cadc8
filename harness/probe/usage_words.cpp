// Which words and bytes matter, told by changing them.
#include "harness/probe/usage.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace bitwitness {
namespace {

constexpr std::size_t bases_per_word = 6;
constexpr std::array<std::size_t, 7> patterns_of_bits = {0, 1, 2, 3, 4, 12, 16};
constexpr std::size_t bases_per_byte = 14;
constexpr std::size_t bases_per_byte_of_many = 5;
constexpr std::size_t many_bytes = 64;

struct Hash {
  std::uint64_t state = 0xcbf29ce484222325;

  void add(std::uint64_t value) {
    state = (state ^ value) * 0x100000001b3;
    state ^= state >> 29;
  }
};

}  // namespace

void Study::set(Attempt& attempt, const WordUse& word, std::uint64_t bits) const {
  if (word.xmm) {
    std::memcpy(attempt.xmm[*word.xmm].data(), &bits, 8);
  } else if (word.takes_two) {
    attempt.integers[word.place] = bits & 0xffff'ffff;
    attempt.integers[word.place + 1] = bits >> 32;
  } else {
    attempt.integers[word.place] = bits;
  }
}

std::uint64_t Study::get(const Attempt& attempt, const WordUse& word) const {
  if (word.xmm) return std::uint64_t{attempt.xmm[*word.xmm][1]} << 32 | attempt.xmm[*word.xmm][0];
  std::uint64_t value = attempt.integers[word.place].value_or(exploration_.pointer(word.place));
  if (word.takes_two) value |= attempt.integers[word.place + 1].value_or(0) << 32;
  return value;
}

void Study::add_registers(Outcome& outcome, const Observed& observed) const {
  Hash hash{outcome.hash};
  for (const RegisterResult& result : usage_.results) {
    std::uint64_t value = observed.general[result.number];
    if (result.is_xmm) std::memcpy(&value, observed.xmm[result.number].data(), 8);
    if (result.width < 8) value &= (std::uint64_t{1} << 8 * result.width) - 1;
    hash.add(value);
  }
  outcome.hash = hash.state;
}

Study::Outcome Study::outcome_of(const Attempt& attempt) {
  const Observed& observed = exploration_.run(attempt);
  Outcome outcome;
  outcome.returned = observed.returned();
  if (!outcome.returned) return outcome;
  Hash hash;
  hash.add(static_cast<std::uint64_t>(observed.removed));
  constexpr std::uint8_t read = 1;
  constexpr std::uint8_t written = 2;
  std::vector<std::vector<std::uint8_t>> marks(usage_.pointers.size(), std::vector<std::uint8_t>(window_size));
  for (const ObservedAccess& access : observed.accesses) {
    if (access.where != ObservedAccess::Where::region) continue;
    const auto found = std::ranges::find(usage_.pointers, std::size_t{access.place}, &PointerUse::place);
    if (found == usage_.pointers.end()) continue;
    for (int i = 0; i < access.size; ++i) {
      const std::int64_t at = access.offset + i + static_cast<std::int64_t>(window_front);
      if (at < 0 || at >= static_cast<std::int64_t>(window_size)) continue;
      std::uint8_t& mark =
          marks[static_cast<std::size_t>(found - usage_.pointers.begin())][static_cast<std::size_t>(at)];
      if (access.is_write) mark |= written;
      if (!access.is_write && (mark & written) == 0) mark |= read;
    }
  }
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const std::span<const std::byte> after = exploration_.after(usage_.pointers[i].place);
    bool any_read = false;
    bool any_written = false;
    for (std::size_t at = 0; at < window_size; ++at) {
      const std::uint8_t mark = marks[i][at];
      if (mark == 0) continue;
      const auto offset = static_cast<std::int64_t>(at) - static_cast<std::int64_t>(window_front);
      if ((mark & read) != 0) {
        usage_.pointers[i].bytes[at].read = true;
        if (!any_read) outcome.first_read += offset;
        any_read = true;
        ++outcome.read;
      }
      if ((mark & written) == 0) continue;
      if (!any_written) outcome.first_written += offset;
      any_written = true;
      usage_.pointers[i].bytes[at].written = true;  // not always, when no survey has seen it
      ++outcome.written;
      hash.add(static_cast<std::uint64_t>(offset) << 8 | std::to_integer<std::uint64_t>(after[at]));
    }
  }
  hash.add(observed.x87_values);
  if (observed.st0 && observed.x87_values == 1) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, observed.st0->data(), 8);
    hash.add(bits);
    std::memcpy(&bits, observed.st0->data() + 2, 8);
    hash.add(bits);
  }
  outcome.hash = hash.state;
  if (!usage_.writes_memory() && !usage_.st0_bytes) add_registers(outcome, observed);
  return outcome;
}

void Study::check_repeatable() {
  constexpr int repetitions = 4;
  const Attempt attempt = make_attempt(0);
  const Outcome first = outcome_of(attempt);
  for (int i = 1; i < repetitions; ++i) {
    const Outcome again = outcome_of(attempt);
    is_erratic_ |= again.returned != first.returned || again.hash != first.hash;
  }
}

bool Study::is_used(const WordUse& word) const {
  if (word.xmm) return (used_registers_.xmm >> *word.xmm & 1) != 0;
  const Place& where = exploration_.places()[word.place];
  if (where.kind == Place::Kind::stack) return stack_width_[where.index] != 0;
  return (used_registers_.general >> where.index & 1) != 0;
}

/// Tells whether a register is only given back as it came: no argument, unless conventions pass arguments there.
bool Study::is_only_left(const WordUse& word) const {
  const bool is_stack = !word.xmm && word.place < explored_stack_words;
  if (is_stack || is_used(word)) return false;
  const unsigned number = word.xmm ? *word.xmm : exploration_.places()[word.place].index;
  const bool is_result = std::ranges::any_of(usage_.results, [&word, number](const RegisterResult& result) {
    return result.is_xmm == word.xmm.has_value() && result.number == number;
  });
  constexpr unsigned home_words = 4;
  const bool may_be_passed =
      word.xmm ? is_64_bit_ && number < home_words : number == 1 || number == 2 || number == 8 || number == 9;
  return is_result && !may_be_passed;
}

/// Words may matter only beside certain others: small ones (a shift), equal ones (a comparison), none (a test for 0).
std::vector<Attempt> Study::make_bases() {
  std::vector<Attempt> bases;
  for (std::size_t i = 0; i < bases_per_word; ++i) {
    Attempt base = make_attempt(i == 1 ? 3 : 0);
    const std::uint64_t same = next();
    for (std::size_t place = 0; place < is_pointer_.size(); ++place) {
      WordUse word;
      word.place = place;
      if (is_pointer_[place] || !is_used(word)) continue;
      if (place < explored_stack_words && stack_float_[place]) {
        word.takes_two = !is_64_bit_ && stack_width_[place] == 8 && place + 1 < explored_stack_words;
        set(base, word, tame_float(stack_width_[place] == 8));
        if (word.takes_two) ++place;
        continue;
      }
      if (i == 0) continue;
      const std::uint64_t bits = i == 1 ? next() % 32 : i == 2 ? next() : i == 3 ? same : i == 4 ? 0 : 1;
      base.integers[place] = is_64_bit_ ? bits : bits & 0xffff'ffff;
    }
    bases.push_back(std::move(base));
  }
  return bases;
}

void Study::find_words() {
  const std::vector<Attempt> bases = make_bases();
  std::vector<WordUse> found;
  const auto look = [this, &bases, &found](const WordUse& word) {
    if (is_only_left(word)) return;
    // What nothing was done with may still matter where no call has been.
    if (word_matters(std::span(bases).first(is_used(word) ? bases.size() : 1), word)) found.push_back(word);
  };
  for (std::size_t place = 0; place < is_pointer_.size() && !out_of_budget(); ++place) {
    if (is_pointer_[place]) continue;
    WordUse word;
    word.place = place;
    const Place& where = exploration_.places()[place];
    if (where.kind == Place::Kind::stack) {
      word.width = stack_width_[where.index];
      word.is_float = stack_float_[where.index];
      if (word.width == 0) continue;
      const bool after_wide = !found.empty() && found.back().takes_two && found.back().place + 1 == place;
      if (after_wide) continue;
      word.takes_two = !is_64_bit_ && word.is_float && word.width == 8 && where.index + 1 < explored_stack_words;
    }
    look(word);
  }
  for (unsigned reg = 0; reg < (is_64_bit_ ? 16u : 8u) && !out_of_budget(); ++reg) {
    WordUse word;
    word.xmm = reg;
    word.is_float = true;
    if (used_as_[reg] != RegisterEffect::Float::none) word.width = used_as_[reg] == RegisterEffect::Float::wide ? 8 : 4;
    look(word);
  }
  usage_.words = std::move(found);
}

bool Study::word_matters(std::span<const Attempt> bases, const WordUse& word) {
  for (const Attempt& base : bases) {
    const Outcome expected = outcome_of(base);
    if (!expected.returned) continue;
    const std::uint64_t random = next();
    const std::uint64_t narrow = (random & 0x00ff'ffff) | 0x4000'0000;  // a float between 2 and 8
    std::vector<std::uint64_t> tried{1, 2, narrow | narrow << 32, random, tame_float(true)};
    if (is_used(word)) {
      const std::span<const std::uint64_t> numbers = exploration_.numbers();
      tried.push_back(0);
      tried.insert(tried.end(), numbers.begin(), numbers.end());
    }
    for (const std::uint64_t bits : tried) {
      Attempt changed = base;
      set(changed, word, bits);
      const Outcome outcome = outcome_of(changed);
      if (outcome.returned != expected.returned || outcome.hash != expected.hash) return true;
    }
  }
  return false;
}

void Study::classify(WordUse& word) {
  if (word.is_float) return;
  std::optional<WordUse> agreed;
  for (std::size_t i = 0; i < 2; ++i) {
    const Attempt base = make_attempt(0);
    std::array<Outcome, 4> outcomes;
    for (std::uint64_t number = 0; number < outcomes.size(); ++number) {
      Attempt attempt = base;
      set(attempt, word, number);
      outcomes[number] = outcome_of(attempt);
    }
    if (!outcomes[1].returned || !outcomes[2].returned || !outcomes[3].returned) return;
    const auto step = [&outcomes](std::int64_t Outcome::*what) -> std::int64_t {
      const std::int64_t first = outcomes[2].*what - outcomes[1].*what;
      return outcomes[3].*what - outcomes[2].*what == first ? first : 0;
    };
    WordUse guess = word;
    if (step(&Outcome::written) > 0 || (step(&Outcome::read) > 0 && outcomes[1].written == outcomes[3].written)) {
      guess.kind = WordUse::Kind::count;
      guess.read_step = step(&Outcome::read);
      guess.write_step = step(&Outcome::written);
    } else if (outcomes[0].returned && (step(&Outcome::first_read) != 0 || step(&Outcome::first_written) != 0)) {
      guess.kind = WordUse::Kind::index;
      guess.read_step = step(&Outcome::first_read);
      guess.write_step = step(&Outcome::first_written);
    }
    const bool is_same = !agreed || (agreed->kind == guess.kind && agreed->read_step == guess.read_step &&
                                     agreed->write_step == guess.write_step);
    if (guess.kind == WordUse::Kind::value || !is_same) return;
    agreed = guess;
  }
  word = *agreed;
}

void Study::find_bits(WordUse& word) {
  if (word.kind != WordUse::Kind::value) return;
  const unsigned bits = is_64_bit_ || word.xmm || word.takes_two ? 64 : 32;
  for (const std::size_t pattern : patterns_of_bits) {
    if (out_of_budget()) return;
    Attempt base = make_attempt(pattern);  // the word itself is 1 at first, then random
    const std::uint64_t value = get(base, word);
    const Outcome expected = outcome_of(base);
    if (!expected.returned) continue;
    for (unsigned bit = 0; bit < bits; ++bit) {
      if ((word.bits >> bit & 1) != 0) continue;
      set(base, word, value ^ std::uint64_t{1} << bit);
      const Outcome outcome = outcome_of(base);
      if (!outcome.returned || outcome.hash != expected.hash) word.bits |= std::uint64_t{1} << bit;
    }
  }
}

void Study::find_bytes() {
  std::size_t count = 0;
  for (const PointerUse& pointer : usage_.pointers) {
    count += static_cast<std::size_t>(std::ranges::count_if(pointer.bytes, &ByteUse::read));
  }
  const std::size_t bases = count > many_bytes ? bases_per_byte_of_many : bases_per_byte;
  for (std::size_t i = 0; i < bases && !out_of_budget(); ++i) {
    Attempt attempt = make_attempt(i);
    const Outcome expected = outcome_of(attempt);
    if (!expected.returned) continue;
    for (PointerUse& pointer : usage_.pointers) {
      const std::span<std::byte> window = attempt.window(pointer.place);
      for (std::size_t at = 0; at < window_size; ++at) {
        ByteUse& byte = pointer.bytes[at];
        if (!byte.read || byte.matters || out_of_budget()) continue;
        const std::byte kept = window[at];
        window[at] ^= static_cast<std::byte>(1 + next() % 255);
        const Outcome outcome = outcome_of(attempt);
        byte.matters = !outcome.returned || outcome.hash != expected.hash;
        window[at] = kept;
      }
    }
  }
}

}  // namespace bitwitness
