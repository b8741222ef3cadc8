#include "harness/call_plan.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace bitwitness {
namespace {

constexpr std::uint8_t eax = 0;
constexpr std::uint8_t ecx = 1;
constexpr std::uint8_t edx = 2;
constexpr std::uint8_t esp = 4;

constexpr std::uint64_t stack_size = 64 * page_size;
constexpr std::size_t filler_behind_input = 64;
constexpr std::uint64_t gap_size = 4 * 1024 * 1024;

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

bool is_float(const Type& type) {
  return !type.is_array && (type.scalar == Scalar::f32 || type.scalar == Scalar::f64);
}

bool is_signed(Scalar scalar) {
  return scalar == Scalar::i8 || scalar == Scalar::i16 || scalar == Scalar::i32 || scalar == Scalar::i64;
}

/// A narrow argument takes a whole stack word or register, as its type extends it.
std::uint64_t extended(std::uint64_t bits, Scalar scalar) {
  const auto unused = static_cast<unsigned>(64 - 8 * size_of(scalar));
  if (is_signed(scalar)) return static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << unused) >> unused);
  return bits << unused >> unused;
}

bool is_pointer(const Argument& argument) {
  return argument.role == Role::in || argument.role == Role::out || argument.role == Role::inout;
}

std::vector<Piece> pieces_of(const Type& type) {
  std::vector<Piece> pieces;
  for (std::size_t element = 0; element < type.count; ++element) {
    const std::size_t offset = type.offset_of(element);
    if (pieces.empty() || pieces.back().offset + pieces.back().size != offset) pieces.push_back({offset, 0});
    pieces.back().size += size_of(type.scalar);
  }
  return pieces;
}

/// What one argument passes: a known word, or packed bytes patched in before each call.
struct Passed {
  std::uint64_t word = 0;
  bool is_packed = false;
  std::size_t packed_offset = 0;
  std::size_t size = 0;
  bool is_signed = false;
  bool is_float = false;
};

class Planner {
 public:
  Planner(const Signature& signature, bool is_64_bit, const Filler& filler)
      : signature_(signature), filler_(filler), pointer_(is_64_bit ? 8 : 4) {
    plan_.is_64_bit = is_64_bit;
    plan_.packed_size = signature.packed_size();
    plan_.word_count = signature.word_count();
  }

  CallPlan run(std::uint64_t base, std::size_t import_count) {
    lay_out(base, import_count);
    for (std::size_t reg = 0; reg < plan_.general.size(); ++reg) {
      plan_.general[reg] = filler_.general + reg * filler_stride + filler_stride / 2;
    }
    for (auto& reg : plan_.xmm) reg.fill(filler_.xmm_word);
    place_arguments();
    place_frame();
    find_outputs();
    return std::move(plan_);
  }

 private:
  void lay_out(std::uint64_t base, std::size_t import_count) {
    std::uint64_t cursor = base;
    const auto take = [&cursor](std::uint64_t bytes) {
      const Region region{cursor, round_up_to_page(bytes)};
      cursor = region.end() + page_size;  // the page between two regions stays unmapped
      return region;
    };
    CallLayout& layout = plan_.layout;
    layout.code = take(page_size);
    layout.control = take(page_size);
    std::uint64_t input_bytes = 0;
    std::size_t packed = 0;
    for (std::size_t i = 0; i < signature_.arguments.size(); ++i) {
      const Argument& argument = signature_.arguments[i];
      if (argument.role == Role::in) {
        const Region place{input_bytes, argument.type.extent()};
        plan_.slots.push_back({Role::in, argument.type, pieces_of(argument.type), place, packed, i});
        input_bytes += round_up(argument.type.extent(), 16) + filler_behind_input;
      } else if (is_pointer(argument)) {
        const Region place{0, argument.type.extent()};
        plan_.slots.push_back({argument.role, argument.type, pieces_of(argument.type), place, packed, i});
      }
      if (argument.role != Role::out && argument.role != Role::constant) packed += argument.type.size();
    }
    layout.input = take(std::max<std::uint64_t>(input_bytes, 1));
    for (Slot& slot : plan_.slots) {
      if (slot.role == Role::in) {
        slot.region.address += layout.input.address;
      } else {  // ends where an unmapped page begins
        slot.region.address = take(slot.region.size).end() - slot.region.size;
      }
    }
    layout.result = take(page_size);
    layout.stack = take(stack_size);
    layout.traps = {cursor, round_up_to_page(std::max<std::uint64_t>(import_count, 1) * trap_stride)};
    layout.gap = {layout.traps.end() + page_size, gap_size};
    layout.whole = {base, layout.gap.end() - base};
  }

  std::vector<Passed> passed_arguments() {
    std::vector<Passed> all;
    std::size_t packed = 0;
    for (std::size_t i = 0; i < signature_.arguments.size(); ++i) {
      const Argument& argument = signature_.arguments[i];
      Passed passed;
      passed.size = is_pointer(argument) ? pointer_ : argument.type.size();
      if (is_pointer(argument)) {
        const auto slot = std::ranges::find(plan_.slots, i, &Slot::argument);
        passed.word = slot->region.address;
      } else if (argument.role == Role::constant) {
        passed.word = extended(argument.literal, argument.type.scalar);
        passed.is_float = is_float(argument.type);
      } else {
        passed.is_packed = true;
        passed.packed_offset = packed;
        passed.is_signed = !argument.type.is_array && is_signed(argument.type.scalar);
        passed.is_float = is_float(argument.type);
      }
      if (argument.role != Role::out && argument.role != Role::constant) packed += argument.type.size();
      all.push_back(passed);
    }
    return all;
  }

  void place_arguments() {
    const std::vector<Passed> all = passed_arguments();
    const bool win64 = signature_.convention == Convention::win64;
    // The caller's home for the register arguments, which it does not fill.
    for (std::size_t i = 0; win64 && i < win64_home_words; ++i) put_filler(stack_arguments_);
    std::size_t position = 0;  // of the arguments that carry no register of their own
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Argument& argument = signature_.arguments[i];
      if (argument.place) {
        place_in_register(*argument.place, all[i]);
      } else if (win64) {
        place_win64(all[i], argument, position++);
      } else {
        place_32_bit(all[i], argument);
      }
    }
  }

  void place_32_bit(const Passed& passed, const Argument& argument) {
    static constexpr std::array<std::uint8_t, 2> fast = {ecx, edx};
    const std::size_t available = signature_.convention == Convention::fastcall_call   ? 2
                                  : signature_.convention == Convention::thiscall_call ? 1
                                                                                       : 0;
    const bool fits = passed.size <= 4 && !passed.is_float && (is_pointer(argument) || !argument.type.is_array);
    if (fits && registers_used_ < available) {
      place_in_register({RegisterClass::general, fast[registers_used_++]}, passed);
    } else {
      push(passed, round_up(passed.size, 4));
    }
  }

  void place_win64(const Passed& passed, const Argument& argument, std::size_t position) {
    static constexpr std::array<std::uint8_t, 4> integer = {ecx, edx, 8, 9};
    const bool by_copy = passed.is_packed && argument.type.is_array && passed.size != 1 && passed.size != 2 &&
                         passed.size != 4 && passed.size != 8;
    if (by_copy) {  // the copy stands above the arguments and its address takes their place
      copies_.push_back({passed, position});
      if (position >= integer.size()) stack_arguments_.resize(stack_arguments_.size() + 8, std::byte{0});
      return;
    }
    if (position < integer.size()) {
      const Register place = passed.is_float ? Register{RegisterClass::xmm, static_cast<std::uint8_t>(position)}
                                             : Register{RegisterClass::general, integer[position]};
      place_in_register(place, passed);
    } else {
      push(passed, 8);
    }
  }

  void place_in_register(Register place, const Passed& passed) {
    if (place.kind == RegisterClass::xmm) {
      plan_.xmm[place.number].fill(0);
      if (!passed.is_packed) std::memcpy(plan_.xmm[place.number].data(), &passed.word, passed.size);
    } else {
      plan_.general[place.number] = passed.is_packed ? 0 : passed.word;
    }
    if (passed.is_packed) {
      const bool general = place.kind == RegisterClass::general;
      plan_.patches.push_back({general ? Patch::Place::general : Patch::Place::xmm, place.number, passed.packed_offset,
                               passed.size, general ? pointer_ : passed.size, passed.is_signed});
    }
  }

  void push(const Passed& passed, std::size_t width) {
    const std::size_t offset = stack_arguments_.size();
    stack_arguments_.resize(offset + width, std::byte{0});
    if (passed.is_packed) {
      const std::size_t extended = passed.size < width && passed.size < pointer_ ? pointer_ : passed.size;
      plan_.patches.push_back(
          {Patch::Place::stack, pointer_ + offset, passed.packed_offset, passed.size, extended, passed.is_signed});
    } else {
      std::memcpy(stack_arguments_.data() + offset, &passed.word, std::min<std::size_t>(width, 8));
    }
  }

  void put_filler(std::vector<std::byte>& to) {
    const std::uint64_t word = filler_.stack_word + filler_words_placed_++ * filler_stride + filler_stride / 2;
    const auto bytes = std::as_bytes(std::span(&word, 1)).first(pointer_);
    to.insert(to.end(), bytes.begin(), bytes.end());
  }

  void place_frame() {
    plan_.argument_bytes = stack_arguments_.size();
    std::vector<std::byte>& frame = plan_.frame;
    frame.assign(pointer_, std::byte{0});
    frame.insert(frame.end(), stack_arguments_.begin(), stack_arguments_.end());
    plan_.filler_offset = frame.size();
    for (std::size_t i = 0; i < filler_words; ++i) put_filler(frame);
    plan_.filler_bytes = frame.size() - plan_.filler_offset;
    std::vector<std::size_t> copy_offsets;
    for (const auto& [passed, position] : copies_) {
      frame.resize(round_up(frame.size() - pointer_, 16) + pointer_,
                   std::byte{0});  // the arguments begin at a multiple
      copy_offsets.push_back(frame.size());
      plan_.patches.push_back(
          {Patch::Place::stack, frame.size(), passed.packed_offset, passed.size, passed.size, false});
      frame.resize(frame.size() + passed.size, std::byte{0});
    }
    // As compilers arrange it, the arguments begin on a 16-byte boundary.
    const std::uint64_t arguments = (plan_.layout.stack.end() - round_up(frame.size(), 16) - 256) & ~std::uint64_t{15};
    plan_.entry_sp = arguments - pointer_;
    place_copies(copy_offsets);
    const bool callee_removes = signature_.convention == Convention::stdcall_call ||
                                signature_.convention == Convention::thiscall_call ||
                                signature_.convention == Convention::fastcall_call;
    plan_.returned_sp = plan_.entry_sp + pointer_ + (callee_removes ? plan_.argument_bytes : 0);
    plan_.general[esp] = plan_.entry_sp;
  }

  void place_copies(const std::vector<std::size_t>& offsets) {
    static constexpr std::array<std::uint8_t, 4> integer = {ecx, edx, 8, 9};
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      const std::uint64_t address = plan_.entry_sp + offsets[i];
      const std::size_t position = copies_[i].second;
      if (position < integer.size()) {
        plan_.general[integer[position]] = address;
      } else {
        std::memcpy(plan_.frame.data() + pointer_ + 8 * position, &address, 8);
      }
    }
  }

  void find_outputs() {
    for (std::size_t i = 0; i < plan_.slots.size(); ++i) {
      const Slot& slot = plan_.slots[i];
      if (slot.role == Role::in) continue;
      for (std::size_t element = 0; element < slot.type.count; ++element) {
        plan_.outputs.push_back({OutputElement::Source::slot, i, slot.type.offset_of(element), slot.type.scalar});
      }
    }
    if (!signature_.result) return;
    const Result& result = *signature_.result;
    const bool floating = result.scalar == Scalar::f32 || result.scalar == Scalar::f64;
    OutputElement output{OutputElement::Source::general, eax, 0, result.scalar};
    if (result.place) {
      output.source =
          result.place->kind == RegisterClass::xmm ? OutputElement::Source::xmm : OutputElement::Source::general;
      output.index = result.place->number;
    } else if (floating) {
      output.source = plan_.is_64_bit ? OutputElement::Source::xmm : OutputElement::Source::result_slot;
    } else if (result.scalar == Scalar::u64 && !plan_.is_64_bit) {
      output.source = OutputElement::Source::general_pair;
    }
    plan_.outputs.push_back(output);
  }

  const Signature& signature_;
  const Filler& filler_;
  std::size_t pointer_;
  CallPlan plan_;
  std::vector<std::byte> stack_arguments_;
  std::vector<std::pair<Passed, std::size_t>> copies_;  // with their argument position
  std::size_t registers_used_ = 0;
  std::uint64_t filler_words_placed_ = 0;
};

}  // namespace

CallPlan plan_call(const Signature& signature, bool is_64_bit, std::uint64_t base, std::size_t import_count,
                   const Filler& filler) {
  return Planner(signature, is_64_bit, filler).run(base, import_count);
}

std::string describe_output(const Signature& signature, std::size_t word) {
  for (const Argument& argument : signature.arguments) {
    if (argument.role != Role::out && argument.role != Role::inout) continue;
    if (word < argument.type.word_count()) {
      return fmt::format("{} {}", argument.role == Role::out ? "out" : "inout", to_string(argument.type));
    }
    word -= argument.type.word_count();
  }
  return signature.result ? fmt::format("the result ({})", to_string(signature.result->scalar)) : "the output";
}

}  // namespace bitwitness
