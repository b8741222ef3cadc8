#include "harness/disassembly.hpp"

#include "harness/error.hpp"
#include "harness/jump_tables.hpp"
#include "harness/operands.hpp"
#include "harness/sha256.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <capstone/capstone.h>
#include <fmt/format.h>

namespace bitwitness {
namespace {

constexpr std::size_t max_instruction_size = 15;

// A displacement beside registers is taken for the address of a table from here on; below it, and above its negative,
// it is an offset into a structure. No image lies in the lowest 64 KiB.
constexpr std::uint64_t lowest_address = 0x10000;

// A Capstone handle with room for one instruction. Not shared between threads.
class Decoder {
 public:
  explicit Decoder(bool is_64_bit) {
    if (cs_open(CS_ARCH_X86, is_64_bit ? CS_MODE_64 : CS_MODE_32, &handle_) != CS_ERR_OK) {
      throw Error("capstone: this build of the library cannot disassemble x86");
    }
    cs_option(handle_, CS_OPT_DETAIL, CS_OPT_ON);
    cs_option(handle_, CS_OPT_SYNTAX, CS_OPT_SYNTAX_INTEL);
    instruction_ = cs_malloc(handle_);
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() {
    cs_free(instruction_, 1);
    cs_close(&handle_);
  }

  // Name of a register; empty when there is none.
  [[nodiscard]] std::string_view register_name(unsigned reg) const {
    const char* name = cs_reg_name(handle_, reg);
    return name == nullptr ? std::string_view() : std::string_view(name);
  }

  // Null when the bytes are not an instruction; otherwise valid until the next call.
  const cs_insn* decode(std::span<const std::byte> bytes, std::uint64_t address) {
    const std::uint8_t* code = reinterpret_cast<const std::uint8_t*>(bytes.data());
    std::size_t size = std::min(bytes.size(), max_instruction_size);
    return cs_disasm_iter(handle_, &code, &size, &address, instruction_) ? instruction_ : nullptr;
  }

 private:
  csh handle_ = 0;
  cs_insn* instruction_ = nullptr;
};

Decoder& decoder_of_thread(bool is_64_bit) {
  if (is_64_bit) {
    thread_local Decoder decoder(true);
    return decoder;
  }
  thread_local Decoder decoder(false);
  return decoder;
}

std::uint64_t masked(std::uint64_t value, unsigned bytes) {
  return bytes >= 8 ? value : value & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

std::uint64_t wrapped(std::uint64_t address, bool is_64_bit) {
  return masked(address, is_64_bit ? 8 : 4);
}

Flow flow_of(const cs_insn& instruction) {
  const cs_x86& x86 = instruction.detail->x86;
  const bool is_direct = x86.op_count == 1 && x86.operands[0].type == X86_OP_IMM;
  switch (instruction.id) {
    case X86_INS_JMP:
      return is_direct ? Flow::jump : Flow::indirect_jump;
    case X86_INS_LJMP:
      return Flow::indirect_jump;
    case X86_INS_CALL:
      return is_direct ? Flow::call : Flow::indirect_call;
    case X86_INS_LCALL:
      return Flow::indirect_call;
    case X86_INS_RET:
    case X86_INS_RETF:
    case X86_INS_RETFQ:
    case X86_INS_IRET:
    case X86_INS_IRETD:
    case X86_INS_IRETQ:
      return Flow::return_;
    case X86_INS_INT3:
    case X86_INS_HLT:
      return Flow::stop;
    case X86_INS_LOOP:
    case X86_INS_LOOPE:
    case X86_INS_LOOPNE:
    case X86_INS_XBEGIN:
      return Flow::conditional_jump;
    case X86_INS_INT:
      // int 0x29 is Windows' fast fail, which does not come back.
      return is_direct && x86.operands[0].imm == 0x29 ? Flow::stop : Flow::next;
    default:
      break;
  }
  // The spellings of the undefined instructions differ between versions of the library.
  if (std::string_view(instruction.mnemonic).starts_with("ud")) return Flow::stop;
  const auto groups = std::span(instruction.detail->groups).first(instruction.detail->groups_count);
  return std::find(groups.begin(), groups.end(), CS_GRP_JUMP) == groups.end() ? Flow::next : Flow::conditional_jump;
}

std::optional<std::uint64_t> address_of(const x86_op_mem& memory, const cs_insn& instruction, bool is_64_bit) {
  // These segments do not start at address 0.
  if (memory.segment == X86_REG_FS || memory.segment == X86_REG_GS) return std::nullopt;
  const auto displacement = static_cast<std::uint64_t>(memory.disp);
  if (memory.base == X86_REG_RIP || memory.base == X86_REG_EIP) {
    const std::uint64_t end = instruction.address + instruction.size;
    return wrapped(end + displacement, memory.base == X86_REG_RIP);
  }
  const std::uint64_t address = wrapped(displacement, is_64_bit);
  if (memory.base == X86_REG_INVALID && memory.index == X86_REG_INVALID) return address;
  const bool is_offset =
      address < lowest_address || wrapped(std::uint64_t{0} - displacement, is_64_bit) < lowest_address;
  if (is_offset) return std::nullopt;
  return address;
}

Instruction convert(const cs_insn& from, bool is_64_bit) {
  Instruction out;
  out.address = from.address;
  out.size = from.size;
  out.text = from.mnemonic;
  if (from.op_str[0] != '\0') out.text.append(" ").append(from.op_str);
  out.flow = flow_of(from);
  const cs_x86& x86 = from.detail->x86;
  for (const cs_x86_op& operand : std::span(x86.operands).first(x86.op_count)) {
    if (operand.type == X86_OP_MEM) {
      if (const auto address = address_of(operand.mem, from, is_64_bit)) out.memory_references.push_back(*address);
    } else if (operand.type == X86_OP_IMM) {
      const auto value = static_cast<std::uint64_t>(operand.imm);
      if (out.flow == Flow::jump || out.flow == Flow::conditional_jump || out.flow == Flow::call) {
        out.target = wrapped(value, is_64_bit);
      } else {
        out.immediates.push_back(masked(value, operand.size));
      }
    }
  }
  return out;
}

// Registers are known by their names, whose numbers differ between versions of the library.
RegisterPart part_of(const Decoder& decoder, x86_reg reg) {
  RegisterPart part;
  if (reg == X86_REG_INVALID) return part;
  const std::string_view name = decoder.register_name(static_cast<unsigned>(reg));
  using File = RegisterPart::File;
  if (const auto general = general_part(name)) {
    return {File::general, general->number, general->low, general->width};
  }
  const auto numbered = [&](std::string_view prefix, File file, std::uint16_t width) {
    if (const auto number = register_number(name, prefix, 32)) {
      part = {file, static_cast<std::uint8_t>(*number), 0, width};
    }
    return part.file != File::none;
  };
  if (numbered("xmm", File::xmm, 128) || numbered("ymm", File::ymm, 256)) return part;
  if (name == "rip" || name == "eip") return {File::instruction_pointer, 0, 0, 0};
  constexpr std::array<std::string_view, 6> segments = {"es", "cs", "ss", "ds", "fs", "gs"};
  if (const auto at = std::ranges::find(segments, name); at != segments.end()) {
    return {File::segment, static_cast<std::uint8_t>(at - segments.begin()), 0, 16};
  }
  return {name.starts_with("st") ? File::x87 : File::other, 0, 0, 0};
}

Operand operand_of(const Decoder& decoder, const cs_x86_op& from) {
  Operand to;
  to.size = from.size;
  if (from.type == X86_OP_REG) {
    to.part = part_of(decoder, from.reg);
  } else if (from.type == X86_OP_IMM) {
    to.kind = Operand::Kind::immediate;
    to.immediate = static_cast<std::uint64_t>(from.imm);
  } else {
    to.kind = Operand::Kind::memory;
    to.base = part_of(decoder, from.mem.base);
    to.index = part_of(decoder, from.mem.index);
    to.scale = static_cast<std::uint8_t>(from.mem.scale);
    to.displacement = from.mem.disp;
    to.segment = part_of(decoder, from.mem.segment);
  }
  return to;
}

bool is_executable(const Image& image, std::uint64_t address) {
  const Segment* segment = image.find(address);
  return segment != nullptr && segment->executable && address - segment->address < segment->used;
}

}  // namespace

std::optional<Instruction> disassemble_one(std::span<const std::byte> bytes, std::uint64_t address, bool is_64_bit) {
  const cs_insn* instruction = decoder_of_thread(is_64_bit).decode(bytes, address);
  if (instruction == nullptr) return std::nullopt;
  return convert(*instruction, is_64_bit);
}

std::optional<DetailedInstruction> take_apart(std::span<const std::byte> bytes, std::uint64_t address, bool is_64_bit) {
  Decoder& decoder = decoder_of_thread(is_64_bit);
  const cs_insn* from = decoder.decode(bytes, address);
  if (from == nullptr) return std::nullopt;
  DetailedInstruction out;
  out.instruction = convert(*from, is_64_bit);
  out.bytes.assign(bytes.begin(), bytes.begin() + from->size);
  std::tie(out.prefix, out.mnemonic) = split_mnemonic(from->mnemonic);
  const cs_x86& x86 = from->detail->x86;
  for (const cs_x86_op& operand : std::span(x86.operands).first(x86.op_count)) {
    out.operands.push_back(operand_of(decoder, operand));
  }
  return out;
}

std::optional<Instruction> disassemble_one(const Image& image, std::uint64_t address) {
  const Segment* segment = image.find(address);
  if (segment == nullptr) return std::nullopt;
  return disassemble_one(segment->bytes.subspan(address - segment->address), address,
                         image.format() == ImageFormat::pe32_plus);
}

Listing disassemble_routine(const Image& image, std::uint64_t address, std::size_t limit, bool follow_calls,
                            bool follow_tables) {
  const bool is_64_bit = image.format() == ImageFormat::pe32_plus;
  Listing listing;
  std::map<std::uint64_t, Instruction> found;
  std::set<std::uint64_t> undecodable;
  std::vector<std::uint64_t> pending{address};
  while (!pending.empty()) {
    const std::uint64_t at = pending.back();
    pending.pop_back();
    if (found.contains(at) || undecodable.contains(at)) continue;
    if (found.size() == limit) {
      listing.complete = false;
      break;
    }
    std::optional<Instruction> instruction;
    if (is_executable(image, at)) instruction = disassemble_one(image, at);
    if (!instruction) {
      undecodable.insert(at);
      continue;
    }
    const std::uint64_t next = wrapped(at + instruction->size, is_64_bit);
    switch (instruction->flow) {
      case Flow::next:
      case Flow::indirect_call:
        pending.push_back(next);
        break;
      case Flow::jump:
        pending.push_back(*instruction->target);
        break;
      case Flow::conditional_jump:
        pending.push_back(*instruction->target);
        pending.push_back(next);
        break;
      case Flow::call:
        if (follow_calls) pending.push_back(*instruction->target);
        pending.push_back(next);
        break;
      case Flow::indirect_jump: {
        const JumpTable table = follow_tables ? jump_table_of(image, *instruction) : JumpTable();
        listing.complete &= table.is_whole;
        pending.insert(pending.end(), table.targets.begin(), table.targets.end());
        break;
      }
      case Flow::return_:
      case Flow::stop:
        break;
    }
    found.emplace(at, std::move(*instruction));
  }
  listing.instructions.reserve(found.size());
  for (auto& [at, instruction] : found) listing.instructions.push_back(std::move(instruction));
  listing.undecodable.assign(undecodable.begin(), undecodable.end());
  return listing;
}

std::string routine_sha256(const Image& image, const Listing& listing) {
  Sha256 hash;
  for (const Instruction& instruction : listing.instructions) {
    hash.update(image.read(instruction.address, instruction.size));
  }
  return hash.hex();
}

std::string capstone_version() {
  int major = 0;
  int minor = 0;
  cs_version(&major, &minor);
  // The library tells its major and minor number only; the patch number is the header's, when they belong together.
  if (major == CS_VERSION_MAJOR && minor == CS_VERSION_MINOR) {
    return fmt::format("{}.{}.{}", major, minor, CS_VERSION_EXTRA);
  }
  return fmt::format("{}.{}", major, minor);
}

}  // namespace bitwitness
