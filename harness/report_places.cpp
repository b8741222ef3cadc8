#include "harness/report_places.hpp"

#include "harness/report_parts.hpp"
#include "harness/values.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace bitwitness::report_places {

namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t sha256_digits = 64;

/// Reads a word that stands for one of several values.
template <typename Value>
Value read_name(const JsonPlace& place, std::initializer_list<std::pair<std::string_view, Value>> names) {
  const std::string text = place.text();
  for (const auto& [name, value] : names) {
    if (text == name) return value;
  }
  std::string known;
  for (const auto& [name, value] : names) known += fmt::format("{}\"{}\"", known.empty() ? "" : ", ", name);
  place.refuse("is none of " + known);
}

std::uint64_t read_digits(const JsonPlace& place, std::uint64_t most) {
  const std::uint64_t value = place.hex(most);
  place.require(fmt::format("{:04x}", value) == place.text(), "is not four lowercase hex digits");
  return value;
}

Bytes read_value(const JsonPlace& place) {
  Bytes value = place.bytes();
  place.require(!value.empty() && to_hex(value) == place.text(), "is not lowercase bytes with a blank between them");
  return value;
}

}  // namespace

bool is_sha256(std::string_view text) {
  return text.size() == sha256_digits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string read_sha256(const JsonPlace& place) {
  std::string text = place.text();
  place.require(text.empty() || is_sha256(text), "is not a SHA-256 in lowercase hex digits");
  return text;
}

std::uint64_t read_address(const JsonPlace& place) {
  const std::uint64_t address = place.hex(std::numeric_limits<std::uint64_t>::max());
  place.require(report_parts::address_text(address) == place.text(),
                "is not written as addresses are, as in 0x103f1d0");
  return address;
}

WordKind read_word_kind(const JsonPlace& place) {
  return read_name<WordKind>(place, {{"f32", WordKind::f32}, {"i32", WordKind::i32}, {"u32", WordKind::u32}});
}

Engine read_engine(const JsonPlace& place) {
  place.allow({"unicorn", "capstone", "lief", "cpu", "self_test", "quirks"});
  Engine engine = {place["unicorn"].text(), place["capstone"].text(), place["lief"].text(), place["cpu"].text()};
  if (!place.find("self_test") && !place.find("quirks")) return engine;
  const JsonPlace counts = place["self_test"];
  counts.allow({"vectors", "as_hardware"});
  SelfTestSummary test = {counts["vectors"].count(most_self_test_vectors),
                          counts["as_hardware"].count(most_self_test_vectors), place["quirks"].texts()};
  if (const std::string flaw = self_test_flaw(test); !flaw.empty()) place["self_test"].refuse(flaw);
  engine.self_test = std::move(test);
  return engine;
}

std::string self_test_flaw(const SelfTestSummary& test) {
  if (test.vectors == 0) return "has no vectors";
  if (test.as_hardware > test.vectors) return "has more vectors as on hardware than vectors";
  const std::uint64_t differing = test.vectors - test.as_hardware;
  if (test.quirks.empty() != (differing == 0) || test.quirks.size() > differing) {
    return fmt::format("has {} vectors that differ, and the quirks are {}", differing, test.quirks.size());
  }
  const bool rises = std::ranges::adjacent_find(test.quirks, std::ranges::greater_equal()) == test.quirks.end();
  if (!rises || std::ranges::count(test.quirks, "") > 0) return "goes with quirks that are not sorted, or nameless";
  return {};
}

RunImage read_image(const JsonPlace& place) {
  place.allow({"name", "sha256", "format", "stand_in"});
  RunImage image;
  image.name = place["name"].text();
  image.sha256 = read_sha256(place["sha256"]);
  image.format = read_name<ImageFormat>(place["format"], {{to_string(ImageFormat::pe32), ImageFormat::pe32},
                                                          {to_string(ImageFormat::pe32_plus), ImageFormat::pe32_plus}});
  image.stand_in = place["stand_in"].flag();
  return image;
}

Environment read_environment(const JsonPlace& place) {
  place.allow({"fpcw", "mxcsr"});
  Environment environment;
  environment.fpcw = static_cast<std::uint16_t>(read_digits(place["fpcw"], 0xffff));
  environment.mxcsr = static_cast<std::uint32_t>(read_digits(place["mxcsr"], 0xffffffff));
  return environment;
}

Bytes PackedSize::read(const JsonPlace& place) {
  Bytes value = read_value(place);
  if (!size_) size_ = value.size();
  place.require(value.size() == *size_, fmt::format("has not {} bytes", *size_));
  return value;
}

void require_rising(const JsonPlace& place, const Bytes& before, const Bytes& value) {
  place.require(is_less(before, value), "is not above the value before it");
}

Isolation read_isolation(const JsonPlace& place, PackedSize& size) {
  place.allow({"sampled", "unstable", "first_value"});
  Isolation isolation;
  isolation.sampled = place["sampled"].count();
  isolation.unstable = place["unstable"].count();
  place["unstable"].require(isolation.unstable <= isolation.sampled, "is more than were sampled");
  const std::optional<JsonPlace> first = place.find("first_value");
  place.require(first.has_value() == (isolation.unstable > 0), "has a first_value or has none against its count");
  if (first) isolation.first_value = size.read(*first);
  return isolation;
}

std::vector<Failure> read_failures(const JsonPlace& list, PackedSize& size) {
  std::vector<Failure> out;
  for (const JsonPlace& place : list.items()) {
    place.allow({"value", "outcome", "address", "instruction", "reason"});
    Failure failure;
    failure.value = size.read(place["value"]);
    if (!out.empty()) require_rising(place["value"], out.back().value, failure.value);
    failure.kind =
        read_name<OutcomeKind>(place["outcome"], {{to_string(OutcomeKind::faulted), OutcomeKind::faulted},
                                                  {to_string(OutcomeKind::out_of_budget), OutcomeKind::out_of_budget},
                                                  {to_string(OutcomeKind::unwritten), OutcomeKind::unwritten},
                                                  {to_string(OutcomeKind::disputed), OutcomeKind::disputed}});
    if (!place["address"].is_null()) {
      failure.address = read_address(place["address"]);
      place["address"].require(failure.address != 0, "is 0; an unknown address is null");
    }
    failure.instruction = place["instruction"].text();
    failure.reason = place["reason"].text();
    out.push_back(std::move(failure));
  }
  return out;
}

std::vector<Fact> read_facts(const JsonPlace& list, PackedSize& size) {
  std::vector<Fact> out;
  for (const JsonPlace& place : list.items()) {
    place.allow({"what", "values", "first_value"});
    out.push_back({place["what"].text(), place["values"].count(), size.read(place["first_value"])});
    place["values"].require(out.back().values != 0, "is 0");
  }
  return out;
}

}  // namespace bitwitness::report_places
