#include "harness/toml_reader.hpp"

#include "harness/printable.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace bitwitness::toml_reader {
namespace {

// The parser reached a state that it takes for impossible.
struct ParserDefect {};

std::string_view name_of(toml::node_type type) {
  switch (type) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "an integer";
    case toml::node_type::floating_point:
      return "a number";
    case toml::node_type::boolean:
      return "a boolean";
    default:
      return "a date or time";
  }
}

std::size_t line_of(const toml::source_region& region) {
  return std::max<std::size_t>(region.begin.line, 1);
}

// The first line at which the parser fails on its own assumption, for a text on which it does.
std::size_t defect_line(std::string_view text) {
  std::vector<std::size_t> ends;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n', end + 1))
    ends.push_back(end);
  const auto fails = [&](std::size_t end) {
    try {
      static_cast<void>(toml::parse(text.substr(0, end)));
    } catch (const ParserDefect&) {
      return true;
    } catch (const toml::parse_error&) {
    }
    return false;
  };
  const auto first = std::partition_point(ends.begin(), ends.end(), [&](std::size_t end) { return !fails(end); });
  return static_cast<std::size_t>(first - ends.begin()) + 1;
}

// Dotted keys nest a table per dot; their destruction is recursive.
void require_shallow(std::string_view text, std::string_view origin) {
  constexpr std::ptrdiff_t max_dots = 100;
  std::size_t line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view content = text.substr(begin, end - begin);
    if (std::count(content.begin(), content.end(), '.') > max_dots) {
      throw Error(fmt::format("{}:{}: a line has at most {} dots", origin, line, max_dots));
    }
    begin = end + 1;
  }
}

}  // namespace

void report_defect() {
  throw ParserDefect{};
}

std::string shown(std::string_view text) {
  constexpr std::size_t max_shown = 200;
  // Not within a UTF-8 character.
  std::size_t size = std::min(text.size(), max_shown);
  while (size > 0 && size < text.size() && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
  std::string out = printable(text.substr(0, size), true);
  if (size < text.size()) out += "…";
  return out;
}

toml::table parse(std::string_view text, std::string_view origin, std::size_t max_bytes) {
  if (text.size() > max_bytes) {
    throw Error(fmt::format("{}: longer than {} bytes", origin, max_bytes));
  }
  require_shallow(text, origin);
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw Error(fmt::format("{}:{}: {}", origin, line_of(error.source()), shown(error.description())));
  } catch (const ParserDefect&) {
    throw Error(fmt::format("{}:{}: malformed TOML", origin, defect_line(text)));
  }
}

TableReader::TableReader(const toml::table& table, std::string_view origin, std::string where)
    : table_(table), origin_(origin), where_(std::move(where)) {}

void TableReader::fail(std::size_t line, std::string_view message) const {
  throw Error(fmt::format("{}:{}: {}", origin_, line, message));
}

void TableReader::fail_at(std::string_view key, std::string_view message) const {
  fail(line_of(require(key).source()), fmt::format("{} of {}: {}", key, where_, message));
}

void TableReader::require_known(std::initializer_list<std::string_view> known) const {
  for (const auto& [key, node] : table_) {
    if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
    fail(line_of(key.source()),
         fmt::format("unknown key '{}' in {}; known: {}", shown(key.str()), where_, fmt::join(known, ", ")));
  }
}

bool TableReader::has(std::string_view key) const {
  return table_.contains(key);
}

std::string TableReader::text(std::string_view key) const {
  return string_of(require(key), key);
}

std::optional<std::string> TableReader::optional_text(std::string_view key) const {
  if (!has(key)) return std::nullopt;
  return text(key);
}

std::vector<TableReader::Item> TableReader::texts(std::string_view key) const {
  const toml::array* array = require(key).as_array();
  if (array == nullptr || array->empty()) fail_at(key, "expected an array of strings, at least one");
  std::vector<Item> items;
  for (const toml::node& node : *array) items.push_back({string_of(node, key), line_of(node.source())});
  return items;
}

std::vector<const toml::table*> TableReader::tables(std::string_view key) const {
  std::vector<const toml::table*> found;
  if (!has(key)) return found;
  const toml::array* array = require(key).as_array();
  if (array == nullptr) fail_at(key, fmt::format("expected tables, each headed [[{}]]", key));
  for (const toml::node& node : *array) {
    if (!node.is_table()) fail(line_of(node.source()), fmt::format("expected tables, each headed [[{}]]", key));
    found.push_back(node.as_table());
  }
  return found;
}

const toml::node& TableReader::require(std::string_view key) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr) fail(line_of(table_.source()), fmt::format("{} lacks the key '{}'", where_, key));
  return *node;
}

std::string TableReader::string_of(const toml::node& node, std::string_view key) const {
  if (const auto* value = node.as_string()) return value->get();
  fail(line_of(node.source()), fmt::format("{} of {}: expected a string, found {}", key, where_, name_of(node.type())));
}

}  // namespace bitwitness::toml_reader
