#pragma once
#include "harness/error.hpp"
#include "harness/values.hpp"
#include "tests/catch.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

/// What the tests of value sets share.
namespace bitwitness::testing {

using Bytes = std::vector<std::byte>;
using Sources = std::vector<std::string>;

/// Builds a set of values without fields of their own.
inline ValueSet build(std::size_t packed_size, const Sources& sources, Shard shard = {}) {
  return ValueSet::build(packed_size, {}, sources, {.shard = shard, .corpus = {}});
}

/// Reads a set value by value.
inline std::vector<Bytes> list(const ValueSet& set) {
  std::vector<Bytes> values;
  for (std::uint64_t index = 0; index < set.size(); ++index) {
    set.read(index, values.emplace_back(set.packed_size()));
  }
  return values;
}

/// Returns the message of the Error that a call throws, which must be one line.
std::string error_of(auto&& call) {
  try {
    call();
  } catch (const Error& error) {
    const std::string message = error.what();
    CHECK(message.find('\n') == std::string::npos);
    return message;
  }
  return "no error";
}

/// A file that is there as long as this is.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view content) {
    static int number = 0;
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    path_ = std::filesystem::temp_directory_path() /
            ("bitwitness_values_" + std::to_string(now) + "_" + std::to_string(++number));
    std::ofstream(path_, std::ios::binary) << content;
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { std::filesystem::remove(path_); }

  [[nodiscard]] std::string path() const { return path_.string(); }
  [[nodiscard]] std::string source() const { return "file:" + path(); }

 private:
  std::filesystem::path path_;
};

}  // namespace bitwitness::testing
