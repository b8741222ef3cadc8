#include "harness/value_generators.hpp"

#include "harness/error.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace bitwitness {
namespace {

constexpr std::size_t field_groups = std::bit_width(max_special) - 1;
constexpr unsigned most_detail = 3;
constexpr unsigned levels = 3;

constexpr std::uint64_t maximum_code(unsigned width) {
  return ~std::uint64_t{0} >> (64 - width);
}

// Where a field of up to 64 bits lies in a row: in one word or across two.
class Slot {
 public:
  Slot(std::size_t offset, unsigned width)
      : word_(offset / 64), shift_(static_cast<unsigned>(offset % 64)), crosses_(shift_ + width > 64) {}
  explicit Slot(const BitField& field) : Slot(field.offset, field.width) {}

  // The field's bits must be 0.
  void put(std::uint64_t* row, std::uint64_t code) const {
    row[word_] |= code << shift_;
    if (crosses_) row[word_ + 1] |= code >> (64 - shift_);
  }

 private:
  std::size_t word_;
  unsigned shift_;
  bool crosses_;
};

void keep_rising(std::vector<std::uint64_t>& codes) {
  std::ranges::sort(codes);
  codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
}

// Multiplies, or returns the limit plus one when the product exceeds it.
std::uint64_t product_within(std::uint64_t a, std::uint64_t b, std::uint64_t limit) {
  return a > limit / b ? limit + 1 : a * b;
}

std::uint64_t most_sweep_codes(unsigned width, unsigned swept_bits) {
  return width <= swept_bits ? std::uint64_t{1} << width : (std::uint64_t{1} << swept_bits) + 3 * width;
}

std::uint64_t level_code(unsigned width, unsigned level) {
  const std::array<std::uint64_t, levels> codes{0, std::uint64_t{1} << (width - 1), maximum_code(width)};
  return codes.at(level);
}

// Fills words with runs of equal bits, sixteen bits long on average: each bit repeats the one below it unless a bit of
// `turns` says otherwise.
void fill_with_runs(std::uint64_t* row, std::size_t words, RandomWords& random) {
  std::uint64_t last = 0;
  for (std::size_t word = 0; word < words; ++word) {
    std::uint64_t turns = random.next() & random.next() & random.next() & random.next();
    for (unsigned distance = 1; distance < 64; distance *= 2) turns ^= turns << distance;
    row[word] = turns ^ last;
    last = 0 - (row[word] >> 63);
  }
}

}  // namespace

std::vector<BitField> checked_fields(std::size_t packed_size, std::span<const BitField> fields) {
  const std::size_t bits = 8 * packed_size;
  std::vector<BitField> whole;
  if (fields.empty()) {
    whole.push_back({"value", 0, static_cast<unsigned>(bits)});
    fields = whole;
  }
  std::vector<BitField> checked;
  std::size_t next = 0;
  for (const BitField& field : fields) {
    if (field.offset != next || field.width == 0 || field.width > bits - next) {
      throw Error(fmt::format(
          "field \"{}\" (bit {}, {} wide) does not continue the fields before it, which end at bit {} of {}",
          field.name, field.offset, field.width, next, bits));
    }
    next += field.width;
    for (unsigned done = 0; done < field.width; done += 64) {
      checked.push_back({field.name, field.offset + done, std::min(field.width - done, 64u)});
    }
  }
  if (next != bits) throw Error(fmt::format("fields cover {} of a packed value's {} bits", next, bits));
  return checked;
}

std::vector<std::uint64_t> boundary_codes(unsigned width, unsigned detail) {
  const std::uint64_t maximum = maximum_code(width);
  const std::uint64_t middle = std::uint64_t{1} << (width - 1);
  std::vector<std::uint64_t> codes{0, maximum};
  if (detail >= 1) codes.push_back(middle);
  if (detail >= 2) codes.insert(codes.end(), {1, middle - 1});
  if (detail >= 3) codes.insert(codes.end(), {std::min(middle + 1, maximum), maximum - 1});
  keep_rising(codes);
  return codes;
}

std::vector<std::uint64_t> sweep_codes(unsigned width, unsigned swept_bits) {
  const std::uint64_t maximum = maximum_code(width);
  const std::uint64_t count = std::uint64_t{1} << std::min(width, swept_bits);
  // code * maximum / (count - 1), split so that it cannot overflow.
  const std::uint64_t step = maximum / (count - 1);
  const std::uint64_t rest = maximum % (count - 1);
  std::vector<std::uint64_t> even(static_cast<std::size_t>(count));
  for (std::uint64_t code = 0; code < count; ++code) {
    even[static_cast<std::size_t>(code)] = code * step + code * rest / (count - 1);
  }
  if (width <= swept_bits) return even;
  std::vector<std::uint64_t> powers;
  for (unsigned bit = 0; bit < width; ++bit) {
    const std::uint64_t power = std::uint64_t{1} << bit;
    powers.insert(powers.end(), {power - 1, power, power + 1});
  }
  keep_rising(powers);
  std::vector<std::uint64_t> codes;
  codes.reserve(even.size() + powers.size());
  std::ranges::set_union(even, powers, std::back_inserter(codes));
  return codes;
}

SpecialPlan plan_special(std::vector<BitField> fields) {
  SpecialPlan plan{std::move(fields), most_detail, false, 0};
  for (;; --plan.detail) {
    plan.count = 1;
    for (const BitField& field : plan.fields) {
      plan.count = product_within(plan.count, boundary_codes(field.width, plan.detail).size(), max_special);
    }
    if (plan.count <= max_special) return plan;
    if (plan.detail == 0) break;
  }
  plan.grouped = true;
  plan.count = std::uint64_t{1} << field_groups;
  return plan;
}

void append_special(ValueRows& rows, const SpecialPlan& plan) {
  const std::size_t stride = rows.stride();
  const std::span<std::uint64_t> words = rows.append(plan.count);
  std::fill_n(words.begin(), stride, 0);
  std::size_t made = 1;
  // Each step repeats the rows made so far once for every code after the first, which is 0 and so already in place.
  const auto cross = [&](std::span<const std::uint64_t> codes, auto&& put) {
    for (std::size_t code = 1; code < codes.size(); ++code) {
      for (std::size_t row = 0; row < made; ++row) {
        std::uint64_t* const target = words.data() + (code * made + row) * stride;
        for (std::size_t word = 0; word < stride; ++word) target[word] = words[row * stride + word];
        put(target, codes[code]);
      }
    }
    made *= codes.size();
  };
  if (!plan.grouped) {
    for (const BitField& field : plan.fields) {
      const Slot slot(field);
      cross(boundary_codes(field.width, plan.detail),
            [&](std::uint64_t* row, std::uint64_t code) { slot.put(row, code); });
    }
    return;
  }
  constexpr std::array<std::uint64_t, 2> ends{0, 1};
  for (std::size_t group = 0; group < field_groups; ++group) {
    cross(ends, [&](std::uint64_t* row, std::uint64_t) {
      for (std::size_t i = group; i < plan.fields.size(); i += field_groups) {
        Slot(plan.fields[i]).put(row, maximum_code(plan.fields[i].width));
      }
    });
  }
}

SweepPlan plan_sweeps(std::vector<BitField> fields) {
  SweepPlan plan{std::move(fields), max_swept_bits, 0};
  for (;; --plan.swept_bits) {
    plan.at_most = 0;
    for (const BitField& field : plan.fields) plan.at_most += levels * most_sweep_codes(field.width, plan.swept_bits);
    if (plan.at_most <= max_swept || plan.swept_bits == 1) return plan;
  }
}

void append_sweeps(ValueRows& rows, const SweepPlan& plan) {
  const std::size_t stride = rows.stride();
  std::vector<std::uint64_t> others(stride);
  for (const BitField& swept : plan.fields) {
    const Slot slot(swept);
    const std::vector<std::uint64_t> codes = sweep_codes(swept.width, plan.swept_bits);
    for (unsigned level = 0; level < levels; ++level) {
      std::ranges::fill(others, 0);
      for (const BitField& other : plan.fields) {
        if (other.offset != swept.offset) Slot(other).put(others.data(), level_code(other.width, level));
      }
      std::uint64_t* row = rows.append(codes.size()).data();
      for (const std::uint64_t code : codes) {
        std::ranges::copy(others, row);
        slot.put(row, code);
        row += stride;
      }
    }
  }
}

void append_random(ValueRows& rows, std::span<const BitField> fields, std::uint64_t count, std::uint64_t seed) {
  const std::size_t stride = rows.stride();
  const std::size_t bits = 8 * rows.packed_size();
  const std::uint64_t last_word = maximum_code(static_cast<unsigned>(bits - 64 * (stride - 1)));
  struct Choice {
    Slot slot;
    std::uint64_t maximum;
    std::vector<std::uint64_t> boundaries;
  };
  std::vector<Choice> choices;
  for (const BitField& field : fields) {
    choices.push_back({Slot(field), maximum_code(field.width), boundary_codes(field.width, most_detail)});
  }
  RandomWords random(seed);
  std::uint64_t* row = rows.append(count).data();
  for (std::uint64_t draw = 0; draw < count; ++draw, row += stride) {
    if (draw % weighted_share != weighted_share - 1) {
      for (std::size_t word = 0; word < stride; ++word) row[word] = random.next();
      row[stride - 1] &= last_word;
      continue;
    }
    if (draw / weighted_share % 2 != 0) {
      fill_with_runs(row, stride, random);
      row[stride - 1] &= last_word;
      continue;
    }
    std::fill_n(row, stride, 0);
    for (const Choice& choice : choices) {
      const std::uint64_t word = random.next();
      const std::uint64_t anywhere = choice.maximum > 0xFFFFFFFF ? random.next() : word;
      const std::uint64_t boundary = choice.boundaries[(word >> 33 & 0x3FFFFFFF) * choice.boundaries.size() >> 30];
      const std::uint64_t at_boundary = 0 - (word >> 63);
      choice.slot.put(row, (boundary & at_boundary) | (anywhere & choice.maximum & ~at_boundary));
    }
  }
}

}  // namespace bitwitness
