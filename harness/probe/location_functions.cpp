#include "harness/probe/location_functions.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include <fmt/format.h>

namespace bitwitness::location {
namespace {

// Functions that decode packed values are short; a reference deeper inside one is not looked for.
constexpr std::uint64_t farthest = 8192;

// Of starts behind a boundary, and of others, so that misread calls into a function do not hide its start.
constexpr std::size_t most_examined = 6;
constexpr std::size_t most_starts = 2;

// How much each sign of a start counts. A function table is right by construction; a call may be a misread byte, and
// only padding or a return before tells that nothing falls through to it.
constexpr unsigned weight_listed = 8;
constexpr unsigned weight_boundary = 4;
constexpr unsigned weight_called = 2;
constexpr unsigned weight_pointer = 2;
constexpr unsigned weight_jumped_to = 1;
constexpr unsigned weight_prologue = 1;
constexpr unsigned least_weight = 2;

constexpr std::uint64_t function_alignment = 16;

std::span<const std::byte> code_around(const Image& image, std::uint64_t address) {
  return used_bytes(*image.find(address));
}

// What compilers begin functions with.
constexpr std::array<std::string_view, 12> prologues{
    "\x55\x8b\xec",  // push ebp; mov ebp, esp
    "\x55\x89\xe5",
    "\x8b\xff\x55",  // mov edi, edi; push ebp
    "\x55\x8b\x6c",
    "\x83\xec",  // sub esp, n
    "\x81\xec",     "\x53\x56", "\x56\x57", "\x53\x8b",
    "\x48\x83\xec",  // sub rsp, n
    "\x48\x89\x5c",  // mov [rsp + n], rbx
    "\x40\x53",      // push rbx
};

bool has_prologue(std::span<const std::byte> code, std::size_t offset) {
  return std::ranges::any_of(prologues, [&](std::string_view prologue) {
    if (code.size() - offset < prologue.size()) return false;
    const auto same = [](char a, std::byte b) { return static_cast<std::byte>(a) == b; };
    return std::equal(prologue.begin(), prologue.end(), code.begin() + static_cast<std::ptrdiff_t>(offset), same);
  });
}

bool is_filler(std::byte byte) {
  return byte == std::byte{0xcc} || byte == std::byte{0x90};
}

// The end of a no-operation of several bytes, as assemblers pad with: 0F 1F /0 with a displacement of zeros.
bool ends_long_nop(std::span<const std::byte> code, std::size_t end) {
  constexpr std::size_t longest = 9;
  for (std::size_t size = 3; size <= longest && size <= end; ++size) {
    if (code[end - size] != std::byte{0x0f} || code[end - size + 1] != std::byte{0x1f}) continue;
    return std::all_of(code.begin() + static_cast<std::ptrdiff_t>(end - size + 4),
                       code.begin() + static_cast<std::ptrdiff_t>(end),
                       [](std::byte byte) { return byte == std::byte{0}; });
  }
  return false;
}

// A return just before, without padding between: C3 or C2 iw. Only said of aligned addresses.
bool follows_return(std::span<const std::byte> code, std::size_t offset) {
  if (offset >= 1 && code[offset - 1] == std::byte{0xc3}) return true;
  return offset >= 3 && code[offset - 3] == std::byte{0xc2} && code[offset - 1] == std::byte{0};
}

bool is_behind_padding(std::span<const std::byte> code, std::uint64_t address, std::size_t offset) {
  if (offset == 0) return true;
  if (is_filler(code[offset])) return false;
  if (code[offset - 1] == std::byte{0xcc}) return true;
  const bool is_aligned = address % function_alignment == 0;
  if (!is_aligned) return false;
  return is_filler(code[offset - 1]) || ends_long_nop(code, offset) || follows_return(code, offset);
}

FunctionStart judge(const CodeMap& map, std::uint64_t address) {
  FunctionStart start;
  start.address = address;
  const auto code = code_around(map.image(), address);
  const auto offset = static_cast<std::size_t>(address - map.image().find(address)->address);
  const auto add = [&start](unsigned weight, const std::string& reason) {
    start.weight += weight;
    start.reason += (start.reason.empty() ? "" : ", ") + reason;
  };
  if (!map.listed_starts(address, address).empty()) add(weight_listed, "in the function table");
  const auto jumps = map.jumps_to(address, address);
  const auto calls = static_cast<std::size_t>(std::ranges::count_if(jumps, &DirectJump::is_call));
  if (calls > 0) add(weight_called, fmt::format("called from {} place{}", calls, calls == 1 ? "" : "s"));
  const bool has_pointer = !map.pointers_to(address, address).empty();
  if (has_pointer) add(weight_pointer, "a pointer in data leads to it");
  if (is_behind_padding(code, address, offset)) {
    add(weight_boundary, "behind padding");
  } else if ((calls > 0 || has_pointer) && follows_return(code, offset)) {
    add(weight_boundary, "behind a return");
  }
  if (jumps.size() > calls) add(weight_jumped_to, "jumped to");
  if (has_prologue(code, offset)) add(weight_prologue, "begins as functions do");
  return start;
}

std::vector<FunctionStart> possible_starts(const CodeMap& map, std::uint64_t position) {
  const Image& image = map.image();
  const Segment& segment = *image.find(position);
  const std::uint64_t first = position - std::min(farthest, position - segment.address);
  std::set<std::uint64_t> addresses{segment.address};
  if (first > segment.address) addresses.clear();
  for (const DirectJump& jump : map.jumps_to(first, position)) addresses.insert(image.base() + jump.target);
  for (const CodePointer& pointer : map.pointers_to(first, position)) addresses.insert(image.base() + pointer.target);
  for (const std::uint32_t listed : map.listed_starts(first, position)) addresses.insert(image.base() + listed);
  const auto code = used_bytes(segment);
  for (std::uint64_t address = first; address < position; ++address) {
    const auto offset = static_cast<std::size_t>(address - segment.address);
    if (is_behind_padding(code, address, offset)) addresses.insert(address);
  }
  std::vector<FunctionStart> starts;
  // Nearest first: of equal weight, the nearest start is the function's own.
  std::size_t behind_boundary = 0;
  std::size_t others = 0;
  for (auto at = addresses.rbegin(); at != addresses.rend(); ++at) {
    FunctionStart start = judge(map, *at);
    if (start.weight < least_weight) continue;
    std::size_t& examined = start.weight >= weight_boundary ? behind_boundary : others;
    if (examined++ < most_examined) starts.push_back(std::move(start));
    if (behind_boundary >= most_examined) break;
  }
  return starts;
}

// A run of padding behind code that does not fall through: another function starts after it.
bool ends_function(const Instruction& instruction, std::span<const std::byte> code, std::size_t next) {
  const bool falls_through = instruction.flow != Flow::return_ && instruction.flow != Flow::jump &&
                             instruction.flow != Flow::indirect_jump && instruction.flow != Flow::stop;
  constexpr std::size_t padding_run = 2;
  if (falls_through || next + padding_run > code.size()) return false;
  return code[next] == std::byte{0xcc} && code[next + 1] == std::byte{0xcc};
}

std::optional<ReachedFrom> reach(const Image& image, const FunctionStart& start, std::uint64_t position,
                                 const InstructionTest& test) {
  const auto code = code_around(image, start.address);
  const std::uint64_t segment = image.find(start.address)->address;
  const bool is_64_bit = image.format() == ImageFormat::pe32_plus;
  std::uint64_t at = start.address;
  while (at <= position) {
    const auto offset = static_cast<std::size_t>(at - segment);
    const auto instruction = disassemble_one(code.subspan(offset), at, is_64_bit);
    if (!instruction) {
      ++at;
      continue;
    }
    const std::uint64_t next = at + instruction->size;
    if (next > position) {
      auto what = test(*instruction);
      if (!what) return std::nullopt;
      return ReachedFrom{start, at, std::move(*what)};
    }
    if (ends_function(*instruction, code, static_cast<std::size_t>(next - segment))) return std::nullopt;
    at = next;
  }
  return std::nullopt;
}

}  // namespace

std::vector<ReachedFrom> find_starts(const CodeMap& map, std::uint64_t position, const InstructionTest& test) {
  std::vector<ReachedFrom> reached;
  if (!is_code(map.image(), position)) return reached;
  for (const FunctionStart& start : possible_starts(map, position)) {
    if (auto found = reach(map.image(), start, position, test)) reached.push_back(std::move(*found));
  }
  std::ranges::stable_sort(reached, std::ranges::greater{}, [](const ReachedFrom& r) { return r.start.weight; });
  std::size_t behind_boundary = 0;
  std::size_t others = 0;
  std::erase_if(reached, [&](const ReachedFrom& from) {
    return (from.start.weight >= weight_boundary ? behind_boundary : others)++ >= most_starts;
  });
  return reached;
}

FunctionStart judge_start(const CodeMap& map, std::uint64_t address) {
  return judge(map, address);
}

std::optional<std::uint64_t> thunk_target(const Image& image, std::uint64_t address) {
  if (!is_code(image, address)) return std::nullopt;
  const auto instruction = disassemble_one(image, address);
  if (!instruction || instruction->flow != Flow::jump || instruction->target == address) return std::nullopt;
  return instruction->target;
}

}  // namespace bitwitness::location
