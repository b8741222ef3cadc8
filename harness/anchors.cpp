#include "harness/disassembly.hpp"
#include "harness/error.hpp"
#include "harness/target.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace bitwitness {
namespace {

// Longest indirect call: prefix, opcode, ModRM, SIB and a displacement of four bytes.
constexpr std::uint32_t max_call_size = 8;
constexpr std::uint32_t min_call_size = 2;

// Linkers put one thunk before a routine, an imported one a second.
constexpr int max_thunks = 4;

// Straight-line code that has to decode before an address counts as code.
constexpr int checked_instructions = 64;

struct Finding {
  bool holds = false;
  std::string found;
  bool is_open = false;
};

std::string described(const Instruction& instruction) {
  return fmt::format("{} at {:#x}", instruction.text, instruction.address);
}

bool is_executable(const Image& image, std::uint64_t address) {
  const Segment* segment = image.find(address);
  return segment != nullptr && segment->executable && address - segment->address < segment->used;
}

std::optional<std::uint64_t> read_little_endian(const Image& image, std::uint64_t address, std::size_t count) {
  const Segment* segment = image.find(address);
  if (segment == nullptr || segment->bytes.size() - (address - segment->address) < count) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = count; i-- > 0;) {
    value = value << 8 | std::to_integer<std::uint64_t>(segment->bytes[address - segment->address + i]);
  }
  return value;
}

std::optional<std::uint64_t> read_pointer(const Image& image, std::uint64_t address) {
  return read_little_endian(image, address, image.format() == ImageFormat::pe32_plus ? 8 : 4);
}

std::string bytes_at(const Image& image, std::uint64_t address) {
  const Segment& segment = *image.find(address);
  const auto rest = segment.bytes.subspan(address - segment.address);
  std::string text = "bytes";
  for (const std::byte byte : rest.first(std::min<std::size_t>(rest.size(), 8))) {
    text += fmt::format(" {:02x}", std::to_integer<unsigned>(byte));
  }
  return text;
}

// Says what is at an address that is not code; nothing when it is.
std::optional<std::string> why_not_code(const Image& image, std::uint64_t address) {
  const Segment* segment = image.find(address);
  if (segment == nullptr) return fmt::format("no memory of the image at {:#x}", address);
  if (!segment->executable) return fmt::format("segment '{}', which is not executable", segment->name);
  const std::uint64_t offset = address - segment->address;
  if (offset >= segment->used) return fmt::format("padding behind segment '{}'", segment->name);
  const auto rest = segment->bytes.first(segment->used).subspan(offset);
  const auto head = rest.first(std::min<std::size_t>(rest.size(), 16));
  if (std::all_of(head.begin(), head.end(), [](std::byte byte) { return byte == std::byte{0}; })) return "zero bytes";
  try {
    image.require_code(address, fmt::format("{:#x}", address));
  } catch (const Error& error) {
    return error.what();
  }
  std::uint64_t at = address;
  for (int i = 0; i < checked_instructions; ++i) {
    if (!is_executable(image, at)) return fmt::format("instructions that run out of the segment at {:#x}", at);
    const std::optional<Instruction> instruction = disassemble_one(image, at);
    if (!instruction) return fmt::format("{} at {:#x}, which are no instruction", bytes_at(image, at), at);
    if (i == 0 && instruction->flow == Flow::stop) return described(*instruction);
    // What follows a call or a jump need not be code: the callee may not come back.
    if (instruction->flow != Flow::next && instruction->flow != Flow::conditional_jump) break;
    at += instruction->size;
  }
  return std::nullopt;
}

Finding check_code(const Image& image, std::uint64_t address) {
  if (auto reason = why_not_code(image, address)) return {false, std::move(*reason)};
  return {true, described(*disassemble_one(image, address))};
}

// The slot that an indirect call or jump reads its callee from, when no register has a part in its address.
std::optional<std::uint64_t> fixed_slot(const Instruction& instruction) {
  const bool is_fixed =
      instruction.text.find("[0x") != std::string::npos || instruction.text.find("[rip") != std::string::npos;
  if (!is_fixed || instruction.memory_references.empty()) return std::nullopt;
  return instruction.memory_references.front();
}

// Where a call of an address ends up once the thunks at it are passed.
std::uint64_t behind_thunks(const Image& image, std::uint64_t address, std::uint64_t wanted) {
  for (int i = 0; i < max_thunks && address != wanted && is_executable(image, address); ++i) {
    const std::optional<Instruction> instruction = disassemble_one(image, address);
    std::optional<std::uint64_t> next;
    if (instruction && instruction->flow == Flow::jump) next = instruction->target;
    if (instruction && instruction->flow == Flow::indirect_jump) {
      if (const auto slot = fixed_slot(*instruction)) next = read_pointer(image, *slot);
    }
    if (!next) break;
    address = *next;
  }
  return address;
}

// By how much it explains of the bytes it is read from.
enum class Callee : std::uint8_t {
  none,      // not a call, or of nothing in the image
  run_time,  // a call whose callee the image does not tell
  other,     // a call of something else
  wanted
};

struct CallSite {
  Callee callee = Callee::none;
  std::string found;
};

CallSite judge_direct(const Image& image, const Instruction& instruction, std::uint64_t wanted) {
  const std::uint64_t target = *instruction.target;
  std::string found = fmt::format("{} to {:#x} at {:#x}", instruction.flow == Flow::call ? "call" : "jump", target,
                                  instruction.address);
  const std::uint64_t end = behind_thunks(image, target, wanted);
  if (end != target) found += fmt::format(", which leads to {:#x}", end);
  if (end == wanted) return {Callee::wanted, std::move(found)};
  return {is_executable(image, target) ? Callee::other : Callee::none, std::move(found)};
}

CallSite judge_indirect(const Image& image, const Instruction& instruction, std::uint64_t wanted) {
  std::string found = described(instruction);
  const std::optional<std::uint64_t> slot = fixed_slot(instruction);
  if (!slot) return {Callee::run_time, found + ", whose callee is known only when it runs"};
  const auto imports = image.imports();
  const auto import =
      std::find_if(imports.begin(), imports.end(), [&](const Import& each) { return each.slot == *slot; });
  if (import != imports.end()) {
    return {Callee::other, fmt::format("call to {}!{} at {:#x}", import->library, import->name, instruction.address)};
  }
  const std::optional<std::uint64_t> pointer = read_pointer(image, *slot);
  if (!pointer) return {Callee::none, found + ", which reads no memory of the image"};
  found += fmt::format(", which holds {:#x}", *pointer);
  if (behind_thunks(image, *pointer, wanted) == wanted) return {Callee::wanted, std::move(found)};
  if (!image.find(*slot)->writable) return {Callee::other, std::move(found)};
  return {Callee::run_time, found + " in the file and may hold another callee when it runs"};
}

CallSite judge(const Image& image, const Instruction& instruction, std::uint64_t wanted) {
  if (instruction.flow == Flow::call) return judge_direct(image, instruction, wanted);
  if (instruction.flow == Flow::indirect_call) return judge_indirect(image, instruction, wanted);
  return {Callee::none, {}};
}

CallSite call_starting_at(const Image& image, std::uint64_t address, std::uint64_t wanted) {
  if (!is_executable(image, address)) return {};
  const std::optional<Instruction> instruction = disassemble_one(image, address);
  if (!instruction) return {};
  if (instruction->flow == Flow::jump) {
    // A call in tail position.
    CallSite site = judge_direct(image, *instruction, wanted);
    return site.callee == Callee::wanted ? site : CallSite{};
  }
  return judge(image, *instruction, wanted);
}

// The bytes before an address can end several instructions: a call of something in the image is likelier than one of
// a register, whose two bytes may be the end of the former.
CallSite call_returning_to(const Image& image, std::uint64_t address, std::uint64_t wanted) {
  CallSite best;
  for (std::uint32_t size = min_call_size; size <= max_call_size && size <= address; ++size) {
    if (!is_executable(image, address - size)) continue;
    const std::optional<Instruction> instruction = disassemble_one(image, address - size);
    if (!instruction || instruction->size != size) continue;
    CallSite site = judge(image, *instruction, wanted);
    if (site.callee > best.callee) best = std::move(site);
  }
  return best;
}

Finding check_call(const Image& image, std::uint64_t address, std::uint64_t wanted) {
  const CallSite starting = call_starting_at(image, address, wanted);
  const CallSite returning = call_returning_to(image, address, wanted);
  for (const Callee callee : {Callee::wanted, Callee::run_time}) {
    for (const CallSite* site : {&starting, &returning}) {
      if (site->callee == callee) return {true, site->found, callee == Callee::run_time};
    }
  }
  std::string found;
  for (const CallSite* site : {&starting, &returning}) {
    if (site->callee == Callee::other) found += (found.empty() ? "" : " and ") + site->found;
  }
  if (!found.empty()) return {false, std::move(found)};
  if (auto reason = why_not_code(image, address)) return {false, std::move(*reason)};
  return {false, described(*disassemble_one(image, address))};
}

class ConstantSearch {
 public:
  ConstantSearch(const Image& image, const Listing& listing) : image_(image), listing_(listing) {}

  // Says where the routine names a constant of so many bytes; nothing when it does not.
  std::optional<std::string> find(std::uint64_t bits, std::size_t size) const {
    for (const Instruction& instruction : listing_.instructions) {
      for (const std::uint64_t immediate : instruction.immediates) {
        if (immediate == bits) return "in " + described(instruction);
        // An address that is passed on.
        if (holds(immediate, bits, size, 1)) return named(immediate, instruction);
      }
      const std::size_t lanes = instruction.text.find("xmmword") == std::string::npos ? 1 : 16 / size;
      for (const std::uint64_t address : instruction.memory_references) {
        if (const auto at = holds(address, bits, size, lanes)) return named(*at, instruction);
      }
    }
    if (size == 8) return find_halves(bits);
    return std::nullopt;
  }

 private:
  static std::string named(std::uint64_t address, const Instruction& instruction) {
    return fmt::format("at {:#x}, named by {}", address, described(instruction));
  }

  std::optional<std::uint64_t> holds(std::uint64_t address, std::uint64_t bits, std::size_t size,
                                     std::size_t lanes) const {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      if (read_little_endian(image_, address + lane * size, size) == bits) return address + lane * size;
    }
    return std::nullopt;
  }

  // 32-bit code stores a double as two words.
  std::optional<std::string> find_halves(std::uint64_t bits) const {
    const Instruction* low = with_immediate(bits & 0xffffffff);
    const Instruction* high = with_immediate(bits >> 32);
    if (low == nullptr || high == nullptr) return std::nullopt;
    return fmt::format("in halves in {} and {}", described(*low), described(*high));
  }

  const Instruction* with_immediate(std::uint64_t value) const {
    for (const Instruction& instruction : listing_.instructions) {
      const auto& all = instruction.immediates;
      if (std::find(all.begin(), all.end(), value) != all.end()) return &instruction;
    }
    return nullptr;
  }

  const Image& image_;
  const Listing& listing_;
};

Finding check_constant(const Image& image, std::uint64_t address, const std::vector<std::string>& bits) {
  if (auto reason = why_not_code(image, address)) return {false, std::move(*reason)};
  const Listing listing = disassemble_routine(image, address, 4096, true);
  const ConstantSearch search(image, listing);
  for (const std::string& digits : bits) {
    std::uint64_t value = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (auto where = search.find(value, digits.size() / 2)) return {true, digits + " " + *where};
  }
  return {false, fmt::format("no reference to it in {} instructions{}", listing.instructions.size(),
                             listing.complete ? "" : ", more behind an indirect jump")};
}

Finding check(const Anchor& anchor, const Image& image) {
  try {
    const std::uint64_t address = image.resolve(anchor.at);
    switch (anchor.kind) {
      case AnchorKind::code:
        return check_code(image, address);
      case AnchorKind::call:
        return check_call(image, address, image.resolve(anchor.to));
      case AnchorKind::constant:
        return check_constant(image, address, anchor.bits);
    }
    return {};
  } catch (const Error& error) {
    // A name that this image does not have.
    return {false, error.what()};
  }
}

}  // namespace

std::vector<AnchorResult> check_anchors(const Target& target, const Image& image) {
  std::vector<AnchorResult> results;
  for (const Anchor& anchor : target.anchors) {
    Finding finding = check(anchor, image);
    results.push_back({anchor, finding.holds, finding.is_open, std::move(finding.found)});
  }
  return results;
}

}  // namespace bitwitness
