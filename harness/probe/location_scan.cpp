#include "harness/probe/location_scan.hpp"

#include <algorithm>

namespace bitwitness::location {
namespace {

// Longest run of immediate bytes behind a RIP-relative displacement.
constexpr std::uint32_t trailing_sizes[] = {0, 1, 2, 4};

// A constant that lies in more places than this is not one that tells anything.
constexpr std::size_t most_places = 4096;

// Calls and pointers that are kept: executables of 20 MB have less than a million.
constexpr std::size_t most_rows = std::size_t{1} << 24;

constexpr std::size_t vector_size = 16;

// Code that builds an f64 from two immediates has them this close.
constexpr std::size_t halves_apart = 24;

template <class Row, class Target>
std::span<const Row> range_of(const std::vector<Row>& rows, std::uint64_t base, std::uint64_t first, std::uint64_t last,
                              Target target) {
  const auto relative = [base](std::uint64_t address) { return address < base ? 0 : address - base; };
  const auto from = std::ranges::lower_bound(rows, relative(first), {}, target);
  const auto to = std::ranges::upper_bound(from, rows.end(), relative(last), {}, target);
  return {from, to};
}

}  // namespace

std::span<const std::byte> used_bytes(const Segment& segment) {
  return segment.bytes.first(static_cast<std::size_t>(std::min<std::uint64_t>(segment.used, segment.bytes.size())));
}

std::vector<const Segment*> near_segments(const Image& image) {
  std::vector<const Segment*> segments;
  for (const Segment& segment : image.segments()) {
    const bool is_near = segment.address >= image.base() &&
                         segment.address + segment.bytes.size() - image.base() <= std::uint64_t{0xffffffff};
    if (is_near) segments.push_back(&segment);
  }
  return segments;
}

bool is_code(const Image& image, std::uint64_t address) {
  const Segment* segment = image.find(address);
  return segment != nullptr && segment->executable && address - segment->address < segment->used;
}

void WordTable::add(std::uint32_t word, std::uint32_t number) {
  rows_.push_back({word, number});
}

void WordTable::finish() {
  std::ranges::sort(
      rows_, [](const Row& a, const Row& b) { return a.word != b.word ? a.word < b.word : a.number < b.number; });
  for (const Row& row : rows_) low_halves_[row.word & 0xffff] = 1;
}

std::span<const WordTable::Row> WordTable::rows_of(std::uint32_t word) const {
  const auto first = std::ranges::lower_bound(rows_, word, {}, &Row::word);
  return {first, std::ranges::upper_bound(first, rows_.end(), word, {}, &Row::word)};
}

CodeMap::CodeMap(const Image& image) : image_(image) {
  for (const Segment* segment : near_segments(image)) {
    if (segment->executable) {
      sweep_code(*segment);
    } else {
      sweep_pointers(*segment);
    }
    if (segment->name == ".pdata" && image.format() == ImageFormat::pe32_plus) read_function_table(*segment);
  }
  std::ranges::sort(jumps_, [](const DirectJump& a, const DirectJump& b) {
    return a.target != b.target ? a.target < b.target : a.site < b.site;
  });
  std::ranges::sort(pointers_, [](const CodePointer& a, const CodePointer& b) {
    return a.target != b.target ? a.target < b.target : a.slot < b.slot;
  });
  std::ranges::sort(listed_);
}

void CodeMap::sweep_code(const Segment& segment) {
  const auto bytes = used_bytes(segment);
  code_bytes_ += bytes.size();
  const auto start = static_cast<std::uint32_t>(segment.address - image_.base());
  const std::uint64_t image_size = image_.size();
  for (std::size_t at = 0; at + 5 <= bytes.size(); ++at) {
    const auto opcode = std::to_integer<unsigned>(bytes[at]);
    if ((opcode & 0xfe) != 0xe8) continue;
    const std::uint32_t site = start + static_cast<std::uint32_t>(at);
    const std::uint32_t target = site + 5 + word_at(bytes, at + 1);
    if (target >= image_size || !is_code(image_, image_.base() + target)) continue;
    is_cut_ = is_cut_ || jumps_.size() == most_rows;
    if (is_cut_) return;
    jumps_.push_back({target, site, opcode == 0xe8});
  }
}

void CodeMap::sweep_pointers(const Segment& segment) {
  const auto bytes = used_bytes(segment);
  const auto start = static_cast<std::uint32_t>(segment.address - image_.base());
  const bool is_64_bit = image_.format() == ImageFormat::pe32_plus;
  const std::size_t size = is_64_bit ? 8 : 4;
  for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
    std::uint64_t value = word_at(bytes, at);
    if (is_64_bit) value |= std::uint64_t{word_at(bytes, at + 4)} << 32;
    if (value < image_.base() || value - image_.base() >= image_.size() || !is_code(image_, value)) continue;
    is_cut_ = is_cut_ || pointers_.size() == most_rows;
    if (is_cut_) return;
    pointers_.push_back({static_cast<std::uint32_t>(value - image_.base()), start + static_cast<std::uint32_t>(at)});
  }
}

void CodeMap::read_function_table(const Segment& segment) {
  constexpr std::size_t row_size = 12;  // begin, end, unwind information
  const auto bytes = used_bytes(segment);
  for (std::size_t at = 0; at + row_size <= bytes.size(); at += row_size) {
    const std::uint32_t begin = word_at(bytes, at);
    const std::uint32_t end = word_at(bytes, at + 4);
    if (begin < end && is_code(image_, image_.base() + begin)) listed_.push_back(begin);
  }
}

std::span<const DirectJump> CodeMap::jumps_to(std::uint64_t first, std::uint64_t last) const {
  return range_of(jumps_, image_.base(), first, last, &DirectJump::target);
}

std::span<const CodePointer> CodeMap::pointers_to(std::uint64_t first, std::uint64_t last) const {
  return range_of(pointers_, image_.base(), first, last, &CodePointer::target);
}

std::span<const std::uint32_t> CodeMap::listed_starts(std::uint64_t first, std::uint64_t last) const {
  return range_of(listed_, image_.base(), first, last, std::identity());
}

namespace {

/// Where constants lie and where code holds them, by one pass over everything; then where code refers to the former, by
/// a second pass over code.
class ReferenceSearch {
 public:
  ReferenceSearch(const Image& image, std::span<const KnownConstant> constants)
      : image_(image), constants_(constants), places_(constants.size()) {
    for (std::size_t i = 0; i < constants.size(); ++i) {
      const auto number = static_cast<std::uint32_t>(i);
      const KnownConstant& constant = constants[i];
      if (constant.kind == ConstantKind::f64) {
        halves_.add(static_cast<std::uint32_t>(constant.bits >> 32), number);
      } else if (constant.kind != ConstantKind::shift) {
        words_.add(static_cast<std::uint32_t>(constant.bits), number);
      }
    }
    words_.finish();
    halves_.finish();
  }

  std::vector<Reference> run() {
    const std::vector<const Segment*> segments = near_segments(image_);
    for (const Segment* segment : segments) search_words(*segment);
    search_addresses(segments);
    for (const Segment* segment : segments) {
      if (segment->executable) search_short_operands(*segment);
    }
    std::ranges::stable_sort(found_, {}, &Reference::position);
    return std::move(found_);
  }

 private:
  void add(const Reference& reference) {
    if (found_.size() < most_references) found_.push_back(reference);
  }

  void search_words(const Segment& segment) {
    const auto bytes = used_bytes(segment);
    words_.search(bytes, std::nullopt, [&](std::size_t offset, std::uint32_t number) {
      if (constants_[number].kind == ConstantKind::f32) add_place(number, segment.address + offset);
      if (segment.executable) add({number, segment.address + offset, std::nullopt});
    });
    halves_.search(bytes, std::nullopt, [&](std::size_t offset, std::uint32_t number) {
      const auto low = static_cast<std::uint32_t>(constants_[number].bits);
      if (offset >= 4 && word_at(bytes, offset - 4) == low) {
        add_place(number, segment.address + offset - 4);
        if (segment.executable) add({number, segment.address + offset - 4, std::nullopt});
      } else if (segment.executable && holds_near(bytes, offset, low)) {
        add({number, segment.address + offset, std::nullopt});
      }
    });
  }

  static bool holds_near(std::span<const std::byte> bytes, std::size_t offset, std::uint32_t word) {
    const std::size_t first = offset > halves_apart ? offset - halves_apart : 0;
    const std::size_t last = std::min(bytes.size() - 4, offset + halves_apart);
    for (std::size_t at = first; at <= last; ++at) {
      if (word_at(bytes, at) == word) return true;
    }
    return false;
  }

  void add_place(std::uint32_t number, std::uint64_t address) {
    if (address % 4 == 0 && places_[number].size() < most_places) places_[number].push_back(address);
  }

  void search_addresses(const std::vector<const Segment*>& segments) {
    struct Place {
      std::uint32_t constant = 0;
      std::uint64_t stored_at = 0;
    };
    const bool is_64_bit = image_.format() == ImageFormat::pe32_plus;
    std::vector<Place> rows;
    WordTable table;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      for (const std::uint64_t place : places_[i]) {
        // A vector constant is named by its first byte, whichever lane holds the value.
        const std::uint64_t vector = place / vector_size * vector_size;
        for (const std::uint64_t named : {place, vector}) {
          const auto row = static_cast<std::uint32_t>(rows.size());
          rows.push_back({static_cast<std::uint32_t>(i), place});
          for (const std::uint32_t trailing : trailing_sizes) {
            table.add(static_cast<std::uint32_t>(named) - (is_64_bit ? trailing : 0), row);
            if (!is_64_bit) break;
          }
          if (place == vector) break;
        }
      }
    }
    table.finish();
    for (const Segment* segment : segments) {
      if (!segment->executable) continue;
      const auto origin =
          is_64_bit ? std::optional<std::uint32_t>(static_cast<std::uint32_t>(segment->address)) : std::nullopt;
      table.search(used_bytes(*segment), origin, [&](std::size_t offset, std::uint32_t row) {
        add({rows[row].constant, segment->address + offset, rows[row].stored_at});
      });
    }
  }

  // Operands that are too short for the table: masks of two bytes behind an operand size prefix, and shift counts.
  void search_short_operands(const Segment& segment) {
    const auto bytes = used_bytes(segment);
    for (std::size_t i = 0; i < constants_.size(); ++i) {
      const KnownConstant& constant = constants_[i];
      if (constant.kind == ConstantKind::mask && constant.bits <= 0xffff) search_short_mask(segment, bytes, i);
      if (constant.kind == ConstantKind::shift) search_shift(segment, bytes, i);
    }
  }

  void search_short_mask(const Segment& segment, std::span<const std::byte> bytes, std::size_t index) {
    const auto low = static_cast<std::byte>(constants_[index].bits & 0xff);
    const auto high = static_cast<std::byte>(constants_[index].bits >> 8);
    constexpr std::byte operand_size{0x66};
    for (std::size_t at = 2; at + 2 <= bytes.size(); ++at) {
      if (bytes[at] != low || bytes[at + 1] != high) continue;
      // 66 25 iw, or 66 81 /r iw with or without a REX prefix.
      if (bytes[at - 2] == operand_size || (at >= 3 && bytes[at - 3] == operand_size) ||
          (at >= 4 && bytes[at - 4] == operand_size)) {
        add({index, segment.address + at, std::nullopt});
      }
    }
  }

  void search_shift(const Segment& segment, std::span<const std::byte> bytes, std::size_t index) {
    const auto count = static_cast<std::byte>(constants_[index].bits);
    constexpr std::byte shift_by_byte{0xc1};
    constexpr unsigned register_form = 0xc0;
    for (std::size_t at = 2; at < bytes.size(); ++at) {
      if (bytes[at] != count || bytes[at - 2] != shift_by_byte) continue;
      const auto operand = std::to_integer<unsigned>(bytes[at - 1]);
      if ((operand & register_form) == register_form && (operand >> 3 & 7) >= 4) {
        add({index, segment.address + at, std::nullopt});
      }
    }
  }

  const Image& image_;
  std::span<const KnownConstant> constants_;
  std::vector<std::vector<std::uint64_t>> places_;
  WordTable words_;
  WordTable halves_;
  std::vector<Reference> found_;
};

}  // namespace

std::vector<Reference> find_references(const Image& image, std::span<const KnownConstant> constants) {
  return ReferenceSearch(image, constants).run();
}

}  // namespace bitwitness::location
