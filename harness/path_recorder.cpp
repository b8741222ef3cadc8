#include "harness/path_recorder.hpp"

#include "harness/operands.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace bitwitness {
namespace {

constexpr std::size_t most_facts = 4096;
constexpr std::size_t most_written = 65'536;
constexpr std::size_t most_answers = 6;
constexpr std::size_t most_branches = 3;
constexpr std::size_t most_carriers = 8;
constexpr unsigned followed_instructions = 32;
constexpr std::uint16_t cpuid_registers = 0xf;   // eax ecx edx ebx
constexpr std::uint16_t xgetbv_registers = 0x5;  // eax edx

std::string_view mnemonic_of(std::string_view text) {
  for (const std::string_view prefix : {"rep ", "repe ", "repne ", "lock "}) {
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  }
  return text.substr(0, text.find(' '));
}

template <std::size_t Count>
bool is_one_of(std::string_view word, const std::array<std::string_view, Count>& words) {
  return std::ranges::find(words, word) != words.end();
}

constexpr std::array<std::string_view, 8> comparisons = {"cmp",    "test",    "bt",      "comiss",
                                                         "comisd", "ucomiss", "ucomisd", "cmpxchg"};
constexpr std::array<std::string_view, 18> arithmetic = {"and", "or",  "xor", "add",  "sub", "adc",
                                                         "sbb", "inc", "dec", "neg",  "shl", "shr",
                                                         "sar", "rol", "ror", "imul", "bsf", "bsr"};
constexpr std::array<std::string_view, 4> moves = {"mov", "movzx", "movsx", "movsxd"};

/// An instruction's operands, as far as a value's way is followed.
struct Shape {
  std::string_view mnemonic;
  std::string_view first;  ///< operand
  std::string_view others;
  std::uint16_t destination = 0;  ///< general registers that the first operand is
};

Shape shape_of(std::string_view text) {
  Shape shape;
  shape.mnemonic = mnemonic_of(text);
  const std::size_t behind = text.find(shape.mnemonic) + shape.mnemonic.size();
  const std::string_view operands = text.substr(behind);
  const std::size_t comma = operands.find(',');
  shape.first = operands.substr(0, comma);
  if (comma != std::string_view::npos) shape.others = operands.substr(comma + 1);
  if (shape.first.find('[') == std::string_view::npos) shape.destination = operands_of(shape.first).general;
  return shape;
}

bool is_indirect(Flow flow) {
  return flow == Flow::indirect_call || flow == Flow::indirect_jump;
}

void set(std::uint16_t& registers, std::uint16_t mask, bool on) {
  registers = static_cast<std::uint16_t>(on ? registers | mask : registers & ~mask);
}

}  // namespace

PathRecorder::PathRecorder(const Image& image, const Emulator& emulator) : image_(image), emulator_(emulator) {
  for (const Import& import : image.imports()) slots_.insert(import.slot);
  for (const Import& import : image.bound_imports()) slots_.insert(import.slot);
}

void PathRecorder::on_instruction(std::uint64_t address) {
  complete(address);
  current_ = address;
  instruction_.reset();
  std::erase_if(carriers_,
                [](const Carrier& carrier) { return carrier.left == 0 || (carrier.registers == 0 && !carrier.flags); });
  if (!carriers_.empty()) {
    instruction_ = disassemble_one(image_, address);
    if (!instruction_) {
      carriers_.clear();  // back at the caller
    } else {
      for (Carrier& carrier : carriers_) follow(carrier, *instruction_);
    }
  }
  begin_query(address);
}

/// Takes in what the current instruction did, now that the next one is known.
void PathRecorder::complete(std::uint64_t next) {
  for (Carrier& carrier : carriers_) {
    if (!carrier.decides) continue;
    carrier.decides = false;
    std::vector<Branch>& branches = facts_[carrier.fact].branches;
    const bool is_known = std::ranges::find(branches, current_, &Branch::address) != branches.end();
    if (is_known || branches.size() == most_branches) continue;
    Branch branch{current_, next, {}};
    if (!instruction_ || !is_indirect(instruction_->flow)) {
      branch.taken = instruction_ && next != current_ + instruction_->size;
    }
    branches.push_back(branch);
  }
  if (query_) answer();
}

void PathRecorder::begin_query(std::uint64_t address) {
  const Segment* segment = image_.find(address);
  if (segment == nullptr) return;
  const auto code = segment->bytes.subspan(static_cast<std::size_t>(address - segment->address));
  const auto starts_with = [&code](std::initializer_list<unsigned> bytes) {
    return code.size() >= bytes.size() &&
           std::ranges::equal(bytes, code.first(bytes.size()), {}, {},
                              [](std::byte byte) { return std::to_integer<unsigned>(byte); });
  };
  Fact fact;
  if (starts_with({0x0f, 0xa2})) {
    fact.kind = Fact::Kind::cpuid;
  } else if (starts_with({0x0f, 0x01, 0xd0})) {
    fact.kind = Fact::Kind::xgetbv;
  } else {
    return;
  }
  fact.instruction = address;
  auto known = std::ranges::find_if(
      facts_, [&](const Fact& other) { return other.kind == fact.kind && other.instruction == address; });
  if (known == facts_.end()) {
    if (facts_.size() == most_facts) {
      is_blind_ = true;
      return;
    }
    known = facts_.insert(facts_.end(), std::move(fact));
  }
  query_fact_ = static_cast<std::size_t>(known - facts_.begin());
  query_ =
      Answer{static_cast<std::uint32_t>(emulator_.general(0)), static_cast<std::uint32_t>(emulator_.general(1)), {}};
}

void PathRecorder::answer() {
  Fact& fact = facts_[query_fact_];
  for (unsigned reg = 0; reg < 4; ++reg) query_->registers.at(reg) = static_cast<std::uint32_t>(emulator_.general(reg));
  const bool is_known = std::ranges::any_of(fact.answers, [this](const Answer& other) {
    return other.leaf == query_->leaf && other.subleaf == query_->subleaf;
  });
  if (!is_known && fact.answers.size() < most_answers) fact.answers.push_back(*query_);
  const std::uint16_t registers = fact.kind == Fact::Kind::cpuid ? cpuid_registers : xgetbv_registers;
  if (carriers_.size() < most_carriers)
    carriers_.push_back({query_fact_, registers, false, false, followed_instructions});
  query_.reset();
}

void PathRecorder::on_read(std::uint64_t address, unsigned size) {
  if (is_blind_ || !is_data(address, size) || was_written(address, size)) return;
  if (!facts_.empty()) {  // the emulator reports wide loads piece by piece, and copies word by word
    Fact& last = facts_.back();
    if (last.kind == Fact::Kind::data && last.instruction == current_ && last.address + last.size == address) {
      last.size += size;
      note_read(address, size);
      return;
    }
  }
  if (was_read(address, size)) return;
  if (facts_.size() == most_facts) {
    is_blind_ = true;
    return;
  }
  facts_.push_back({Fact::Kind::data, current_, {}, address, size, {}});
  note_read(address, size);
  carry(facts_.size() - 1);
}

void PathRecorder::carry(std::size_t fact) {
  if (!instruction_) instruction_ = disassemble_one(image_, current_);
  if (!instruction_ || carriers_.size() == most_carriers) return;
  const Shape shape = shape_of(instruction_->text);
  Carrier carrier{fact, 0, false, false, followed_instructions};
  const bool computes = is_one_of(shape.mnemonic, arithmetic);
  carrier.flags = computes || is_one_of(shape.mnemonic, comparisons);
  carrier.decides = is_indirect(instruction_->flow);
  if (computes || is_one_of(shape.mnemonic, moves)) carrier.registers = shape.destination;
  if (carrier.flags || carrier.decides || carrier.registers != 0) carriers_.push_back(carrier);
}

void PathRecorder::follow(Carrier& carrier, const Instruction& instruction) {
  --carrier.left;
  const Shape shape = shape_of(instruction.text);
  const auto names = [&carrier](std::string_view text) { return (operands_of(text).general & carrier.registers) != 0; };
  if (instruction.flow == Flow::conditional_jump) {
    carrier.decides = carrier.flags && !shape.mnemonic.ends_with("cxz") && !shape.mnemonic.starts_with("loop");
  } else if (is_indirect(instruction.flow)) {
    carrier.decides = names(shape.first);
  } else if (is_one_of(shape.mnemonic, comparisons)) {
    carrier.flags = names(shape.first) || names(shape.others);
  } else if (is_one_of(shape.mnemonic, arithmetic)) {
    const bool clears = (shape.mnemonic == "xor" || shape.mnemonic == "sub") && shape.destination != 0 &&
                        shape.others.ends_with(shape.first);
    carrier.flags = !clears && (names(shape.first) || names(shape.others));
    if (carrier.flags || clears) set(carrier.registers, shape.destination, !clears);
  } else if (is_one_of(shape.mnemonic, moves)) {
    set(carrier.registers, shape.destination, names(shape.others));
  } else if (shape.mnemonic.starts_with("set")) {
    set(carrier.registers, shape.destination, carrier.flags);
  } else if (shape.mnemonic == "cpuid") {
    set(carrier.registers, cpuid_registers, false);
  } else if (shape.mnemonic != "push") {
    set(carrier.registers, shape.destination, false);
    if (shape.mnemonic.find("comi") != std::string_view::npos || instruction.flow == Flow::call) carrier.flags = false;
  }
}

void PathRecorder::on_write(std::uint64_t address, unsigned size) {
  if (is_blind_ || image_.find(address) == nullptr) return;
  if (written_.size() + size > most_written) {
    is_blind_ = true;
    return;
  }
  for (unsigned i = 0; i < size; ++i) written_.insert(address + i);
}

bool PathRecorder::was_read(std::uint64_t address, unsigned size) const {
  const auto behind = read_.upper_bound(address);
  return behind != read_.begin() && address + size <= std::prev(behind)->second;
}

void PathRecorder::note_read(std::uint64_t address, unsigned size) {
  std::uint64_t first = address;
  std::uint64_t end = address + size;
  auto range = read_.upper_bound(address);
  if (range != read_.begin() && std::prev(range)->second >= first) --range;
  for (; range != read_.end() && range->first <= end; range = read_.erase(range)) {
    first = std::min(first, range->first);
    end = std::max(end, range->second);
  }
  read_[first] = end;
}

bool PathRecorder::was_written(std::uint64_t address, unsigned size) const {
  for (unsigned i = 0; i < size; ++i) {
    if (!written_.contains(address + i)) return false;
  }
  return true;
}

/// Tells whether bytes are the program's own data that it may write: no imports, no heap of the C library's.
bool PathRecorder::is_data(std::uint64_t address, unsigned size) const {
  const Segment* segment = image_.find(address);
  if (segment == nullptr || !segment->writable) return false;
  if (slots_.contains(address)) return false;
  return !segment->is_added || was_set({Fact::Kind::data, 0, {}, address, size, {}});
}

bool PathRecorder::was_set(const Fact& fact) const {
  return std::ranges::any_of(image_.patched_ranges(), [&fact](const AddressRange& range) {
    return fact.address < range.address + range.size && range.address < fact.address + fact.size;
  });
}

}  // namespace bitwitness
