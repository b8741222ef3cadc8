#pragma once
#include "harness/error.hpp"

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Strict reading of TOML files: every complaint is an Error of one line with file and line. Not for other libraries.

namespace bitwitness::toml_reader {

/// Ends the parsing of a text on which the library's own assumptions do not hold.
[[noreturn]] void report_defect();

}  // namespace bitwitness::toml_reader

// toml++ up to 3.4 assumes things that malformed text breaks ("[[=": marzer/tomlplusplus pull request 301), whether or
// not assertions are on. Here such a text is an error like any other. A nested value costs stack when it is destroyed.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expression) ((expression) ? void() : ::bitwitness::toml_reader::report_defect())
#define TOML_MAX_NESTED_VALUES 16
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace bitwitness::toml_reader {

/// Parses a text. `origin` names the file in messages. Throws Error for what is not TOML, nests deep, or is longer than
/// `max_bytes`.
toml::table parse(std::string_view text, std::string_view origin, std::size_t max_bytes);

/// Returns text from a file as messages show it: one line of moderate length.
std::string shown(std::string_view text);

/// Reads the values of one table. `where` names it in messages: "routine 'unpack'". Refers to its arguments.
class TableReader {
 public:
  TableReader(const toml::table& table, std::string_view origin, std::string where);

  /// Throws Error with a line of the file.
  [[noreturn]] void fail(std::size_t line, std::string_view message) const;

  /// Throws Error about the value of a key that is there.
  [[noreturn]] void fail_at(std::string_view key, std::string_view message) const;

  /// Throws Error when the table has a key that is not among these.
  void require_known(std::initializer_list<std::string_view> known) const;

  /// Tells whether the table has a key.
  [[nodiscard]] bool has(std::string_view key) const;

  /// Returns a string. Throws Error when it is missing or something else.
  [[nodiscard]] std::string text(std::string_view key) const;

  /// Returns a string, or nothing when it is missing. Throws Error when it is something else.
  [[nodiscard]] std::optional<std::string> optional_text(std::string_view key) const;

  /// A string of an array and the line it stands on.
  struct Item {
    std::string text;
    std::size_t line = 0;
  };

  /// Returns an array of strings, at least one. Throws Error when it is missing or something else.
  [[nodiscard]] std::vector<Item> texts(std::string_view key) const;

  /// Returns the tables that are each headed [[key]]; none when the key is missing.
  [[nodiscard]] std::vector<const toml::table*> tables(std::string_view key) const;

 private:
  [[nodiscard]] const toml::node& require(std::string_view key) const;
  [[nodiscard]] std::string string_of(const toml::node& node, std::string_view key) const;

  const toml::table& table_;
  std::string_view origin_;
  std::string where_;
};

}  // namespace bitwitness::toml_reader
