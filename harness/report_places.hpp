#pragma once
#include "harness/json_place.hpp"
#include "harness/report.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The readers of what report_objects writes, for reports and for the headers of vector files. Each throws Error with
// file and place for what its writer would not have written. Not for other modules.

namespace bitwitness::report_places {

/// Tells whether a text is 64 lowercase hex digits.
bool is_sha256(std::string_view text);

/// Reads a SHA-256 or an empty text.
std::string read_sha256(const JsonPlace& place);

/// Reads "0x103f1d0".
std::uint64_t read_address(const JsonPlace& place);

/// Reads "f32", "i32" or "u32".
WordKind read_word_kind(const JsonPlace& place);

Engine read_engine(const JsonPlace& place);

/// More vectors than this no self-test has.
inline constexpr std::uint64_t most_self_test_vectors = 1'000'000;

/// Says why what a self-test came to cannot be; empty when it can.
std::string self_test_flaw(const SelfTestSummary& test);

RunImage read_image(const JsonPlace& place);
Environment read_environment(const JsonPlace& place);

/// Reads values of one packed size: a known one, or that of the first value met.
class PackedSize {
 public:
  explicit PackedSize(std::optional<std::size_t> known) : size_(known) {}

  std::vector<std::byte> read(const JsonPlace& place);

 private:
  std::optional<std::size_t> size_;
};

/// Throws unless a value is above the one before it.
void require_rising(const JsonPlace& place, const std::vector<std::byte>& before, const std::vector<std::byte>& value);

Isolation read_isolation(const JsonPlace& place, PackedSize& size);
std::vector<Failure> read_failures(const JsonPlace& list, PackedSize& size);
std::vector<Fact> read_facts(const JsonPlace& list, PackedSize& size);

}  // namespace bitwitness::report_places
