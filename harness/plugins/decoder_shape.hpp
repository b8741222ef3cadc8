#pragma once
#include "harness/signature.hpp"
#include "harness/subject.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace bitwitness {

/// What a decoder takes and gives, as the routine or the vector file that it is checked against says.
struct DecoderShape {
  std::size_t packed_size = 0;          ///< bytes
  std::vector<std::string> word_names;  ///< one per output word
  std::vector<BitField> fields;         ///< cover every bit, in rising order; empty when only the size is known
  WordKind word_kind = WordKind::f32;
  std::string owner = {};  ///< the routine or the file, for messages
};

/// Returns the shape that a signature tells: words named "word0", "word1", … without fields. Their kind is f32 or i32
/// when all outputs are of that type (i8 and i16 count as i32), else u32.
DecoderShape shape_of(const Signature& signature);

/// Adds what a decoder says of itself (harness/plugins/README.md, "Description"): KEY=VALUE words between blanks, where
/// the keys are packed, words, kind and fields. Throws Error for an unknown or repeated key, a malformed value, or
/// sizes that are not the shape's; the message names the key and not the decoder.
void apply_description(DecoderShape& shape, std::string_view text);

}  // namespace bitwitness
