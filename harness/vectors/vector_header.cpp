#include "harness/error.hpp"
#include "harness/printable.hpp"
#include "harness/report_objects.hpp"
#include "harness/report_parts.hpp"
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
  return text.empty() || (text.size() == 2 * digest_size && text.find_first_not_of("0123456789abcdef") == text.npos);
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

// Reads the members of one object. Unknown ones are found in the end: they are not written again.
class ObjectReader {
 public:
  ObjectReader(const Json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) throw Error(fmt::format("{} is not an object", where_));
  }

  [[nodiscard]] const Json& at(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) throw Error(fmt::format("{} lacks '{}'", where_, key));
    return *found;
  }

  [[nodiscard]] ObjectReader object(const char* key) const { return {at(key), fmt::format("'{}'", key)}; }

  [[nodiscard]] std::string text(const char* key) const { return text_of(at(key), key); }

  [[nodiscard]] bool flag(const char* key) const {
    if (!at(key).is_boolean()) throw Error(fmt::format("'{}' of {} is not a boolean", key, where_));
    return at(key).get<bool>();
  }

  [[nodiscard]] std::uint64_t number(const char* key, std::uint64_t most) const {
    const Json& value = at(key);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most) {
      throw Error(fmt::format("'{}' of {} is not an integer from 0 to {}", key, where_, most));
    }
    return value.get<std::uint64_t>();
  }

  [[nodiscard]] const Json& array(const char* key) const {
    if (!at(key).is_array()) throw Error(fmt::format("'{}' of {} is not an array", key, where_));
    return at(key);
  }

  [[nodiscard]] std::vector<std::string> texts(const char* key) const {
    std::vector<std::string> out;
    for (const Json& item : array(key)) out.push_back(text_of(item, key));
    return out;
  }

 private:
  [[nodiscard]] std::string text_of(const Json& value, const char* key) const {
    if (!value.is_string()) throw Error(fmt::format("'{}' of {} is not a string", key, where_));
    return value.get<std::string>();
  }

  const Json& object_;
  std::string where_;
};

void read_image(VectorHeader& header, const ObjectReader& image) {
  header.image_name = image.text("name");
  header.image_sha256 = image.text("sha256");
  header.image_format = parse_image_format(image.text("format"));
  header.stand_in = image.flag("stand_in");
}

void read_routine(VectorHeader& header, const ObjectReader& routine) {
  header.routine = routine.text("name");
  header.address = parse_address(routine.text("address"));
  header.signature = routine.text("signature");
  header.routine_sha256 = routine.text("sha256");
}

VectorHeader read_members(const ObjectReader& root) {
  VectorHeader header;
  header.tool_version = root.object("tool").text("version");
  const ObjectReader engine = root.object("engine");
  header.engine = {engine.text("unicorn"), engine.text("capstone"), engine.text("lief"), engine.text("cpu")};
  read_image(header, root.object("image"));
  read_routine(header, root.object("routine"));
  header.decoder = root.text("decoder");
  header.witness = root.text("witness");
  const ObjectReader environment = root.object("environment");
  header.environment.fpcw =
      static_cast<std::uint16_t>(parse_hex_number(environment.text("fpcw"), std::numeric_limits<std::uint16_t>::max()));
  header.environment.mxcsr = static_cast<std::uint32_t>(
      parse_hex_number(environment.text("mxcsr"), std::numeric_limits<std::uint32_t>::max()));
  const ObjectReader values = root.object("values");
  header.sources = values.texts("sources");
  header.shard = values.text("shard");
  header.count = values.number("count", std::numeric_limits<std::uint64_t>::max());
  header.packed_size = root.number("packed_size", max_vector_packed_size);
  for (const Json& item : root.array("fields")) {
    const ObjectReader field(item, "a field");
    constexpr std::uint64_t most = 8 * max_vector_packed_size;
    header.fields.push_back({field.text("name"), static_cast<unsigned>(field.number("offset", most)),
                             static_cast<unsigned>(field.number("width", most))});
  }
  const ObjectReader words = root.object("words");
  header.word_kind = parse_word_kind(words.text("kind"));
  header.word_names = words.texts("names");
  header.word_count = header.word_names.size();
  header.notes = root.texts("notes");
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
      {"notes", header.notes}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::pair<VectorHeader, VectorDetail> parse_header(std::string_view json) {
  const Json document = Json::parse(json, nullptr, false);
  if (document.is_discarded()) throw Error("the header is not JSON");
  const ObjectReader root(document, "the header");
  if (root.text("schema") != schema) {
    throw Error(fmt::format("the header's schema is '{}' instead of '{}'", shown(root.text("schema")), schema));
  }
  const std::string detail_name = root.text("detail");
  const VectorDetail detail = detail_name == "digests" ? VectorDetail::digests : VectorDetail::words;
  VectorHeader header = read_members(root);
  if (const std::string flaw = header_flaw(header); !flaw.empty())
    throw Error("the header contradicts itself: " + flaw);
  if (header_json(header, detail) != json) {
    throw Error(
        "the header is not in the one form that is allowed: unknown, repeated or moved keys, blanks, or spellings");
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
