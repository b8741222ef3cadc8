#include "harness/probe/usage.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace bitwitness {
namespace {

constexpr std::size_t calls_per_round = 8;
constexpr std::size_t first_survey = 24;
constexpr std::size_t whole_survey = 160;
// Calls that do not return cost a thousand times as much as others.
constexpr std::size_t most_runaways = 12;
constexpr std::size_t most_runaways_per_round = 4;

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
    survey(whole_survey);
    if (!is_erratic_) find_bytes();
  }
  usage_.is_erratic = is_erratic_;
  return std::move(usage_);
}

std::uint64_t Study::next() {  // splitmix64
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

void Study::fill(Attempt& attempt, std::size_t pattern) {
  for (std::size_t at = 0; at + 8 <= attempt.contents.size(); at += 8) {
    std::uint64_t bits = next();
    const std::uint64_t sparse = (bits >> 8 & 7) == 0 ? std::uint64_t{0xff} << (bits >> 16 & 0x38) : 0;
    if (pattern % 8 == 3) bits = (bits & 0x87ff'ffff'87ff'ffff) | 0x3800'0000'3800'0000;  // floats below 4
    if (pattern % 8 == 4) bits &= sparse;
    if (pattern % 8 == 5) bits |= ~sparse;
    std::memcpy(attempt.contents.data() + at, &bits, 8);
  }
}

Attempt Study::make_attempt(std::size_t pattern) {
  Attempt attempt = exploration_.blank();
  for (std::size_t i = 0; i < is_pointer_.size(); ++i) {
    if (!is_pointer_[i] && rest_ != Rest::pointers) attempt.integers[i] = rest_ == Rest::ones ? 1 : 0;
  }
  for (std::uint32_t reg = 0; reg < 16; ++reg) {
    for (std::uint32_t lane = 0; lane < 4; ++lane) attempt.xmm[reg][lane] = 0x3f800000 + 0x10000 * reg + 0x1000 * lane;
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
    const std::uint64_t bits = next();
    if (pattern % 4 == 0) {
      set(attempt, word, pattern % 8 == 0 ? 1 : bits & 0xff);
    } else if (word.is_float || word.xmm) {
      const bool is_wide = word.width == 8 || word.bits >> 32 != 0;
      const auto tame = static_cast<double>(static_cast<std::int64_t>(bits) >> 40) / 65536;
      set(attempt, word,
          is_wide ? std::bit_cast<std::uint64_t>(tame) : std::bit_cast<std::uint32_t>(static_cast<float>(tame)));
    } else {
      set(attempt, word, word.bits == 0 ? bits : bits & word.bits);
    }
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
