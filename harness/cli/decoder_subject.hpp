#pragma once
#include "decoders/registry.hpp"
#include "harness/subject.hpp"

#include <string_view>

namespace bitwitness::cli {

/// Returns a registered decoder as the harness knows one.
Subject subject_of(const decoders::Decoder& decoder);

/// Returns the decoder of that name. Throws Error that lists the names there are.
const decoders::Decoder& require_decoder(std::string_view name);

/// Returns how a decoder's words are to be shown.
WordKind word_kind_of(const decoders::Decoder& decoder);

}  // namespace bitwitness::cli
