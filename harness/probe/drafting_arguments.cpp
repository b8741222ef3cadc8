// Arguments: what each place is and where the conventions put it.
#include "harness/probe/drafter.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

namespace bitwitness {
namespace {

constexpr unsigned ecx = ecx_number;
constexpr unsigned edx = edx_number;

Argument constant(std::uint64_t literal, bool is_64_bit) {
  return {Role::constant, {is_64_bit ? Scalar::u64 : Scalar::u32, 1, false}, literal, std::nullopt};
}

}  // namespace

bool Drafter::is_part_of_used_loads(const PointerUse& pointer, std::int32_t end) {
  return std::ranges::all_of(pointer.loads, [&pointer, end](const std::pair<std::int32_t, unsigned>& load) {
    return load.first + static_cast<std::int32_t>(load.second) <= end ||
           (load.first < end && pointer.at(end - 1).matters);
  });
}

Argument Drafter::pointer_argument(const PointerUse& pointer) {
  const std::string name = name_of(pointer.place);
  const Extent written = extent_of(pointer, &ByteUse::written);
  const Extent used = extent_of(pointer, &ByteUse::matters);
  const Extent read = extent_of(pointer, &ByteUse::read);
  Argument argument;
  if (!used.empty()) {
    support_.push_back(fmt::format("reads {} at [{} {}] before anything is written there", plural(used.size(), "byte"),
                                   name, range_text(used)));
    if (read.first < used.first) {
      doubt(Confidence::likely,
            fmt::format("the {} read in front of them have no influence", plural(used.first - read.first, "byte")));
    }
  }
  if (read.end > used.end && written.empty()) {
    std::string text =
        fmt::format("reads [{} {}], whose last {} no influence", name, range_text(read),
                    read.end - used.end == 1 ? "byte has" : plural(read.end - used.end, "byte") + " have");
    if (is_part_of_used_loads(pointer, used.end)) {
      support_.push_back(std::move(text));
    } else {
      doubt(Confidence::likely, std::move(text));
    }
  }
  if (written.empty()) {
    argument.role = Role::in;
    argument.type = read_type(pointer, used.empty() ? std::max(read.end, 1) : used.end);
    if (used.empty()) doubt(Confidence::likely, fmt::format("nothing that {} points to has influence", name));
    return argument;
  }
  argument.role = used.empty() ? Role::out : Role::inout;
  argument.type = stored_type(pointer);
  support_.push_back(fmt::format("stores {} at [{} {}] as {}",
                                 plural(static_cast<std::int64_t>(argument.type.size()), "byte"), name,
                                 range_text(written), to_string(argument.type)));
  if (std::ranges::any_of(pointer.bytes, [](const ByteUse& byte) { return byte.written && !byte.always_written; })) {
    doubt(Confidence::likely, fmt::format("does not store all of them on every call"));
  }
  if (pointer.is_returned)
    support_.push_back(fmt::format("returns {} itself, as functions do that return a structure", name));
  return argument;
}

Type Drafter::type_of(const WordUse& word, bool may_be_array) const {
  const bool is_known = word.width == 4 || word.width == 8;
  if (word.is_float && is_known && !word.takes_two) {
    return {word.width == 8 ? Scalar::f64 : Scalar::f32, 1, false};
  }
  if (word.bits == 0 && !word.is_float) {
    const bool is_wide = is_64_bit_ && (word.width == 0 || word.width == 8);
    return {word.width == 1   ? Scalar::u8
            : word.width == 2 ? Scalar::u16
            : is_wide         ? Scalar::u64
                              : Scalar::u32,
            1, false};
  }
  return value_type(word.bits, word.is_float, may_be_array);
}

Argument Drafter::word_argument(const WordUse& word, bool may_be_array) {
  const std::string name = word.xmm ? fmt::format("xmm{}", *word.xmm) : name_of(word.place);
  if (word.kind == WordUse::Kind::count) {
    support_.push_back(fmt::format("{} counts: one more reads {} and writes {} more", name,
                                   plural(word.read_step, "byte"), plural(word.write_step, "byte")));
    support_.emplace_back("the count 1 was chosen here: any other fits as well, with more bytes behind the pointers");
    return constant(1, false);
  }
  if (word.kind == WordUse::Kind::index) {
    support_.push_back(fmt::format("{} is an index: one more moves reads by {} and writes by {} bytes", name,
                                   word.read_step, word.write_step));
    support_.emplace_back("the index 0 was chosen here: any other fits as well, with other bytes behind the pointers");
    return constant(0, false);
  }
  Argument argument;
  argument.role = Role::value;
  argument.type = type_of(word, may_be_array);
  if (word.bits == 0) {
    doubt(Confidence::likely, fmt::format("{} is not a pointer, and which of its bits matter was not seen", name));
  } else if (word.is_float) {
    support_.push_back(fmt::format("{} is not a pointer, and is taken for an {}", name, to_string(argument.type)));
    if (word.xmm && word.width == 0) {
      doubt(Confidence::likely, fmt::format("whether {} is an f32 or an f64 was not seen", name));
    }
    const bool is_too_wide = argument.type.size() == 4 && word.bits >> 32 != 0;
    if (is_too_wide) {
      doubt(Confidence::likely, fmt::format("bits of {} above an f32 have influence", name));
    }
  } else {
    support_.push_back(fmt::format("{} is not a pointer, and its low {} matter", name,
                                   plural(static_cast<std::int64_t>(std::bit_width(word.bits)), "bit")));
  }
  values_.push_back(argument.type);
  return argument;
}

Argument Drafter::argument_at(std::size_t place, bool may_be_array) {
  if (const PointerUse* pointer = usage_.pointer_at(place)) return pointer_argument(*pointer);
  return word_argument(*usage_.word_at(place), may_be_array);
}

void Drafter::place_32_bit(Signature& signature) {
  const auto in_ecx = register_place(ecx);
  const auto in_edx = register_place(edx);
  const bool callee_cleans = static_cast<std::size_t>(removed_) == stack_words_ * 4;
  const bool is_private = uses_other_register({ecx, edx});
  const bool registers_first = in_ecx && callee_cleans && !is_private;
  signature.convention = removed_ > 0 ? Convention::stdcall_call : Convention::cdecl_call;
  if (registers_first) {
    signature.convention = in_edx ? Convention::fastcall_call : Convention::thiscall_call;
    signature.arguments.push_back(argument_at(*in_ecx, false));
    if (in_edx) signature.arguments.push_back(argument_at(*in_edx, false));
    if (!in_edx && stack_words_ == 0) support_.emplace_back("a fastcall with one argument is the same call");
  }
  for (std::size_t place = explored_stack_words; place < places_.size(); ++place) {
    if (!uses(place) || (registers_first && (place == in_ecx || place == in_edx))) continue;
    Argument argument = argument_at(place, false);
    argument.place = Register{RegisterClass::general, static_cast<std::uint8_t>(places_[place].index)};
    signature.arguments.push_back(argument);
  }
  for (const WordUse& word : usage_.words) {
    if (!word.xmm) continue;
    Argument argument = word_argument(word, false);
    argument.place = Register{RegisterClass::xmm, static_cast<std::uint8_t>(*word.xmm)};
    signature.arguments.push_back(argument);
  }
  for (std::size_t i = 0; i < stack_words_;) i += place_stack_word(signature, i);
}

std::size_t Drafter::place_stack_word(Signature& signature, std::size_t at) {
  const WordUse* word = at < explored_stack_words ? usage_.word_at(at) : nullptr;
  if (word == nullptr) {
    if (at < explored_stack_words && usage_.pointer_at(at) != nullptr) {
      signature.arguments.push_back(argument_at(at, false));
    } else {
      signature.arguments.push_back(constant(0, is_64_bit_));
      const bool is_read = at < explored_stack_words && usage_.reads_word[at];
      if (is_read) {
        doubt(Confidence::likely, fmt::format("stack argument {} is read, and no influence of it was seen", at + 1));
      } else {
        support_.push_back(fmt::format("stack argument {} is not read", at + 1));
      }
    }
    return 1;
  }
  const auto next_value = [this](std::size_t i) {
    const WordUse* next = i < stack_words_ && i < explored_stack_words ? usage_.word_at(i) : nullptr;
    return next != nullptr && next->kind == WordUse::Kind::value ? next : nullptr;
  };
  if (word->kind != WordUse::Kind::value || is_64_bit_) {
    signature.arguments.push_back(word_argument(*word, true));
    return 1;
  }
  if (word->takes_two) {
    WordUse wide = *word;
    wide.bits = ~std::uint64_t{0};
    signature.arguments.push_back(word_argument(wide, true));
    return 2;
  }
  // Words that are used whole and what follows them: one packed value, or several in a row, which is the same call.
  std::size_t words = 1;
  std::size_t bytes = static_cast<std::size_t>((std::bit_width(word->bits) + 7) / 8);
  while (!word->is_float && bytes == 4 * words && next_value(at + words) != nullptr &&
         !next_value(at + words)->is_float) {
    bytes += static_cast<std::size_t>((std::bit_width(next_value(at + words)->bits) + 7) / 8);
    ++words;
  }
  if (words == 1) {
    signature.arguments.push_back(word_argument(*word, true));
    return 1;
  }
  Argument argument;
  argument.role = Role::value;
  argument.type = bytes == 8 ? Type{Scalar::u64, 1, false} : bytes_type(bytes);
  support_.push_back(fmt::format("stack arguments {} to {} are no pointers, and {} of them matter", at + 1, at + words,
                                 plural(static_cast<std::int64_t>(bytes), "byte")));
  values_.push_back(argument.type);
  signature.arguments.push_back(argument);
  return words;
}

void Drafter::place_win64(Signature& signature) {
  static constexpr std::array<unsigned, home_words> integer = {ecx, edx, 8, 9};
  signature.convention = Convention::win64;
  std::size_t positions = used_words_ > home_words ? used_words_ : 0;
  const auto xmm_word = [this](unsigned number) {
    const auto found = std::ranges::find(usage_.words, std::optional(number), &WordUse::xmm);
    return found == usage_.words.end() ? nullptr : &*found;
  };
  const bool is_private = uses_other_register({ecx, edx, 8, 9});
  for (unsigned i = 0; i < home_words; ++i) {
    const bool is_used = register_place(integer[i]) || xmm_word(i) != nullptr;
    if (!is_used && is_private && positions == i) break;  // what follows is as private as the rest
    if (is_used) positions = std::max<std::size_t>(positions, i + 1);
    if (uses(i)) return give_up("it reads the stack words that its caller keeps for register arguments");
    if (register_place(integer[i]) && xmm_word(i) != nullptr) {
      return give_up(fmt::format("it takes something in {} and in xmm{}", name_of(*register_place(integer[i])), i));
    }
  }
  for (std::size_t i = 0; i < positions; ++i) {
    if (i >= home_words) {
      place_stack_word(signature, i);
    } else if (const auto place = register_place(integer[i])) {
      signature.arguments.push_back(argument_at(*place, false));
    } else if (const WordUse* word = xmm_word(static_cast<unsigned>(i))) {
      signature.arguments.push_back(word_argument(*word, false));
    } else {
      signature.arguments.push_back(constant(0, true));
      support_.push_back(fmt::format("no influence of argument {} was seen", i + 1));
    }
  }
  for (std::size_t place = explored_stack_words; place < places_.size(); ++place) {
    const unsigned number = places_[place].index;
    const auto position = static_cast<std::size_t>(std::ranges::find(integer, number) - integer.begin());
    if (!uses(place) || position < std::min(positions, home_words)) continue;
    Argument argument = argument_at(place, false);
    argument.place = Register{RegisterClass::general, static_cast<std::uint8_t>(number)};
    signature.arguments.push_back(argument);
  }
  for (const WordUse& word : usage_.words) {
    if (!word.xmm || *word.xmm < std::min(positions, home_words)) continue;
    Argument argument = word_argument(word, false);
    argument.place = Register{RegisterClass::xmm, static_cast<std::uint8_t>(*word.xmm)};
    signature.arguments.push_back(argument);
  }
}

}  // namespace bitwitness
