#pragma once
#include "harness/error.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace bitwitness {

/// Most bytes of a JSON document that is read, and most values in it: a report that lists a hundred thousand
/// differences has a tenth of either.
inline constexpr std::size_t max_json_size = std::size_t{1} << 28;
inline constexpr std::size_t max_json_values = std::size_t{1} << 23;

/// Parses a JSON document whose keys are each there once. Throws Error that starts with the file's name and says at
/// which byte or at which place it is not JSON, too deep or too large.
nlohmann::json parse_json(std::string_view text, const std::string& file);

/// A place in a JSON document, which knows its file and path ("runs[0].environment.fpcw") for messages. Refers to
/// document and file name. Every function throws Error that starts with both where the document is not as asked.
class JsonPlace {
 public:
  JsonPlace(const nlohmann::json& json, const std::string& file) : json_(json), file_(file) {}

  /// Returns a member that must be there.
  [[nodiscard]] JsonPlace operator[](const char* key) const;

  /// Returns a member if it is there.
  [[nodiscard]] std::optional<JsonPlace> find(const char* key) const;

  /// Refuses members other than these.
  void allow(std::initializer_list<std::string_view> keys) const;

  /// Returns the elements of an array.
  [[nodiscard]] std::vector<JsonPlace> items() const;

  [[nodiscard]] bool is_null() const { return json_.is_null(); }
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::vector<std::string> texts() const;
  [[nodiscard]] bool flag() const;

  /// Reads an integer from 0 to a bound.
  [[nodiscard]] std::uint64_t count(std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) const;

  /// Reads a number from a text of hex digits, up to a bound; "0x" may stand before them.
  [[nodiscard]] std::uint64_t hex(std::uint64_t most) const;

  /// Reads bytes from a text of hex digits in memory order.
  [[nodiscard]] std::vector<std::byte> bytes() const;

  /// Reads output words from an array of texts of 8 hex digits.
  [[nodiscard]] std::vector<std::uint32_t> words() const;

  /// Throws Error "FILE: PATH OTHERWISE" unless something holds.
  void require(bool holds, std::string_view otherwise) const;

  /// Throws Error "FILE: PATH WHAT".
  [[noreturn]] void refuse(std::string_view what) const;

  /// Does work and puts file and path before what it complains of.
  template <typename Work>
  auto said(Work work) const {
    try {
      return work();
    } catch (const Error& error) {
      pass_on(error.what());
    }
  }

 private:
  JsonPlace(const nlohmann::json& json, const std::string& file, std::string path)
      : json_(json), file_(file), path_(std::move(path)) {}

  [[noreturn]] void pass_on(std::string_view complaint) const;
  [[nodiscard]] std::string join(std::string_view key) const;

  const nlohmann::json& json_;
  const std::string& file_;
  std::string path_;
};

}  // namespace bitwitness
