#include "harness/probe/drafter.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

namespace bitwitness {

std::string plural(std::int64_t count, std::string_view word) {
  return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

/// "0..5" or "3"
std::string range_text(const Extent& extent) {
  if (extent.size() == 1) return fmt::format("{:+}", extent.first);
  return fmt::format("{:+}..{}", extent.first, extent.end - 1);
}

Drafts Drafter::run() {
  check_stack();
  for (const PointerUse& pointer : usage_.pointers) check_pointer(pointer);
  if (!is_expressible_) return std::move(drafts_);
  Candidate candidate;
  if (is_64_bit_) {
    place_win64(candidate.signature);
  } else {
    place_32_bit(candidate.signature);
  }
  if (!is_expressible_) return std::move(drafts_);
  check_coverage();
  candidate.confidence = confidence_;
  candidate.support = std::move(support_);
  candidate.doubts = std::move(doubts_);
  add_results(candidate);
  add_constants();
  check_limits();
  return std::move(drafts_);
}

void Drafter::doubt(Confidence confidence, std::string why) {
  confidence_ = std::max(confidence_, confidence);
  doubts_.push_back(why);
  support_.push_back(std::move(why));
}

void Drafter::give_up(std::string why) {
  drafts_.seen.push_back(std::move(why));
  is_expressible_ = false;
}

void Drafter::check_stack() {
  removed_ = usage_.removed.value_or(0);
  if (usage_.removed_varies) return give_up("it does not remove the same number of stack bytes on every return");
  if (removed_ < 0 || removed_ % word_size_ != 0) {
    return give_up(fmt::format("it returns with the stack pointer {} bytes off", removed_));
  }
  if (is_64_bit_ && removed_ != 0) {
    return give_up(fmt::format("it removes {} bytes of stack, which win64 leaves to the caller", removed_));
  }
  stack_words_ = static_cast<std::size_t>(removed_ / word_size_);
  for (std::size_t i = 0; i < explored_stack_words; ++i) {
    const WordUse* word = usage_.word_at(i);
    if (uses(i)) used_words_ = word != nullptr && word->takes_two ? i + 2 : i + 1;
  }
  const std::size_t first = is_64_bit_ ? home_words : 0;
  for (std::size_t i = std::max(used_words_, first); i < explored_stack_words; ++i) {
    if (!usage_.reads_word[i]) continue;
    if (removed_ == 0) {
      used_words_ = i + 1;
    } else if (i >= stack_words_) {
      doubt(Confidence::likely, fmt::format("stack argument {} is read, and no influence of it was seen", i + 1));
    }
  }
  if (removed_ > 0 && used_words_ > stack_words_) {
    return give_up(fmt::format("it uses {} and removes {} bytes: no convention of the language does",
                               plural(static_cast<std::int64_t>(used_words_), "stack argument"), removed_));
  }
  if (stack_words_ > max_arguments) return give_up(fmt::format("it removes {} bytes of stack", removed_));
  stack_words_ = std::max(stack_words_, used_words_);
  if (usage_.reads_above) {
    doubt(Confidence::possible, fmt::format("reads the stack above the {}th argument", explored_stack_words));
  }
  if (!is_64_bit_) {
    support_.push_back(removed_ != 0 ? fmt::format("removes {} bytes of arguments (ret {})", removed_, removed_)
                                     : "leaves its arguments on the stack (ret)");
  }
  if (usage_.returned < usage_.calls) {
    doubt(2 * usage_.returned < usage_.calls ? Confidence::possible : Confidence::likely,
          fmt::format("{} of {} calls did not return: it {}", usage_.calls - usage_.returned, usage_.calls,
                      usage_.troubles.empty() ? "was stopped" : usage_.troubles.front()));
  }
  if (usage_.loads_80_bits) {
    doubt(Confidence::likely, "loads 80-bit numbers from its stack arguments, for which the language has no type");
  }
  if (usage_.writes_image) support_.emplace_back("writes to memory of the image");
}

void Drafter::check_registers() {
  for (std::size_t place = explored_stack_words; place < places_.size(); ++place) {
    const bool is_used = (usage_.used_registers.general >> places_[place].index & 1) != 0;
    if (!is_used || uses(place)) continue;
    doubt(Confidence::likely,
          fmt::format("{} is read before it is written, and no influence of it was seen", name_of(place)));
  }
  for (unsigned reg = 0; reg < 16; ++reg) {
    const bool is_used = (usage_.used_registers.xmm >> reg & 1) != 0;
    if (!is_used || std::ranges::find(usage_.words, std::optional(reg), &WordUse::xmm) != usage_.words.end()) continue;
    doubt(Confidence::likely, fmt::format("xmm{} is read before it is written, and no influence of it was seen", reg));
  }
}

void Drafter::check_coverage() {
  check_registers();
  if (!usage_.unreached.empty()) {
    const UnreachedCode& first = usage_.unreached.front();
    const std::size_t more = usage_.unreached.size() - 1;
    std::string text = fmt::format("no call led from the jump at {:#x} to the code at {:#x}", first.jump, first.code);
    if (more != 0) text += fmt::format(", nor to that behind {} more", plural(static_cast<std::int64_t>(more), "jump"));
    doubt(Confidence::likely, text + ": what it reads and writes is not known");
  }
  if (usage_.one_way_jumps != 0) {
    const bool is_one = usage_.one_way_jumps == 1;
    support_.push_back(
        fmt::format("{} went one way in all calls; the other {} the program or change{} nothing but floats",
                    plural(static_cast<std::int64_t>(usage_.one_way_jumps), "jump"), is_one ? "ends" : "ones end",
                    is_one ? "s" : ""));
  }
  for (const TableJump& jump : usage_.table_jumps) {
    support_.push_back(fmt::format("the jump at {:#x}, whose targets its code does not name, went to {}", jump.address,
                                   plural(static_cast<std::int64_t>(jump.targets), "place")));
  }
  if (usage_.state) {
    doubt(Confidence::likely,
          fmt::format("reads and writes the image at {:#x}: a call may depend on those before it", *usage_.state));
  }
  if (usage_.has_hidden_influence) {
    doubt(Confidence::likely, "something that the signature leaves out had influence");
  }
  if (usage_.is_cut_short) {
    doubt(Confidence::likely, "its calls take so long that not everything was tried");
  }
}

bool Drafter::uses(std::size_t place) const {
  return usage_.pointer_at(place) != nullptr || usage_.word_at(place) != nullptr;
}

std::optional<std::size_t> Drafter::register_place(unsigned number) const {
  const auto found = std::ranges::find(places_, Place{Place::Kind::general, number});
  const auto place = static_cast<std::size_t>(found - places_.begin());
  return found != places_.end() && uses(place) ? std::optional(place) : std::nullopt;
}

bool Drafter::uses_other_register(std::initializer_list<unsigned> usual) const {
  for (std::size_t place = explored_stack_words; place < places_.size(); ++place) {
    if (uses(place) && std::ranges::find(usual, places_[place].index) == usual.end()) return true;
  }
  return false;
}

void Drafter::check_pointer(const PointerUse& pointer) {
  const std::string name = name_of(pointer.place);
  const Extent written = extent_of(pointer, &ByteUse::written);
  const Extent used = extent_of(pointer, &ByteUse::matters);
  if (pointer.leaves_window) {
    return give_up(fmt::format("it follows {} further than {} bytes", name, window_back));
  }
  if (used.first < 0 || written.first < 0) {
    return give_up(fmt::format("it uses bytes in front of where {} points, from {:+} on", name,
                               std::min(used.first, written.first)));
  }
  const std::vector<Extent> parts = parts_of(pointer, written.empty() ? &ByteUse::read : &ByteUse::written);
  if (parts.size() > max_skips || (!used.empty() && (written.has_gaps || written.first != 0))) {
    std::string ranges;
    for (const Extent& part : parts) ranges += fmt::format("{}[{}]", ranges.empty() ? "" : ", ", range_text(part));
    return give_up(fmt::format("it {} bytes {} of what {} points to and leaves the others: no signature says that",
                               written.empty() ? "reads" : "writes", ranges, name));
  }
  if (!written.empty() && !used.empty() && (used.end > written.end)) {
    return give_up(fmt::format("it reads bytes [{}] and writes bytes [{}] of what {} points to: no signature says that",
                               range_text(used), range_text(written), name));
  }
}

void Drafter::check_limits() {
  std::erase_if(drafts_.candidates, [this](const Candidate& candidate) {
    const Signature& signature = candidate.signature;
    std::size_t output_bytes = 0;
    std::size_t longest = 0;
    for (const Argument& argument : signature.arguments) {
      if (argument.role == Role::out || argument.role == Role::inout) output_bytes += argument.type.extent();
      longest = std::max(longest, argument.type.extent());
    }
    std::string why;
    if (signature.packed_size() == 0) why = "nothing that it is given has influence on what it gives";
    if (signature.word_count() == 0)
      why = "it gives no result: nothing is written and no register depends on its input";
    if (signature.packed_size() > max_packed_size) {
      why = fmt::format("it takes {} bytes, more than a packed value may have ({})", signature.packed_size(),
                        max_packed_size);
    }
    if (longest > max_output_bytes) {
      why = fmt::format("it follows a pointer for {} bytes, more than an argument may have ({})", longest,
                        max_output_bytes);
    }
    if (output_bytes > max_output_bytes) {
      why = fmt::format("it writes {} bytes, more than an output may have ({})", output_bytes, max_output_bytes);
    }
    if (signature.arguments.size() > max_arguments) why = "it takes more arguments than a signature may have";
    if (!why.empty() && std::ranges::find(drafts_.seen, why) == drafts_.seen.end()) drafts_.seen.push_back(why);
    return !why.empty();
  });
  if (drafts_.candidates.empty() && drafts_.seen.empty()) {
    drafts_.seen.emplace_back("it gives no result: nothing is written and no register depends on its input");
  }
}

void Drafter::add_constants() {
  const auto is_in = [](const Argument& argument) { return argument.role == Role::in || argument.role == Role::inout; };
  const std::size_t count = drafts_.candidates.size();
  for (std::size_t i = 0; i < count; ++i) {
    Candidate& candidate = drafts_.candidates[i];
    if (values_.empty() || std::ranges::none_of(candidate.signature.arguments, is_in)) continue;
    candidate.confidence = std::max(candidate.confidence, Confidence::likely);
    Candidate other = candidate;
    candidate.support.emplace_back(open_word_clause);
    candidate.doubts.emplace_back(open_word_clause);
    for (Argument& argument : other.signature.arguments) {
      if (argument.role != Role::value || argument.type.is_array) continue;
      argument.role = Role::constant;
      if (argument.type.scalar == Scalar::f32) argument.literal = 0x3f800000;
      if (argument.type.scalar == Scalar::f64) argument.literal = 0x3ff0000000000000;
      if (argument.literal == 0) argument.literal = 1;
    }
    other.support.emplace_back(
        "with the word beside the packed bytes as a setting; which value it takes cannot be told");
    if (!(other.signature == candidate.signature)) drafts_.candidates.push_back(std::move(other));
  }
}

Drafts draft(const Usage& usage, std::span<const Place> places, bool is_64_bit) {
  return Drafter(usage, places, is_64_bit).run();
}

std::vector<std::string> describe(const Usage& usage, std::span<const Place> places, bool is_64_bit) {
  std::vector<std::string> clauses;
  for (const PointerUse& pointer : usage.pointers) {
    const std::string name = to_string(places[pointer.place], is_64_bit);
    const Extent read = extent_of(pointer, &ByteUse::read);
    const Extent written = extent_of(pointer, &ByteUse::written);
    if (!read.empty())
      clauses.push_back(fmt::format("it reads bytes [{}] of what {} points to", range_text(read), name));
    if (!written.empty()) {
      clauses.push_back(fmt::format("it writes bytes [{}] of what {} points to", range_text(written), name));
    }
  }
  for (const WordUse& word : usage.words) {
    const std::string name = word.xmm ? fmt::format("xmm{}", *word.xmm) : to_string(places[word.place], is_64_bit);
    clauses.push_back(fmt::format("what it does depends on {}, which it does not use as a pointer", name));
  }
  if (usage.removed.value_or(0) != 0) clauses.push_back(fmt::format("it removes {} bytes of stack", *usage.removed));
  return clauses;
}

}  // namespace bitwitness
