#include "harness/lane_kind.hpp"

namespace bitwitness {
namespace {

constexpr Filler batch_filler{0xbad00000, 0xbb000000, 0xb5, 0};
constexpr Filler alone_filler{0xdea00000, 0xdeb00000, 0x4a, 0x7fbaadf0};

// Halves that results rarely hold: as the high half of an f32 a NaN, and an arbitrary low half.
constexpr std::array<std::uint8_t, 4> batch_poison = {0x5a, 0xa5, 0xa5, 0xff};

// Another one for calls alone, so that a routine whose result depends on what its output held before is told.
constexpr std::array<std::uint8_t, 4> alone_poison = {0xa4, 0x5b, 0x5c, 0x7f};

}  // namespace

const Filler& filler_of(LaneKind kind) {
  return kind == LaneKind::alone ? alone_filler : batch_filler;
}

const std::array<std::uint8_t, 4>& poison_of(LaneKind kind) {
  return kind == LaneKind::alone ? alone_poison : batch_poison;
}

std::uint64_t poison_at(const std::array<std::uint8_t, 4>& poison, std::size_t offset, std::size_t size) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < size; ++i) bits |= std::uint64_t{poison[(offset + i) % 4]} << 8 * i;
  return bits;
}

std::vector<Region> followed_memory(const CallPlan& plan) {
  constexpr std::uint64_t below_frame = 512;
  const std::uint64_t pointer = plan.is_64_bit ? 8 : 4;
  std::vector<Region> regions = {{plan.entry_sp - below_frame, below_frame},
                                 {plan.entry_sp + pointer, plan.frame.size() - pointer}};
  for (const Slot& slot : plan.slots) {
    if (slot.role != Role::in) regions.push_back(slot.region);
  }
  return regions;
}

bool shows_poison(std::uint64_t changed, std::size_t size) {
  if (size == 4) return (changed & 0xffff) == 0 || changed >> 16 == 0;
  if (size == 1) return (changed & 0xff) == 0;
  for (std::size_t i = 0; i < size; i += 2) {
    if ((changed >> 8 * i & 0xffff) == 0) return true;
  }
  return false;
}

bool any_byte_zero(std::uint64_t bits, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) {
    if ((bits >> 8 * i & 0xff) == 0) return true;
  }
  return false;
}

}  // namespace bitwitness
