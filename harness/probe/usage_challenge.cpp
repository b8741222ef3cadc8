// Whether anything matters that was not found to, and whether all code was reached.
#include "harness/probe/usage.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>

namespace bitwitness {
namespace {

constexpr std::size_t challenges = 96;
constexpr std::size_t calls_to_reach = 192;
constexpr std::size_t calls_to_watch = 16;
constexpr std::array<std::size_t, 5> patterns_of_ends = {10, 14, 15, 30, 16};  // see Study::fill

std::uint64_t low_bits(unsigned count) {
  return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

}  // namespace

/// Something that a call is given and that no pointer and no word accounts for.
struct Study::Element {
  enum class Kind : std::uint8_t { word, upper_bits, byte } kind = Kind::word;
  WordUse word;             ///< the word, or the one whose upper bits are left out
  unsigned kept = 0;        ///< upper bits: how many below them are left alone
  std::size_t pointer = 0;  ///< byte: index into the pointers
  std::size_t at = 0;       ///< and into the window
  std::uint64_t value = 0;  ///< what it is given
};

std::vector<Study::Element> Study::outside() const {
  std::vector<Element> elements;
  const auto add = [&elements](const WordUse& word) {
    Element element;
    element.word = word;
    elements.push_back(element);
  };
  for (std::size_t place = 0; place < is_pointer_.size(); ++place) {
    const WordUse* before = place > 0 ? usage_.word_at(place - 1) : nullptr;
    const bool is_upper_half = before != nullptr && before->takes_two;
    if (is_pointer_[place] || usage_.word_at(place) != nullptr || is_upper_half) continue;
    WordUse word;
    word.place = place;
    if (!is_only_left(word)) add(word);
  }
  for (unsigned reg = 0; reg < (is_64_bit_ ? 16u : 8u); ++reg) {
    if (std::ranges::find(usage_.words, std::optional(reg), &WordUse::xmm) != usage_.words.end()) continue;
    WordUse word;
    word.xmm = reg;
    word.is_float = true;
    if (!is_only_left(word)) add(word);
  }
  for (const WordUse& word : usage_.words) {
    if (word.kind != WordUse::Kind::value || word.takes_two) continue;
    Element element;
    element.kind = Element::Kind::upper_bits;
    element.word = word;
    element.kept = (static_cast<unsigned>(std::bit_width(word.bits)) + 7) / 8 * 8;
    if (element.kept < (is_64_bit_ || word.xmm ? 64u : 32u)) elements.push_back(element);
  }
  for (std::size_t i = 0; i < usage_.pointers.size(); ++i) {
    for (std::size_t at = 0; at < window_size; ++at) {
      const ByteUse& byte = usage_.pointers[i].bytes[at];
      if (!byte.read || byte.matters) continue;
      Element element;
      element.kind = Element::Kind::byte;
      element.pointer = i;
      element.at = at;
      elements.push_back(element);
    }
  }
  return elements;
}

void Study::scramble(Attempt& attempt, const Element& element) {
  if (element.kind == Element::Kind::byte) {
    attempt.window(usage_.pointers[element.pointer].place)[element.at] = static_cast<std::byte>(element.value);
    return;
  }
  const std::uint64_t kept = element.kind == Element::Kind::upper_bits ? low_bits(element.kept) : 0;
  set(attempt, element.word, (get(attempt, element.word) & kept) | (element.value & ~kept));
}

/// Changes everything at once that should not matter, beside contents of every kind. Returns true when a word was found
/// that does, so that results and bytes are to be looked at again.
bool Study::challenge() {
  for (std::size_t i = 0; i < challenges && !out_of_budget(); ++i) {
    const Attempt base = make_attempt(i % 2 == 0 ? i / 2 : patterns_of_ends[i / 2 % patterns_of_ends.size()]);
    const Outcome expected = outcome_of(base);
    if (!expected.returned) continue;
    const auto differs = [this, &expected](const Attempt& attempt) {
      const Outcome outcome = outcome_of(attempt);
      return outcome.returned != expected.returned || outcome.hash != expected.hash;
    };
    std::vector<Element> elements = outside();
    Attempt scrambled = base;
    for (Element& element : elements) {
      element.value = element.word.xmm ? float_of(next() % 16, next() % 2 == 0) : integer_of(next() % 16);
      scramble(scrambled, element);
    }
    if (!differs(scrambled)) continue;
    bool is_explained = false;
    bool has_new_word = false;
    for (const Element& element : elements) {
      if (out_of_budget()) return false;
      Attempt attempt = base;
      scramble(attempt, element);
      if (!differs(attempt)) continue;
      is_explained = true;
      if (element.kind == Element::Kind::byte) {
        usage_.pointers[element.pointer].bytes[element.at].matters = true;
        continue;
      }
      has_new_word = true;
      const auto same = [&element](const WordUse& word) {
        return word.xmm == element.word.xmm && (word.xmm || word.place == element.word.place);
      };
      const auto known = std::ranges::find_if(usage_.words, same);
      if (known != usage_.words.end()) {
        Element half = element;
        half.value = (get(base, element.word) & ~low_bits(32)) | (element.value & low_bits(32));
        attempt = base;
        scramble(attempt, half);
        known->bits |= low_bits(differs(attempt) ? 32 : 64);
        continue;
      }
      WordUse word = element.word;
      classify(word);
      find_bits(word);
      const auto is_behind = [&word](const WordUse& other) {
        return !word.xmm && (other.xmm || other.place > word.place);
      };
      usage_.words.insert(std::ranges::find_if(usage_.words, is_behind), word);
    }
    has_hidden_influence_ |= !is_explained;
    if (has_new_word) return true;
  }
  return false;
}

/// Calls with null pointers and further contents as long as code is left that no call has reached.
void Study::reach_more() {
  const auto is_all_reached = [this] {
    usage_.unreached.clear();
    note_unreached();
    return usage_.unreached.empty();
  };
  if (is_all_reached()) return;
  for (const PointerUse& pointer : usage_.pointers) {
    Attempt attempt = make_attempt(1);
    attempt.integers[pointer.place] = 0;
    if (outcome_of(attempt).returned) follow(exploration_.run(attempt));
  }
  for (std::size_t i = 0; i < calls_to_reach && !out_of_budget(); ++i) {
    if (i % 32 == 0 && is_all_reached()) return;
    const Attempt attempt = make_attempt(i % 4 == 0 ? 15 : i % 4 == 1 ? 10 : i % 4 == 2 ? 14 : i / 4);
    const std::size_t before = exploration_.half_seen().size();
    if (outcome_of(attempt).returned && exploration_.half_seen().size() != before) follow(exploration_.run(attempt));
  }
  find_bytes();
}

void Study::note_unreached() {
  usage_.unreached.clear();
  usage_.one_way_jumps = 0;
  const std::vector<HalfSeenJump> jumps = exploration_.half_seen();
  std::vector<std::pair<HalfSeenJump, RegisterSet>> harmless;
  for (const HalfSeenJump& jump : jumps) {
    const UnseenSide side =
        look_at(image_, jump, [this](std::uint64_t address) { return exploration_.was_executed(address); });
    if (side.kind == UnseenSide::Kind::open) usage_.unreached.push_back({jump.address, jump.unseen});
    if (side.kind == UnseenSide::Kind::ends) ++usage_.one_way_jumps;
    if (side.kind == UnseenSide::Kind::harmless) harmless.emplace_back(jump, side.reads);
  }
  if (harmless.empty()) return;
  // A register that still holds at the jump what the caller left there, and that only the other side reads, may be one
  // more argument.
  std::map<std::uint64_t, RegisterSet> held;
  for (const auto& [jump, reads] : harmless) held.try_emplace(jump.address);
  for (std::size_t i = 0; i < calls_to_watch; ++i) {
    const Observed& observed = exploration_.run(make_attempt(i));
    if (observed.is_whole) flow_.note_held(observed.path, observed.stack, held);
  }
  constexpr std::uint16_t stack_pointers = 1U << 4 | 1U << 5;
  for (const auto& [jump, reads] : harmless) {
    const RegisterSet& at = held[jump.address];
    const bool takes_more = (reads.general & at.general & ~used_registers_.general & ~stack_pointers) != 0 ||
                            (reads.xmm & at.xmm & ~used_registers_.xmm) != 0;
    if (takes_more) {
      usage_.unreached.push_back({jump.address, jump.unseen});
    } else {
      ++usage_.one_way_jumps;
    }
  }
}

}  // namespace bitwitness
