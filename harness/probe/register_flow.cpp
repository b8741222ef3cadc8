#include "harness/probe/register_flow.hpp"

#include "harness/disassembly.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace bitwitness {
namespace {

/// Which register's value at entry each register and stack word holds.
class Origins {
 public:
  Origins() {
    for (unsigned i = 0; i < holds_.size(); ++i) holds_[i] = static_cast<int>(i);
  }

  /// Adds what one instruction does. `left` learns what is done with values at entry.
  void step(const RegisterEffect& effect, std::span<const StackAccess> accesses, Leftover& left) {
    using Move = RegisterEffect::Move;
    if (effect.move == Move::nothing) return;
    const bool reads_stack = std::ranges::any_of(accesses, [](const StackAccess& access) { return !access.is_write; });
    const bool saves = effect.move == Move::store && !accesses.empty() && accesses.back().is_write;
    const bool loads = effect.move == Move::load && reads_stack;
    RegisterSet reads = effect.reads;
    if (saves || effect.move == Move::registers) remove(reads, effect.from);
    use(reads, effect.read_as, left);
    int moved = nothing;
    if (saves || effect.move == Move::registers) moved = holds_[effect.from];
    for (const StackAccess& access : accesses) {
      if (access.is_write) {
        forget(access);
        if (saves && moved != nothing) words_[access.offset] = {moved, access.size};
        continue;
      }
      const auto found = words_.find(access.offset);
      if (loads && found != words_.end() && found->second.size == access.size) {
        moved = found->second.from;
      } else {
        use(access, effect.read_as, left);
      }
    }
    if (moved != nothing && moved >= xmm_base && effect.read_as != RegisterEffect::Float::none) {
      left.used_as[static_cast<std::size_t>(moved - xmm_base)] = effect.read_as;
    }
    for (unsigned reg = 0; reg < 16; ++reg) {
      if ((effect.writes.general >> reg & 1) != 0) holds_[reg] = nothing;
      if ((effect.writes.xmm >> reg & 1) != 0) holds_[reg + 16] = nothing;
    }
    if (loads || effect.move == Move::registers) holds_[effect.to] = moved;
  }

  /// Registers that hold what a register held at entry.
  [[nodiscard]] RegisterSet held() const {
    RegisterSet set;
    for (unsigned reg = 0; reg < holds_.size(); ++reg) {
      if (holds_[reg] == nothing) continue;
      (reg >= 16 ? set.xmm : set.general) |= static_cast<std::uint16_t>(1u << reg % 16);
    }
    return set;
  }

 private:
  static constexpr int nothing = -1;
  static constexpr int xmm_base = 16;
  static constexpr int stack_pointer = 4;

  struct Word {
    int from = nothing;
    std::uint8_t size = 0;
  };

  static void remove(RegisterSet& set, unsigned index) {
    auto& bits = index < 16 ? set.general : set.xmm;
    bits = static_cast<std::uint16_t>(bits & ~(1U << index % 16));
  }

  static void use(int origin, RegisterEffect::Float read_as, Leftover& left) {
    if (origin == nothing || origin == stack_pointer) return;
    const auto bit = static_cast<std::uint16_t>(1U << origin % 16);
    (origin < xmm_base ? left.used.general : left.used.xmm) |= bit;
    if (origin >= xmm_base && read_as != RegisterEffect::Float::none) {
      left.used_as[static_cast<std::size_t>(origin - xmm_base)] = read_as;
    }
  }

  void use(const RegisterSet& reads, RegisterEffect::Float read_as, Leftover& left) const {
    for (unsigned reg = 0; reg < 16; ++reg) {
      if ((reads.general >> reg & 1) != 0) use(holds_[reg], read_as, left);
      if ((reads.xmm >> reg & 1) != 0) use(holds_[reg + 16], read_as, left);
    }
  }

  void use(const StackAccess& access, RegisterEffect::Float read_as, Leftover& left) const {
    for (auto at = words_.lower_bound(access.offset - 15); at != words_.end(); ++at) {
      if (at->first >= access.offset + access.size) break;
      if (at->first + at->second.size > access.offset) use(at->second.from, read_as, left);
    }
  }

  void forget(const StackAccess& access) {
    for (auto at = words_.lower_bound(access.offset - 15); at != words_.end();) {
      if (at->first >= access.offset + access.size) break;
      at = at->first + at->second.size > access.offset ? words_.erase(at) : std::next(at);
    }
  }

  std::array<int, 32> holds_{};
  std::map<std::int32_t, Word> words_;
};

/// Which x87 registers hold an f32 that was loaded.
class X87Origins {
 public:
  void step(const X87Effect& effect) {
    using Kind = X87Effect::Kind;
    if (effect.kind == Kind::load_single || effect.kind == Kind::load_other) {
      was_loaded_.push_back(effect.kind == Kind::load_single);
    } else if (effect.kind == Kind::exchange && effect.operand < was_loaded_.size()) {
      const bool top = at(0);
      at(0) = at(effect.operand);
      at(effect.operand) = top;
    } else if (effect.stores_register && effect.operand < was_loaded_.size()) {
      at(effect.operand) = at(0) != 0;
    }
    for (unsigned i = 0; i < effect.pops && !was_loaded_.empty(); ++i) was_loaded_.pop_back();
    if (effect.kind == Kind::compute) std::ranges::fill(was_loaded_, 0);
  }
  [[nodiscard]] bool top_was_loaded() const { return !was_loaded_.empty() && was_loaded_.back() != 0; }

 private:
  char& at(std::size_t index) { return was_loaded_[was_loaded_.size() - 1 - index]; }
  std::vector<char> was_loaded_;
};

}  // namespace

const RegisterFlow::Effects& RegisterFlow::effects_at(std::uint64_t address) {
  const auto [known, is_new] = effects_.try_emplace(address);
  if (is_new) {
    if (const auto instruction = disassemble_one(image_, address)) {
      known->second = {effect_of(instruction->text), x87_effect_of(instruction->text)};
    }
  }
  return known->second;
}

Leftover RegisterFlow::follow(std::span<const std::uint64_t> path, std::span<const StackAccess> stack) {
  Leftover left;
  RegisterSet popped;
  Origins origins;
  X87Origins x87;
  std::array<RegisterEffect::Float, 16> computed{};
  for (std::size_t step = 0; step < path.size(); ++step) {
    const Effects& effects = effects_at(path[step]);
    const RegisterEffect& effect = effects.registers;
    std::size_t accesses = 0;
    while (accesses < stack.size() && stack[accesses].step == step) ++accesses;
    origins.step(effect, stack.first(accesses), left);
    stack = stack.subspan(accesses);
    x87.step(effects.x87);
    left.unread.general =
        static_cast<std::uint16_t>((left.unread.general & ~effect.reads.general) | effect.writes.general);
    left.unread.xmm = static_cast<std::uint16_t>((left.unread.xmm & ~effect.reads.xmm) | effect.writes.xmm);
    popped.general = static_cast<std::uint16_t>(popped.general & ~effect.writes.general);
    if (effect.is_pop) popped.general |= effect.writes.general;
    for (unsigned reg = 0; reg < 16; ++reg) {
      if ((effect.writes.general >> reg & 1) != 0) left.general_width[reg] = effect.general_width;
      if ((effect.writes.xmm >> reg & 1) == 0) continue;
      left.xmm_kind[reg] = effect.floating;
      left.is_vector[reg] = effect.fills_vector;
      computed[reg] = effect.computes ? effect.floating : RegisterEffect::Float::none;
    }
    if (effect.stored_xmm && computed[*effect.stored_xmm] != RegisterEffect::Float::none) {
      stored_[path[step]] = computed[*effect.stored_xmm];
    }
  }
  left.unread.general = static_cast<std::uint16_t>(left.unread.general & ~popped.general);
  left.st0_was_loaded = x87.top_was_loaded();
  return left;
}

void RegisterFlow::note_held(std::span<const std::uint64_t> path, std::span<const StackAccess> stack,
                             std::map<std::uint64_t, RegisterSet>& at) {
  Leftover left;
  Origins origins;
  for (std::size_t step = 0; step < path.size(); ++step) {
    if (const auto found = at.find(path[step]); found != at.end()) {
      const RegisterSet held = origins.held();
      found->second.general |= held.general;
      found->second.xmm |= held.xmm;
    }
    std::size_t accesses = 0;
    while (accesses < stack.size() && stack[accesses].step == step) ++accesses;
    origins.step(effects_at(path[step]).registers, stack.first(accesses), left);
    stack = stack.subspan(accesses);
  }
}

RegisterEffect::Float RegisterFlow::stored_by(std::uint64_t instruction) const {
  const auto found = stored_.find(instruction);
  return found == stored_.end() ? RegisterEffect::Float::none : found->second;
}

}  // namespace bitwitness
