#include "harness/target.hpp"

#include "harness/error.hpp"
#include "harness/toml_reader.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <initializer_list>
#include <set>
#include <utility>

#include "vectors/embedded_targets.hpp"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace bitwitness {
namespace {

using toml_reader::shown;
using toml_reader::TableReader;

// Far above any target that a person writes.
constexpr std::size_t max_target_bytes = std::size_t{1} << 20;

constexpr std::array<std::pair<std::string_view, AnchorKind>, 3> anchor_kinds{
    {{"code", AnchorKind::code}, {"call", AnchorKind::call}, {"constant", AnchorKind::constant}}};

bool is_hex(std::string_view digits) {
  return !digits.empty() && digits.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

// Names stand on command lines and in reports.
bool is_name(std::string_view text) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  return !text.empty() && text.size() <= 64 && text.find_first_not_of(allowed) == std::string_view::npos;
}

bool has_control_characters(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; });
}

bool is_location(std::string_view text) {
  if (has_control_characters(text)) return false;
  for (const std::string_view prefix : {"export:", "symbol:"}) {
    if (text.starts_with(prefix)) return text.size() > prefix.size();
  }
  if (text.starts_with("rva:")) text.remove_prefix(4);
  return text.starts_with("0x") && text.size() <= 18 && is_hex(text.substr(2));
}

std::string name_at(const TableReader& reader, std::string_view key) {
  std::string value = reader.text(key);
  if (!is_name(value)) {
    reader.fail_at(key, fmt::format("'{}' is not a name of 1 to 64 letters, digits, '_', '.' and '-'", shown(value)));
  }
  return value;
}

std::string location_at(const TableReader& reader, std::string_view key) {
  std::string value = reader.text(key);
  if (!is_location(value)) {
    reader.fail_at(key, fmt::format("'{}' is no location: 0x…, rva:0x…, export:NAME or symbol:NAME", shown(value)));
  }
  return value;
}

// Messages and reports print it on one line.
std::string sentence_at(const TableReader& reader, std::string_view key) {
  std::string value = reader.optional_text(key).value_or("");
  if (has_control_characters(value)) reader.fail_at(key, "expected one line without control characters");
  return value;
}

std::vector<std::string> float_bits_at(const TableReader& reader, std::string_view key) {
  std::vector<std::string> values;
  for (auto& [value, line] : reader.texts(key)) {
    if (!is_hex(value) || (value.size() != 8 && value.size() != 16)) {
      reader.fail(line, fmt::format("{}: '{}' is neither 8 (f32) nor 16 (f64) hex digits", key, shown(value)));
    }
    std::transform(value.begin(), value.end(), value.begin(),
                   [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c; });
    values.push_back(std::move(value));
  }
  return values;
}

// How messages call a routine: by its name where that can be read, otherwise by its place.
std::string where_of(const toml::table& routine, std::size_t index) {
  const std::string name = routine["name"].value_or(std::string());
  return is_name(name) ? fmt::format("routine '{}'", name) : fmt::format("routine {}", index + 1);
}

TargetRoutine parse_routine(const TableReader& reader) {
  reader.require_known({"name", "at", "decoder", "signature", "note"});
  TargetRoutine routine;
  routine.name = name_at(reader, "name");
  routine.at = location_at(reader, "at");
  routine.decoder = name_at(reader, "decoder");
  routine.note = sentence_at(reader, "note");
  if (const std::optional<std::string> text = reader.optional_text("signature")) {
    try {
      const Signature signature = parse_signature(*text);
      if (signature.convention != Convention::automatic) routine.signature = signature;
    } catch (const Error& error) {
      reader.fail_at("signature", error.what());
    }
  }
  return routine;
}

Anchor parse_anchor(const TableReader& reader) {
  Anchor anchor;
  const std::string kind = reader.text("kind");
  const auto row =
      std::find_if(anchor_kinds.begin(), anchor_kinds.end(), [&](const auto& r) { return r.first == kind; });
  if (row == anchor_kinds.end()) {
    reader.fail_at("kind", fmt::format("'{}' is neither code, call nor constant", shown(kind)));
  }
  anchor.kind = row->second;
  switch (anchor.kind) {
    case AnchorKind::code:
      reader.require_known({"kind", "level", "at", "says"});
      break;
    case AnchorKind::call:
      reader.require_known({"kind", "level", "at", "to", "says"});
      anchor.to = location_at(reader, "to");
      break;
    case AnchorKind::constant:
      reader.require_known({"kind", "level", "at", "bits", "says"});
      anchor.bits = float_bits_at(reader, "bits");
      break;
  }
  const std::string level = reader.text("level");
  if (level != "required" && level != "expected") {
    reader.fail_at("level", fmt::format("'{}' is neither required nor expected", shown(level)));
  }
  anchor.required = level == "required";
  anchor.at = location_at(reader, "at");
  anchor.says = sentence_at(reader, "says");
  return anchor;
}

std::string read_file(const std::filesystem::path& path) {
  const std::string name = shown(path.string());
  if (std::error_code ignored; std::filesystem::is_directory(path, ignored)) {
    throw Error(fmt::format("{}: is a directory, expected a target file", name));
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw Error(fmt::format("{}: the target file cannot be opened", name));
  // One byte more than allowed tells parse_target, without reading an endless file.
  std::string text(max_target_bytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) throw Error(fmt::format("{}: the target file cannot be read", name));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

}  // namespace

Target parse_target(std::string_view text, std::string_view origin) {
  const std::string shown_origin = shown(origin);
  const toml::table root = toml_reader::parse(text, shown_origin, max_target_bytes);
  const TableReader reader(root, shown_origin, "the target");
  reader.require_known({"name", "description", "routine", "anchor"});
  Target target;
  std::set<std::string> names;
  target.name = name_at(reader, "name");
  target.description = sentence_at(reader, "description");
  for (const toml::table* table : reader.tables("routine")) {
    const TableReader routine(*table, shown_origin, where_of(*table, target.routines.size()));
    TargetRoutine parsed = parse_routine(routine);
    if (!names.insert(parsed.name).second) routine.fail_at("name", "an earlier routine has the same name");
    target.routines.push_back(std::move(parsed));
  }
  for (const toml::table* table : reader.tables("anchor")) {
    const std::string where = fmt::format("anchor {}", target.anchors.size() + 1);
    target.anchors.push_back(parse_anchor(TableReader(*table, shown_origin, where)));
  }
  return target;
}

Target load_target(std::string_view name_or_path) {
  if (name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(".toml")) {
    return parse_target(read_file(std::filesystem::path(name_or_path)), name_or_path);
  }
  for (const EmbeddedTarget& target : embedded_targets()) {
    if (target.name == name_or_path) return parse_target(target.text, fmt::format("{}.toml", target.name));
  }
  throw Error(fmt::format("no target is named '{}'; known: {}, or the path of a .toml file", shown(name_or_path),
                          fmt::join(known_targets(), ", ")));
}

std::vector<std::string> known_targets() {
  std::vector<std::string> names;
  for (const EmbeddedTarget& target : embedded_targets()) names.emplace_back(target.name);
  return names;
}

}  // namespace bitwitness
