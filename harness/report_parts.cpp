#include "harness/report_parts.hpp"

#include "harness/self_test.hpp"
#include "harness/values.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace bitwitness::report_parts {

namespace {

/// A routine may write to as many addresses as it likes; each is a fact of its own.
constexpr std::size_t max_fact_notes = 20;

constexpr std::string_view replacement = "\xef\xbf\xbd";

struct Character {
  char32_t code = 0;
  std::size_t size = 1;
  bool valid = false;
};

/// Reads the character that `text` starts with. Overlong forms, surrogates and codes above U+10FFFF are not valid.
Character first_character(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return {};
  char32_t code = lead & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fU);
  }
  const bool overlong = code < (size == 4 ? 0x10000U : size == 3 ? 0x800U : 0x80U);
  if (overlong || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
  return {code, size, true};
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    const bool control = character.code < 0x20 || (character.code >= 0x7f && character.code < 0xa0);
    if (!character.valid || character.code == 0xfffe || character.code == 0xffff) {
      out += replacement;
    } else if (control) {
      out += fmt::format("\\x{:02x}", static_cast<std::uint32_t>(character.code));
    } else {
      out += text.substr(0, character.size);
    }
    text.remove_prefix(character.size);
  }
  return out;
}

std::string address_text(std::uint64_t address) {
  return fmt::format("{:#x}", address);
}

std::string number_text(std::uint32_t word, WordKind kind) {
  switch (kind) {
    case WordKind::i32:
      return fmt::format("{}", static_cast<std::int32_t>(word));
    case WordKind::u32:
      return fmt::format("{}", word);
    case WordKind::f32:
      break;
  }
  return fmt::format("{}", std::bit_cast<float>(word));
}

std::string percentage(std::uint64_t part, std::uint64_t whole) {
  if (part >= whole) return "100.00 %";
  unsigned hundredths = 0;
  std::uint64_t rest = part;
  for (int digit = 0; digit < 4; ++digit) {
    rest *= 10;
    hundredths = hundredths * 10 + static_cast<unsigned>(rest / whole);
    rest %= whole;
  }
  return fmt::format("{}.{:02} %", hundredths / 100, hundredths % 100);
}

std::string distance_text(std::uint64_t distance) {
  return distance == std::numeric_limits<std::uint64_t>::max() ? "nan" : fmt::format("{}", distance);
}

std::string counts_text(const Counts& counts) {
  const std::string known = counts.known > 0 ? fmt::format(" (and {} as known)", counts.known) : "";
  const std::string disputed =
      counts.disputed > 0 ? fmt::format(", disputed between the witnesses {}", counts.disputed) : "";
  return fmt::format("run {}: agreed {}, differed {}{}, faulted {}, out of budget {}, unwritten {}{}; not run {}",
                     counts.run, counts.agreed, counts.differed, known, counts.faulted, counts.out_of_budget,
                     counts.unwritten, disputed, counts.not_run);
}

std::string environment_text(const Environment& environment) {
  return fmt::format("fpcw {:04x}, mxcsr {:04x}", environment.fpcw, environment.mxcsr);
}

std::string self_test_text(const Engine& engine) {
  if (!engine.self_test) return {};
  const SelfTestSummary& test = *engine.self_test;
  const std::vector<std::string> missing = quirks_not_in(test.quirks);
  const bool has_unknown = std::ranges::any_of(
      test.quirks, [](const std::string& quirk) { return quirk.starts_with(unknown_quirk_prefix); });
  if (missing.empty() && !has_unknown) return {};
  return fmt::format("{} of {} self-test vectors as on hardware; quirks: {}{}{}", test.as_hardware, test.vectors,
                     test.quirks.empty() ? "none" : fmt::format("{}", fmt::join(test.quirks, ", ")),
                     missing.empty() ? "" : "; not found: ", fmt::join(missing, ", "));
}

std::string values_text(const RunReport& run) {
  std::vector<std::string> sources;
  for (const std::string& source : run.sources) sources.push_back(printable(portable_source(source)));
  std::string text = fmt::format("{} distinct from {}", run.distinct, fmt::join(sources, ", "));
  if (!run.shard.empty()) text += fmt::format(", shard {}", run.shard);
  return text;
}

std::string words_text(const Difference& difference, const RunReport& run) {
  const std::size_t count = std::min(difference.reference.size(), difference.subject.size());
  const auto name_of = [&run](std::size_t i) {
    return i < run.word_names.size() ? printable(run.word_names[i]) : fmt::format("word {}", i);
  };
  std::size_t name_width = 0;
  std::size_t number_width = 0;
  for (std::size_t i = 0; i < count; ++i) {
    name_width = std::max(name_width, name_of(i).size());
    number_width = std::max({number_width, number_text(difference.reference[i], run.word_kind).size(),
                             number_text(difference.subject[i], run.word_kind).size()});
  }
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t reference = difference.reference[i];
    const std::uint32_t subject = difference.subject[i];
    text +=
        fmt::format("  {} {:{}}  reference {:08x} {:>{}}  subject {:08x} {:>{}}  ulp {}\n",
                    reference == subject ? ' ' : '>', name_of(i), name_width, reference,
                    number_text(reference, run.word_kind), number_width, subject, number_text(subject, run.word_kind),
                    number_width, distance_text(ulp_distance(reference, subject, run.word_kind)));
  }
  return text;
}

std::string failure_text(const Failure& failure) {
  std::string text(to_string(failure.kind));
  std::replace(text.begin(), text.end(), '_', ' ');
  if (failure.address != 0) text += " at " + address_text(failure.address);
  if (!failure.instruction.empty()) text += ", " + printable(failure.instruction);
  if (!failure.reason.empty()) text += ": " + printable(failure.reason);
  return text;
}

std::string isolation_text(const Isolation& isolation) {
  if (isolation.sampled == 0) return {};
  if (isolation.unstable == 0) {
    return fmt::format("{} run again, each alone in a fresh image: the same words as in the batch", isolation.sampled);
  }
  return fmt::format("{} of {} run again, each alone in a fresh image, gave other words than in the batch; first {}",
                     isolation.unstable, isolation.sampled, to_hex(isolation.first_value));
}

std::string isolation_text(const RunReport& run) {
  const std::string text = isolation_text(run.isolation);
  return text.empty() || run.vector_file.empty() ? text : "when they were recorded, " + text;
}

std::vector<std::string> fact_notes(std::span<const Fact> facts) {
  std::vector<std::string> notes;
  for (const Fact& fact : facts.first(std::min(facts.size(), max_fact_notes))) {
    notes.push_back(fmt::format("on {} value{} the routine {} (first: {})", fact.values, fact.values == 1 ? "" : "s",
                                fact.what, to_hex(fact.first_value)));
  }
  if (facts.size() > max_fact_notes) {
    notes.push_back(fmt::format("{} more facts of this kind are not listed", facts.size() - max_fact_notes));
  }
  return notes;
}

std::string portable_source(std::string_view source) {
  const std::size_t colon = source.find(':');
  if (colon == std::string_view::npos) return std::string(source);
  const std::string_view kind = source.substr(0, colon);
  const std::string_view path = source.substr(colon + 1);
  const bool absolute = path.starts_with('/') || path.starts_with('\\') || (path.size() > 2 && path[1] == ':');
  if ((kind != "file" && kind != "corpus") || !absolute) return std::string(source);
  return fmt::format("{}:{}", kind, path.substr(path.find_last_of("/\\") + 1));
}

}  // namespace bitwitness::report_parts
