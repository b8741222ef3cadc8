#include "harness/probe/call_evidence.hpp"

#include "harness/probe/call_places.hpp"
#include "harness/probe/drafting.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace bitwitness {
namespace {

constexpr std::array<unsigned, 4> win64_numbers = {1, 2, 8, 9};
constexpr std::size_t home_words = 4;
constexpr std::int64_t word_size = 4;  // of 32-bit code

std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

bool has_packed_pointer(const Signature& signature) {
  return std::ranges::any_of(signature.arguments, [](const Argument& argument) {
    return argument.role == Role::in || argument.role == Role::inout;
  });
}

std::uint64_t cut(std::uint64_t literal, const Type& type) {
  const std::size_t bits = 8 * std::min<std::size_t>(type.size(), 8);
  return bits == 64 ? literal : literal & ((std::uint64_t{1} << bits) - 1);
}

/// Tells whether two signatures are the same but for the values of constants.
bool same_but_literals(Signature a, Signature b) {
  for (Signature* signature : {&a, &b}) {
    for (Argument& argument : signature->arguments) {
      if (argument.role == Role::constant) argument.literal = 0;
    }
  }
  return a == b;
}

const WordUse* use_of(const ArgumentPlace& place, const CallEvidence& evidence) {
  if (!place.reg) return evidence.usage.word_at(place.first_word + (evidence.is_64_bit ? home_words : 0));
  const auto found = std::ranges::find(evidence.places, Place{Place::Kind::general, place.reg->number});
  if (place.reg->kind != RegisterClass::general || found == evidence.places.end()) return nullptr;
  return evidence.usage.word_at(static_cast<std::size_t>(found - evidence.places.begin()));
}

/// "2 calls to it were found, and all pass 3 as stack argument 2"
std::string same_text(const DirectCalls& calls, std::uint64_t number, const std::string& name) {
  const std::string value = number < 10 ? fmt::format("{}", number) : fmt::format("{:#x}", number);
  if (calls.found == 1) return fmt::format("1 call to it was found, and it passes {} as {}", value, name);
  return fmt::format(
      "{} calls to it were found, and {} pass {} as {}", calls.found,
      calls.found == calls.sites.size() ? "all" : fmt::format("all {} that were read", calls.sites.size()), value,
      name);
}

/// Returns a candidate with every argument as a constant to which all calls give the same number.
Candidate with_constants(const Candidate& from, const CallEvidence& evidence) {
  Candidate settled = from;
  const bool may_be_setting = has_packed_pointer(from.signature);
  const auto places = argument_places(from.signature, evidence.is_64_bit);
  for (std::size_t i = 0; i < places.size(); ++i) {
    Argument& argument = settled.signature.arguments[i];
    const bool is_value = argument.role == Role::value && may_be_setting && !argument.type.is_array;
    if (!is_value && argument.role != Role::constant) continue;
    const auto number = same_immediate(evidence.calls, places[i]);
    if (!number) continue;
    settled.support.push_back(same_text(evidence.calls, *number, name_of(places[i], evidence.is_64_bit)));
    const WordUse* use = use_of(places[i], evidence);
    // Of a count or an index the sizes of the other arguments hold for one value only.
    if (use != nullptr && use->kind != WordUse::Kind::value) continue;
    argument.role = Role::constant;
    argument.literal = cut(*number, argument.type);
  }
  return settled;
}

/// How the calls go with one candidate.
struct Tally {
  std::size_t fitting = 0;     ///< all that the candidate wants is given
  std::size_t pushed = 0;      ///< of these, with stack words that are all pushed
  std::size_t stored = 0;      ///< of these, with stack words that are all stored
  std::size_t as_removed = 0;  ///< of these, the stack is treated behind the call as the convention has it
  std::size_t contradicting = 0;
  std::string contradiction;  ///< what the last of them does: "pushes 4 bytes and removes them"
};

class Weighing {
 public:
  Weighing(const Signature& signature, const CallEvidence& evidence)
      : signature_(signature),
        evidence_(evidence),
        places_(argument_places(signature, evidence.is_64_bit)),
        words_(stack_words_of(places_)),
        bytes_(static_cast<std::int64_t>(words_) * word_size) {}

  Tally run() {
    for (const DirectCall& site : evidence_.calls.sites) add(site);
    return std::move(tally_);
  }

  /// "8 bytes pushed and removed by the caller in all of them, as cdecl with 2 arguments"
  [[nodiscard]] std::string describe(const Tally& tally) const {
    const std::size_t read = evidence_.calls.sites.size();
    std::string text = what_is_given(tally);
    const bool tells_removal = !evidence_.is_64_bit && words_ > 0 && tally.as_removed > 0;
    const std::string_view removal = removes_itself() ? "left to the routine to remove" : "removed by the caller";
    const bool is_joined = tells_removal && tally.as_removed == tally.fitting;
    if (is_joined) text += fmt::format(" and {}", removal);
    if (read > 1) text += tally.fitting == read ? " in all of them" : fmt::format(" in {} of them", tally.fitting);
    if (tells_removal && !is_joined) text += fmt::format(", {} in {}", removal, tally.as_removed);
    return text + fmt::format(", as {} with {}", to_string(signature_.convention),
                              counted(signature_.arguments.size(), "argument"));
  }

 private:
  [[nodiscard]] bool removes_itself() const { return signature_.convention != Convention::cdecl_call; }

  [[nodiscard]] bool gives_all(const DirectCall& site) const {
    if (site.stack.size() < words_) return false;
    return std::ranges::all_of(places_, [&site](const ArgumentPlace& place) {
      if (!place.reg) return true;
      if (place.reg->kind == RegisterClass::xmm) return (site.xmm >> place.reg->number & 1) != 0;
      return site.general[place.reg->number].has_value();
    });
  }

  void add(const DirectCall& site) {
    const std::string contradiction = evidence_.is_64_bit ? one_more_register(site) : other_removal(site);
    if (!contradiction.empty()) {
      ++tally_.contradicting;
      tally_.contradiction = contradiction;
      return;
    }
    if (!gives_all(site)) return;
    ++tally_.fitting;
    if (site.pushed() >= words_) ++tally_.pushed;
    if (site.pushed() == 0) ++tally_.stored;
    const bool is_pushed = site.pushed() >= words_;
    const bool is_left = is_pushed ? site.given_back <= 0 : site.given_back == -bytes_;
    if (removes_itself() ? is_left : is_pushed && site.given_back >= bytes_) ++tally_.as_removed;
  }

  /// A caller that takes down exactly what it has put up says how many bytes the routine is given.
  [[nodiscard]] std::string other_removal(const DirectCall& site) const {
    const auto given = static_cast<std::int64_t>(site.stack.size()) * word_size;
    if (given == 0 || given == bytes_) return {};
    if (removes_itself()) {
      if (site.pushed() != 0 || site.given_back != -given) return {};
      return fmt::format("stores {} bytes and takes them back behind it, where {} are used", given, bytes_);
    }
    if (site.pushed() != site.stack.size() || site.given_back != given) return {};
    // Registers that are pushed as they came may be saved and not passed.
    for (std::size_t i = words_; i < site.stack.size(); ++i) {
      if (site.stack[i].kind == PassedWord::Kind::register_) return {};
    }
    return fmt::format("pushes {} bytes and removes them, where {} are used", given, bytes_);
  }

  /// Code writes no register that nothing reads: one that is loaded and then neither read by the caller is passed.
  [[nodiscard]] std::string one_more_register(const DirectCall& site) const {
    std::size_t positions = 0;
    for (std::size_t i = 0; i < places_.size(); ++i) positions += signature_.arguments[i].place ? 0U : 1U;
    if (positions >= win64_numbers.size() || positions != places_.size() || !gives_all(site)) return {};
    const unsigned number = win64_numbers[positions];
    const auto& loaded = site.general[number];
    const bool is_passed = loaded && loaded->kind != PassedWord::Kind::unknown && (site.unread >> number & 1) != 0 &&
                           (site.read_behind >> number & 1) == 0;
    if (!is_passed) return {};
    return fmt::format("also loads {}, which is not used",
                       to_string(Register{RegisterClass::general, static_cast<std::uint8_t>(number)}, true));
  }

  [[nodiscard]] std::string what_is_given(const Tally& tally) const {
    std::vector<std::string> registers;
    for (const ArgumentPlace& place : places_) {
      if (place.reg) registers.push_back(to_string(*place.reg, evidence_.is_64_bit));
    }
    std::string text;
    for (std::size_t i = 0; i < registers.size(); ++i) {
      text += i == 0 ? "" : i + 1 == registers.size() ? " and " : ", ";
      text += registers[i];
    }
    if (!registers.empty()) text += " loaded";
    if (words_ == 0) return text;
    const std::string_view how = tally.pushed == tally.fitting   ? "pushed"
                                 : tally.stored == tally.fitting ? "stored"
                                                                 : "passed on the stack";
    const std::size_t bytes = words_ * (evidence_.is_64_bit ? 2 * word_size : word_size);
    return fmt::format("{}{}{} bytes {}", text, text.empty() ? "" : ", ", bytes, how);
  }

  const Signature& signature_;
  const CallEvidence& evidence_;
  std::vector<ArgumentPlace> places_;
  std::size_t words_;
  std::int64_t bytes_;
  Tally tally_;
};

/// Counts the calls behind which the result is used where the candidate has it.
std::size_t uses_of_result(const Signature& signature, const CallEvidence& evidence) {
  if (!signature.result || signature.result->place) return 0;
  const bool is_float = signature.result->scalar == Scalar::f32 || signature.result->scalar == Scalar::f64;
  return static_cast<std::size_t>(std::ranges::count_if(evidence.calls.sites, [&](const DirectCall& site) {
    if (!is_float) return site.result.eax;
    if (evidence.is_64_bit) return site.result.xmm0;
    const unsigned other = signature.result->scalar == Scalar::f32 ? 8 : 4;
    return site.result.st0 != 0 && site.result.st0 != other;
  }));
}

}  // namespace

void settle_constants(std::vector<Candidate>& candidates, const CallEvidence& evidence) {
  if (evidence.calls.sites.empty()) return;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Candidate settled = with_constants(candidates[i], evidence);
    if (same_but_literals(settled.signature, candidates[i].signature)) {
      candidates[i] = std::move(settled);
      continue;
    }
    settled.confidence = std::max(settled.confidence, Confidence::likely);
    std::erase(settled.support, open_word_clause);
    std::erase(settled.doubts, open_word_clause);
    const auto same = std::ranges::find_if(candidates, [&settled](const Candidate& other) {
      return same_but_literals(other.signature, settled.signature);
    });
    if (same != candidates.end()) candidates.erase(same);
    // What was erased stood behind: readings with settings are drafted last.
    candidates.insert(candidates.begin() + static_cast<std::ptrdiff_t>(i), std::move(settled));
    ++i;
  }
}

void order_results(std::vector<Candidate>& candidates, const CallEvidence& evidence) {
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    for (std::size_t other = i + 1; other < candidates.size(); ++other) {
      const Candidate& a = candidates[i];
      const Candidate& b = candidates[other];
      const bool is_pair = a.confidence == b.confidence && a.signature.result && b.signature.result &&
                           a.signature.arguments == b.signature.arguments;
      if (!is_pair || uses_of_result(b.signature, evidence) <= uses_of_result(a.signature, evidence)) continue;
      const auto first = candidates.begin();
      std::rotate(first + static_cast<std::ptrdiff_t>(i), first + static_cast<std::ptrdiff_t>(other),
                  first + static_cast<std::ptrdiff_t>(other) + 1);
    }
  }
}

void weigh_calls(Inference& inference, const CallEvidence& evidence) {
  const DirectCalls& calls = evidence.calls;
  if (calls.sites.empty()) return;
  const bool is_one = calls.found == 1;
  std::string head = fmt::format("{} to it {} found", counted(calls.found, "call"), is_one ? "was" : "were");
  if (calls.found != calls.sites.size()) head += fmt::format(" and {} read", calls.sites.size());
  for (Candidate& candidate : inference.candidates) {
    Weighing weighing(candidate.signature, evidence);
    const Tally tally = weighing.run();
    if (tally.contradicting > tally.fitting) {
      candidate.confidence = std::max(candidate.confidence, Confidence::likely);
      const std::string who = is_one ? "it does not fit" : fmt::format("{} of them do not fit", tally.contradicting);
      std::string sentence = fmt::format("{}, and {}: the caller {}", head, who, tally.contradiction);
      candidate.doubts.push_back(sentence);
      if (std::ranges::find(inference.seen, sentence) == inference.seen.end()) inference.seen.push_back(sentence);
    } else if (tally.fitting > 0) {
      candidate.support.push_back(fmt::format("{}: {}", head, weighing.describe(tally)));
    }
    if (const std::size_t uses = uses_of_result(candidate.signature, evidence)) {
      candidate.support.push_back(
          calls.sites.size() == 1
              ? "the code behind the call uses its result"
              : fmt::format("the code behind {} of the {} calls uses its result", uses, calls.sites.size()));
    }
  }
}

}  // namespace bitwitness
