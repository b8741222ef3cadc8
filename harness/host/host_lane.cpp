#include "harness/host/host_lane.hpp"

#include "harness/error.hpp"
#include "harness/host/call_needs.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <string_view>

#include <emmintrin.h>
#include <fmt/format.h>

namespace bitwitness::host {
namespace {

constexpr std::size_t values_at_once = 8192;
constexpr std::uint64_t breakpoint_size = 1;


std::uint64_t load(const std::uint32_t* words, std::size_t size) {
  return size == 8 ? words[0] | std::uint64_t{words[1]} << 32 : words[0];
}

}  // namespace

HostLane::HostLane(const Image& image, const LaneOrder& order, const MachineOptions& options,
                   std::chrono::nanoseconds stall_limit)
    : image_(image),
      kind_(order.kind),
      options_(options),
      stall_limit_(stall_limit),
      plan_(plan_call(order.routine.signature, image.format() == ImageFormat::pe32_plus, order.base,
                      image.imports().size(), filler_of(order.kind))),
      needs_(order.kind == LaneKind::batch ? needs_of(image, order.routine.address)
                                           : all_needs(image, order.routine.address)),
      layout_(lay_out_host(plan_, order.kind == LaneKind::batch ? values_at_once : 1)),
      code_(make_host_code(plan_, layout_, order.routine.address, needs_)),
      thread_block_(order.thread_block),
      memory_(image, plan_, layout_, order.kind != LaneKind::batch, order.thread_block) {
  std::memcpy(memory_.at(layout_.code.address), code_.bytes.data(), code_.bytes.size());
  std::memcpy(plan_.frame.data(), &code_.landing, plan_.is_64_bit ? 8 : 4);
  std::size_t word = 0;
  for (const OutputElement& output : plan_.outputs) {
    const std::size_t size = size_of(output.scalar);
    has_x87_result_ |= output.source == OutputElement::Source::result_slot;
    if (output.source == OutputElement::Source::slot && plan_.slots[output.index].role == Role::out) {
      taps_.push_back({word, output.index, output.offset, size});
    }
    word += size == 8 ? 2 : 1;
  }
  start();
}

/// Whoever makes a process traces it, and only one thread can: a lane that has gone to another thread makes another.
void HostLane::start() {
  if (process_ && process_->is_there() && thread_ == std::this_thread::get_id()) return;
  process_.emplace();
  thread_ = std::this_thread::get_id();
  memory_.enter(*process_, code_);
  written_.clear();
  before_.clear();
  entry_ = process_->fresh_registers(plan_.is_64_bit);
  entry_.rsp = layout_.state.address + state_size;
  if (thread_block_) {
    (plan_.is_64_bit ? entry_.gs_base : entry_.fs_base) = layout_.thread.address;
    if (!plan_.is_64_bit) entry_.fs = thread_selector;
  }
  // The breakpoint behind the first system call, in the width of the routine.
  constexpr std::uint64_t syscall_size = 2;
  entry_.rip = code_.call_64 + syscall_size;
  const Stop stop = process_->run(entry_);
  if (stop.signal != SIGTRAP || stop.registers.rip != entry_.rip + breakpoint_size || stop.registers.cs != entry_.cs) {
    throw Error(fmt::format("--witness host: this system runs no {}-bit code", plan_.is_64_bit ? 64 : 32));
  }
  entry_.rip = code_.enter;
}

std::byte* HostLane::state(std::size_t offset) const {
  return memory_.at(layout_.state.address) + offset;
}

void HostLane::put_state(std::size_t offset, const auto& value) {
  std::memcpy(state(offset), &value, sizeof value);
}

std::uint32_t HostLane::left() const {
  // The process counts it down meanwhile.
  return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(state(state_left))).load(std::memory_order_relaxed);
}

std::uint64_t HostLane::progress() const {
  // A routine may count up what its caller counts down, and is to be ended all the same.
  constexpr std::uint64_t begun_mask = ~std::uint64_t{0xffffffff};
  while (true) {
    std::uint64_t seen = mark_.load();
    const std::uint32_t now = left();
    const auto least = static_cast<std::uint32_t>(seen);
    if (now >= least || mark_.compare_exchange_weak(seen, (seen & begun_mask) | now)) {
      return (seen & begun_mask) - std::min(now, least);
    }
  }
}

void HostLane::interrupt() {
  asked_ = progress();
  process_->interrupt();
}

std::optional<clockid_t> HostLane::clock() {
  start();
  return process_->clock();
}

CallContext HostLane::context() const {
  CallContext context{plan_, filler_of(kind_)};
  if (thread_block_) context.thread_block = layout_.thread;
  context.over_budget = fmt::format("has run for {} ms of processor time and not returned",
                                    std::chrono::duration_cast<std::chrono::milliseconds>(stall_limit_).count());
  context.processor = "this computer's CPU";
  return context;
}

std::span<const std::byte> HostLane::surrounding_bytes(std::uint64_t address, std::size_t size) {
  const std::byte* const bytes = memory_.at(address);
  if (bytes == nullptr) return {};
  return {bytes, std::min(size, static_cast<std::size_t>(page_size - address % page_size))};
}

void HostLane::set_environment(const Environment& environment) {
  environment_ = environment;
  put_state(state_fpcw, std::uint32_t{environment.fpcw});
  put_state(state_mxcsr, environment.mxcsr);
}

void HostLane::set_poison(const std::array<std::uint8_t, 4>& poison) {
  for (std::size_t i = 0; i < 4; ++i) put_state(state_poison + 4 * i, poison);
  poison_ = poison;
  for (Tap& tap : taps_) tap.poison = poison_at(poison, tap.offset, tap.size);
}

void HostLane::fill_stack() {
  const Region& region = plan_.layout.stack;
  const __m128i words = _mm_set1_epi32(static_cast<int>(filler_of(kind_).stack_word));
  auto* const stack = reinterpret_cast<__m128i*>(memory_.at(region.address));
  for (std::size_t i = 0; i < region.size / sizeof words; ++i) _mm_store_si128(stack + i, words);
}

/// Everything a call finds that its caller does not write anew for each value.
void HostLane::begin(std::size_t first, std::size_t count) {
  put_caller_state(state(0), plan_, layout_, filler_of(kind_), {first, ++seed_});
  std::memcpy(memory_.at(plan_.entry_sp), plan_.frame.data(), plan_.frame.size());
  process_->reset_extended_state();
  // In this order: a watchdog looks at both.
  const auto all = static_cast<std::uint32_t>(count);
  std::atomic_ref(*reinterpret_cast<std::uint32_t*>(state(state_left))).store(all);
  mark_ = (++begun_ << 32) | all;
}

/// Tells whether the caller's state is as its code has left it when it stands at a value and has noted so many records:
/// what no call should write to.
bool HostLane::keeps_state(std::size_t index, std::size_t records) const {
  const auto holds = [this](std::size_t offset, const auto& value) {
    return std::memcmp(state(offset), &value, sizeof value) == 0;
  };
  const auto is_patched = [this](Patch::Place place, std::size_t reg) {
    return std::ranges::any_of(plan_.patches,
                               [=](const Patch& patch) { return patch.place == place && patch.target == reg; });
  };
  for (std::size_t reg = 0; reg < (plan_.is_64_bit ? 16U : 8U); ++reg) {
    if (!is_patched(Patch::Place::general, reg) && !holds(state_general + 8 * reg, plan_.general[reg])) return false;
    if (!is_patched(Patch::Place::xmm, reg) && !holds(state_xmm + 16 * reg, plan_.xmm[reg])) return false;
  }
  const auto stands_at = [&](std::size_t offset, const Region& region, std::size_t size, std::size_t at) {
    return holds(offset, region.address + at * size);
  };
  const std::size_t words_size = 4 * plan_.word_count;
  const std::uint32_t filler = filler_of(kind_).stack_word;
  const bool has_words_taken = stands_at(state_words, layout_.words, words_size, index + 1);
  return stands_at(state_value, layout_.values, plan_.packed_size, index) &&
         stands_at(state_record, layout_.records, sizeof(Record), records) &&
         (has_words_taken || stands_at(state_words, layout_.words, words_size, index)) && holds(state_seed, seed_) &&
         holds(state_poison, std::array{poison_, poison_, poison_, poison_}) &&
         holds(state_gap, gap_bytes(filler_of(kind_))) &&
         holds(state_stack, std::array{filler, filler, filler, filler}) && holds(state_returned, plan_.returned_sp) &&
         holds(state_fpcw, std::uint32_t{environment_.fpcw}) && holds(state_mxcsr, environment_.mxcsr) &&
         std::memcmp(state(state_frame), plan_.frame.data(), plan_.frame.size()) == 0;
}

bool HostLane::all_came_back() const {
  std::uint32_t away = 0;
  std::memcpy(&away, state(state_away), sizeof away);
  return away == 0;
}

HostLane::Cause HostLane::cause_of(const Stop& stop, const user_regs_struct& before, std::uint64_t enter) const {
  // One step over a system call has two signals, and the second is left for later.
  const bool is_left_over = stop.signal == SIGTRAP && before.rip == enter && stop.registers.rip == enter;
  const bool is_sent = stop.code <= 0 || is_left_over;  // by a process, and not by the processor
  if (options_.stop.stop_requested()) return Cause::request;
  const bool is_asked = is_sent && stop.signal == TracedProcess::interrupt_signal && asked_.load() == progress();
  if (is_sent) return is_asked ? Cause::watchdog : Cause::nothing;
  if (kind_ == LaneKind::batch && stop.signal == SIGSEGV && stop.code == SEGV_ACCERR &&
      stop.address != stop.registers.rip && memory_.may_become_writable(stop.address)) {
    return Cause::memory_of_its_own;
  }
  return Cause::fault;
}

HostLane::Went HostLane::execute(std::size_t count) {
  faults_.clear();
  count_ = count;
  has_upset_state_ = false;
  seeds_.assign(1, {0, seed_ + 1});
  begin(0, count);
  user_regs_struct registers = entry_;
  for (std::size_t expected = 0; expected < count;) {
    const Stop stop = process_->run(registers);
    if (stop.signal == SIGTRAP && stop.registers.rip == code_.done) {
      has_upset_state_ |= left() != 0 || !keeps_state(count, count) || !all_came_back();
      return Went::on;
    }
    const Cause cause = cause_of(stop, registers, entry_.rip);
    if (cause == Cause::request) return Went::nowhere;
    if (cause == Cause::memory_of_its_own) return Went::to_memory_of_its_own;
    if (cause == Cause::nothing) {
      registers = stop.registers;
      registers.orig_rax = ~0ULL;
      continue;
    }
    // What the process says of itself is not to be relied on.
    const std::uint32_t rest = left();
    const std::size_t index = rest == 0 || rest > count - expected ? expected : count - rest;
    has_upset_state_ |= !keeps_state(index, index);
    faults_.push_back({index, cause == Cause::watchdog, stop});
    expected = index + 1;
    if (expected == count) break;
    seeds_.push_back({expected, seed_ + 1});
    begin(expected, count - expected);
    registers = entry_;
  }
  return Went::on;
}

Record HostLane::record(std::size_t index) const {
  Record record;
  std::memcpy(&record, memory_.at(layout_.records.address) + index * sizeof record, sizeof record);
  if (!needs_.uses_x87) record.fpsw = 0;
  if (!needs_.sets_control) {
    record.flags = plain_flags;
    record.fpcw = environment_.fpcw;
    record.mxcsr = environment_.mxcsr;
  }
  return record;
}

bool HostLane::is_of(const Record& record, std::size_t index) const {
  const auto after = std::ranges::upper_bound(seeds_, index, {}, &std::pair<std::size_t, std::uint32_t>::first);
  return record.mark == (static_cast<std::uint32_t>(count_ - index) ^ std::prev(after)->second);
}

bool HostLane::misses_result(const Record& record) const {
  return has_x87_result_ && x87_depth(record.fpsw) == 0;
}

bool HostLane::is_clean(const Record& record) const {
  const bool is_control_clean = record.fpcw == environment_.fpcw &&
                                ((record.mxcsr ^ environment_.mxcsr) & mxcsr_control_bits) == 0 &&
                                (record.flags & direction_flag) == 0;
  return is_control_clean && x87_depth(record.fpsw) == (has_x87_result_ ? 1U : 0U);
}

void HostLane::find_traits(std::vector<Trait>& traits, const Record& record) const {
  if (record.fpcw != environment_.fpcw) traits.push_back({Trait::Kind::fpcw, record.fpcw});
  if (((record.mxcsr ^ environment_.mxcsr) & mxcsr_control_bits) != 0) {
    traits.push_back({Trait::Kind::mxcsr, record.mxcsr & mxcsr_control_bits});
  }
  if ((record.flags & direction_flag) != 0) traits.push_back({Trait::Kind::direction_flag, 0});
  const unsigned depth = (x87_depth(record.fpsw) - (has_x87_result_ ? 1U : 0U)) & 7U;
  constexpr unsigned half = 4;  // the top alone tells values from pops only so
  if (depth != 0 && depth <= half) traits.push_back({Trait::Kind::x87_values, depth});
  if (depth > half) traits.push_back({Trait::Kind::x87_pops, 8 - depth});
}

/// Takes in which bits of the outputs have changed. Tells whether some look as if they had not been written.
bool HostLane::note_poison(std::span<const std::uint32_t> words) {
  bool poisoned = false;
  for (Tap& tap : taps_) {
    const std::uint64_t changed = load(words.data() + tap.word, tap.size) ^ tap.poison;
    tap.changed |= changed;
    poisoned |= shows_poison(changed, tap.size);
  }
  return poisoned;
}

bool HostLane::keeps_callers_stack() const {
  return std::memcmp(memory_.at(plan_.entry_sp) + plan_.filler_offset, plan_.frame.data() + plan_.filler_offset,
                     plan_.filler_bytes) == 0;
}

/// Returns where bytes before an output were written, and clears them.
std::optional<std::uint64_t> HostLane::written_before_output() {
  std::optional<std::uint64_t> where;
  for (const Slot& slot : plan_.slots) {
    if (slot.role == Role::in) continue;
    const std::uint64_t page = slot.region.end() - round_up_to_page(slot.region.size);
    const std::span<std::byte> before(memory_.at(page), static_cast<std::size_t>(slot.region.address - page));
    const auto first = std::ranges::find_if(before, [](std::byte byte) { return byte != std::byte{0}; });
    if (first == before.end()) continue;
    if (!where) where = page + static_cast<std::uint64_t>(first - before.begin());
    std::ranges::fill(before, std::byte{0});
  }
  return where;
}

void HostLane::run(Run& out, std::span<std::uint32_t> words, std::span<const std::byte> packed,
                   const Environment& environment) {
  out.clear();
  start();
  set_environment(environment);
  set_poison(poison_of(kind_));
  for (Tap& tap : taps_) tap.changed = 0;
  const std::size_t count = packed.size() / plan_.packed_size;
  if (kind_ == LaneKind::permissive) {
    restore();
    fill_stack();
    run_one_by_one(out, words, packed, 0);
    return;
  }
  std::memset(memory_.at(layout_.input.address), filler_of(kind_).input_byte, layout_.input.size);
  for (std::size_t first = 0; first < count; first += layout_.most_values) {
    const std::size_t piece = std::min(layout_.most_values, count - first);
    const auto values = packed.subspan(first * plan_.packed_size, piece * plan_.packed_size);
    const auto their_words = words.subspan(first * plan_.word_count, piece * plan_.word_count);
    fill_stack();
    std::memcpy(memory_.at(layout_.values.address), values.data(), values.size());
    const bool hurries = may_hurry();
    Went went = hurries ? hurry(piece) : execute(piece);
    if (hurries && went == Went::on) {
      std::vector<Suspect> suspects;
      take_words(suspects, first, their_words);
      ask_again(suspects, first, their_words, values);
      out.suspects.insert(out.suspects.end(), suspects.begin(), suspects.end());
      continue;
    }
    if (went == Went::in_vain) {
      fill_stack();
      went = execute(piece);
    }
    out.unfinished = went == Went::nowhere;
    out.writes_memory_of_its_own = went == Went::to_memory_of_its_own;
    if (went != Went::on) return;
    // Which calls did it only shows when each stands by itself.
    if (has_upset_state_ || !keeps_callers_stack() || written_before_output()) {
      run_one_by_one(out, their_words, values, first);
      if (out.unfinished || out.writes_memory_of_its_own) return;
    } else {
      inspect(out, first, piece, their_words);
    }
  }
  if (std::ranges::any_of(taps_, [](const Tap& tap) { return any_byte_zero(tap.changed, tap.size); })) {
    suspect_all(out, words, packed);
  }
}

/// Some byte of an output has been the same for all values, and the same as before: written or not.
void HostLane::suspect_all(Run& out, std::span<const std::uint32_t> words, std::span<const std::byte> packed) {
  const std::size_t count = packed.size() / plan_.packed_size;
  const bool is_known_otherwise = !out.suspects.empty() || !out.traits.empty();
  out.suspects.clear();
  for (std::size_t first = 0; first < count; first += layout_.most_values) {
    const std::size_t piece = std::min(layout_.most_values, count - first);
    std::vector<Suspect> suspects(piece);
    for (std::size_t i = 0; i < piece; ++i) suspects[i] = {first + i, false};
    if (!is_known_otherwise) {
      ask_again(suspects, first, words.subspan(first * plan_.word_count, piece * plan_.word_count),
                packed.subspan(first * plan_.packed_size, piece * plan_.packed_size));
    }
    out.suspects.insert(out.suspects.end(), suspects.begin(), suspects.end());
  }
  out.traits.clear();
}

void HostLane::inspect(Run& out, std::size_t first, std::size_t count, std::span<std::uint32_t> words) {
  std::memcpy(words.data(), memory_.at(layout_.words.address), words.size_bytes());
  auto fault = faults_.begin();
  for (std::size_t i = 0; i < count; ++i) {
    if (fault != faults_.end() && fault->index == i) {
      ++fault;
      out.suspects.push_back({first + i, false});
      continue;
    }
    const Record record = this->record(i);
    const bool is_poisoned = note_poison(words.subspan(i * plan_.word_count, plan_.word_count));
    if (is_poisoned || !is_of(record, i) || record.sp != plan_.returned_sp || misses_result(record)) {
      out.suspects.push_back({first + i, false});
    } else if (!is_clean(record)) {
      std::vector<Trait> traits;
      find_traits(traits, record);
      for (const Trait& trait : traits) out.traits.emplace_back(first + i, trait);
    }
  }
}

/// Runs values each by itself: in a permissive lane to decide them where they stand, in a batch lane to tell which of
/// them are odd.
void HostLane::run_one_by_one(Run& out, std::span<std::uint32_t> words, std::span<const std::byte> packed,
                              std::size_t first) {
  const std::size_t count = packed.size() / plan_.packed_size;
  for (std::size_t i = 0; i < count; ++i) {
    if (options_.stop.stop_requested()) {
      out.unfinished = true;
      return;
    }
    const auto value = packed.subspan(i * plan_.packed_size, plan_.packed_size);
    const auto its_words = words.subspan(i * plan_.word_count, plan_.word_count);
    std::memset(memory_.at(layout_.input.address), filler_of(kind_).input_byte, layout_.input.size);
    std::memcpy(memory_.at(layout_.values.address), value.data(), value.size());
    const Went went = execute(1);
    out.unfinished = went == Went::nowhere;
    out.writes_memory_of_its_own = went == Went::to_memory_of_its_own;
    if (went != Went::on) return;
    if (kind_ == LaneKind::batch) {
      std::vector<Trait> traits;
      if (!keeps_callers_stack()) traits.push_back({Trait::Kind::writes_above_arguments, 0});
      const bool is_odd = written_before_output().has_value() || has_upset_state_;
      Run one;
      inspect(one, first + i, 1, its_words);
      out.suspects.insert(out.suspects.end(), one.suspects.begin(), one.suspects.end());
      if (is_odd && one.suspects.empty()) out.suspects.push_back({first + i, false});
      for (const Trait& trait : traits) out.traits.emplace_back(first + i, trait);
      out.traits.insert(out.traits.end(), one.traits.begin(), one.traits.end());
      continue;
    }
    const CallEnd end = end_of_call(its_words, value);
    if (end.is_return()) {
      for (const Trait& trait : end.traits) out.traits.emplace_back(first + i, trait);
    } else {
      out.ends.emplace_back(first + i, end);
    }
  }
}

}  // namespace bitwitness::host
