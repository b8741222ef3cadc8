#include "decoders/registry.hpp"

#include "decoders/dunia_quat48.hpp"
#include "decoders/half.hpp"
#include "decoders/packed_quat32.hpp"
#include "decoders/packed_quat48.hpp"
#include "decoders/packed_quat64.hpp"
#include "decoders/quat_xyz.hpp"
#include "decoders/raw.hpp"
#include "decoders/rotation_z15.hpp"
#include "decoders/translation_11_11_10.hpp"
#include "decoders/translation_f32.hpp"
#include "decoders/translation_i16.hpp"

#include <algorithm>
#include <array>

namespace bitwitness::decoders {
namespace {

constexpr std::array<Decoder, 11> decoded{{
    {"dunia_quat48", dunia_quat48::packed_size, dunia_quat48::word_names, Word::f32, dunia_quat48::fields,
     dunia_quat48::decode, dunia_quat48::summary},
    {"half", half::packed_size, half::word_names, Word::f32, half::fields, half::decode, half::summary},
    {"packed_quat32", packed_quat32::packed_size, packed_quat32::word_names, Word::f32, packed_quat32::fields,
     packed_quat32::decode, packed_quat32::summary},
    {"packed_quat48", packed_quat48::packed_size, packed_quat48::word_names, Word::f32, packed_quat48::fields,
     packed_quat48::decode, packed_quat48::summary},
    {"packed_quat48_pair", packed_quat48_pair::packed_size, packed_quat48_pair::word_names, Word::f32,
     packed_quat48_pair::fields, packed_quat48_pair::decode, packed_quat48_pair::summary},
    {"packed_quat64", packed_quat64::packed_size, packed_quat64::word_names, Word::f32, packed_quat64::fields,
     packed_quat64::decode, packed_quat64::summary},
    {"quat_xyz", quat_xyz::packed_size, quat_xyz::word_names, Word::f32, quat_xyz::fields, quat_xyz::decode,
     quat_xyz::summary},
    {"rotation_z15", rotation_z15::packed_size, rotation_z15::word_names, Word::f32, rotation_z15::fields,
     rotation_z15::decode, rotation_z15::summary},
    {"translation_11_11_10", translation_11_11_10::packed_size, translation_11_11_10::word_names, Word::f32,
     translation_11_11_10::fields, translation_11_11_10::decode, translation_11_11_10::summary},
    {"translation_f32", translation_f32::packed_size, translation_f32::word_names, Word::f32, translation_f32::fields,
     translation_f32::decode, translation_f32::summary},
    {"translation_i16", translation_i16::packed_size, translation_i16::word_names, Word::f32, translation_i16::fields,
     translation_i16::decode, translation_i16::summary},
}};

constexpr auto decoders = [] {
  std::array<Decoder, decoded.size() + raw::rows.size()> all{};
  std::ranges::copy(raw::rows, std::ranges::copy(decoded, all.begin()).out);
  std::ranges::sort(all, std::ranges::less{}, &Decoder::name);
  return all;
}();

constexpr bool covers_every_bit(const Decoder& decoder) {
  std::size_t next = 0;
  for (const Field& field : decoder.fields) {
    if (field.offset != next || field.width == 0) return false;
    next += field.width;
  }
  return next == 8 * decoder.packed_size;
}

static_assert(std::ranges::all_of(decoders, covers_every_bit), "fields lie side by side from bit 0 to the last");
static_assert(std::ranges::adjacent_find(decoders, std::ranges::equal_to{}, &Decoder::name) == decoders.end(),
              "no name is given twice");

}  // namespace

std::span<const Decoder> registry() {
  return decoders;
}

const Decoder* find_decoder(std::string_view name) {
  const auto found = std::ranges::find(decoders, name, &Decoder::name);
  return found == decoders.end() ? nullptr : &*found;
}

}  // namespace bitwitness::decoders
