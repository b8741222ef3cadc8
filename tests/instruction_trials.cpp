#include "tests/instruction_trials.hpp"

#include "harness/value_generators.hpp"
#include "harness/values.hpp"
#include "tests/pe_builder.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <span>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace bitwitness::tests {
namespace {

constexpr std::size_t half_size = 16;
constexpr std::size_t value_size = trial_value_size;
constexpr std::size_t values_per_environment = 700;

// ---- numbers

struct Layout {
  unsigned exponent_bits;
  unsigned mantissa_bits;  // without the leading one, which only 80-bit numbers store
  std::size_t size;
};

Layout layout_of(Format format) {
  if (format == Format::f32) return {8, 23, 4};
  if (format == Format::f64) return {11, 52, 8};
  return {15, 63, 10};
}

std::uint64_t ones(unsigned bits) {
  return (std::uint64_t{1} << bits) - 1;
}

/// Draws a mantissa: empty, full, short as of a number that was rounded, or any.
std::uint64_t draw_mantissa(RandomWords& random, unsigned bits) {
  switch (random.below(8)) {
    case 0:
      return 0;
    case 1:
      return ones(bits);
    case 2:
      return 1;
    case 3:
      return std::uint64_t{1} << (bits - 1);
    case 4: {
      const unsigned kept = 1 + random.below(23);
      return random.next() & ones(bits) & ~ones(bits - kept);
    }
    default:
      return random.next() & ones(bits);
  }
}

std::uint64_t draw_exponent(RandomWords& random, unsigned bits) {
  const std::uint64_t most = ones(bits) - 1;  // of a number
  const std::uint64_t middle = ones(bits - 1);
  switch (random.below(8)) {
    case 0:
      return 0;
    case 1:
      return 1 + random.below(2);
    case 2:
      return most;
    case 3:
      return random.next() % (most + 1);
    case 4:
      return middle + random.below(68);  // integers of up to 64 bits
    default:
      return middle - 8 + random.below(16);
  }
}

void draw_number(std::byte* out, RandomWords& random, Format format, bool is_plain) {
  const auto [exponent_bits, mantissa_bits, size] = layout_of(format);
  const bool is_special = !is_plain && random.below(4) == 0;
  std::uint64_t exponent = is_special ? ones(exponent_bits) : draw_exponent(random, exponent_bits);
  const std::uint64_t mantissa = draw_mantissa(random, mantissa_bits);
  const std::uint64_t sign = random.below(2);
  if (format == Format::f80) {
    const std::uint64_t significand = mantissa | (exponent == 0 ? 0 : std::uint64_t{1} << 63);
    exponent |= sign << 15;
    std::memcpy(out, &significand, 8);
    std::memcpy(out + 8, &exponent, 2);
    return;
  }
  const std::uint64_t all = (sign << (exponent_bits + mantissa_bits)) | (exponent << mantissa_bits) | mantissa;
  std::memcpy(out, &all, std::min(size, sizeof all));
}

enum class Kind { zero, tiny, normal, special };

/// The smallest normal numbers are tiny too: which side of the border a result is on depends on when it is rounded.
Kind kind_of(const std::byte* from, Format format) {
  const auto [exponent_bits, mantissa_bits, size] = layout_of(format);
  std::uint64_t mantissa = 0;
  std::uint64_t exponent = 0;
  if (format == Format::f80) {
    std::memcpy(&mantissa, from, 8);
    std::memcpy(&exponent, from + 8, 2);
    exponent &= ones(15);
    if (exponent != 0 && mantissa >> 63 == 0) return Kind::special;
  } else {
    std::uint64_t all = 0;
    std::memcpy(&all, from, std::min(size, sizeof all));
    mantissa = all & ones(mantissa_bits);
    exponent = (all >> mantissa_bits) & ones(exponent_bits);
  }
  if (exponent == ones(exponent_bits)) return Kind::special;
  if (exponent == 0) return mantissa == 0 ? Kind::zero : Kind::tiny;
  return exponent == 1 ? Kind::tiny : Kind::normal;
}

// ---- shapes

/// Where numbers stand in a value or in its result.
struct Place {
  std::size_t offset;
  Format format;
};

void add_lanes(std::vector<Place>& places, std::size_t offset, Format format, bool is_scalar) {
  if (format == Format::bits) return;
  const std::size_t size = layout_of(format).size;
  for (std::size_t at = 0; at < (is_scalar ? size : half_size); at += size) places.push_back({offset + at, format});
}

struct Form {
  Format source = Format::bits;
  Format destination = Format::bits;
  bool is_scalar = false;
  bool is_conversion = false;
  bool is_x87 = false;
};

Form form_of(Shape shape) {
  switch (shape) {
    case Shape::bits:
    case Shape::general:
    case Shape::query:
    case Shape::refused:
      return {};
    case Shape::f32:
      return {Format::f32, Format::f32};
    case Shape::f32_scalar:
      return {Format::f32, Format::f32, true};
    case Shape::f64:
      return {Format::f64, Format::f64};
    case Shape::f64_scalar:
      return {Format::f64, Format::f64, true};
    case Shape::bits_to_f32:
      return {Format::bits, Format::f32, false, true};
    case Shape::bits_to_f64:
      return {Format::bits, Format::f64, false, true};
    case Shape::f32_to_bits:
      return {Format::f32, Format::bits, false, true};
    case Shape::f32_to_bits_scalar:
      return {Format::f32, Format::bits, true, true};
    case Shape::f64_to_bits:
      return {Format::f64, Format::bits, false, true};
    case Shape::f64_to_bits_scalar:
      return {Format::f64, Format::bits, true, true};
    case Shape::f32_to_f64:
      return {Format::f32, Format::f64, false, true};
    case Shape::f32_to_f64_scalar:
      return {Format::f32, Format::f64, true, true};
    case Shape::f64_to_f32:
      return {Format::f64, Format::f32, false, true};
    case Shape::f64_to_f32_scalar:
      return {Format::f64, Format::f32, true, true};
    case Shape::x87:
    case Shape::x87_store:
      return {Format::f80, Format::f80, true, false, true};
    case Shape::x87_m32:
      return {Format::f32, Format::f80, true, false, true};
    case Shape::x87_m64:
      return {Format::f64, Format::f80, true, false, true};
    case Shape::x87_int:
      return {Format::bits, Format::f80, true, false, true};
  }
  return {};
}

constexpr std::size_t x87_memory = 40;  // offset of what an x87 instruction stores
constexpr std::array<std::size_t, 3> x87_slots = {4, 16, 28};

std::vector<Place> operand_places(Shape shape) {
  const Form form = form_of(shape);
  std::vector<Place> places;
  if (form.is_x87) {
    places.push_back({0, Format::f80});
    if (form.source != Format::bits) places.push_back({half_size, form.source});
    return places;
  }
  if (!form.is_conversion) add_lanes(places, 0, form.source, form.is_scalar);
  add_lanes(places, half_size, form.source, form.is_scalar);
  return places;
}

std::vector<Place> result_places(const Trial& trial) {
  const Form form = form_of(trial.shape);
  std::vector<Place> places;
  if (form.is_x87) {
    for (unsigned i = 0; i < trial.left; ++i) places.push_back({x87_slots.at(i), Format::f80});
    if (form.source == Format::f32 || form.source == Format::f64) places.push_back({x87_memory, form.source});
    return places;
  }
  add_lanes(places, 0, form.destination, form.is_scalar);
  return places;
}

}  // namespace

std::vector<std::byte> draw_values(const Trial& trial, RandomWords& random, std::size_t count) {
  const std::vector<Place> places = operand_places(trial.shape);
  const Form form = form_of(trial.shape);
  std::vector<std::byte> values(count * value_size);
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_plain = i % 2 == 0;
    std::byte* value = values.data() + i * value_size;
    for (std::size_t at = 0; at < value_size; at += 8) {
      std::uint64_t word = random.next();
      if (random.below(8) == 0) word = 0;
      if (random.below(8) == 0) word = ~std::uint64_t{0} << random.below(64);
      std::memcpy(value + at, &word, 8);
    }
    if (form.source == Format::f32 || form.source == Format::f64) {
      // Lanes that a scalar instruction passes over are numbers too.
      for (std::size_t at = form.is_x87 ? half_size : 0; at < value_size; at += layout_of(form.source).size) {
        draw_number(value + at, random, form.source, is_plain);
      }
    }
    for (const Place& place : places) draw_number(value + place.offset, random, place.format, is_plain);
    // The same number twice, and up to its sign.
    if (random.below(8) == 0 && places.size() > 1 && places.front().format == places.back().format) {
      std::copy_n(value, half_size, value + half_size);
    }
  }
  return values;
}

namespace {

// ---- code

struct Frame {
  std::string_view begin;
  std::string_view end;
};

// esi and edi (rsi, rdi) lead to the value and the result.
constexpr Frame vector_32 = {"56578b74240c8b7c24100f10060f104e100f6f060f6f4e100f1147248b068b561039f6",
                             "0f11070f7f471089471889571c9c5825d50800008947200f775f5ec3"};
constexpr Frame vector_64 = {"56574889ce4889d70f10060f104e100f6f060f6f4e100f114724488b06488b56104839f6",
                             "0f11070f7f471048894718488957249c5825d50800008947200f775f5ec3"};
// Of the flags only zf is defined after all of them.
constexpr Frame general_32 = {vector_32.begin, "0f11070f7f471089471889571c9c5883e0408947200f775f5ec3"};
// Depth at 0, stack from 4 on, eax at 148, zf pf cf at 152.
constexpr Frame x87_32 = {"56578b74240c8b7c24105731c0b930000000f3ab5f",
                          "89c2dfe0250038000089078997940000009c5883e045898798000000"};
// With the condition codes.
constexpr Frame x87_compare_32 = {x87_32.begin, "89c2dfe025007d000089078997940000009c5883e045898798000000"};
constexpr std::string_view load_second = "db6e10";
constexpr std::string_view load_one = "d9e8";
constexpr std::string_view load_first = "db2e";
constexpr std::array<std::string_view, 3> store_slot = {"db7f04", "db7f10", "db7f1c"};
constexpr std::string_view leave = "5f5ec3";

/// The other instructions leave C0, C2 and C3 undefined.
bool sets_conditions(std::string_view mnemonic) {
  static constexpr std::string_view all[] = {"fcom",  "fucom", "ficom", "ftst", "fxam",
                                             "fprem", "fsin",  "fcos",  "fptan"};
  return std::ranges::any_of(all, [mnemonic](std::string_view name) { return mnemonic.starts_with(name); });
}

FileBytes code_of(const Trial& trial) {
  FileBytes code;
  const auto add = [&code](const std::vector<std::byte>& bytes) {
    code.insert(code.end(), bytes.begin(), bytes.end());
  };
  const auto add_hex = [&add](std::string_view hex) { add(parse_hex(hex)); };
  const bool is_x87 = form_of(trial.shape).is_x87;
  const Frame vector = trial.is_64_bit ? vector_64 : vector_32;
  const Frame x87 = sets_conditions(trial.mnemonic()) ? x87_compare_32 : x87_32;
  const Frame frame = is_x87 ? x87 : trial.shape == Shape::general ? general_32 : vector;
  add_hex(frame.begin);
  if (is_x87) {
    const bool has_second = trial.shape == Shape::x87 || trial.shape == Shape::x87_store;
    add_hex(has_second ? load_second : load_one);
    add_hex(load_first);
  }
  add(trial.before);
  add(trial.code);
  add(trial.after);
  add_hex(frame.end);
  if (!is_x87) return code;
  for (unsigned i = 0; i < trial.left; ++i) add_hex(store_slot.at(i));
  add_hex(leave);
  return code;
}

}  // namespace

bool is_x87(Shape shape) {
  return form_of(shape).is_x87;
}

std::vector<Environment> environments_of(Shape shape) {
  const Form form = form_of(shape);
  if (form.is_x87) return {{0x007f}, {0x027f}, {0x037f}, {0x067f}, {0x0a7f}, {0x0e7f}, {0x0f7f}};
  if (form.source == Format::bits && form.destination == Format::bits) return {{}};
  std::vector<Environment> all;
  // Nearest, down, up, towards zero; flush to zero, denormals are zeros, both.
  for (const std::uint32_t mxcsr : {0x1f80U, 0x3f80U, 0x5f80U, 0x7f80U, 0x9f80U, 0x1fc0U, 0x9fc0U})
    all.push_back({0x027f, mxcsr});
  return all;
}

namespace {

bool is_plain(const std::byte* bytes, const std::vector<Place>& places, const Environment& environment) {
  constexpr std::uint32_t zeroing = 0x8040;
  return std::ranges::all_of(places, [&](const Place& place) {
    const Kind kind = kind_of(bytes + place.offset, place.format);
    return kind != Kind::special &&
           (kind != Kind::tiny || place.format == Format::f80 || (environment.mxcsr & zeroing) == 0);
  });
}

std::string words_of(std::span<const std::uint32_t> words) {
  return fmt::format("{:08x}", fmt::join(words, " "));
}

}  // namespace

Measured measure(const Trial& trial) {
  PeBuilder builder;
  builder.is_64 = trial.is_64_bit;
  builder.sections = {{.name = ".text", .data = code_of(trial)}};
  const TemporaryFile file(builder.build().bytes);
  const Image image = Image::load(file.path());
  const bool is_x87 = form_of(trial.shape).is_x87;
  const std::string signature = trial.is_64_bit ? "win64(in u8[32], out u32[13])"
                                : is_x87        ? "cdecl(in u8[32], out u32[48])"
                                                : "cdecl(in u8[32], out u32[13])";
  const Routine routine = {"tried", image.base() + 0x1000, parse_signature(signature)};
  const std::size_t width = routine.signature.word_count();
  const std::vector<Place> operands = operand_places(trial.shape);
  const std::vector<Place> results = result_places(trial);
  const bool once = trial.shape == Shape::query || trial.shape == Shape::refused;

  const auto emulator = make_unicorn_machine(image, routine);
  const auto processor = trial.shape == Shape::refused ? nullptr : make_host_machine(image, routine);
  RandomWords random(1);
  Measured measured;
  bool has_plain_example = false;
  for (const Environment& environment : environments_of(trial.shape)) {
    const std::size_t count = once ? 2 : values_per_environment;
    const std::vector<std::byte> values = draw_values(trial, random, count);
    Batch ours;
    Batch theirs;
    emulator->run(ours, values, environment);
    if (processor) processor->run(theirs, values, environment);
    measured.values += count;
    for (std::size_t i = 0; i < count; ++i) {
      if (ours.outcomes[i] != OutcomeKind::returned) ++measured.not_returned;
      if (!processor) continue;
      const auto our_words = std::span(ours.words).subspan(i * width, width);
      const auto their_words = std::span(theirs.words).subspan(i * width, width);
      const bool both_returned =
          ours.outcomes[i] == OutcomeKind::returned && theirs.outcomes[i] == OutcomeKind::returned;
      if (both_returned ? std::ranges::equal(our_words, their_words) : ours.outcomes[i] == theirs.outcomes[i]) continue;
      ++measured.differed;
      const std::byte* value = values.data() + i * value_size;
      const bool plain = is_plain(value, operands, environment) &&
                         is_plain(reinterpret_cast<const std::byte*>(our_words.data()), results, environment) &&
                         is_plain(reinterpret_cast<const std::byte*>(their_words.data()), results, environment);
      if (plain) ++measured.differed_plain;
      if (measured.example.empty() || (plain && !has_plain_example)) {
        has_plain_example = plain;
        measured.example = fmt::format("{} in {} under fpcw {:04x}, mxcsr {:04x}: {} {}, the processor {} {}",
                                       trial.text, to_hex(std::span(value, value_size)), environment.fpcw,
                                       environment.mxcsr, to_string(ours.outcomes[i]), words_of(our_words),
                                       to_string(theirs.outcomes[i]), words_of(their_words));
      }
    }
  }
  return measured;
}

}  // namespace bitwitness::tests
