#include "harness/probe/trace_numbers.hpp"

#include "harness/report_parts.hpp"
#include "harness/values.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

namespace bitwitness::trace_numbers {
namespace {

// The format of x87 registers: the integer bit of the significand is stored.
constexpr unsigned exponent_mask = 0x7fff;
constexpr unsigned sign_bit = 0x8000;
constexpr int exponent_bias = 16383;
constexpr std::uint64_t integer_bit = std::uint64_t{1} << 63;

std::uint64_t load(std::span<const std::byte> bytes) {
  std::uint64_t bits = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) bits = bits << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return bits;
}

/// Sign-extends a number of `size` bytes.
std::int64_t load_signed(std::span<const std::byte> bytes) {
  const auto unused = static_cast<unsigned>(64 - 8 * bytes.size());
  return static_cast<std::int64_t>(load(bytes) << unused) >> unused;
}

struct Parts {
  std::uint64_t significand = 0;
  unsigned exponent = 0;
  bool is_negative = false;
};

Parts parts_of(const Extended& value) {
  const auto high = static_cast<unsigned>(load(std::span(value).subspan(8)));
  return {load(std::span(value).first(8)), high & exponent_mask, (high & sign_bit) != 0};
}

constexpr std::size_t size_of_element(Reading reading) {
  switch (reading) {
    case Reading::f32:
      return 4;
    case Reading::f64:
      return 8;
    case Reading::f80:
      return sizeof(Extended);
    case Reading::bits:
    case Reading::integer:
      break;
  }
  return 0;
}

std::string element_text(std::span<const std::byte> bytes, Reading reading) {
  switch (reading) {
    case Reading::f32:
      return report_parts::number_text(static_cast<std::uint32_t>(load(bytes)), WordKind::f32);
    case Reading::f64:
      return f64_text(load(bytes));
    default:
      break;
  }
  Extended value{};
  std::memcpy(value.data(), bytes.data(), value.size());
  return extended_text(value);
}

}  // namespace

std::string extended_text(const Extended& value) {
  const auto [significand, exponent, is_negative] = parts_of(value);
  const std::string sign = is_negative ? "-" : "";
  const bool has_integer_bit = (significand & integer_bit) != 0;
  if (exponent != 0 && !has_integer_bit) return "invalid";
  if (exponent == exponent_mask) return sign + (significand == integer_bit ? "inf" : "nan");
  // Exact where long double is this format; elsewhere the nearest one.
  const int power = std::max(static_cast<int>(exponent), 1) - exponent_bias - 63;
  const long double magnitude = std::ldexp(static_cast<long double>(significand), power);
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), magnitude);
  return sign + std::string(text.data(), end.ptr);
}

std::string extended_bits(const Extended& value) {
  const auto [significand, exponent, is_negative] = parts_of(value);
  return fmt::format("{:04x}{:016x}", exponent | (is_negative ? sign_bit : 0), significand);
}

std::string f64_text(std::uint64_t bits) {
  return fmt::format("{}", std::bit_cast<double>(bits));
}

std::string bits_text(std::span<const std::byte> bytes) {
  constexpr std::size_t widest = 16;
  if (bytes.size() > widest) return to_hex(bytes);
  std::string text = "0x";
  bool is_leading = true;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    const auto byte = std::to_integer<unsigned>(bytes[i]);
    if (is_leading && byte == 0 && i > 0) continue;
    text += is_leading ? fmt::format("{:x}", byte) : fmt::format("{:02x}", byte);
    is_leading = false;
  }
  return text;
}

std::vector<std::string> numbers_of(std::span<const std::byte> bytes, Reading reading) {
  if (bytes.empty()) return {};
  if (reading == Reading::integer && bytes.size() <= 8) return {fmt::format("{}", load_signed(bytes))};
  const std::size_t size = size_of_element(reading);
  std::vector<std::string> numbers;
  if (size == 0 || bytes.size() % size != 0) return numbers;
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    numbers.push_back(element_text(bytes.subspan(at, size), reading));
  }
  return numbers;
}

}  // namespace bitwitness::trace_numbers
