#include "harness/probe/call_lines.hpp"

#include "harness/probe/location_scan.hpp"

#include <algorithm>

namespace bitwitness::call_lines {
namespace {

// Bytes before a call that are decoded. Decoding that begins inside an instruction falls into step within a few
// instructions, so that the first of these bytes only vote.
constexpr std::size_t bytes_before = 128;
constexpr std::size_t bytes_to_settle = 24;
constexpr std::size_t least_votes = 3;

constexpr std::size_t bytes_behind = 96;

// Jumps with a distance of four bytes that are looked for around a call.
constexpr std::uint64_t jumps_within = 4096;

bool ends_line(const Instruction& instruction) {
  return instruction.flow != Flow::next && instruction.flow != Flow::conditional_jump;
}

}  // namespace

std::vector<Instruction> instructions_before(const Image& image, std::uint64_t address) {
  const Segment& segment = *image.find(address);
  const auto code = location::used_bytes(segment);
  const auto end = static_cast<std::size_t>(address - segment.address);
  const std::size_t first = end - std::min(end, bytes_before);
  const std::size_t count = end - first;
  const bool is_64_bit = image.format() == ImageFormat::pe32_plus;
  std::vector<std::optional<Instruction>> decoded(count);
  std::vector<bool> reaches(count + 1);
  reaches[count] = true;
  for (std::size_t i = count; i-- > 0;) {
    decoded[i] = disassemble_one(code.subspan(first + i), segment.address + first + i, is_64_bit);
    const std::size_t next = decoded[i] ? i + decoded[i]->size : count + 1;
    reaches[i] = next <= count && reaches[next];
  }
  std::vector<std::size_t> votes(count + 1, 1);
  for (std::size_t i = 0; i < count; ++i) {
    if (reaches[i]) votes[i + decoded[i]->size] += votes[i];
  }
  std::vector<Instruction> line;
  // What begins in the first bytes has few votes unless the code itself begins there.
  const std::size_t settled = first == 0 ? 0 : bytes_to_settle;
  for (std::size_t next = count; next > settled;) {
    std::optional<std::size_t> best;
    std::size_t second_votes = 0;
    for (std::size_t i = next - std::min<std::size_t>(next, 15); i < next; ++i) {
      if (!reaches[i] || i + decoded[i]->size != next) continue;
      if (!best || votes[i] > votes[*best]) {
        second_votes = best ? votes[*best] : 0;
        best = i;
      } else {
        second_votes = std::max(second_votes, votes[i]);
      }
    }
    if (!best || *best < settled) break;
    const bool is_clear = votes[*best] >= 2 * second_votes && (votes[*best] >= least_votes || first + *best == 0);
    if (!is_clear) break;
    line.push_back(*decoded[*best]);
    next = *best;
  }
  std::ranges::reverse(line);
  return line;
}

std::vector<Instruction> instructions_from(const Image& image, std::uint64_t address, std::size_t bytes) {
  const Segment& segment = *image.find(address);
  const auto code = location::used_bytes(segment);
  const bool is_64_bit = image.format() == ImageFormat::pe32_plus;
  std::vector<Instruction> line;
  const auto start = static_cast<std::size_t>(address - segment.address);
  for (std::size_t at = start; at < code.size() && at - start < bytes;) {
    auto instruction = disassemble_one(code.subspan(at), segment.address + at, is_64_bit);
    if (!instruction) break;
    at += instruction->size;
    line.push_back(std::move(*instruction));
  }
  return line;
}

std::uint64_t Reader::last_entry(std::span<const Instruction> before, std::span<const Instruction> behind,
                                 std::uint64_t start, std::uint64_t end) const {
  std::uint64_t entry = start;
  const auto consider = [&entry, end](std::uint64_t target) {
    if (target > entry && target <= end) entry = target;
  };
  for (const auto& part : {before, behind}) {
    for (const Instruction& instruction : part) {
      if (instruction.target && instruction.flow != Flow::call) consider(*instruction.target);
    }
  }
  const Segment& segment = *image_.find(start);
  const auto code = location::used_bytes(segment);
  const auto offset = static_cast<std::size_t>(start - segment.address);
  const std::size_t last = std::min<std::size_t>(code.size(), offset + jumps_within);
  for (std::size_t at = offset - std::min<std::size_t>(offset, jumps_within); at + 6 <= last; ++at) {
    const auto opcode = std::to_integer<unsigned>(code[at]);
    const bool is_conditional = opcode == 0x0f && (std::to_integer<unsigned>(code[at + 1]) & 0xf0) == 0x80;
    if (opcode != 0xe9 && !is_conditional) continue;
    const std::size_t operand = at + (is_conditional ? 2 : 1);
    const auto distance = static_cast<std::int32_t>(location::word_at(code, operand));
    consider(segment.address + operand + 4 + static_cast<std::uint64_t>(static_cast<std::int64_t>(distance)));
  }
  return entry;
}

std::optional<DirectCall> Reader::read(std::uint64_t address) const {
  const std::vector<Instruction> before = instructions_before(image_, address);
  const std::vector<Instruction> behind = instructions_from(image_, address, bytes_behind);
  if (before.empty() || behind.empty() || behind.front().flow != Flow::call) return std::nullopt;
  std::size_t first = before.size();
  while (first > 0 && !ends_line(before[first - 1])) --first;
  std::span<const Instruction> line = std::span(before).subspan(first);
  if (!line.empty()) {
    const std::uint64_t entry = last_entry(before, behind, line.front().address, address);
    while (!line.empty() && line.front().address < entry) line = line.subspan(1);
  }
  DirectCall site;
  site.address = address;
  follow_before(site, line, is_64_bit_);
  std::size_t end = 1;
  while (end < behind.size() && !ends_line(behind[end])) ++end;
  // The instruction that ends the line tells whether the caller returns.
  follow_behind(site, std::span(behind).subspan(1, std::min(end, behind.size() - 1)), is_64_bit_);
  return site;
}

}  // namespace bitwitness::call_lines
