#include "harness/probe/location_bytes.hpp"

#include "harness/disassembly.hpp"
#include "harness/error.hpp"
#include "harness/probe/location_scan.hpp"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

namespace bitwitness::location {
namespace {

constexpr std::size_t most_instructions = 1024;
constexpr std::size_t most_bytes = 4096;

// Alignment or a table between two parts of a routine; what lies farther belongs to another one.
constexpr std::uint64_t widest_gap = 64;

// Words that are looked for, spread over the routine.
constexpr std::size_t most_words = 64;

// A word that stands in more places than this tells nothing ("push ebp; mov ebp, esp; sub").
constexpr std::size_t most_hits = 20'000;

// Inserted or dropped instructions move what follows by less.
constexpr std::uint64_t most_shift = 48;

// Bytes that tell a routine's start.
constexpr std::size_t head_size = 12;

// Below, too little is the same to speak of likeness.
constexpr double least_share = 0.4;

bool is_inside(const Image& image, std::uint64_t address) {
  return address >= image.base() && address - image.base() < image.size();
}

/// Leaves open the four bytes of an instruction that hold a word, searched from the end, where operands stand.
void open_word(std::vector<bool>& is_fixed, std::span<const std::byte> bytes, std::size_t offset, std::uint32_t word) {
  for (std::size_t at = bytes.size() - 3; at-- > 1;) {
    if (word_at(bytes, at) != word) continue;
    std::fill_n(is_fixed.begin() + static_cast<std::ptrdiff_t>(offset + at), 4, false);
    return;
  }
}

void open_operands(std::vector<bool>& is_fixed, const Image& image, const Instruction& instruction,
                   std::size_t offset) {
  constexpr std::uint32_t shortest_with_word = 5;
  if (instruction.size < shortest_with_word) return;
  const auto bytes = image.read(instruction.address, instruction.size);
  const std::uint64_t next = instruction.address + instruction.size;
  if (instruction.target) {
    open_word(is_fixed, bytes, offset, static_cast<std::uint32_t>(*instruction.target - next));
  }
  for (const std::uint64_t reference : instruction.memory_references) {
    if (!is_inside(image, reference)) continue;
    const bool is_relative = image.format() == ImageFormat::pe32_plus;
    open_word(is_fixed, bytes, offset, static_cast<std::uint32_t>(is_relative ? reference - next : reference));
  }
  for (const std::uint64_t immediate : instruction.immediates) {
    if (is_inside(image, immediate)) open_word(is_fixed, bytes, offset, static_cast<std::uint32_t>(immediate));
  }
}

/// Where the routine would start if a word of it stands where it was found.
std::unordered_map<std::uint64_t, unsigned> vote(const Image& image, const MaskedCode& code, std::size_t& words) {
  std::vector<std::uint32_t> offsets;
  for (std::size_t at = 0; at + 4 <= code.bytes.size(); ++at) {
    const auto begin = code.is_fixed.begin() + static_cast<std::ptrdiff_t>(at);
    if (std::all_of(begin, begin + 4, [](bool fixed) { return fixed; })) {
      offsets.push_back(static_cast<std::uint32_t>(at));
    }
  }
  const std::size_t step = std::max<std::size_t>(1, offsets.size() / most_words);
  WordTable table;
  for (std::size_t i = 0; i < offsets.size(); i += step) table.add(word_at(code.bytes, offsets[i]), offsets[i]);
  table.finish();
  std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> hits;
  for (const Segment& segment : image.segments()) {
    if (!segment.executable) continue;
    table.search(used_bytes(segment), std::nullopt, [&](std::size_t at, std::uint32_t offset) {
      auto& starts = hits[offset];
      if (starts.size() <= most_hits && segment.address + at >= offset) starts.push_back(segment.address + at - offset);
    });
  }
  std::unordered_map<std::uint64_t, unsigned> votes;
  words = 0;
  for (std::size_t i = 0; i < offsets.size(); i += step) {
    ++words;
    const auto found = hits.find(offsets[i]);
    if (found == hits.end() || found->second.size() > most_hits) continue;
    for (const std::uint64_t start : found->second) ++votes[start];
  }
  return votes;
}

}  // namespace

double MaskedCode::share_at(const Image& image, std::uint64_t address) const {
  const Segment* segment = image.find(address);
  if (segment == nullptr || fixed == 0) return 0;
  const auto there =
      used_bytes(*segment).subspan(std::min<std::size_t>(address - segment->address, used_bytes(*segment).size()));
  std::size_t same = 0;
  for (std::size_t i = 0; i < bytes.size() && i < there.size(); ++i) {
    if (is_fixed[i] && bytes[i] == there[i]) ++same;
  }
  return static_cast<double>(same) / static_cast<double>(fixed);
}

std::size_t MaskedCode::head_at(const Image& image, std::uint64_t address) const {
  const Segment* segment = image.find(address);
  if (segment == nullptr) return 0;
  const auto there = used_bytes(*segment);
  const auto offset = static_cast<std::size_t>(address - segment->address);
  std::size_t same = 0;
  for (std::size_t i = 0; i < std::min(head_size, bytes.size()) && offset + i < there.size(); ++i) {
    if (is_fixed[i] && bytes[i] == there[offset + i]) ++same;
  }
  return same;
}

MaskedCode mask_routine(const Image& image, std::uint64_t address) {
  image.require_code(address, fmt::format("{:#x}", address));
  const Listing listing = disassemble_routine(image, address, most_instructions);
  MaskedCode code;
  std::uint64_t end = address;
  for (const Instruction& instruction : listing.instructions) {
    if (instruction.address < end) continue;
    if (instruction.address - end > widest_gap || instruction.address - address > most_bytes) break;
    const auto offset = static_cast<std::size_t>(instruction.address - address);
    const auto bytes = image.read(instruction.address, instruction.size);
    code.bytes.resize(offset);
    code.is_fixed.resize(offset);
    code.bytes.insert(code.bytes.end(), bytes.begin(), bytes.end());
    code.is_fixed.resize(code.bytes.size(), true);
    open_operands(code.is_fixed, image, instruction, offset);
    end = instruction.address + instruction.size;
  }
  code.fixed = static_cast<std::size_t>(std::ranges::count(code.is_fixed, true));
  return code;
}

std::vector<AlikeCode> find_alike(const Image& image, const MaskedCode& code, std::size_t most) {
  std::size_t words = 0;
  const auto votes = vote(image, code, words);
  std::vector<std::pair<std::uint64_t, unsigned>> rows(votes.begin(), votes.end());
  std::ranges::sort(rows);
  // Votes that lie close together are one place whose parts have moved against each other. Its start is where the
  // routine's first bytes are, and of several such where most parts agree.
  std::vector<AlikeCode> found;
  for (std::size_t i = 0; i < rows.size();) {
    unsigned total = 0;
    auto best = rows[i];
    std::size_t best_head = code.head_at(image, best.first);
    const std::uint64_t first = rows[i].first;
    for (; i < rows.size() && rows[i].first - first <= most_shift; ++i) {
      total += rows[i].second;
      const std::size_t head = code.head_at(image, rows[i].first);
      if (head < best_head || (head == best_head && rows[i].second <= best.second)) continue;
      best = rows[i];
      best_head = head;
    }
    const double voted = std::min(1.0, static_cast<double>(total) / static_cast<double>(words));
    if (voted < least_share || !is_code(image, best.first)) continue;
    found.push_back({best.first, std::max(code.share_at(image, best.first), std::min(voted, 0.99))});
  }
  std::ranges::stable_sort(found, std::ranges::greater{}, &AlikeCode::share);
  if (found.size() > most) found.resize(most);
  return found;
}

}  // namespace bitwitness::location
