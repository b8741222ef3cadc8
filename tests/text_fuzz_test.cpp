// Mutated signature and target texts: each is read or refused with an Error of one line, whatever it holds.
#include "harness/error.hpp"
#include "harness/signature.hpp"
#include "harness/target.hpp"
#include "tests/catch.hpp"
#include "tests/random.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "vectors/embedded_targets.hpp"

namespace bitwitness {
namespace {

using tests::Random;

constexpr std::uint64_t seed = 0x5eed0f7e87;

constexpr std::array<std::string_view, 9> signatures{"cdecl(in u8[6], out f32[4])",
                                                     "stdcall(in u8[6], in u8[6], out f32[4], out f32[4])",
                                                     "thiscall(in u8[6] @ esi, out f32[4] @ edi, u32 = 0x10) -> f64",
                                                     "fastcall(value u16, f32 = -1.5e-3, i8 = -128) -> u64",
                                                     "win64(inout u64[3] @ r15, value f32 @ xmm3) -> f32 @ xmm0",
                                                     "cdecl(value u8[256]) -> u32 @ ecx",
                                                     "cdecl(f64 = 0x7ff0000000000000, in u8) -> f32",
                                                     "auto()",
                                                     "auto"};

constexpr std::array<std::string_view, 24> signature_tokens{
    "in ", "out ", "inout ", "value ", "u8",   "i64", "f32", "f64",   "[",          "]",  "(",          ")",
    ",",   "->",   "=",      "@",      "xmm0", "rsp", "-",   "1e999", "4294967295", "\n", "0xffffffff", "auto"};

constexpr std::array<std::string_view, 22> target_tokens{
    "[[routine]]", "[[anchor]]", "[routine]", "\n",        "\"", "'''",        "\\u000a", "=",
    "[",           "]",          "{",         "}",         "#",  "1979-05-27", "nan",     "1e9",
    "0x7fffffff",  "true",       "name = \"", "kind = \"", ".",  "\xff"};

std::string mutated(std::string text, Random& random, std::span<const std::string_view> tokens) {
  for (std::size_t changes = 1 + random.below(4); changes > 0; --changes) {
    const std::size_t at = random.below(text.size() + 1);
    const std::size_t length = random.below(12);
    switch (random.below(6)) {
      case 0:
        text.insert(at, 1, static_cast<char>(random.below(256)));
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, tokens[random.below(tokens.size())]);
        break;
      case 3:
        text.insert(random.below(text.size() + 1), text.substr(at, length));
        break;
      case 4:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << random.below(8)));
        break;
      default:
        if (random.below(8) == 0) text.resize(at);
        break;
    }
  }
  return text;
}

bool is_one_line(std::string_view message) {
  return !message.empty() && message.find_first_of(std::string_view("\n\r\0", 3)) == std::string_view::npos;
}

// The column that a signature's error states; 0 when it states none.
std::size_t column_of(std::string_view message) {
  constexpr std::string_view before = "': column ";
  const std::size_t at = message.rfind(before);
  if (at == std::string_view::npos) return 0;
  return std::stoul(std::string(message.substr(at + before.size())));
}

}  // namespace

TEST_CASE("a mutated signature is read and printed back, or refused with a column", "[signature][fuzz]") {
  Random random(seed);
  std::size_t read = 0;
  std::size_t refused = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string text =
        mutated(std::string(signatures[random.below(signatures.size())]), random, signature_tokens);
    INFO("seed " << seed << ", round " << i << ": " << text);
    try {
      const Signature signature = parse_signature(text);
      ++read;
      if (parse_signature(to_string(signature)) != signature) FAIL("printed as " << to_string(signature));
      if (signature.packed_size() > max_packed_size || signature.arguments.size() > max_arguments)
        FAIL("beyond limits");
      if (signature.convention != Convention::automatic &&
          (signature.packed_size() == 0 || signature.word_count() == 0)) {
        FAIL("without input or output");
      }
    } catch (const Error& error) {
      ++refused;
      const std::size_t column = column_of(error.what());
      if (!is_one_line(error.what())) FAIL("not one line: " << error.what());
      if (column < 1 || column > text.size() + 1) FAIL("column " << column << ": " << error.what());
    }
  }
  CHECK(read > 1000);
  CHECK(refused > 1000);
}

TEST_CASE("a mutated target is read, or refused with its line", "[target][fuzz]") {
  Random random(seed);
  std::size_t read = 0;
  std::size_t refused = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto targets = embedded_targets();
    const std::string text = mutated(std::string(targets[random.below(targets.size())].text), random, target_tokens);
    INFO("seed " << seed << ", round " << i);
    try {
      const Target target = parse_target(text, "fuzz.toml");
      ++read;
      if (target.name.empty()) FAIL("a target without a name");
      for (const Anchor& anchor : target.anchors) {
        if (anchor.at.empty()) FAIL("an anchor without a location");
      }
    } catch (const Error& error) {
      ++refused;
      const std::string_view message = error.what();
      if (!is_one_line(message)) FAIL("not one line: " << message);
      constexpr std::string_view origin = "fuzz.toml:";
      if (!message.starts_with(origin) || message[origin.size()] < '1' || message[origin.size()] > '9') {
        FAIL("no line: " << message);
      }
    }
  }
  CHECK(read > 100);
  CHECK(refused > 100);
}

}  // namespace bitwitness
