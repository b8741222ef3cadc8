// The words about the x87 unit that code saves and loads.
#include "harness/proof/lift_state.hpp"

namespace bitwitness::proof {
namespace {

// Offsets of the words that matter; the others say which instruction was the last.
constexpr unsigned control_offset = 0;
constexpr unsigned status_offset = 4;
constexpr unsigned tags_offset = 8;
constexpr unsigned rest_offset = 12;
constexpr unsigned rest_bytes = 16;
constexpr std::uint64_t empty_tag = 3;

}  // namespace

NodeId x87_status_word(LiftState& state) {
  Store& store = state.store;
  const X87& x87 = state.x87;
  const std::array parts = {store.unknown(8, "exception flags of the x87 status word"),
                            x87.c0,
                            x87.c1,
                            x87.c2,
                            store.constant(3, x87.top()),
                            x87.c3,
                            store.bit(false)};
  return store.join(parts);
}

void save_x87_environment(LiftState& state, NodeId address) {
  Store& store = state.store;
  X87& x87 = state.x87;
  std::array<NodeId, 8> tags{};
  for (unsigned i = 0; i < tags.size(); ++i) {  // by the registers' own numbers
    const bool is_empty = x87.is_empty((i + 8 - x87.top()) % 8);
    tags.at(i) = is_empty ? store.constant(2, empty_tag) : store.unknown(2, "the x87 tag of a number");
  }
  const auto save = [&](unsigned offset, NodeId word) {
    const NodeId upper = store.unknown(16, "what is reserved in the x87 environment");
    state.store_to(store.add(address, store.constant(state.word, offset)), store.concat(upper, word));
  };
  save(control_offset, store.constant(16, x87.control));
  save(status_offset, x87_status_word(state));
  save(tags_offset, store.join(tags));
  const NodeId rest = store.unknown(8 * rest_bytes, "which x87 instruction was the last");
  state.store_to(store.add(address, store.constant(state.word, rest_offset)), rest);
  x87.control |= 0x3f;  // all exceptions are masked
}

void load_x87_environment(LiftState& state, NodeId address) {
  Store& store = state.store;
  X87& x87 = state.x87;
  const auto load = [&](unsigned offset) {
    return state.load(store.add(address, store.constant(state.word, offset)), 16);
  };
  x87.control = static_cast<std::uint16_t>(state.constant(load(control_offset), "an x87 control word"));
  const NodeId status = load(status_offset);
  const auto top = static_cast<unsigned>(state.constant(store.extract(status, 11, 3), "an x87 stack top"));
  x87.c0 = store.extract(status, 8, 1);
  x87.c1 = store.extract(status, 9, 1);
  x87.c2 = store.extract(status, 10, 1);
  x87.c3 = store.extract(status, 14, 1);
  x87.rotate((top + 8 - x87.top()) % 8);
  const Bits tags = state.constant(load(tags_offset), "x87 tags");
  for (unsigned i = 0; i < 8; ++i) {
    const unsigned index = (i + 8 - top) % 8;
    const bool is_empty = (static_cast<std::uint64_t>(tags) >> (2 * i) & 3) == empty_tag;
    if (is_empty) {
      x87.free(index);
    } else if (x87.is_empty(index)) {
      throw LiftStop{"calls an empty x87 register full"};
    }
  }
}

}  // namespace bitwitness::proof
