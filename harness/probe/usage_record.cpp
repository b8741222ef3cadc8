// What is kept of each call.
#include "harness/disassembly.hpp"
#include "harness/probe/usage.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

namespace bitwitness {
namespace {

constexpr std::size_t max_troubles = 4;
constexpr unsigned stack_pointer = 4;

/// Tells whether 32 bits can pass for a float that a program computes with.
bool is_common_float(std::uint32_t bits) {
  constexpr int widest = 40;  // powers of two from 1
  if ((bits & 0x7fffffff) == 0 || (bits & 0x7fffffff) == 0x7fc00000) return true;
  return std::abs(static_cast<int>(bits >> 23 & 0xff) - 127) <= widest;
}

/// Counts the bits of a mantissa from its first one to its last.
unsigned mantissa_bits(const std::array<std::byte, 10>& value) {
  std::uint64_t mantissa = 0;
  std::memcpy(&mantissa, value.data(), 8);
  return mantissa == 0 ? 0 : static_cast<unsigned>(64 - std::countr_zero(mantissa));
}

/// How many bytes a value in the 80-bit format needs.
unsigned bytes_needed(const std::array<std::byte, 10>& value) {
  std::uint64_t mantissa = 0;
  std::uint16_t head = 0;
  std::memcpy(&mantissa, value.data(), 8);
  std::memcpy(&head, value.data() + 8, 2);
  const int exponent = (head & 0x7fff) - 16383;
  const bool is_special = (head & 0x7fff) == 0x7fff || mantissa == 0;
  if ((mantissa & 0xff'ffff'ffff) == 0 && (is_special || (exponent >= -126 && exponent <= 127))) return 4;
  // A denormal of the narrow formats is normal in the wide one.
  if (exponent < -126 && exponent >= -149 && std::countr_zero(mantissa) >= 40 - 126 - exponent) return 4;
  if ((mantissa & 0x7ff) == 0 && (is_special || (exponent >= -1022 && exponent <= 1023))) return 8;
  return exponent < -1022 ? 8 : 10;
}

}  // namespace

void Study::record(const Observed& observed, const Attempt& attempt) {
  if (!observed.returned()) {
    const std::string reason = exploration_.why(observed) + pointer_in_memory(observed, attempt);
    const bool is_known = std::ranges::find(usage_.troubles, reason) != usage_.troubles.end();
    if (!is_known && usage_.troubles.size() < max_troubles) usage_.troubles.push_back(reason);
    return;
  }
  if (usage_.removed && *usage_.removed != observed.removed) usage_.removed_varies = true;
  usage_.removed = observed.removed;
  record_results(observed, attempt);  // also learns what vector stores store
  record_accesses(observed);
  ++usage_.returned;
}

/// Says that what it failed on was a pointer that it found where another one points.
std::string Study::pointer_in_memory(const Observed& observed, const Attempt& attempt) const {
  constexpr std::uint64_t reach = 256;
  if (observed.trap.kind != Trap::Kind::unmapped || observed.end != Observed::End::trapped) return {};
  const std::size_t size = is_64_bit_ ? 8 : 4;
  for (const ObservedAccess& access : observed.accesses) {
    const std::int64_t at = access.offset + static_cast<std::int64_t>(window_front);
    if (access.where != ObservedAccess::Where::region || access.is_write || access.size != size || at < 0) continue;
    if (at + static_cast<std::int64_t>(size) > static_cast<std::int64_t>(window_size)) continue;
    std::uint64_t word = 0;
    std::memcpy(&word, attempt.contents.data() + access.place * window_size + static_cast<std::size_t>(at), size);
    if (word < 2 * reach || observed.trap.address - word + reach >= 2 * reach) continue;
    return fmt::format(", through a pointer that lies {} bytes behind {}", access.offset,
                       to_string(exploration_.places()[access.place], is_64_bit_));
  }
  return {};
}

void Study::record_accesses(const Observed& observed) {
  std::vector<bool> argument_bytes((is_64_bit_ ? 8 : 4) * explored_stack_words);
  std::vector<std::vector<std::uint8_t>> marks(usage_.pointers.size(), std::vector<std::uint8_t>(window_size));
  for (const ObservedAccess& access : observed.accesses) {
    if (access.where == ObservedAccess::Where::image) {
      usage_.writes_image = true;
      continue;
    }
    if (access.where == ObservedAccess::Where::arguments) {
      record_argument(access, argument_bytes);
      continue;
    }
    const auto found = std::ranges::find(usage_.pointers, std::size_t{access.place}, &PointerUse::place);
    PointerUse& pointer = *found;
    const std::int64_t first = access.offset + static_cast<std::int64_t>(window_front);
    if (first < 0 || first + access.size > static_cast<std::int64_t>(window_size)) {
      pointer.leaves_window = true;
      continue;
    }
    auto& mark = marks[static_cast<std::size_t>(found - usage_.pointers.begin())];
    for (auto at = static_cast<std::size_t>(first); at < static_cast<std::size_t>(first) + access.size; ++at) {
      if (access.is_write) mark[at] = 1;
      if (!access.is_write && mark[at] == 0) pointer.bytes[at].read = true;
    }
    if (!access.is_write && mark[static_cast<std::size_t>(first)] == 0)
      pointer.loads.insert({access.offset, access.size});
    if (access.is_write) pointer.stores.insert({access.offset, access.size, kind_of_store(access.instruction)});
  }
  for (std::size_t i = 0; i < marks.size(); ++i) {
    PointerUse& pointer = usage_.pointers[i];
    for (std::size_t at = 0; at < window_size; ++at) {
      ByteUse& byte = pointer.bytes[at];
      byte.written |= marks[i][at] != 0;
      byte.always_written = marks[i][at] != 0 && (usage_.returned == 0 || byte.always_written);
    }
    record_numbers(pointer, marks[i]);
  }
}

void Study::record_argument(const ObservedAccess& access, std::vector<bool>& written) {
  const std::size_t word = is_64_bit_ ? 8 : 4;
  for (std::size_t i = 0; i < access.size; ++i) {
    const auto at = static_cast<std::size_t>(access.offset) + i;
    if (at >= written.size()) {
      usage_.reads_above |= !access.is_write;
      continue;
    }
    if (access.is_write) {
      written[at] = true;
    } else if (!written[at]) {
      const std::size_t index = at / word;
      const unsigned width = i == 0 || at % word != 0 ? access.size : static_cast<unsigned>(word);
      stack_width_[index] = std::max(stack_width_[index], width);
      stack_float_[index] = stack_float_[index] || is_float_load(access.instruction);
      usage_.reads_word[index] = true;
    }
  }
}

void Study::record_numbers(PointerUse& pointer, const std::vector<std::uint8_t>& marks) {
  const std::span<const std::byte> after = exploration_.after(pointer.place);
  for (std::size_t at = 0; at + 4 <= window_size; at += 4) {
    if (marks[at] == 0 || marks[at + 3] == 0) continue;
    std::uint32_t bits = 0;
    std::memcpy(&bits, after.data() + at, 4);
    if (!is_common_float(bits)) pointer.is_odd[at] = true;
    if (bits != 0) pointer.is_nonzero[at] = true;
  }
}

void Study::follow(const Observed& observed) {
  if (!observed.is_whole) return;
  const Leftover left = flow_.follow(observed.path, observed.stack);
  unread_.general &= left.unread.general;
  unread_.xmm &= left.unread.xmm;
  used_registers_.general |= left.used.general;
  used_registers_.xmm |= left.used.xmm;
  usage_.st0_was_loaded &= left.st0_was_loaded;
  for (unsigned reg = 0; reg < 16; ++reg) {
    registers_[reg].width = std::max(registers_[reg].width, left.general_width[reg]);
    if (left.general_width[reg] != 0) {
      registers_[reg].narrowest = std::min(registers_[reg].narrowest, left.general_width[reg]);
    }
    const unsigned width = left.xmm_kind[reg] == RegisterEffect::Float::single ? 4 : 8;
    registers_[16 + reg].width = std::max(registers_[16 + reg].width, width);
    fills_vector_[reg] = fills_vector_[reg] || left.is_vector[reg];
    if (left.used_as[reg] != RegisterEffect::Float::none) used_as_[reg] = std::max(used_as_[reg], left.used_as[reg]);
  }
}

void Study::record_results(const Observed& observed, const Attempt& attempt) {
  for (PointerUse& pointer : usage_.pointers) {
    pointer.is_returned = pointer.is_returned && observed.general[0] == exploration_.pointer(pointer.place);
  }
  if (observed.x87_values == 1 && observed.st0) {
    usage_.st0_bytes = std::max(usage_.st0_bytes.value_or(4), bytes_needed(*observed.st0));
    usage_.st0_bits = std::max(usage_.st0_bits, mantissa_bits(*observed.st0));
  }
  follow(observed);
  std::array<std::uint64_t, 16> initial{};
  const auto places = exploration_.places();
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i].kind == Place::Kind::general) {
      initial[places[i].index] = attempt.integers[i].value_or(exploration_.pointer(i));
    }
  }
  for (unsigned reg = 0; reg < 32; ++reg) {
    const unsigned number = reg % 16;
    std::uint64_t value = observed.general[number];
    bool is_as_before = value == initial[number];
    if (reg >= 16) {
      std::memcpy(&value, observed.xmm[number].data(), 8);
      is_as_before = observed.xmm[number] == attempt.xmm[number];
      std::uint64_t upper = 0;
      std::memcpy(&upper, observed.xmm[number].data() + 2, 8);
      if (usage_.returned == 0) first_uppers_[number] = upper;
      registers_[reg].fills_vector |= fills_vector_[number] && upper != first_uppers_[number];
    }
    RegisterResult& result = registers_[reg];
    result.is_xmm = reg >= 16;
    result.number = number;
    result.high_half |= value >> 32 != 0;
    if (usage_.returned == 0) first_values_[reg] = value;
    const std::uint64_t mask = result.width >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * result.width) - 1;
    result.depends |= ((value ^ first_values_[reg]) & mask) != 0;
    if (!is_as_before) result.is_left = true;  // for now: it changed
  }
}

void Study::choose_results() {
  for (unsigned reg = 0; reg < (is_64_bit_ ? 16u : 8u); ++reg) {
    if (reg == stack_pointer) continue;
    RegisterResult result = registers_[reg];
    const bool is_left = (unread_.general >> reg & 1) != 0;
    if (!result.is_left || !(is_left || reg == 0)) continue;
    result.is_left = is_left;
    usage_.results.push_back(result);
  }
  for (unsigned reg = 0; reg < (is_64_bit_ ? 16u : 8u); ++reg) {
    RegisterResult result = registers_[16 + reg];
    const bool is_left = (unread_.xmm >> reg & 1) != 0;
    if (result.is_left && is_left) usage_.results.push_back(result);
  }
}

StoreKind Study::kind_of_store(std::uint64_t instruction) {
  const auto [known, is_new] = store_kinds_.try_emplace(instruction, StoreKind::integer);
  if (is_new) {
    if (const auto decoded = disassemble_one(image_, instruction)) known->second = store_kind_of(decoded->text);
  }
  if (known->second != StoreKind::vector) return known->second;
  switch (flow_.stored_by(instruction)) {
    case RegisterEffect::Float::single:
      return StoreKind::single;
    case RegisterEffect::Float::wide:
      return StoreKind::wide;
    case RegisterEffect::Float::none:
      break;
  }
  return StoreKind::vector;
}

bool Study::is_float_load(std::uint64_t instruction) {
  const auto [known, is_new] = float_loads_.try_emplace(instruction, false);
  if (is_new) {
    if (const auto decoded = disassemble_one(image_, instruction)) {
      known->second = loads_float(decoded->text);
      if (decoded->text.find(" xword ptr") != std::string::npos) usage_.loads_80_bits = true;
    }
  }
  return known->second;
}

}  // namespace bitwitness
