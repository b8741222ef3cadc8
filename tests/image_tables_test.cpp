// Exports, symbols, imports, relocations, and the names that resolve to addresses.
#include "harness/error.hpp"
#include "harness/image.hpp"
#include "tests/catch.hpp"
#include "tests/pe_builder.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>
#include <vector>

using namespace bitwitness;
using namespace bitwitness::tests;
using bitwitness::tests::contains_text;
using Catch::Matchers::EndsWith;

namespace {

PeBuilder code_only(bool is_64 = false) {
  PeBuilder builder;
  builder.is_64 = is_64;
  builder.sections = {{.name = ".text", .data = FileBytes(0x300, std::byte{0x90})},
                      {.name = ".data", .characteristics = data_section, .data = FileBytes(0x100)}};
  return builder;
}

Image load(const FileBytes& bytes, const ImageOptions& options = {}) {
  const TemporaryFile file(bytes);
  return Image::load(file.path(), options);
}

Image load(const PeBuilder& builder, const ImageOptions& options = {}) {
  return load(builder.build().bytes, options);
}

using Row = std::tuple<std::string, std::uint64_t>;

std::vector<Row> rows(std::span<const NamedAddress> names) {
  std::vector<Row> result;
  for (const NamedAddress& name : names) result.emplace_back(name.name, name.address);
  return result;
}

std::string first_note(const Image& image) {
  return image.notes().empty() ? "(none)" : image.notes().front();
}

std::uint64_t number_at(const Image& image, std::uint64_t address, std::size_t width) {
  std::uint64_t value = 0;
  std::memcpy(&value, image.read(address, width).data(), width);
  return value;
}

}  // namespace

TEST_CASE("exports are listed by name, forwarded ones apart", "[image]") {
  PeBuilder builder = code_only(GENERATE(false, true));
  builder.exports = {
      {"zeta", 0x1010}, {"Alpha", 0x1000}, {"?decode@@YAXPAE@Z", 0x1020}, {.name = "far", .forward = "NTDLL.Near"}};
  const Image image = load(builder);
  CHECK(rows(image.exports()) ==
        std::vector<Row>{{"?decode@@YAXPAE@Z", 0x401020}, {"Alpha", 0x401000}, {"zeta", 0x401010}});
  CHECK(image.resolve("export:zeta") == 0x401010);
  CHECK_THROWS_WITH(image.resolve("export:far"),
                    EndsWith("image.exe: export:far: the code is in another file, as NTDLL.Near"));
  CHECK_THROWS_WITH(image.resolve("symbol:zeta"), EndsWith("symbol:zeta: it has no symbols"));
}

TEST_CASE("symbols of sections are listed, whatever the length of their names", "[image]") {
  PeBuilder builder = code_only(GENERATE(false, true));
  builder.symbols = {
      {.name = ".file", .section = -2, .type = 0, .storage = 103, .auxiliary = 1},
      {.name = "_main", .value = 0x10},
      {.name = "eightchr", .value = 0x20},
      {.name = "_a_name_of_more_than_eight_characters", .value = 0x30},
      {.name = ".text", .type = 0, .storage = 3, .auxiliary = 1},
      {.name = "table", .section = 2, .value = 4, .type = 0, .storage = 3},
      {.name = "label", .value = 0x40, .type = 0, .storage = 6},
      {.name = "absolute", .section = -1, .value = 0x50},
      {.name = "missing", .section = 0},
      {.name = "beyond", .section = 9},
      {.name = "outside", .section = 1, .value = 0x7fffffff},
      {.name = "weak", .value = 0x60, .storage = 105},
  };
  const Image image = load(builder);
  CHECK(rows(image.symbols()) == std::vector<Row>{{"_a_name_of_more_than_eight_characters", 0x401030},
                                                  {"_main", 0x401010},
                                                  {"eightchr", 0x401020},
                                                  {"label", 0x401040},
                                                  {"table", 0x402004},
                                                  {"weak", 0x401060}});
  CHECK(image.resolve("symbol:eightchr") == 0x401020);
  CHECK(image.notes().empty());
}

TEST_CASE("imports name their library, function and slot", "[image]") {
  const bool is_64 = GENERATE(false, true);
  const bool lookup_table = GENERATE(true, false);
  PeBuilder builder = code_only(is_64);
  builder.imports = {{"KERNEL32.dll", {"ExitProcess", "Sleep", "#40000"}, lookup_table},
                     {"d3d9.dll", {"#12", "Direct3DCreate9"}}};
  const BuiltPe built = builder.build();
  const Image image = load(built.bytes);
  const auto imports = image.imports();
  REQUIRE(imports.size() == 5);
  const std::uint64_t width = is_64 ? 8 : 4;
  // Three descriptors; per library a lookup table, then the address table.
  const std::uint64_t first = 0x400000 + built.section_addresses[2] + 64 + 4 * width;
  const std::uint64_t second = first + 4 * width + 3 * width;
  const std::vector<std::tuple<std::string, std::string, std::uint64_t>> expected = {
      {"KERNEL32.dll", "ExitProcess", first},
      {"KERNEL32.dll", "Sleep", first + width},
      {"KERNEL32.dll", "#40000", first + 2 * width},
      {"d3d9.dll", "#12", second},
      {"d3d9.dll", "Direct3DCreate9", second + width}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(std::tuple(imports[i].library, imports[i].name, imports[i].slot) == expected[i]);
  }
}

TEST_CASE("delay-loaded imports are imports too", "[image]") {
  const bool is_64 = GENERATE(false, true);
  PeBuilder builder = code_only(is_64);
  builder.imports = {{"KERNEL32.dll", {"Sleep"}}};
  builder.delay_imports = {{"xinput1_3.dll", {"XInputGetState", "#100"}}};
  builder.delay_absolute = !is_64 && GENERATE(false, true);
  const BuiltPe built = builder.build();
  const Image image = load(built.bytes);
  REQUIRE(image.imports().size() == 3);
  const std::uint64_t width = is_64 ? 8 : 4;
  const std::uint64_t slots = 0x400000 + built.section_addresses[3] + 64 + 3 * width;
  CHECK(image.imports()[1].library == "xinput1_3.dll");
  CHECK(image.imports()[1].name == "XInputGetState");
  CHECK(image.imports()[1].slot == slots);
  CHECK(image.imports()[2].name == "#100");
  CHECK(image.imports()[2].slot == slots + width);
}

TEST_CASE("relocations are applied for another base", "[image]") {
  PeBuilder builder = code_only();
  FileBytes& data = builder.sections[1].data;
  put_u32(data, 0x10, 0x401234);    // HIGHLOW
  put_u32(data, 0x21, 0x402000);    // HIGHLOW, unaligned
  put_u16(data, 0x30, 0x0040);      // HIGH
  put_u16(data, 0x40, 0x1234);      // LOW
  put_u32(data, 0x50, 0x00401000);  // not relocated
  builder.relocations = {{0x2010, 3}, {0x2021, 3}, {0x2030, 1}, {0x2040, 2}, {0x2000, 0}};
  SECTION("PE32") {
    const Image image = load(builder, {.base = 0x10000000});
    CHECK(image.base() == 0x10000000);
    CHECK(image.segments()[0].address == 0x10000000);
    CHECK(number_at(image, 0x10002010, 4) == 0x10001234);
    CHECK(number_at(image, 0x10002021, 4) == 0x10002000);
    CHECK(number_at(image, 0x10002030, 2) == 0x1000);
    CHECK(number_at(image, 0x10002040, 2) == 0x1234);
    CHECK(number_at(image, 0x10002050, 4) == 0x401000);
    CHECK(number_at(image, 0x10002000, 4) == 0);
    CHECK(image.resolve("rva:0x2010") == 0x10002010);
    CHECK(image.resolve("0x402010") == 0x402010);
  }
  SECTION("downwards") {
    const Image image = load(builder, {.base = 0x10000});
    CHECK(number_at(image, 0x12010, 4) == 0x11234);
    CHECK(number_at(image, 0x12030, 2) == 0x0001);
  }
  SECTION("PE32+") {
    builder.is_64 = true;
    put_u32(data, 0x60, 0x401234);
    builder.relocations = {{0x2060, 10}};
    const Image image = load(builder, {.base = 0x7ff612340000});
    CHECK(number_at(image, 0x7ff612342060, 8) == 0x7ff612341234);
  }
  SECTION("the preferred base needs none") {
    const Image image = load(builder, {.base = 0x400000});
    CHECK(number_at(image, 0x402010, 4) == 0x401234);
    builder.relocations = {};
    CHECK(load(builder, {.base = 0x400000}).base() == 0x400000);
  }
}

TEST_CASE("what cannot be moved is refused", "[image]") {
  PeBuilder builder = code_only();
  builder.relocations = {{0x2010, 3}};
  const ImageOptions elsewhere{.base = 0x10000000};
  SECTION("no relocations") {
    builder.relocations = {};
    CHECK_THROWS_WITH(load(builder, elsewhere),
                      EndsWith("cannot be moved to base 0x10000000: it has no relocations and only runs at 0x400000"));
  }
  SECTION("stripped") {
    builder.characteristics |= 1U;
    CHECK_THROWS_WITH(load(builder, elsewhere), contains_text("it has no relocations"));
  }
  SECTION("an unaligned base") {
    CHECK_THROWS_WITH(load(builder, {.base = 0x10008000}),
                      EndsWith("cannot be moved to base 0x10008000: not a multiple of 0x10000"));
  }
  SECTION("a base out of reach") {
    CHECK_THROWS_WITH(load(builder, {.base = 0x100000000}), contains_text("does not fit at base 0x100000000"));
    CHECK_THROWS_WITH(load(builder, {.base = 0xffffffffffff0000}),
                      contains_text("does not fit at base 0xffffffffffff0000"));
  }
  SECTION("types that x86 does not have") {
    builder.relocations = {{0x2010, 4}};
    CHECK_THROWS_WITH(load(builder, elsewhere),
                      EndsWith("relocation type HIGHADJ (4) for rva:0x2010 is not supported"));
    builder.relocations = {{0x2010, 9}};
    CHECK_THROWS_WITH(load(builder, elsewhere),
                      EndsWith("relocation type IA64_IMM64 (9) for rva:0x2010 is not supported"));
  }
  SECTION("places that are not mapped") {
    builder.relocations = {{0x9000, 3}};
    CHECK_THROWS_WITH(load(builder, elsewhere), EndsWith("a relocation names rva:0x9000, which is not mapped"));
    builder.relocations = {{0x3ffe, 3}};
    CHECK_THROWS_WITH(load(builder, elsewhere), EndsWith("a relocation names rva:0x3ffe, which is not mapped"));
  }
  SECTION("places between sections") {
    builder.sections[1].address = 0x8000;
    builder.relocations = {{GENERATE(0x1ffeU, 0x5000U, 0x7ffeU), 3}};
    CHECK_THROWS_WITH(load(builder, elsewhere), EndsWith("which is not mapped"));
  }
  SECTION("damaged blocks") {
    const BuiltPe built = builder.build();
    FileBytes bytes = built.bytes;
    const std::uint32_t size = GENERATE(0U, 7U, 9U, 0x40U, 0xfffffff0U);
    put_u32(bytes, built.section_offsets[2] + 4, size);
    CHECK_THROWS_WITH(load(bytes, elsewhere),
                      contains_text("in its relocation table, the block at rva:0x3000 (for rva:0x2000"));
    CHECK(load(bytes).base() == 0x400000);
  }
  SECTION("a table outside the image") {
    builder.directories[5] = {0x7fff0000, 0x1000};
    CHECK_THROWS_WITH(load(builder, elsewhere),
                      contains_text("in its relocation table, rva:0x7fff0000 to rva:0x7fff1000 is outside the image"));
  }
}

TEST_CASE("locations are hexadecimal addresses and names", "[image]") {
  PeBuilder builder = code_only();
  builder.symbols = {{.name = "___extendhfsf2", .value = 0x10}, {.name = "___extendhfdf2", .value = 0x20},
                     {.name = "___truncdfhf2", .value = 0x30},  {.name = "twice", .value = 0x40},
                     {.name = "twice", .value = 0x50},          {.name = "unpack_quat48_pair", .value = 0x60}};
  const Image image = load(builder);
  CHECK(image.resolve("0x401000") == 0x401000);
  CHECK(image.resolve("0XFFFFFFFFFFFFFFFF") == 0xffffffffffffffff);
  CHECK(image.resolve("rva:0x1234") == 0x401234);
  CHECK(image.resolve("rva:0xffffffff") == 0x1003fffff);
  CHECK(image.resolve("symbol:___extendhfsf2") == 0x401010);
  for (const char* const text : {"0x", "0x1g", "0x-1", "0x12345678123456789", "rva:1234", "rva:", "rva:0x100000000"}) {
    CHECK_THROWS_WITH(image.resolve(text), Catch::Matchers::StartsWith(std::string("location '") + text + "': "));
  }
  for (const char* const text : {"", "401000", "main", "symbols:main", " 0x401000", "Export:x"}) {
    CHECK_THROWS_WITH(image.resolve(text),
                      std::string("location '") + text + "' is none of 0x…, rva:0x…, export:NAME, symbol:NAME");
  }
  CHECK_THROWS_WITH(
      image.resolve("symbol:__extendhfsf2"),
      EndsWith("image.exe: symbol:__extendhfsf2: no such symbol among 6; close: ___extendhfsf2, ___extendhfdf2"));
  CHECK_THROWS_WITH(image.resolve("symbol:Quat48"), EndsWith("close: unpack_quat48_pair"));
  CHECK_THROWS_WITH(image.resolve("symbol:nothing like it"), EndsWith("no such symbol among 6"));
  CHECK_THROWS_WITH(image.resolve("symbol:twice"),
                    EndsWith("symbol:twice: 2 symbols have that name: at 0x401040, 0x401050"));
  CHECK_THROWS_WITH(image.resolve("export:a\nb"), EndsWith("export:a\\x0ab: it has no exports"));
}

TEST_CASE("damaged tables are left out, and said so", "[image]") {
  PeBuilder builder = code_only();
  builder.exports = {{"decode", 0x1000}};
  builder.imports = {{"KERNEL32.dll", {"Sleep"}}, {"USER32.dll", {"SetTimer"}}};
  builder.symbols = {{.name = "a_name_of_more_than_eight_characters"}};
  const BuiltPe built = builder.build();
  FileBytes bytes = built.bytes;
  const std::size_t exports = built.section_offsets[2];
  const std::size_t imports = built.section_offsets[3];
  SECTION("more exports than the file can hold") {
    put_u32(bytes, exports + GENERATE(20U, 24U), 0x10000000);
    const Image image = load(bytes);
    CHECK(image.exports().empty());
    CHECK(image.imports().size() == 2);
    CHECK(image.symbols().size() == 1);
    REQUIRE(image.notes().size() == 1);
    CHECK_THAT(image.notes()[0], contains_text("the export table was not read: it has more than 262144 entries"));
    CHECK_THROWS_WITH(image.resolve("export:decode"), contains_text("the export table was not read: "));
  }
  SECTION("export tables that point out of the image") {
    put_u32(bytes, exports + GENERATE(12U, 28U, 32U, 36U), 0x7fffffff);
    const Image image = load(bytes);
    CHECK(image.exports().empty());
    REQUIRE(image.notes().size() == 1);
    CHECK_THAT(image.notes()[0], contains_text("rva:0x7fffffff"));
  }
  SECTION("a forwarded export whose name has no end") {
    builder.exports[0].forward = std::string(5000, 'x');
    const Image image = load(builder.build().bytes);
    CHECK(image.exports().empty());
    CHECK_THAT(first_note(image), contains_text("has no end"));
  }
  SECTION("an export without an address") {
    put_u16(bytes, exports + 48, 1);
    CHECK_THAT(first_note(load(bytes)), contains_text("name 0 of it stands for address 1 of 1"));
  }
  SECTION("one library's imports") {
    put_u32(bytes, imports + 64, 0x7fff0000);
    const Image image = load(bytes);
    REQUIRE(image.imports().size() == 1);
    CHECK(image.imports()[0].name == "SetTimer");
    REQUIRE(image.notes().size() == 1);
    CHECK(image.notes()[0] ==
          "not read: imports from KERNEL32.dll: rva:0x7fff0000 to rva:0x7fff0002 is outside the image");
  }
  SECTION("import descriptors") {
    put_u32(bytes, built.directories + 8, 0x7fff0000);
    const Image image = load(bytes);
    CHECK(image.imports().empty());
    CHECK(first_note(image) == "not read: import table: rva:0x7fff0000 is outside the image");
  }
  SECTION("symbols past the end of the file") {
    put_u32(bytes, built.coff_header + 12, 0x1000);
    const Image image = load(bytes);
    CHECK(image.symbols().empty());
    CHECK_THAT(first_note(image), contains_text("the COFF symbol table was not read: it takes file offsets"));
    CHECK_THROWS_WITH(image.resolve("symbol:a"), contains_text("the symbol table was not read: "));
  }
  SECTION("a symbol's name cut short") {
    bytes.pop_back();
    CHECK_THAT(first_note(load(bytes)), contains_text("the name of the symbol at file offset"));
  }
}
