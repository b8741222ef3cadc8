#include "harness/probe/usage.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace bitwitness {
namespace {

constexpr std::size_t calls_per_round = 8;
constexpr std::size_t first_survey = 24;
constexpr std::size_t whole_survey = 160;
// Calls that do not return cost a thousand times as much as others.
constexpr std::size_t most_runaways = 12;
constexpr std::size_t most_runaways_per_round = 4;
constexpr std::size_t patterns = 16;  // of contents and words
constexpr int most_rounds = 3;

}  // namespace

bool Usage::writes_memory() const {
  return std::ranges::any_of(pointers, [](const PointerUse& pointer) { return !pointer.stores.empty(); });
}

const PointerUse* Usage::pointer_at(std::size_t place) const {
  const auto found = std::ranges::find(pointers, place, &PointerUse::place);
  return found == pointers.end() ? nullptr : &*found;
}

const WordUse* Usage::word_at(std::size_t place) const {
  const auto same = [place](const WordUse& word) { return !word.xmm && word.place == place; };
  const auto found = std::ranges::find_if(words, same);
  return found == words.end() ? nullptr : &*found;
}

Study::Study(Exploration& exploration, const Image& image, std::uint64_t seed)
    : exploration_(exploration),
      image_(image),
      is_64_bit_(image.format() == ImageFormat::pe32_plus),
      state_(seed),
      flow_(image),
      is_pointer_(exploration.places().size()) {}

Usage Study::run() {
  discover();
  survey(first_survey);
  if (usage_.returned != 0) {
    check_repeatable();
    if (!is_erratic_) find_words();
    for (WordUse& word : usage_.words) classify(word);
    for (WordUse& word : usage_.words) find_bits(word);
    bool is_settled = false;
    for (int i = 0; i < most_rounds && !is_settled && !is_erratic_; ++i) {
      survey(whole_survey);
      find_bytes();
      is_settled = !challenge();
      if (is_settled) reach_more();
    }
    has_hidden_influence_ |= !is_settled && !out_of_budget();
    note_unreached();
  }
  usage_.used_registers = used_registers_;
  usage_.state = exploration_.state();
  usage_.table_jumps = exploration_.table_jumps();
  usage_.has_hidden_influence = has_hidden_influence_;
  usage_.is_cut_short = out_of_budget();
  usage_.is_erratic = is_erratic_;
  return std::move(usage_);
}

std::uint64_t Study::next() {  // splitmix64
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

std::uint64_t Study::number() {
  const std::span<const std::uint64_t> numbers = exploration_.numbers();
  if (numbers.empty()) return next() % 16;
  const std::uint64_t bits = next();
  return numbers[bits % numbers.size()] + (bits >> 40 & 3) / 2 - (bits >> 48 & 3) / 3;
}

/// Ends and middles of integers and floats of every width.
std::uint64_t Study::special() {
  static constexpr std::array<std::uint64_t, 24> numbers = {0,
                                                            1,
                                                            0x7f,
                                                            0x80,
                                                            0xff,
                                                            0x7fff,
                                                            0x8000,
                                                            0xffff,
                                                            0x3c00,
                                                            0x7c00,
                                                            0xfc00,
                                                            0x7e00,
                                                            0x3ff,
                                                            0x400,
                                                            0x7fffffff,
                                                            0x80000000,
                                                            0x7f800000,
                                                            0xff800000,
                                                            0x7fc00000,
                                                            0x807fffff,
                                                            0x7fff'ffff'ffff'ffff,
                                                            0x8000'0000'0000'0000,
                                                            0x7ff0'0000'0000'0000,
                                                            ~std::uint64_t{0}};
  return numbers[next() % numbers.size()];
}

/// A float between 1/8 and 32 with a whole mantissa.
std::uint64_t Study::tame_float(bool is_wide) {
  const std::uint64_t bits = next();
  const std::uint64_t exponent = bits >> 56 & 7;
  if (is_wide) return (bits & 0x800f'ffff'ffff'ffff) | (exponent + 1020) << 52;
  return (bits & 0x807f'ffff) | (exponent + 124) << 23;
}

std::uint64_t Study::special_float(bool is_wide) {
  static constexpr std::array<std::uint64_t, 8> exponents = {0, 0, 1, 0x7f, 0x80, 0xfe, 0xff, 0xff};
  const std::uint64_t bits = next();
  std::uint64_t exponent = exponents[bits >> 55 & 7];
  const std::uint64_t keep = (bits >> 58 & 1) != 0 ? ~std::uint64_t{0} : 0;
  if (!is_wide) return (bits & 0x8000'0000) | exponent << 23 | (bits & keep & 0x7f'ffff);
  if (exponent > 1) exponent = exponent == 0xff ? 0x7ff : exponent == 0xfe ? 0x7fe : exponent - 0x7f + 0x3ff;
  return (bits & 0x8000'0000'0000'0000) | exponent << 52 | (bits & keep & 0xf'ffff'ffff'ffff);
}

std::uint64_t Study::integer_of(std::size_t pattern) {
  switch (pattern % patterns) {
    case 0:
      return 1;
    case 4:
    case 12:
      return pattern % patterns == 4 ? next() % 8 : 0;
    case 8:
      return next() & 0xff;
    case 6:
      return next() % 32;
    case 3:
    case 9:
    case 11: {
      const std::uint64_t bits = next();
      return bits >> (bits & 63);
    }
    case 10:
    case 14:
      return number();
    case 13:
      return ~std::uint64_t{0};
    case 15:
      return special();
    default:
      return next();
  }
}

std::uint64_t Study::float_of(std::size_t pattern, bool is_wide) {
  switch (pattern % patterns) {
    case 9: {  // between 2^-20 and 2^67
      const std::uint64_t bits = next();
      const std::uint64_t exponent = (bits >> 56) % 88;
      if (is_wide) return (bits & 0x800f'ffff'ffff'ffff) | (exponent + 1003) << 52;
      return (bits & 0x807f'ffff) | (exponent + 107) << 23;
    }
    case 12:
      return 0;
    case 14:
    case 15:
      return special_float(is_wide);
    default:
      return tame_float(is_wide);
  }
}

/// What memory holds: anything, floats, small numbers, ends of ranges, and what the code compares with.
void Study::fill(Attempt& attempt, std::size_t pattern) {
  const std::size_t kind = pattern % patterns;
  const auto width = static_cast<unsigned>(next() % 4);  // of special numbers and those of the code: 1, 2, 4 or 8 bytes
  for (std::size_t at = 0; at + 8 <= attempt.contents.size(); at += 8) {
    std::uint64_t bits = next();
    const std::uint64_t sparse = (bits >> 8 & 7) == 0 ? std::uint64_t{0xff} << (bits >> 16 & 0x38) : 0;
    if (kind == 3) bits = (bits & 0x87ff'ffff'87ff'ffff) | 0x3800'0000'3800'0000;  // floats below 4
    if (kind == 4) bits &= sparse;
    if (kind == 5) bits |= ~sparse;
    if (kind == 6) bits &= 0x0000'000f'0000'000f;
    if (kind == 8) bits &= 0x00ff'ffff'00ff'ffff;
    if (kind == 9) bits = float_of(9, false) | float_of(9, false) << 32;
    if (kind == 11) bits = tame_float(true);
    if (kind == 12) bits = 0;
    if (kind == 13) bits = ~std::uint64_t{0};
    if (kind == 10 || kind == 14 || kind == 15) {
      for (unsigned part = 0; part < 8; part += 1U << width) {
        const bool is_special = (bits & 3) != 0;
        const std::uint64_t piece = !is_special ? next() : kind == 15 ? special() : number();
        std::memcpy(attempt.contents.data() + at + part, &piece, std::size_t{1} << width);
      }
      continue;
    }
    std::memcpy(attempt.contents.data() + at, &bits, 8);
  }
}

Attempt Study::make_attempt(std::size_t pattern) {
  Attempt attempt = exploration_.blank();
  for (std::size_t i = 0; i < is_pointer_.size(); ++i) {
    if (!is_pointer_[i] && rest_ != Rest::pointers) attempt.integers[i] = rest_ == Rest::ones ? 1 : 0;
  }
  for (std::uint32_t reg = 0; reg < 16; ++reg) {
    attempt.xmm[reg][1] = 0x3f801000;  // above, all hold the same: what only moves them changes nothing there
    const bool is_known = used_as_[reg] != RegisterEffect::Float::none;
    const bool is_wide = is_known ? used_as_[reg] == RegisterEffect::Float::wide : pattern % 2 == 1;
    const std::uint64_t bits = float_of(pattern < patterns ? pattern : next(), is_wide);
    std::memcpy(attempt.xmm[reg].data(), &bits, is_wide ? 8 : 4);
  }
  fill(attempt, pattern);
  set_words(attempt, pattern);
  return attempt;
}

void Study::set_words(Attempt& attempt, std::size_t pattern) {
  for (const WordUse& word : usage_.words) {
    if (word.kind == WordUse::Kind::count) set(attempt, word, 1);
    if (word.kind == WordUse::Kind::index) set(attempt, word, 0);
    if (word.kind != WordUse::Kind::value) continue;
    const bool is_wide = word.width == 8 || word.bits >> 32 != 0;
    const std::size_t kind = pattern < patterns ? pattern : next() % patterns;  // later on, words of unlike kinds
    set(attempt, word, word.is_float || word.xmm ? float_of(kind, is_wide) : integer_of(kind));
  }
}

bool Study::note_pointers(const Observed& observed) {
  bool is_new = false;
  for (const ObservedAccess& access : observed.accesses) {
    if (access.where != ObservedAccess::Where::region || is_pointer_[access.place]) continue;
    is_pointer_[access.place] = true;
    is_new = true;
  }
  return is_new;
}

std::size_t Study::try_rest(Rest rest) {
  rest_ = rest;
  std::size_t returned = 0;
  for (bool grew = true; grew && !out_of_budget();) {
    grew = false;
    returned = 0;
    std::size_t runaways = 0;
    for (std::size_t i = 0; i < calls_per_round && runaways < most_runaways_per_round; ++i) {
      const Observed& observed = exploration_.run(make_attempt(i));
      grew |= note_pointers(observed);
      if (observed.returned()) ++returned;
      if (observed.end == Observed::End::out_of_budget) ++runaways;
    }
  }
  return returned;
}

void Study::discover() {
  std::size_t best = 0;
  Rest chosen = Rest::pointers;
  for (const Rest rest : {Rest::pointers, Rest::ones, Rest::zeros}) {
    const std::size_t returned = try_rest(rest);
    if (returned > best) {
      best = returned;
      chosen = rest;
    }
    if (best == calls_per_round) break;
  }
  if (best == 0) {
    promote();
    best = try_rest(Rest::ones);
    if (best != 0) chosen = Rest::ones;
  }
  rest_ = chosen;
}

/// Where one pointer leads to the next only while everything else is a small number, makes pointers one by one.
void Study::promote() {
  rest_ = Rest::ones;
  for (bool grew = true; grew && !out_of_budget();) {
    grew = false;
    for (std::size_t place = 0; place < is_pointer_.size(); ++place) {
      if (is_pointer_[place]) continue;
      Attempt attempt = make_attempt(0);
      attempt.integers[place] = std::nullopt;
      grew |= note_pointers(exploration_.run(attempt));
    }
  }
}

void Study::survey(std::size_t calls) {
  constexpr int most_restarts = 4;
  for (int i = 0; i < most_restarts && !survey_once(calls); ++i) {
  }
}

/// Returns false when it met another pointer, so that the calls before say too little.
bool Study::survey_once(std::size_t calls) {
  std::vector<WordUse> words = std::move(usage_.words);
  usage_ = {};
  usage_.words = std::move(words);
  unread_ = {0xffff, 0xffff};
  registers_ = {};
  first_uppers_ = {};
  stack_width_ = {};
  stack_float_ = {};
  float_loads_.clear();
  for (std::size_t place = 0; place < is_pointer_.size(); ++place) {
    if (!is_pointer_[place]) continue;
    PointerUse pointer;
    pointer.place = place;
    pointer.bytes.resize(window_size);
    pointer.is_odd.resize(window_size);
    pointer.is_nonzero.resize(window_size);
    usage_.pointers.push_back(std::move(pointer));
  }
  std::size_t runaways = 0;
  for (std::size_t i = 0; i < calls && !out_of_budget() && runaways < most_runaways; ++i) {
    const Attempt attempt = make_attempt(i);
    const Observed& observed = exploration_.run(attempt);
    ++usage_.calls;
    if (observed.end == Observed::End::out_of_budget) ++runaways;
    if (note_pointers(observed)) return false;
    record(observed, attempt);
  }
  choose_results();
  return true;
}

}  // namespace bitwitness
