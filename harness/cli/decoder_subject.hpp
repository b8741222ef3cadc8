#pragma once
#include "decoders/registry.hpp"
#include "harness/plugins/external_decoder.hpp"
#include "harness/subject.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace bitwitness::cli {

/// Returns a registered decoder as the harness knows one.
Subject subject_of(const decoders::Decoder& decoder);

/// Returns the decoder of that name. Throws Error that lists the names there are.
const decoders::Decoder& require_decoder(std::string_view name);

/// Returns the decoder that --decoder names, registered or outside of this program; the shape is what an external one
/// is to have. The text must come from the user: it may say what to execute. Throws Error.
Subject subject_named(const std::string& text, const DecoderShape& shape, const ExternalDecoderOptions& options = {});

/// Returns the files that --decoder names, which no result may overwrite.
std::vector<std::string> decoder_files(const std::string& text);

/// Returns the shape of a registered decoder.
DecoderShape shape_of(const decoders::Decoder& decoder);

/// Returns how a decoder's words are to be shown.
WordKind word_kind_of(const decoders::Decoder& decoder);

}  // namespace bitwitness::cli
