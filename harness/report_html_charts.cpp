#include "harness/report_html_parts.hpp"
#include "harness/report_parts.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace bitwitness::report_html {

namespace {

constexpr std::size_t most_lanes = 64;   ///< drawn as bars
constexpr std::size_t most_plots = 16;   ///< one per field
constexpr unsigned narrowest_field = 8;  ///< bits; of fewer, the codes are too few for a plot
constexpr unsigned widest_field = 64;
constexpr std::uint64_t no_number = std::numeric_limits<std::uint64_t>::max();

// In units of the drawings, each `width` wide.
constexpr int width = 360;
constexpr int height = 230;
constexpr int left = 40;
constexpr int right = 350;
constexpr int top = 28;
constexpr int bottom = 180;

std::string open_drawing(std::string_view id, int drawing_height, std::string_view title,
                         std::string_view description) {
  return fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"{}-t {}-d\"><title id=\"{}-t\">{}</title>"
      "<desc id=\"{}-d\">{}</desc>\n",
      width, drawing_height, id, id, id, escaped(title), id, escaped(description));
}

std::string text_at(int x, int y, std::string_view anchor, std::string_view text, std::string_view kind = "") {
  return fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor,
                     kind.empty() ? "" : fmt::format(" class=\"{}\"", kind), escaped(text));
}

std::string line_of(std::string_view kind, int x1, int y1, int x2, int y2) {
  return fmt::format("<path class=\"{}\" d=\"M{} {}L{} {}\"/>\n", kind, x1, y1, x2, y2);
}

/// Calls `use` with the index of the word and its distance for each word of a difference that is off.
template <typename Use>
void each_distance(const RunReport& run, const Difference& difference, const Use& use) {
  const std::size_t words = std::min(difference.reference.size(), difference.subject.size());
  for (std::size_t word = 0; word < words; ++word) {
    if (difference.reference[word] == difference.subject[word]) continue;
    use(word, ulp_distance(difference.reference[word], difference.subject[word], run.word_kind));
  }
}

std::string_view unit(const RunReport& run) {
  return run.word_kind == WordKind::f32 ? "ulp" : "distance";
}

std::string shown_text(const RunReport& run) {
  const std::size_t listed = run.differences.size();
  if (run.counts.differed == listed) return fmt::format("of all {} differences", listed);
  return fmt::format("of the {} listed differences, of {}", listed, run.counts.differed);
}

std::string power_text(unsigned exponent) {
  return exponent <= 9 ? fmt::format("{}", 1U << exponent) : fmt::format("2^{}", exponent);
}

/// The labels of the y axis of distances: powers of two from 1 to 2^`most`, and a row above them for what is no number.
struct DistanceAxis {
  unsigned most = 1;
  bool has_nan = false;

  void include(std::uint64_t distance) {
    if (distance == no_number) {
      has_nan = true;
    } else {
      most = std::max(most, static_cast<unsigned>(std::bit_width(distance)));
    }
  }

  [[nodiscard]] int y(std::uint64_t distance) const {
    if (distance == no_number) return top;
    const double share = std::log2(static_cast<double>(std::max<std::uint64_t>(distance, 1))) / most;
    return bottom - static_cast<int>(std::lround(share * (bottom - highest())));
  }

  [[nodiscard]] std::string draw() const {
    std::string out;
    const unsigned step = (most + 5) / 6;
    for (unsigned exponent = 0; exponent <= most; exponent += step) {
      const int at = y(std::uint64_t{1} << exponent);
      out += line_of("grid", left, at, right, at) + text_at(left - 5, at + 4, "end", power_text(exponent), "soft");
    }
    if (has_nan) out += line_of("grid", left, top, right, top) + text_at(left - 5, top + 4, "end", "NaN", "soft");
    return out;
  }

 private:
  [[nodiscard]] int highest() const { return has_nan ? top + 22 : top; }
};

constexpr std::size_t marks = 4;

/// The d of a path with one mark per point; each kind of mark has another form, so that colours are not needed.
std::string mark_path(std::size_t kind, const std::set<std::pair<int, int>>& points) {
  constexpr std::array<std::string_view, marks> forms = {"M{} {}h0", "M{} {}m-4 -4h8v8h-8z", "M{} {}m0 -5l5 9h-10z",
                                                         "M{} {}m-4 -4l8 8m0 -8l-8 8"};
  std::string out;
  for (const auto& [x, y] : points) out += fmt::format(fmt::runtime(forms[kind]), x, y);
  return out;
}

std::string code_plot(const RunReport& run, const BitField& field, std::string_view id) {
  // Points that fall together are drawn once, which bounds the drawing however many differences are listed.
  std::array<std::set<std::pair<int, int>>, marks> points;
  DistanceAxis axis;
  for (const Difference& difference : run.differences) {
    each_distance(run, difference, [&](std::size_t, std::uint64_t distance) { axis.include(distance); });
  }
  const bool by_word = run.word_names.size() <= marks;
  const double codes = std::ldexp(1.0, static_cast<int>(field.width)) - 1;
  for (const Difference& difference : run.differences) {
    const auto code = field_code(difference.value, field);
    if (!code) continue;
    const double share = static_cast<double>(*code) / codes;
    const int x = left + static_cast<int>(std::lround(share * (right - left) / 2)) * 2;
    each_distance(run, difference, [&](std::size_t word, std::uint64_t distance) {
      points[by_word && word < marks ? word : 0].emplace(x, axis.y(distance));
    });
  }
  const std::string title = fmt::format("Distance over the code of {}", field.name);
  std::string out = "<figure><figcaption>" + escaped(title) + ", " + shown_text(run) + "</figcaption>\n";
  out += open_drawing(id, height, title,
                      fmt::format("x: code of {}, {} bits; y: {}, logarithmic; one mark per word that differs, {}",
                                  field.name, field.width, unit(run), shown_text(run)));
  out += axis.draw() + line_of("axis", left, bottom, right, bottom) + line_of("axis", left, top, left, bottom);
  for (std::size_t kind = 0; kind < marks; ++kind) {
    if (!points[kind].empty())
      out += fmt::format("<path class=\"p{}\" d=\"{}\"/>\n", kind, mark_path(kind, points[kind]));
  }
  const std::uint64_t last = field.width == widest_field ? no_number : (std::uint64_t{1} << field.width) - 1;
  out += text_at(left, bottom + 16, "start", "0", "soft");
  out += text_at(right, bottom + 16, "end", fmt::format("{}", last), "soft");
  out += text_at((left + right) / 2, bottom + 16, "middle", fmt::format("code, {} bits", field.width), "soft");
  out += text_at(left, top - 14, "start", unit(run), "soft");
  int x = left + 6;
  for (std::size_t word = 0; by_word && word < run.word_names.size(); ++word) {
    out += fmt::format("<path class=\"p{}\" d=\"{}\"/>\n", word, mark_path(word, {{x, bottom + 36}}));
    constexpr std::size_t most_characters = 8;
    const std::string name = word_name(run, word);
    out += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", x + 10, bottom + 40, shortened(name, most_characters));
    x += (right - left) / static_cast<int>(marks);
  }
  return out + "</svg></figure>\n";
}

}  // namespace

std::string agreement_chart(const RunReport& run, std::string_view id) {
  constexpr int step = 36;
  constexpr int bar = 10;
  constexpr std::size_t most_characters = 16;
  const std::uint64_t compared = run.counts.agreed + run.counts.differed;
  const std::size_t lanes = std::min(run.differing.size(), most_lanes);
  const bool told = std::ranges::any_of(run.differing, [](std::uint64_t count) { return count > 0; });
  std::string caption = fmt::format("Agreement by output word, of {} values compared", compared);
  if (lanes < run.differing.size()) caption += fmt::format("; the first {} of {} words", lanes, run.differing.size());
  const std::string head = "<figure><figcaption>" + caption;
  if (compared == 0) return head + ": nothing was compared.</figcaption></figure>\n";
  if (!told && run.counts.differed > 0) return head + ": it is not known which words differ.</figcaption></figure>\n";
  std::string out = head + "</figcaption>\n";
  out += open_drawing(
      id, static_cast<int>(lanes) * step + 4, "Agreement by output word",
      "A bar for each output word; its end in another colour, at least two units wide, is the share of values "
      "that differ");
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const std::uint64_t differing = std::min(run.differing[lane], compared);
    const int y = static_cast<int>(lane) * step;
    const double share = static_cast<double>(differing) / static_cast<double>(compared);
    const int off = differing == 0 ? 0 : std::max(2, static_cast<int>(std::lround(share * width)));
    out += fmt::format("<text x=\"0\" y=\"{}\">{}</text>\n", y + 13, shortened(word_name(run, lane), most_characters));
    const std::string differ = differing == 0 ? "none differs" : fmt::format("{} differ", differing);
    out += text_at(width, y + 13, "end", report_parts::percentage(compared - differing, compared) + ", " + differ);
    out += fmt::format("<rect class=\"bar\" x=\"0\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", y + 19, width - off, bar);
    if (off > 0) {
      out += fmt::format("<rect class=\"off\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", width - off, y + 17,
                         off, bar + 4);
    }
  }
  return out + "</svg></figure>\n";
}

std::string distance_histogram(const RunReport& run, std::string_view id) {
  constexpr std::size_t bins = 65;  // by bit width, the first unused
  std::array<std::uint64_t, bins> counts{};
  std::uint64_t nans = 0;
  std::size_t last = 4;
  for (const Difference& difference : run.differences) {
    each_distance(run, difference, [&](std::size_t, std::uint64_t distance) {
      if (distance == no_number) {
        ++nans;
        return;
      }
      const auto bin = static_cast<std::size_t>(std::bit_width(distance));
      ++counts[bin];
      last = std::max(last, bin);
    });
  }
  const std::string title =
      fmt::format("Histogram of {}", run.word_kind == WordKind::f32 ? "ulp distances" : "distances");
  std::string out = "<figure><figcaption>" + title + ": words that differ, " + shown_text(run) + "</figcaption>\n";
  std::string description = "Words in each bin:";
  for (std::size_t bin = 1; bin <= last; ++bin) {
    if (counts[bin] > 0)
      description += fmt::format(" from {}: {};", power_text(static_cast<unsigned>(bin - 1)), counts[bin]);
  }
  if (nans > 0) description += fmt::format(" NaN against a number: {};", nans);
  out += open_drawing(id, height, title, description + " each bin is twice as wide as the one before");
  const int columns = static_cast<int>(last) + (nans > 0 ? 1 : 0);
  const std::uint64_t most = std::max({*std::max_element(counts.begin(), counts.end()), nans, std::uint64_t{1}});
  const int label_step = (columns + 9) / 10;
  const auto column = [&](int index, std::uint64_t count, const std::string& label) {
    const int x = width * index / columns;
    const int wide = std::max(2, width / columns - 3);
    const double share = static_cast<double>(count) / static_cast<double>(most);
    const int high = count == 0 ? 0 : std::max(1, static_cast<int>(std::lround(share * (bottom - top))));
    if (count > 0) {
      out += fmt::format("<rect class=\"bar\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", x, bottom - high, wide,
                         high);
      if (columns <= 12) out += text_at(x + wide / 2, bottom - high - 5, "middle", fmt::format("{}", count));
    }
    if (!label.empty()) out += text_at(x + wide / 2, bottom + 16, "middle", label, "soft");
  };
  for (int bin = 0; bin < static_cast<int>(last); ++bin) {
    column(bin, counts[static_cast<std::size_t>(bin) + 1],
           bin % label_step == 0 && (nans == 0 || bin + 2 * label_step <= columns)
               ? power_text(static_cast<unsigned>(bin))
               : std::string());
  }
  if (nans > 0) {
    column(columns - 1, nans, "");
    out += text_at(width, bottom + 16, "end", "NaN", "soft");
  }
  out += line_of("axis", 0, bottom, width, bottom);
  out += text_at(0, bottom + 36, "start", fmt::format("{}, from each label up to the next", unit(run)), "soft");
  if (columns > 12) out += text_at(0, 14, "start", fmt::format("most in one bin: {}", most), "soft");
  return out + "</svg></figure>\n";
}

std::string code_plots(const RunReport& run, std::string_view id) {
  std::string out;
  std::size_t drawn = 0;
  std::size_t left_out = 0;
  for (const BitField& field : run.fields) {
    if (field.width < narrowest_field || field.width > widest_field) continue;
    if (drawn == most_plots) {
      ++left_out;
      continue;
    }
    out += code_plot(run, field, fmt::format("{}-f{}", id, drawn));
    ++drawn;
  }
  if (left_out > 0) out += fmt::format("<p>{} more fields have no plot.</p>\n", left_out);
  return out;
}

}  // namespace bitwitness::report_html
