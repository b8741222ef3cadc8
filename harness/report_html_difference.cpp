#include "harness/report_html_parts.hpp"
#include "harness/report_parts.hpp"
#include "harness/values.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace bitwitness::report_html {

namespace {

constexpr std::size_t tints = 6;         ///< t0 … t5 of the style sheet
constexpr std::size_t most_fields = 64;  ///< shown of a value
constexpr std::size_t most_words = 64;   ///< shown of a difference
constexpr std::size_t most_bytes = 256;  ///< shown of a value
constexpr unsigned widest_field = 64;

/// A part of a word: bits `low` … `low + count - 1`.
struct Part {
  unsigned low = 0;
  unsigned count = 0;
  std::string_view tint;
};

/// From the highest part down: sign, exponent and mantissa of binary32, or the bytes of an integer.
std::span<const Part> parts_of(WordKind kind) {
  static constexpr std::array<Part, 3> real = {{{31, 1, "t3"}, {23, 8, "t2"}, {0, 23, "t0"}}};
  static constexpr std::array<Part, 4> whole = {{{24, 8, "t0"}, {16, 8, "t4"}, {8, 8, "t0"}, {0, 8, "t4"}}};
  return kind == WordKind::f32 ? std::span<const Part>(real) : std::span<const Part>(whole);
}

std::string bits_of(std::uint64_t code, unsigned count) {
  std::string out;
  for (unsigned bit = count; bit-- > 0;) out += (code >> bit & 1) != 0 ? '1' : '0';
  return out;
}

/// A word's bits with those marked in which it is not like the other side's.
std::string word_bits(std::uint32_t word, std::uint32_t other, WordKind kind) {
  std::string out;
  for (const Part& part : parts_of(kind)) {
    out += fmt::format("{}<span class=\"{}\">", out.empty() ? "" : " ", part.tint);
    bool marked = false;
    for (unsigned bit = part.low + part.count; bit-- > part.low;) {
      const bool differs = ((word ^ other) >> bit & 1) != 0;
      if (differs != marked) out += differs ? "<b class=\"d\">" : "</b>";
      marked = differs;
      out += (word >> bit & 1) != 0 ? '1' : '0';
    }
    out += marked ? "</b></span>" : "</span>";
  }
  return out;
}

/// The line below both sides' bits: a caret where they differ.
std::string carets(std::uint32_t differing, WordKind kind) {
  std::string out;
  for (const Part& part : parts_of(kind)) {
    if (!out.empty()) out += ' ';
    for (unsigned bit = part.low + part.count; bit-- > part.low;) out += (differing >> bit & 1) != 0 ? '^' : ' ';
  }
  return out.substr(0, out.find_last_not_of(' ') + 1);
}

std::string value_text(std::span<const std::byte> value) {
  if (value.size() <= most_bytes) return to_hex(value);
  return to_hex(value.first(most_bytes)) + fmt::format(" … ({} bytes)", value.size());
}

std::string value_fields(const RunReport& run, std::span<const std::byte> value) {
  std::string out;
  std::size_t shown = 0;
  for (const BitField& field : run.fields) {
    const auto code = field_code(value, field);
    if (!code) continue;
    if (shown == most_fields) {
      out += "<span>…</span>\n";
      break;
    }
    constexpr std::size_t most_characters = 40;
    out += fmt::format("<span class=\"t{}\"><b>{}</b> <code>{}</code> = {}</span>\n", shown % tints,
                       shortened(field.name, most_characters), bits_of(*code, field.width), *code);
    ++shown;
  }
  return out.empty() ? out : "<div class=\"fields\">\n" + out + "</div>\n";
}

std::string word_row(const RunReport& run, std::size_t word, std::uint32_t reference, std::uint32_t subject) {
  constexpr std::size_t most_characters = 40;
  const WordKind kind = run.word_kind;
  const std::string name = shortened(word_name(run, word), most_characters);
  if (reference == subject) {
    return fmt::format(
        "<tr class=\"same\"><th scope=\"row\">{}</th><td><pre>both      {}</pre></td><td><pre>{:08x}</pre></td>"
        "<td><pre>{}</pre></td><td>same</td></tr>\n",
        name, word_bits(reference, subject, kind), reference, report_parts::number_text(reference, kind));
  }
  const std::string distance = report_parts::distance_text(ulp_distance(reference, subject, kind));
  return fmt::format(
      "<tr><th scope=\"row\">{}</th><td><pre>reference {}\nsubject   {}\n<span aria-hidden=\"true\">          "
      "{}</span></pre></td>"
      "<td><pre>{:08x}\n{:08x}</pre></td><td><pre>{}\n{}</pre></td><td>{}</td></tr>\n",
      name, word_bits(reference, subject, kind), word_bits(subject, reference, kind), carets(reference ^ subject, kind),
      reference, subject, report_parts::number_text(reference, kind), report_parts::number_text(subject, kind),
      distance == "nan" ? "NaN against a number" : distance + (kind == WordKind::f32 ? " ulp" : " apart"));
}

}  // namespace

std::optional<std::uint64_t> field_code(std::span<const std::byte> value, const BitField& field) {
  const std::size_t bits = 8 * value.size();
  if (field.width == 0 || field.width > widest_field || field.offset > bits || field.width > bits - field.offset) {
    return std::nullopt;
  }
  std::uint64_t code = 0;
  for (unsigned bit = 0; bit < field.width; ++bit) {
    const std::size_t at = std::size_t{field.offset} + bit;
    code |= (std::to_integer<std::uint64_t>(value[at / 8]) >> at % 8 & 1) << bit;
  }
  return code;
}

std::string difference_block(const Report& report, const RunReport& run, std::size_t index) {
  const Difference& difference = run.differences[index];
  const std::size_t words = std::min(difference.reference.size(), difference.subject.size());
  std::string out = fmt::format("<article class=\"difference\"><h4>Difference {} of {}: <code>{}</code></h4>\n",
                                index + 1, run.counts.differed, value_text(difference.value));
  out += value_fields(run, difference.value);
  out +=
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Words\"><table "
      "class=\"words\"><thead><tr><th>word</th>"
      "<th>bits</th><th>hex</th><th>number</th><th>distance</th></tr></thead><tbody>\n";
  std::size_t shown = 0;
  for (std::size_t word = 0; word < words; ++word) {
    if (words > most_words && (shown == most_words || difference.reference[word] == difference.subject[word])) continue;
    out += word_row(run, word, difference.reference[word], difference.subject[word]);
    ++shown;
  }
  out += "</tbody></table></div>\n";
  if (shown < words) out += fmt::format("<p class=\"mute\">{} of {} words are not shown.</p>\n", words - shown, words);
  if (difference.value.size() <= most_bytes) {
    out += "<p>Repeat it:</p>\n<code class=\"command\">" +
           escaped(report_parts::repeat_command(report, run, difference.value)) + "</code>\n";
  }
  return out + "</article>\n";
}

}  // namespace bitwitness::report_html
