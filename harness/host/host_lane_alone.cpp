// What a host lane finds out about one call.
#include "harness/host/host_lane.hpp"
#include "harness/host/host_trap.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>

namespace bitwitness::host {
namespace {

/// Instructions that are followed one by one to find where a jump came from.
constexpr std::size_t max_steps = 20'000;

}  // namespace

CallEnd HostLane::run_one(std::span<std::uint32_t> words, std::span<const std::byte> packed,
                          const Environment& environment) {
  start();
  set_environment(environment);
  set_poison(poison_of(kind_));
  prepare_alone(packed);
  if (execute(1) != Went::on) return {};
  return end_of_call(words, packed);
}

void HostLane::prepare_alone(std::span<const std::byte> packed) {
  restore();
  fill_stack();
  std::memset(memory_.at(layout_.input.address), filler_of(kind_).input_byte, layout_.input.size);
  std::memcpy(memory_.at(layout_.values.address), packed.data(), packed.size());
}

CallEnd HostLane::end_of_call(std::span<std::uint32_t> words, std::span<const std::byte> packed) {
  CallEnd end;
  const std::optional<std::uint64_t> before_output = written_before_output();
  // Whatever runs the value again needs to know what this call has changed.
  find_writes(end.traits, packed);
  if (!faults_.empty()) {
    describe_fault(end, packed);
    return end;
  }
  std::memcpy(words.data(), memory_.at(layout_.words.address), words.size_bytes());
  const Record record = this->record(0);
  const bool keeps_stack = keeps_callers_stack();
  if (!is_of(record, 0) || has_upset_state_) {
    end.trap.kind = Trap::Kind::stopped;
    end.instruction = last_instruction(packed, code_.landing);
    return end;
  }
  end.sp_offset = static_cast<std::int64_t>(record.sp - plan_.returned_sp);
  if (has_poison_byte(words)) end.unwritten_word = unwritten_word(words, packed);
  if (misses_result(record) && !end.unwritten_word) {
    end.unwritten_word = plan_.word_count - (plan_.outputs.back().scalar == Scalar::f64 ? 2 : 1);
  }
  if (before_output) end.traits.push_back({Trait::Kind::writes_beside_output, *before_output});
  if (!keeps_stack) end.traits.push_back({Trait::Kind::writes_above_arguments, 0});
  find_traits(end.traits, record);
  if (!end.is_return()) end.instruction = last_instruction(packed, code_.landing);
  return end;
}

void HostLane::describe_fault(CallEnd& end, std::span<const std::byte> packed) {
  const Fault& fault = faults_.front();
  end.instruction = fault.stop.registers.rip;
  end.over_budget = fault.ran_too_long;
  if (end.over_budget) {
    end.trap.kind = Trap::Kind::stopped;
    end.instruction = 0;  // where it was by then is chance, and equal runs are to be equal
    return;
  }
  end.trap = trap_of(fault.stop, *process_);
  if (is_behind(end.trap, fault.stop)) {
    const auto before = instruction_before(fault.stop, *process_);
    end.instruction = before ? *before : last_instruction(packed, fault.stop.registers.rip);
  }
  if (fault.stop.signal == SIGSYS) end.trap = system_call_trap(end.instruction, *process_);
}

std::uint64_t HostLane::element(std::span<const std::uint32_t> words, const Tap& tap) {
  const std::uint64_t low = words[tap.word];
  if (tap.size == 8) return low | std::uint64_t{words[tap.word + 1]} << 32;
  return tap.size == 4 ? low : low & ((std::uint64_t{1} << 8 * tap.size) - 1);
}

/// Tells whether some byte of an output holds its poison, written there or not.
bool HostLane::has_poison_byte(std::span<const std::uint32_t> words) const {
  return std::ranges::any_of(
      taps_, [words](const Tap& tap) { return any_byte_zero(element(words, tap) ^ tap.poison, tap.size); });
}

/// Runs the value again with the opposite in its outputs: a byte that then holds that was not written, or written back
/// as it was found.
std::optional<std::size_t> HostLane::unwritten_word(std::span<const std::uint32_t> words,
                                                    std::span<const std::byte> packed) {
  std::vector<std::uint64_t> changed;
  for (const Tap& tap : taps_) changed.push_back(element(words, tap) ^ tap.poison);
  set_poison(opposite_poison());
  rewind(packed);
  const bool came_back = execute(1) == Went::on && faults_.empty();
  std::vector<std::uint32_t> again(plan_.word_count);
  std::memcpy(again.data(), memory_.at(layout_.words.address), 4 * again.size());
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < taps_.size() && came_back; ++i) {
    const std::uint64_t now = element(again, taps_[i]) ^ taps_[i].poison;
    if (!found && any_byte_zero(now | changed[i], taps_[i].size)) found = taps_[i].word;
  }
  set_poison(poison_of(kind_));
  reinstate();
  return found;
}

/// Makes memory what it was before the last call.
void HostLane::rewind(std::span<const std::byte> packed) {
  reinstate();
  for (const auto& [page, bytes] : before_) process_->write(page, bytes);
  const std::span<std::byte> block = memory_.thread_block();
  std::ranges::copy(thread_before_, block.begin());
  fill_stack();
  std::memset(memory_.at(layout_.input.address), filler_of(kind_).input_byte, layout_.input.size);
  std::memcpy(memory_.at(layout_.values.address), packed.data(), packed.size());
}

/// Makes the image's memory, and that before outputs, what the last call has left, after another one in its place.
void HostLane::reinstate() {
  written_before_output();
  for (const std::uint64_t page : memory_.written_pages(*process_)) {
    const auto known = std::ranges::find(written_, page, &WrittenPage::first);
    process_->write(page, known != written_.end() ? known->second : memory_.original(page));
  }
  std::ranges::copy(thread_now_, memory_.thread_block().begin());
}

void HostLane::restore() {
  written_.clear();
  before_.clear();
  thread_now_.clear();
  reinstate();
  memory_.fill_thread_block();
  const std::span<const std::byte> block = memory_.thread_block();
  thread_now_.assign(block.begin(), block.end());
  thread_before_ = thread_now_;
}

/// Finds what the last call has changed besides outputs and stack.
void HostLane::find_writes(std::vector<Trait>& traits, std::span<const std::byte> packed) {
  const auto add = [&traits](Trait::Kind kind, std::uint64_t address) {
    const Trait trait{kind, address};
    if (traits.size() < max_writes_kept && std::ranges::find(traits, trait) == traits.end()) traits.push_back(trait);
  };
  // Stores are told by the words that they have changed.
  constexpr std::size_t word_size = 4;
  before_.clear();
  std::vector<std::byte> now(page_size);
  for (const std::uint64_t page : memory_.written_pages(*process_)) {
    auto known = std::ranges::find(written_, page, &WrittenPage::first);
    if (known == written_.end()) known = written_.insert(written_.end(), {page, memory_.original(page)});
    process_->read(page, now);
    if (now == known->second) continue;
    // Code has operands at odd addresses.
    const Segment* const segment = image_.find(page);
    const std::size_t unit = segment != nullptr && segment->executable ? 1 : word_size;
    bool is_in_run = false;
    for (std::size_t i = 0; i < page_size; i += unit) {
      const bool differs = std::memcmp(&now[i], &known->second[i], unit) != 0;
      if (differs && (unit == word_size || !is_in_run)) add(Trait::Kind::writes_image, page + i);
      is_in_run = differs;
    }
    before_.emplace_back(page, known->second);
    known->second = now;
  }
  const std::span<const std::byte> block = memory_.thread_block();
  for (std::size_t i = 0; i < block.size(); i += word_size) {
    if (std::memcmp(&block[i], &thread_now_[i], word_size) != 0) {
      add(Trait::Kind::writes_image, layout_.thread.address + i);
    }
  }
  thread_before_.assign(block.begin(), block.end());
  thread_before_.swap(thread_now_);
  for (const Slot& slot : plan_.slots) {
    if (slot.role != Role::in) continue;
    const std::byte* const place = memory_.at(slot.region.address);
    std::size_t from = slot.packed_offset;
    for (const Piece& piece : slot.pieces) {
      if (std::memcmp(place + piece.offset, packed.data() + from, piece.size) != 0) {
        add(Trait::Kind::writes_input, slot.region.address);
      }
      from += piece.size;
    }
  }
}

/// Runs the value once more, an instruction at a time, and returns the last one before `end` was reached, or 0.
std::uint64_t HostLane::last_instruction(std::span<const std::byte> packed, std::uint64_t end) {
  rewind(packed);
  begin(0, 1);
  user_regs_struct registers = entry_;
  std::uint64_t last = 0;
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < max_steps; ++i) {
    const std::uint64_t from = registers.rip;
    const Stop stop = process_->step(registers);
    // A call into the page in which the kernel stands in for code is one to the system.
    if (!is_in_vsyscall_page(from)) last = from;
    if (stop.registers.rip == end) {
      found = last;
      break;
    }
    if (stop.signal != SIGTRAP && stop.code > 0) break;
    registers = stop.registers;
    registers.orig_rax = ~0ULL;
  }
  reinstate();
  return found;
}

}  // namespace bitwitness::host
