#include "harness/error.hpp"
#include "harness/values.hpp"
#include "tests/catch.hpp"
#include "tests/values_support.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

using namespace bitwitness;
using namespace bitwitness::testing;

TEST_CASE("values of hex are read in memory order", "[values]") {
  const ValueSet set = build(6, {"hex:34 12 78 56 45 23", "hex:000000000001", "hex:\tFFfF00000000 "});
  const std::vector<Bytes> values = list(set);
  REQUIRE(values.size() == 3);
  CHECK(to_hex(values[0]) == "ff ff 00 00 00 00");
  CHECK(to_hex(values[1]) == "00 00 00 00 00 01");
  CHECK(to_hex(values[2]) == "34 12 78 56 45 23");
  CHECK(error_of([] { build(6, {"hex:3412"}); }) == "hex:3412 has 2 bytes; the routine takes 6");
  CHECK(error_of([] { build(1, {"hex:"}); }) == "hex: has 0 bytes; the routine takes 1");
  CHECK(error_of([] { build(1, {"hex:3"}); }) == "hex:3: 1 hex digits, the last byte has only one");
  CHECK(error_of([] { build(1, {"hex:3g"}); }) == "hex:3g: 'g' at column 2 is not a hex digit");
  CHECK(error_of([] { build(1, {"hex:0x12"}); }) == "hex:0x12: 'x' at column 2 is not a hex digit");
  CHECK(error_of([] { build(1, {"hex:12\n"}); }) == "hex:12?: byte 0x0A at column 3 is not a hex digit");
  CHECK(error_of([] { build(6, {"hex:" + std::string(1000, '0')}); }).find("has 500 bytes") != std::string::npos);
}

TEST_CASE("hex is printed and parsed", "[values]") {
  const Bytes bytes{std::byte{0x00}, std::byte{0xAB}, std::byte{0xFF}};
  CHECK(to_hex(bytes) == "00 ab ff");
  CHECK(to_hex({}).empty());
  CHECK(parse_hex("00 ab ff") == bytes);
  CHECK(parse_hex("0 0ABf f") == bytes);
  CHECK(parse_hex("").empty());
  CHECK(error_of([] { parse_hex("00 a"); }) == "\"00 a\": 3 hex digits, the last byte has only one");
  CHECK(error_of([] { parse_hex("00,ab"); }) == "\"00,ab\": ',' at column 3 is not a hex digit");
}

TEST_CASE("values of a file may have comments, blank lines and either line end", "[values]") {
  const TemporaryFile file("# keys\r\n\r\n34 12 78 56 45 23 # the first\r\n  \t\n000000000001\n\n341278564523");
  const std::vector<Bytes> values = list(build(6, {file.source()}));
  REQUIRE(values.size() == 2);
  CHECK(to_hex(values[0]) == "00 00 00 00 00 01");
  CHECK(to_hex(values[1]) == "34 12 78 56 45 23");
  const TemporaryFile empty("");
  CHECK(build(6, {empty.source()}).size() == 0);
  const TemporaryFile comments("#\n# none\n");
  CHECK(build(6, {comments.source()}).size() == 0);
}

TEST_CASE("values of a file longer than its reader's buffer are all read", "[values]") {
  std::string text;
  for (unsigned value = 0; value < 20'000; ++value) {
    const Bytes bytes{static_cast<std::byte>(value & 0xFF), static_cast<std::byte>(value >> 8), std::byte{0}};
    text += to_hex(bytes) + std::string(value % 37, ' ') + (value % 3 == 0 ? "# note\r\n" : "\n");
  }
  const TemporaryFile file(text);
  const ValueSet set = build(3, {file.source()});
  REQUIRE(set.size() == 20'000);
  Bytes last(3);
  set.read(19'999, last);
  CHECK(to_hex(last) == "1f 4e 00");
}

TEST_CASE("values of a file are refused with its path and line", "[values]") {
  const auto refusal = [](std::string_view content) {
    const TemporaryFile file(content);
    const std::string message = error_of([&] { build(2, {file.source()}); });
    REQUIRE(message.starts_with(file.path()));
    return message.substr(file.path().size());
  };
  CHECK(refusal("3412\n341256\n") == ":2: 3 bytes; the routine takes 2");
  CHECK(refusal("# two\n\n34\n") == ":3: 1 bytes; the routine takes 2");
  CHECK(refusal("3412\n341") == ":2: 3 hex digits, the last byte has only one");
  CHECK(refusal("zz") == ":1: 'z' at column 1 is not a hex digit");
  CHECK(refusal("34\r12\n") == ":1: byte 0x0D at column 3 is not a hex digit");
  CHECK(refusal(std::string_view("34\0"
                                 "12",
                                 5)) == ":1: byte 0x00 at column 3 is not a hex digit");
  CHECK(refusal("3412\n" + std::string(4097, ' ') + "\n") == ":2: the line is longer than 4096 bytes");
  CHECK(refusal("3412\n#" + std::string(1'000'000, 'x')) == ":2: the line is longer than 4096 bytes");
  const TemporaryFile longest("3412" + std::string(4092, ' ') + "\n");
  CHECK(build(2, {longest.source()}).size() == 1);

  const std::string directory = std::filesystem::temp_directory_path().string();
  CHECK(error_of([&] { build(2, {"file:" + directory}); }) == directory + ": is a directory");
  CHECK(error_of([] { build(2, {"file:/no/such/file"}); }) == "/no/such/file: No such file or directory");
  CHECK(error_of([] { build(2, {"file:"}); }) == "file: needs a path, as in file:values.txt");
}

TEST_CASE("sources are refused unless they are one of those there are", "[values]") {
  const std::string known =
      ": not a source of values; there are hex:BYTES, file:PATH, corpus:PATH, special, fields, random:N[:SEED], all";
  for (const char* source : {"corpus", "Special", "special ", "specials", "special:", "fields:2", "all:", "random",
                             "hex", "file", "hexa:00", ":", "values.txt"}) {
    INFO(source);
    CHECK(error_of([&] { build(1, {source}); }) == source + known);
  }
  CHECK(error_of([] { build(1, {""}); }) == "(empty)" + known);
  CHECK(error_of([] { build(1, {std::string(1000, 'x')}); }).size() < 250);
}

TEST_CASE("random takes a number of values and a seed", "[values]") {
  CHECK(build(6, {"random:0"}).size() == 0);
  CHECK(build(6, {"random:0:5"}).sources()[0] == "random:0:5");
  CHECK(build(6, {"random:3"}).sources()[0] == "random:3:1");
  CHECK(list(build(6, {"random:100"})) == list(build(6, {"random:100:1"})));
  CHECK(list(build(6, {"random:100:1"})) != list(build(6, {"random:100:2"})));
  CHECK(build(6, {"random:7:18446744073709551615"}).size() == 7);
  for (const char* source :
       {"random:", "random:x", "random:-1", "random:1e6", "random: 5", "random::1", "random:99999999999999999999"}) {
    INFO(source);
    CHECK(error_of([&] { build(6, {source}); }) ==
          source + std::string(": random takes a number of values, as in random:1000000 or random:1000000:1"));
  }
  for (const char* source :
       {"random:5:", "random:5:x", "random:5:1:2", "random:5:-1", "random:5:18446744073709551616"}) {
    INFO(source);
    CHECK(error_of([&] { build(6, {source}); }) == source + std::string(": the seed is a decimal number below 2^64"));
  }
  CHECK(error_of([] { build(6, {"random:268435457"}); }) ==
        "random:268435457: at most 268435456 values are held in memory");
  CHECK(error_of([] {
          build(6, {"random:268435456", "random:1"});
        }) == "the sources list 268435457 values; at most 268435456 are held in memory");
}
