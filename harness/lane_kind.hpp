#pragma once
#include "harness/call_plan.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bitwitness {

/// A lane is a CPU with one routine, a caller and memory. A witness has up to three of them:
///
///   batch       as fast as it goes. The image and the input are read-only, so that the first write to either shows. It
///               only tells which values are suspect; those are decided alone.
///   permissive  for routines with memory of their own: both are writable. The memory is as in the file at the start of
///               each batch and persists through it; so each value is decided where it stands.
///   alone       the same, one value at a time, each from fresh memory.
enum class LaneKind : std::uint8_t { batch, permissive, alone };

/// What stands in places that the signature leaves open.
const Filler& filler_of(LaneKind kind);

/// What an output holds before a call, over and over from its first byte on. No two kinds have a byte in common.
const std::array<std::uint8_t, 4>& poison_of(LaneKind kind);

/// Poison of one element, as its bytes read as a little-endian number.
std::uint64_t poison_at(const std::array<std::uint8_t, 4>& poison, std::size_t offset, std::size_t size);

/// The memory of a call that is shown when it is followed: the stack around the frame but for the return address, and
/// the outputs.
std::vector<Region> followed_memory(const CallPlan& plan);

/// Tells whether any 16-bit half (or the only byte) is still poison; `changed` are the bits that differ from it.
bool shows_poison(std::uint64_t changed, std::size_t size);

/// Tells whether some byte of an element is zero: of `changed` over a whole batch, whether it was always poison.
bool any_byte_zero(std::uint64_t bits, std::size_t size);

}  // namespace bitwitness
