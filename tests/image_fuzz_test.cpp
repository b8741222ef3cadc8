// Every damaged file is either loaded or refused in one line.
#include "harness/error.hpp"
#include "harness/image.hpp"
#include "tests/catch.hpp"
#include "tests/pe_builder.hpp"
#include "tests/random.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

PeBuilder everything(bool is_64) {
  PeBuilder builder;
  builder.is_64 = is_64;
  builder.pe_offset = 0x40;
  builder.sections = {
      {.name = ".text", .data = FileBytes(0x80, std::byte{0x90})},
      {.name = ".data", .characteristics = data_section, .data = FileBytes(0x40), .virtual_size = 0x1800}};
  builder.exports = {{"decode", 0x1000}, {"other", 0x1010}, {.name = "far", .forward = "NTDLL.Near"}};
  builder.imports = {{"KERNEL32.dll", {"Sleep", "#12"}}, {"USER32.dll", {"SetTimer"}, false}};
  builder.delay_imports = {{"xinput1_3.dll", {"XInputGetState"}}};
  builder.symbols = {{.name = "_main"},
                     {.name = ".text", .type = 0, .storage = 3, .auxiliary = 1},
                     {.name = "a_name_of_more_than_eight_characters", .value = 4}};
  builder.relocations = {{0x1000, is_64 ? 10U : 3U}, {0x2010, is_64 ? 10U : 3U}};
  return builder;
}

struct Tally {
  std::size_t loaded = 0;
  std::size_t refused = 0;
};

/// Loads, and uses what was loaded; anything but an Image or an Error of one line fails the test.
void try_file(const TemporaryFile& file, Tally& tally, const ImageOptions& options) {
  try {
    const Image image = Image::load(file.path(), options);
    ++tally.loaded;
    REQUIRE(image.size() <= std::uint64_t{1} << 30U);
    std::uint64_t end = 0;
    for (const Segment& segment : image.segments()) {
      REQUIRE(segment.address >= end);
      REQUIRE(segment.address % 0x1000 == 0);
      REQUIRE(segment.bytes.size() % 0x1000 == 0);
      REQUIRE(segment.used <= segment.bytes.size());
      REQUIRE(image.find(segment.address) == &segment);
      end = segment.address + segment.bytes.size();
    }
    REQUIRE(end == image.base() + image.size());
    for (const NamedAddress& name : image.exports()) REQUIRE(name.address - image.base() < image.size());
    for (const NamedAddress& name : image.symbols()) REQUIRE(name.address - image.base() < image.size());
    for (const Import& import : image.imports()) REQUIRE(import.slot - image.base() < image.size());
    for (const std::string& note : image.notes()) REQUIRE(note.find('\n') == std::string::npos);
    for (const char* const location : {"export:far", "symbol:_main", "rva:0x1000"}) {
      try {
        image.require_code(image.resolve(location), location);
      } catch (const Error&) {
      }
    }
  } catch (const Error& error) {
    ++tally.refused;
    const std::string message = error.what();
    REQUIRE(message.starts_with(file.path().string() + ": "));
    REQUIRE(message.size() > file.path().string().size() + 8);
    REQUIRE(std::ranges::none_of(message, [](char c) { return c >= 0 && c < 0x20; }));
  }
}

}  // namespace

TEST_CASE("files cut at every length are refused, or hold all sections", "[image][fuzz]") {
  const BuiltPe built = everything(GENERATE(false, true)).build();
  const TemporaryFile file(built.bytes);
  const std::size_t needed = built.section_offsets.back();
  Tally tally;
  for (std::size_t size = built.bytes.size() + 1; size-- > 0;) {
    std::filesystem::resize_file(file.path(), size);
    const Tally before = tally;
    try_file(file, tally, {});
    INFO("size " << size);
    if (size < needed) REQUIRE(tally.refused == before.refused + 1);
  }
  CHECK(tally.loaded > 10);
}

TEST_CASE("damaged files are loaded or refused in one line", "[image][fuzz]") {
  constexpr std::uint64_t seed = 20240611;
  constexpr std::size_t rounds = 1500;
  const bool is_64 = GENERATE(false, true);
  const BuiltPe built = everything(is_64).build();
  const TemporaryFile file(built.bytes);
  const std::size_t tables = built.section_offsets[2];
  Random random(seed + (is_64 ? 1 : 0));
  Tally tally;
  for (std::size_t round = 0; round < rounds; ++round) {
    INFO("seed " << seed << ", 64-bit " << is_64 << ", round " << round);
    FileBytes bytes = built.bytes;
    for (std::size_t changes = 1 + random.below(4); changes > 0; --changes) {
      // Half of the changes to the headers, half to the tables, half of each to whole words with telling values.
      const bool headers = random.below(2) == 0;
      const std::size_t at =
          headers ? random.below(built.section_table + 280) : tables + random.below(bytes.size() - tables);
      constexpr std::uint32_t words[] = {0,          1,          0xff,       0xffff, 0x7fffffff,
                                         0x80000000, 0xfffffff0, 0xffffffff, 0x1000, 0x3000};
      if (random.below(2) == 0 && at + 4 <= bytes.size()) {
        put_u32(bytes, at & ~std::size_t{3}, words[random.below(std::size(words))]);
      } else {
        bytes[at] = static_cast<std::byte>(random.next());
      }
    }
    file.write(bytes);
    ImageOptions options;
    if (random.below(2) == 0) options.base = 0x10000000;
    try_file(file, tally, options);
  }
  CHECK(tally.loaded > rounds / 10);
  CHECK(tally.refused > rounds / 10);
}

TEST_CASE("tables that multiply are cut off", "[image][fuzz]") {
  PeBuilder builder;
  SECTION("every export with the same long name") {
    constexpr std::uint32_t count = 60000;
    FileBytes table(40 + 10 * std::size_t{count} + 4000, std::byte{'x'});
    put_u32(table, 12, 0);
    put_u32(table, 20, count);
    put_u32(table, 24, count);
    put_u32(table, 28, 0x1000 + 40);
    put_u32(table, 32, 0x1000 + 40 + 4 * count);
    put_u32(table, 36, 0x1000 + 40 + 8 * count);
    for (std::uint32_t i = 0; i < count; ++i) {
      put_u32(table, 40 + 4 * i, 0x1000);
      put_u32(table, 40 + 4 * (count + i), 0x1000 + 40 + 10 * count);
      put_u16(table, 40 + 8 * count + 2 * i, 0);
    }
    builder.sections = {
        {.name = ".edata", .data = table, .virtual_size = static_cast<std::uint32_t>(table.size() + 1)}};
    builder.directories[0] = {0x1000, 40};
    const TemporaryFile file(builder.build().bytes);
    const Image image = Image::load(file.path());
    REQUIRE(image.notes().size() == 1);
    CHECK_THAT(image.notes().front(),
               bitwitness::tests::contains_text("names are longer than 0x4000000 bytes together"));
  }
  SECTION("names in hundreds of places") {
    constexpr std::uint32_t count = 300;
    constexpr std::uint32_t step = 0x12000;
    FileBytes table(std::size_t{step} * (count + 1));
    put_u32(table, 20, count);
    put_u32(table, 24, count);
    put_u32(table, 28, 0x1000 + 40);
    put_u32(table, 32, 0x1000 + 40 + 4 * count);
    put_u32(table, 36, 0x1000 + 40 + 8 * count);
    for (std::uint32_t i = 0; i < count; ++i) {
      put_u32(table, 40 + 4 * i, 0x2000);
      put_u32(table, 40 + 4 * (count + i), 0x1000 + step * (i + 1));
      put_u16(table, 40 + 8 * count + 2 * i, i);
      table[std::size_t{step} * (i + 1)] = std::byte{'n'};
    }
    builder.sections = {{.name = ".edata", .data = table}};
    builder.directories[0] = {0x1000, 40};
    builder.symbols = {{.name = "kept", .value = 0x10}};
    const TemporaryFile file(builder.build().bytes);
    const Image image = Image::load(file.path());
    CHECK(image.exports().empty());
    CHECK(image.symbols().size() == 1);
    REQUIRE_FALSE(image.notes().empty());
    CHECK(image.notes().front() ==
          "the export table was not read: the tables are spread over 301 places and 0x12d000 bytes");
  }
  SECTION("every library with the same lookup table") {
    constexpr std::uint32_t libraries = 2000;
    constexpr std::uint32_t functions = 2000;
    FileBytes table(20 * (libraries + 1) + 4 * (functions + 1) + 16);
    const std::uint32_t lookups = 20 * (libraries + 1);
    const std::uint32_t name = lookups + 4 * (functions + 1);
    for (std::uint32_t i = 0; i < libraries; ++i) {
      put_u32(table, 20 * i, 0x1000 + lookups);
      put_u32(table, 20 * i + 12, 0x1000 + name);
      put_u32(table, 20 * i + 16, 0x1000 + lookups);
    }
    for (std::uint32_t i = 0; i < functions; ++i) put_u32(table, lookups + 4 * i, 0x80000001);
    const FileBytes library = bytes_of("same.dll");
    std::ranges::copy(library, table.begin() + name);
    builder.sections = {{.name = ".idata", .characteristics = data_section, .data = table}};
    builder.directories[1] = {0x1000, 20};
    const TemporaryFile file(builder.build().bytes);
    const Image image = Image::load(file.path());
    CHECK(image.imports().size() == 131 * functions);
    REQUIRE(image.notes().size() == 8);
    CHECK(image.notes().front() == "not read: imports from same.dll: it has more than 262144 entries");
  }
}
