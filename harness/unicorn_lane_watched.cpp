// What a lane sees of a call whose every instruction and store it watches.
#include "harness/disassembly.hpp"
#include "harness/refused_code.hpp"
#include "harness/unicorn_lane.hpp"

#include <algorithm>
#include <optional>

namespace bitwitness {
namespace {

/// How often a request to stop is looked for.
constexpr std::uint64_t instructions_per_look = 4096;

}  // namespace

CallEnd UnicornLane::run_one(std::span<std::uint32_t> words, std::span<const std::byte> packed,
                             const Environment& environment) {
  memory_.restore();
  packed_ = packed;
  words_ = words;
  count_ = 1;
  index_ = 0;
  set_environment(environment);
  call();
  return end_;
}

std::vector<std::string> UnicornLane::run_recorded(std::span<std::uint32_t> words, std::span<const std::byte> packed,
                                                   const Environment& environment) {
  recorder_.emplace(image_, emulator_);
  run_one(words, packed, environment);
  std::vector<std::string> clauses = recorder_->clauses();
  recorder_.reset();
  return clauses;
}

void UnicornLane::follow(std::span<const std::byte> packed, const Environment& environment, const Follower& follower) {
  follower_ = &follower;
  std::vector<std::uint32_t> words(plan_.word_count);
  run_one(words, packed, environment);
  follower_ = nullptr;
}

FollowedState UnicornLane::cpu_state(std::uint64_t address) {
  FollowedState state;
  state.pc = address;
  const unsigned count = plan_.is_64_bit ? 16 : 8;
  for (unsigned reg = 0; reg < count; ++reg) {
    state.general[reg] = emulator_.general(reg);
    state.xmm[reg] = emulator_.xmm(reg);
  }
  for (unsigned reg = 0; reg < state.x87.size(); ++reg) state.x87[reg] = emulator_.x87(reg);
  for (const Region& region : followed_memory(plan_)) {
    const std::byte* const bytes = memory_.host(region.address);
    state.memory.insert(state.memory.end(), bytes, bytes + region.size);
  }
  return state;
}

void UnicornLane::call() {
  end_ = {};
  instructions_ = 0;
  for (auto& bytes : written_) std::fill(bytes.begin(), bytes.end(), false);
  prepare(index_);
  came_back_ = false;
  const Trap trap = emulator_.start(stub_.enter);
  if (came_back_) return;
  end_.trap = trap;
  if (trap.kind == Trap::Kind::engine && trap.vector == Trap::broke_off) end_.instruction = trap.address;
  if (trap.kind == Trap::Kind::none) end_.trap.kind = Trap::Kind::halt;
}

void UnicornLane::finish_watched(const CallState& state) {
  gather(state);
  end_.sp_offset = static_cast<std::int64_t>(state.sp - plan_.returned_sp);
  find_traits(end_.traits, state);
  std::size_t word = 0;
  for (const OutputElement& output : plan_.outputs) {
    const std::size_t size = size_of(output.scalar);
    bool whole = true;
    if (output.source == OutputElement::Source::slot && plan_.slots[output.index].role == Role::out) {
      whole = is_written(output.index, output.offset, size);
    } else if (output.source == OutputElement::Source::result_slot) {
      whole = x87_depth(state.fpsw) != 7 || emulator_.x87_values() != 0;
    }
    if (!whole && !end_.unwritten_word) end_.unwritten_word = word;
    word += size == 8 ? 2 : 1;
  }
  writes_before_output();  // leaves those bytes as the next value expects them
}

bool UnicornLane::is_written(std::size_t slot, std::size_t offset, std::size_t size) {
  const std::byte* bytes = memory_.host(plan_.slots[slot].region.address);
  for (std::size_t at = offset; at < offset + size; ++at) {
    if (!written_[slot][at] && bytes[at] == poison_[at]) return false;
  }
  return true;
}

void UnicornLane::record() {
  if (end_.is_return()) {
    for (const Trait& trait : end_.traits) run_->traits.emplace_back(index_, trait);
  } else {
    run_->ends.emplace_back(index_, end_);
  }
}

void UnicornLane::on_read(std::uint64_t address, unsigned size) {
  if (recorder_) recorder_->on_read(address, size);
}

void UnicornLane::on_write(std::uint64_t address, unsigned size) {
  memory_.before_write(address, size);
  if (recorder_) recorder_->on_write(address, size);
  const CallLayout& layout = plan_.layout;
  if (layout.stack.contains(address) || layout.result.contains(address)) return;
  Trait trait{Trait::Kind::writes_image, address};
  for (std::size_t i = 0; i < plan_.slots.size(); ++i) {
    const Slot& slot = plan_.slots[i];
    if (slot.role == Role::in) continue;
    const std::uint64_t first = std::max(address, slot.region.address);
    const std::uint64_t end = std::min(address + size, slot.region.end());
    for (std::uint64_t byte = first; byte < end; ++byte) written_[i][byte - slot.region.address] = true;
    if (first == address && end == address + size) return;
    const std::uint64_t page = slot.region.end() - round_up_to_page(slot.region.size);
    if (address - page < slot.region.end() - page) trait = {Trait::Kind::writes_beside_output, address};
  }
  if (layout.input.contains(address)) {
    trait.kind = Trait::Kind::writes_input;
    for (const Slot& slot : plan_.slots) {  // wherever in an argument, it is the same fact
      if (slot.role == Role::in && slot.region.contains(address)) trait.detail = slot.region.address;
    }
  }
  if (writes_.size() < max_writes_kept && std::ranges::find(writes_, trait) == writes_.end()) writes_.push_back(trait);
}

bool UnicornLane::on_instruction(std::uint64_t address) {
  if (kind_ == LaneKind::batch) return false;  // only refused instructions are watched
  if (recorder_) recorder_->on_instruction(address);
  const bool is_caller = plan_.layout.code.contains(address);
  if (follower_ != nullptr && (!is_caller || address == stub_.landing) && !(*follower_)(cpu_state(address)))
    return false;
  if (is_caller) return true;
  end_.instruction = address;
  if (std::ranges::binary_search(refused_, address)) {
    end_.refused = true;
    return false;
  }
  end_.over_budget = ++instructions_ > options_.budget;
  if (instructions_ % instructions_per_look == 0 && options_.stop.stop_requested()) return false;
  return !end_.over_budget;
}

bool UnicornLane::on_new_code(std::uint64_t address, unsigned size) {
  bool is_trusted = true;
  for (std::uint64_t at = address; at < address + size;) {
    const std::optional<Instruction> instruction = executed_instruction(image_, at);
    if (!instruction) break;
    if (!why_refused(image_, *instruction).empty() && !std::ranges::binary_search(refused_, at)) {
      refused_.insert(std::ranges::lower_bound(refused_, at), at);
      if (kind_ == LaneKind::batch) {
        run_->refused.push_back(at);
        is_trusted = false;
      }
    }
    at += instruction->size;
  }
  return is_trusted;
}

}  // namespace bitwitness
