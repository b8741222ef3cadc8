#include "harness/error.hpp"
#include "harness/printable.hpp"
#include "harness/report_objects.hpp"
#include "harness/report_parts.hpp"
#include "harness/report_places.hpp"
#include "harness/signature.hpp"
#include "harness/values.hpp"
#include "harness/vectors/vector_format.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bitwitness::vectors {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::pair<WordKind, std::string_view>, 3> word_kinds{
    {{WordKind::f32, "f32"}, {WordKind::i32, "i32"}, {WordKind::u32, "u32"}}};

bool is_hash(std::string_view text) {
  return text.empty() || report_places::is_sha256(text);
}

std::string shown(std::string_view text) {
  constexpr std::size_t max_shown = 80;
  return printable(text.substr(0, max_shown)) + (text.size() > max_shown ? "…" : "");
}

std::string signature_flaw(const VectorHeader& header) {
  if (header.signature.empty()) return {};
  try {
    const Signature signature = parse_signature(header.signature);
    if (signature.convention == Convention::automatic) return {};
    if (signature.packed_size() == header.packed_size && signature.word_count() == header.word_count) return {};
    return fmt::format("the signature '{}' takes {} bytes and gives {} words, the header states {} and {}",
                       header.signature, signature.packed_size(), signature.word_count(), header.packed_size,
                       header.word_count);
  } catch (const Error& error) {
    return error.what();
  }
}

std::string fields_flaw(const VectorHeader& header) {
  if (header.fields.empty()) return {};
  std::uint64_t end = 0;
  for (const BitField& field : header.fields) {
    if (field.offset != end || field.width == 0) {
      return fmt::format("field '{}' does not begin at bit {} or has no bits", shown(field.name), end);
    }
    end += field.width;
  }
  if (end == 8 * std::uint64_t{header.packed_size}) return {};
  return fmt::format("the fields have {} bits, the values {}", end, 8 * header.packed_size);
}

VectorHeader read_members(const JsonPlace& root) {
  root.allow({"schema", "detail", "tool", "engine", "image", "routine", "decoder", "witness", "environment", "values",
              "packed_size", "fields", "words", "recorded", "notes"});
  VectorHeader header;
  header.tool_version = root["tool"]["version"].text();
  header.engine = report_places::read_engine(root["engine"]);
  RunImage image = report_places::read_image(root["image"]);
  header.image_name = std::move(image.name);
  header.image_sha256 = std::move(image.sha256);
  header.image_format = image.format;
  header.stand_in = image.stand_in;
  const JsonPlace routine = root["routine"];
  header.routine = routine["name"].text();
  header.address = report_places::read_address(routine["address"]);
  header.signature = routine["signature"].text();
  header.routine_sha256 = report_places::read_sha256(routine["sha256"]);
  header.decoder = root["decoder"].text();
  header.witness = root["witness"].text();
  header.environment = report_places::read_environment(root["environment"]);
  const JsonPlace values = root["values"];
  header.sources = values["sources"].texts();
  header.shard = values["shard"].text();
  header.count = values["count"].count();
  header.packed_size = root["packed_size"].count(max_vector_packed_size);
  for (const JsonPlace& field : root["fields"].items()) {
    constexpr std::uint64_t most = 8 * max_vector_packed_size;
    header.fields.push_back({field["name"].text(), static_cast<unsigned>(field["offset"].count(most)),
                             static_cast<unsigned>(field["width"].count(most))});
  }
  header.word_kind = report_places::read_word_kind(root["words"]["kind"]);
  header.word_names = root["words"]["names"].texts();
  header.word_count = header.word_names.size();
  header.recorded = read_recorded(root["recorded"], header.packed_size);
  header.notes = root["notes"].texts();
  return header;
}

}  // namespace

std::string header_flaw(const VectorHeader& header) {
  if (header.packed_size == 0 || header.packed_size > max_vector_packed_size) {
    return fmt::format("values of {} bytes; 1 to {} are allowed", header.packed_size, max_vector_packed_size);
  }
  if (header.word_count == 0 || header.word_count > max_vector_words) {
    return fmt::format("{} words a value; 1 to {} are allowed", header.word_count, max_vector_words);
  }
  if (header.word_names.size() != header.word_count) {
    return fmt::format("{} names of {} words", header.word_names.size(), header.word_count);
  }
  std::vector<std::string_view> names(header.word_names.begin(), header.word_names.end());
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end()) {
    return fmt::format("two words are called '{}'", shown(*twice));
  }
  if (!is_hash(header.image_sha256)) return "the image's sha256 is not 64 lowercase hex digits";
  if (!is_hash(header.routine_sha256)) return "the routine's sha256 is not 64 lowercase hex digits";
  if (!header.shard.empty()) {
    try {
      static_cast<void>(parse_shard(header.shard));
    } catch (const Error& error) {
      return error.what();
    }
  }
  if (std::string flaw = fields_flaw(header); !flaw.empty()) return flaw;
  if (std::string flaw = recorded_flaw(header); !flaw.empty()) return flaw;
  return signature_flaw(header);
}

std::string header_json(const VectorHeader& header, VectorDetail detail) {
  Json sources = Json::array();
  for (const std::string& source : header.sources) sources.push_back(report_parts::portable_source(source));
  Json fields = Json::array();
  for (const BitField& field : header.fields) {
    fields.push_back({{"name", field.name}, {"offset", field.offset}, {"width", field.width}});
  }
  const Json document = {
      {"schema", schema},
      {"detail", to_string(detail)},
      {"tool", {{"version", header.tool_version}}},
      {"engine", report_objects::engine_json(header.engine)},
      {"image",
       report_objects::image_json(header.image_name, header.image_sha256, header.image_format, header.stand_in)},
      {"routine",
       {{"name", header.routine},
        {"address", report_parts::address_text(header.address)},
        {"signature", header.signature},
        {"sha256", header.routine_sha256}}},
      {"decoder", header.decoder},
      {"witness", header.witness},
      {"environment", report_objects::environment_json(header.environment)},
      {"values", {{"sources", std::move(sources)}, {"shard", header.shard}, {"count", header.count}}},
      {"packed_size", header.packed_size},
      {"fields", std::move(fields)},
      {"words", {{"kind", to_string(header.word_kind)}, {"names", header.word_names}}},
      {"recorded", recorded_json(header.recorded)},
      {"notes", header.notes}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::pair<VectorHeader, VectorDetail> parse_header(std::string_view json) {
  static const std::string where = "the header";
  const nlohmann::json document = parse_json(json, where);
  const JsonPlace root(document, where);
  root["schema"].require(root["schema"].text() == schema, fmt::format("is not \"{}\"", schema));
  const std::string detail_name = root["detail"].text();
  const VectorDetail detail = detail_name == "digests" ? VectorDetail::digests : VectorDetail::words;
  root["detail"].require(detail_name == to_string(detail), "is neither \"words\" nor \"digests\"");
  VectorHeader header = read_members(root);
  if (const std::string flaw = header_flaw(header); !flaw.empty())
    throw Error("the header contradicts itself: " + flaw);
  if (header_json(header, detail) != json) {
    throw Error("the header is not in the one form that is allowed: unknown or moved keys, blanks, or spellings");
  }
  return {std::move(header), detail};
}

std::string_view to_string(WordKind kind) {
  const auto row = std::ranges::find(word_kinds, kind, &std::pair<WordKind, std::string_view>::first);
  return row == word_kinds.end() ? word_kinds.front().second : row->second;
}

WordKind parse_word_kind(std::string_view text) {
  const auto row = std::ranges::find(word_kinds, text, &std::pair<WordKind, std::string_view>::second);
  if (row == word_kinds.end()) throw Error(fmt::format("'{}' is no kind of words: f32, i32 or u32", shown(text)));
  return row->first;
}

ImageFormat parse_image_format(std::string_view text) {
  for (const ImageFormat format : {ImageFormat::pe32, ImageFormat::pe32_plus}) {
    if (text == bitwitness::to_string(format)) return format;
  }
  throw Error(fmt::format("'{}' is no format of images: pe32 or pe32+", shown(text)));
}

std::uint64_t parse_hex_number(std::string_view digits, std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc() || end != digits.data() + digits.size() || value > most) {
    throw Error(fmt::format("'{}' is no hex number up to {:x}", shown(digits), most));
  }
  return value;
}

std::uint64_t parse_address(std::string_view text) {
  if (!text.starts_with("0x")) throw Error(fmt::format("'{}' is no address: 0x…", shown(text)));
  return parse_hex_number(text.substr(2), std::numeric_limits<std::uint64_t>::max());
}

}  // namespace bitwitness::vectors
