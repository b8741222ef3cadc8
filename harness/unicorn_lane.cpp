#include "harness/unicorn_lane.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstring>

#include <fmt/format.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace bitwitness {
namespace {

/// Bytes before an output that are checked after every call; the rest of its page once a batch.
constexpr std::size_t checked_before_output = 32;

/// A routine that happens to write to the port will not write the token. Both are fixed, so that equal runs are equal.
constexpr std::uint8_t handover_port = 0xf5;
constexpr std::uint32_t handover_token = 0x93d6b1f7;

/// A value that took longer than its budget at this pace is counted by instructions, alone. Straight code runs at one
/// or two instructions a tick.
constexpr std::uint64_t instructions_per_tick = 4;

std::uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

std::uint64_t load(const std::byte* from, std::size_t size) {
  if (size == 4) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, from, 4);
    return bits;
  }
  std::uint64_t bits = 0;
  std::memcpy(&bits, from, size);
  return bits;
}

}  // namespace

UnicornLane::UnicornLane(const Image& image, const Routine& routine, LaneKind kind, std::uint64_t base,
                         std::span<const std::uint64_t> refused, bool thread_block, const MachineOptions& options)
    : image_(image),
      kind_(kind),
      thread_block_(thread_block),
      options_(options),
      plan_(plan_call(routine.signature, image.format() == ImageFormat::pe32_plus, base, image.imports().size(),
                      filler_of(kind))),
      emulator_(plan_.is_64_bit, *this),
      memory_(emulator_, image, plan_, watches_everything(), thread_block),
      handover_{handover_port, handover_token},
      stub_(make_stub(plan_, routine.address, handover_)),
      refused_(refused.begin(), refused.end()) {
  const Filler& filler = filler_of(kind);
  frame_ = memory_.host(plan_.entry_sp);
  fill_stack();
  pristine_stack_.assign(frame_ - fresh_stack, frame_);
  std::memcpy(memory_.host(plan_.layout.code.address), stub_.code.data(), stub_.code.size());
  std::memcpy(plan_.frame.data(), &stub_.landing, plan_.is_64_bit ? 8 : 4);
  std::byte* control = memory_.host(plan_.layout.control.address);
  std::memcpy(control + control_general, plan_.general.data(), sizeof plan_.general);
  std::memcpy(control + control_xmm, plan_.xmm.data(), sizeof plan_.xmm);
  std::memset(memory_.host(plan_.layout.input.address), filler.input_byte, plan_.layout.input.size);

  for (const OutputElement& output : plan_.outputs) {
    Tap tap{output.source, output.scalar, static_cast<unsigned>(size_of(output.scalar))};
    if (output.source == OutputElement::Source::slot) {
      const Slot& slot = plan_.slots[output.index];
      tap.memory = memory_.host(slot.region.address) + output.offset;
      tap.is_poisoned = slot.role == Role::out;
      tap.poison = poison_at(poison_of(kind), output.offset, tap.size);
    } else if (output.source == OutputElement::Source::result_slot) {
      tap.memory = memory_.host(plan_.layout.result.address);
    } else {
      tap.reg = static_cast<unsigned>(output.index);
    }
    taps_.push_back(tap);
  }
  for (const Slot& slot : plan_.slots) {
    written_.emplace_back(slot.role == Role::in ? 0 : slot.region.size);
  }
  std::size_t longest = 0;
  for (const Slot& slot : plan_.slots) longest = std::max<std::size_t>(longest, slot.region.size);
  for (std::size_t i = 0; i < longest; ++i) poison_.push_back(static_cast<std::byte>(poison_of(kind)[i % 4]));
  has_x87_result_ = std::ranges::any_of(
      plan_.outputs, [](const OutputElement& output) { return output.source == OutputElement::Source::result_slot; });

  std::ranges::sort(refused_);
  if (watches_everything()) {
    emulator_.watch_writes();
    if (kind == LaneKind::alone) emulator_.watch_reads();
    emulator_.watch_instructions(1, 0);
  } else {
    for (const std::uint64_t address : refused_) emulator_.watch_instructions(address, address);
  }
}

void UnicornLane::run(Run& out, std::span<std::uint32_t> words, std::span<const std::byte> packed,
                      const Environment& environment) {
  out.clear();
  run_ = &out;
  packed_ = packed;
  words_ = words;
  count_ = packed.size() / plan_.packed_size;
  index_ = 0;
  for (Tap& tap : taps_) tap.changed = 0;
  set_environment(environment);
  if (kind_ == LaneKind::permissive) {
    memory_.restore();
    for (; index_ < count_; ++index_) {
      if (options_.stop.stop_requested()) {
        out.unfinished = true;
        return;
      }
      call();
      record();
    }
    return;
  }
  fill_stack();
  while (index_ < count_) {
    if (options_.stop.stop_requested()) {
      out.unfinished = true;
      return;
    }
    prepare(index_);
    started_ticks_ = ticks();
    const Trap trap = emulator_.start(stub_.enter);
    if (index_ == count_) break;
    if (!out.refused.empty()) return;
    if (trap.kind == Trap::Kind::forbidden && trap.access == Access::write &&
        memory_.may_become_writable(trap.address)) {
      out.writes_memory_of_its_own = true;
      return;
    }
    out.suspects.push_back({index_, false});
    ++index_;
  }
  if (output_never_changed()) {
    out.suspects.resize(count_);
    for (std::size_t i = 0; i < count_; ++i) out.suspects[i] = {i, false};
    out.traits.clear();
  }
}

/// What earlier batches left must not show in this one: which they were is up to the number of threads.
void UnicornLane::fill_stack() {
  const Region& region = plan_.layout.stack;
  const std::uint32_t word = filler_of(kind_).stack_word;
  std::byte* stack = memory_.host(region.address);
  for (std::size_t at = 0; at < region.size; at += 4) std::memcpy(stack + at, &word, 4);
}

void UnicornLane::interrupt() {
  emulator_.stop();
}

CallContext UnicornLane::context() const {
  CallContext context{plan_, filler_of(kind_)};
  if (thread_block_) context.thread_block = thread_block_of(plan_);
  context.over_budget = fmt::format("has executed {} instructions and not returned", options_.budget);
  context.processor = "the emulated CPU";
  return context;
}

std::span<const std::byte> UnicornLane::surrounding_bytes(std::uint64_t address, std::size_t size) {
  const CallLayout& layout = plan_.layout;
  for (const Region& region : {layout.code, layout.control, layout.input, layout.result, layout.stack}) {
    if (region.contains(address)) {
      return {memory_.host(address), static_cast<std::size_t>(std::min<std::uint64_t>(size, region.end() - address))};
    }
  }
  return {};
}

void UnicornLane::set_environment(const Environment& environment) {
  std::byte* control = memory_.host(plan_.layout.control.address);
  const std::uint32_t fpcw = environment.fpcw;
  std::memcpy(control + control_fpcw, &fpcw, 4);
  std::memcpy(control + control_mxcsr, &environment.mxcsr, 4);
  environment_ = environment;
  set_stop(watches_everything());
}

void UnicornLane::set_stop(bool stop) {
  const std::uint32_t word = stop ? 1 : 0;
  std::memcpy(memory_.host(plan_.layout.control.address) + control_stop, &word, 4);
}

void UnicornLane::prepare(std::size_t index) {
  const std::byte* packed = packed_.data() + index * plan_.packed_size;
  std::byte* control = memory_.host(plan_.layout.control.address);
  std::memcpy(frame_ - fresh_stack, pristine_stack_.data(), fresh_stack);
  std::memcpy(frame_, plan_.frame.data(), plan_.frame.size());
  for (const Slot& slot : plan_.slots) {
    std::byte* to = memory_.host(slot.region.address);
    if (slot.role == Role::out) {
      std::memcpy(to, poison_.data(), slot.region.size);
      continue;
    }
    if (slot.has_gaps()) std::memset(to, filler_of(kind_).input_byte, slot.region.size);
    const std::byte* from = packed + slot.packed_offset;
    for (const Piece& piece : slot.pieces) {
      std::memcpy(to + piece.offset, from, piece.size);
      from += piece.size;
    }
  }
  for (const Patch& patch : plan_.patches) {
    std::byte* to = frame_ + patch.target;
    if (patch.place == Patch::Place::general) to = control + control_general + 8 * patch.target;
    if (patch.place == Patch::Place::xmm) to = control + control_xmm + 16 * patch.target;
    const std::byte* from = packed + patch.packed_offset;
    std::memcpy(to, from, patch.size);
    if (patch.width > patch.size) {
      const bool negative = patch.is_signed && (from[patch.size - 1] & std::byte{0x80}) != std::byte{0};
      std::memset(to + patch.size, negative ? 0xff : 0, patch.width - patch.size);
    }
  }
  writes_.clear();
  progress_.store(progress_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // one writer
}

bool UnicornLane::on_port_write(std::uint32_t port, std::uint32_t value) {
  if (port != handover_.port || value != handover_.token) return false;
  const CallState state = emulator_.call_state();
  if (watches_everything()) {
    finish_watched(state);
    came_back_ = true;
    return true;  // each call has a start of its own
  }
  if (((state.flags ^ plain_flags) & ~std::uint64_t{passing_flags}) != 0) emulator_.reset_flags();
  finish(state);
  ++index_;
  if (index_ < count_) {
    prepare(index_);
  } else {
    set_stop(true);
  }
  return true;
}

void UnicornLane::finish(const CallState& state) {
  bool suspect = state.sp != plan_.returned_sp;
  suspect |= has_x87_result_ && x87_depth(state.fpsw) == 7;
  suspect |= gather(state);
  suspect |= writes_before_output();
  const std::uint64_t now = ticks();
  const bool slow = (now - started_ticks_) * instructions_per_tick > options_.budget;
  started_ticks_ = now;  // of the next one
  if (suspect) {
    run_->suspects.push_back({index_, false});
    return;
  }
  if (slow) run_->suspects.push_back({index_, true});
  if (!is_clean(state)) {
    found_.clear();
    find_traits(found_, state);
    for (const Trait& trait : found_) run_->traits.emplace_back(index_, trait);
  }
}

bool UnicornLane::gather(const CallState& state) {
  bool poisoned = false;
  std::uint32_t* words = words_.data() + index_ * plan_.word_count;
  for (Tap& tap : taps_) {
    std::uint64_t bits = 0;
    if (tap.memory != nullptr) {
      bits = load(tap.memory, tap.size);
    } else {
      bits = load_register(tap, state);
    }
    if (tap.is_poisoned) {
      const std::uint64_t changed = bits ^ tap.poison;
      tap.changed |= changed;
      poisoned |= shows_poison(changed, tap.size);
    }
    if (tap.scalar == Scalar::i8) bits = static_cast<std::uint64_t>(std::int64_t{static_cast<std::int8_t>(bits)});
    if (tap.scalar == Scalar::i16) bits = static_cast<std::uint64_t>(std::int64_t{static_cast<std::int16_t>(bits)});
    *words++ = static_cast<std::uint32_t>(bits);
    if (tap.size == 8) *words++ = static_cast<std::uint32_t>(bits >> 32);
  }
  return poisoned;
}

std::uint64_t UnicornLane::load_register(const Tap& tap, const CallState& state) const {
  switch (tap.source) {
    case OutputElement::Source::general:
      return tap.reg == 0 ? state.cx : emulator_.general(tap.reg);  // the stub has moved eax to ecx
    case OutputElement::Source::general_pair:
      return state.dx << 32 | (state.cx & 0xffffffff);
    case OutputElement::Source::xmm: {
      std::uint64_t bits = 0;
      std::memcpy(&bits, emulator_.xmm(tap.reg).data(), tap.size);
      return bits;
    }
    default:
      return 0;
  }
}

bool UnicornLane::is_clean(const CallState& state) const {
  return state.fpcw == environment_.fpcw && ((state.mxcsr ^ environment_.mxcsr) & mxcsr_control_bits) == 0 &&
         (state.flags & direction_flag) == 0 && x87_depth(state.fpsw) == 0 && keeps_callers_stack();
}

bool UnicornLane::keeps_callers_stack() const {
  const std::byte* expected = plan_.frame.data() + plan_.filler_offset;
  return std::memcmp(frame_ + plan_.filler_offset, expected, plan_.filler_bytes) == 0;
}

void UnicornLane::find_traits(std::vector<Trait>& traits, const CallState& state) const {
  traits.insert(traits.end(), writes_.begin(), writes_.end());
  if (!keeps_callers_stack()) traits.push_back({Trait::Kind::writes_above_arguments, 0});
  if (state.fpcw != environment_.fpcw) traits.push_back({Trait::Kind::fpcw, state.fpcw});
  if (((state.mxcsr ^ environment_.mxcsr) & mxcsr_control_bits) != 0) {
    traits.push_back({Trait::Kind::mxcsr, state.mxcsr & mxcsr_control_bits});
  }
  if ((state.flags & direction_flag) != 0) traits.push_back({Trait::Kind::direction_flag, 0});
  const unsigned depth = x87_depth(state.fpsw);
  if (depth == 0 || (has_x87_result_ && depth == 7)) return;
  const unsigned values = emulator_.x87_values();
  if (values != 0) {
    traits.push_back({Trait::Kind::x87_values, values});
  } else {
    traits.push_back({Trait::Kind::x87_pops, 8 - depth});
  }
}

bool UnicornLane::writes_before_output() {
  static constexpr std::array<std::byte, checked_before_output> zero{};
  bool written = false;
  for (const Slot& slot : plan_.slots) {
    if (slot.role == Role::in) continue;
    const std::uint64_t page = slot.region.end() - round_up_to_page(slot.region.size);
    const std::size_t before = std::min<std::size_t>(slot.region.address - page, checked_before_output);
    std::byte* bytes = memory_.host(slot.region.address) - before;
    if (std::memcmp(bytes, zero.data(), before) != 0) {
      written = true;
      std::memset(bytes, 0, before);
    }
  }
  return written;
}

bool UnicornLane::output_never_changed() {
  bool unchanged = false;
  for (const Tap& tap : taps_) unchanged |= tap.is_poisoned && any_byte_zero(tap.changed, tap.size);
  for (const Slot& slot : plan_.slots) {  // writes far before an output cannot be told apart by value
    if (slot.role == Role::in) continue;
    const std::uint64_t page = slot.region.end() - round_up_to_page(slot.region.size);
    const std::span<std::byte> before(memory_.host(page), static_cast<std::size_t>(slot.region.address - page));
    if (std::ranges::any_of(before, [](std::byte byte) { return byte != std::byte{0}; })) {
      unchanged = true;
      std::ranges::fill(before, std::byte{0});
    }
  }
  return unchanged;
}

}  // namespace bitwitness
