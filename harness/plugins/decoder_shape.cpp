#include "harness/plugins/decoder_shape.hpp"

#include "harness/error.hpp"
#include "harness/printable.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

namespace bitwitness {
namespace {

constexpr std::size_t bits_per_byte = 8;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t start = 0;;) {
    const std::size_t end = text.find(separator, start);
    parts.push_back(text.substr(start, end - start));
    if (end == std::string_view::npos) return parts;
    start = end + 1;
  }
}

unsigned parse_number(std::string_view key, std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  throw Error(fmt::format("{}={}: expected a number", key, printable(text)));
}

std::string parse_name(std::string_view key, std::string_view text) {
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '.';
  };
  if (!text.empty() && std::ranges::all_of(text, is_plain)) return std::string(text);
  throw Error(fmt::format("{}: '{}' is no name of letters, digits, '_' and '.'", key, printable(text)));
}

void apply_words(DecoderShape& shape, std::string_view value) {
  std::vector<std::string> names;
  for (const std::string_view name : split(value, ',')) {
    names.push_back(parse_name("words", name));
    if (std::find(names.begin(), names.end() - 1, name) != names.end() - 1) {
      throw Error(fmt::format("words: {} is there twice", name));
    }
  }
  if (names.size() != shape.word_names.size()) {
    throw Error(
        fmt::format("words={} are {}, and {} are expected", printable(value), names.size(), shape.word_names.size()));
  }
  shape.word_names = std::move(names);
}

void apply_kind(DecoderShape& shape, std::string_view value) {
  if (value == "f32") {
    shape.word_kind = WordKind::f32;
  } else if (value == "i32") {
    shape.word_kind = WordKind::i32;
  } else if (value == "u32") {
    shape.word_kind = WordKind::u32;
  } else {
    throw Error(fmt::format("kind={}: expected f32, i32 or u32", printable(value)));
  }
}

void apply_fields(DecoderShape& shape, std::string_view value) {
  const std::size_t bits = bits_per_byte * shape.packed_size;
  std::vector<BitField> fields;
  std::size_t offset = 0;
  for (const std::string_view part : split(value, ',')) {
    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos) throw Error(fmt::format("fields: '{}' is not NAME:BITS", printable(part)));
    const unsigned width = parse_number("fields", part.substr(colon + 1));
    if (width == 0 || width > bits - offset) {
      throw Error(fmt::format("fields: '{}' has {} bits left of {}", printable(part), bits - offset, bits));
    }
    fields.push_back({parse_name("fields", part.substr(0, colon)), static_cast<unsigned>(offset), width});
    offset += width;
  }
  if (offset != bits) throw Error(fmt::format("fields cover {} bits of {}", offset, bits));
  shape.fields = std::move(fields);
}

void apply_key(DecoderShape& shape, std::string_view key, std::string_view value) {
  if (key == "packed") {
    if (parse_number(key, value) == shape.packed_size) return;
    throw Error(fmt::format("packed={}: {} has values of {} bytes", value,
                            shape.owner.empty() ? "what is checked" : printable(shape.owner), shape.packed_size));
  }
  if (key == "words") return apply_words(shape, value);
  if (key == "kind") return apply_kind(shape, value);
  if (key == "fields") return apply_fields(shape, value);
  throw Error(fmt::format("'{}' is none of packed, words, kind and fields", printable(key)));
}

}  // namespace

DecoderShape shape_of(const Signature& signature) {
  DecoderShape shape;
  shape.packed_size = signature.packed_size();
  for (std::size_t i = 0; i < signature.word_count(); ++i) shape.word_names.push_back(fmt::format("word{}", i));
  std::vector<Scalar> outputs;
  for (const Argument& argument : signature.arguments) {
    if (argument.role == Role::out || argument.role == Role::inout) outputs.push_back(argument.type.scalar);
  }
  if (signature.result) outputs.push_back(signature.result->scalar);
  const auto all = [&outputs](auto&& holds) { return !outputs.empty() && std::ranges::all_of(outputs, holds); };
  if (!all([](Scalar scalar) { return scalar == Scalar::f32; })) {
    const bool is_signed =
        all([](Scalar scalar) { return scalar == Scalar::i8 || scalar == Scalar::i16 || scalar == Scalar::i32; });
    shape.word_kind = is_signed ? WordKind::i32 : WordKind::u32;
  }
  return shape;
}

void apply_description(DecoderShape& shape, std::string_view text) {
  std::set<std::string_view> seen;
  for (const std::string_view word : split(text, ' ')) {
    if (word.empty()) continue;
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) throw Error(fmt::format("'{}' is not KEY=VALUE", printable(word)));
    const std::string_view key = word.substr(0, equals);
    if (!seen.insert(key).second) throw Error(fmt::format("{} is given twice", printable(key)));
    apply_key(shape, key, word.substr(equals + 1));
  }
}

}  // namespace bitwitness
