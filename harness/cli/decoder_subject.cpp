#include "harness/cli/decoder_subject.hpp"

#include "harness/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace bitwitness::cli {

WordKind word_kind_of(const decoders::Decoder& decoder) {
  switch (decoder.word) {
    case decoders::Word::i32:
      return WordKind::i32;
    case decoders::Word::u32:
      return WordKind::u32;
    case decoders::Word::f32:
      break;
  }
  return WordKind::f32;
}

Subject subject_of(const decoders::Decoder& decoder) {
  Subject subject;
  subject.name = decoder.name;
  subject.packed_size = decoder.packed_size;
  subject.word_names.assign(decoder.word_names.begin(), decoder.word_names.end());
  for (const decoders::Field& field : decoder.fields) {
    subject.fields.push_back({std::string(field.name), field.offset, field.width});
  }
  subject.word_kind = word_kind_of(decoder);
  subject.decode = decoder.decode;
  return subject;
}

DecoderShape shape_of(const decoders::Decoder& decoder) {
  Subject subject = subject_of(decoder);
  return {subject.packed_size, std::move(subject.word_names), std::move(subject.fields), subject.word_kind};
}

Subject subject_named(const std::string& text, const DecoderShape& shape, const ExternalDecoderOptions& options) {
  if (names_external_decoder(text)) return make_external_subject(text, shape, options);
  return subject_of(require_decoder(text));
}

std::vector<std::string> decoder_files(const std::string& text) {
  if (!names_external_decoder(text)) return {};
  return files_of_external_decoder(text);
}

const decoders::Decoder& require_decoder(std::string_view name) {
  if (const decoders::Decoder* decoder = decoders::find_decoder(name)) return *decoder;
  if (names_external_decoder(name)) {
    throw Error(fmt::format("decoder {} is outside of this program: only --decoder can name such a one", name));
  }
  std::vector<std::string_view> names;
  for (const decoders::Decoder& decoder : decoders::registry()) names.push_back(decoder.name);
  throw Error(fmt::format("no decoder is named '{}'; there are: {}", name, fmt::join(names, ", ")));
}

}  // namespace bitwitness::cli
