#include "decoders/registry.hpp"

#include "decoders/dunia_quat48.hpp"
#include "decoders/half.hpp"
#include "decoders/packed_quat48.hpp"

#include <algorithm>
#include <array>

namespace bitwitness::decoders {
namespace {

constexpr std::array<Decoder, 4> decoders{{
    {"dunia_quat48", dunia_quat48::packed_size, dunia_quat48::word_names, Word::f32, dunia_quat48::fields,
     dunia_quat48::decode, dunia_quat48::summary},
    {"half", half::packed_size, half::word_names, Word::f32, half::fields, half::decode, half::summary},
    {"packed_quat48", packed_quat48::packed_size, packed_quat48::word_names, Word::f32, packed_quat48::fields,
     packed_quat48::decode, packed_quat48::summary},
    {"packed_quat48_pair", packed_quat48_pair::packed_size, packed_quat48_pair::word_names, Word::f32,
     packed_quat48_pair::fields, packed_quat48_pair::decode, packed_quat48_pair::summary},
}};

constexpr bool covers_every_bit(const Decoder& decoder) {
  std::size_t next = 0;
  for (const Field& field : decoder.fields) {
    if (field.offset != next || field.width == 0) return false;
    next += field.width;
  }
  return next == 8 * decoder.packed_size;
}

static_assert(std::ranges::all_of(decoders, covers_every_bit), "fields lie side by side from bit 0 to the last");
static_assert(std::ranges::is_sorted(decoders, std::ranges::less{}, &Decoder::name), "rows are listed by name");
static_assert(std::ranges::adjacent_find(decoders, std::ranges::equal_to{}, &Decoder::name) == decoders.end());

}  // namespace

std::span<const Decoder> registry() {
  return decoders;
}

const Decoder* find_decoder(std::string_view name) {
  const auto found = std::ranges::find(decoders, name, &Decoder::name);
  return found == decoders.end() ? nullptr : &*found;
}

}  // namespace bitwitness::decoders
