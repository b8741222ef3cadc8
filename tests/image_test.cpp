// What is loaded, how it lies in memory, and what is refused.
#include "harness/image.hpp"

#include "harness/error.hpp"
#include "tests/catch.hpp"
#include "tests/pe_builder.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

FileBytes filled(std::size_t size, unsigned value) {
  return FileBytes(size, static_cast<std::byte>(value));
}

PeBuilder two_sections(bool is_64 = false) {
  PeBuilder builder;
  builder.is_64 = is_64;
  if (is_64) builder.image_base = 0x140000000;
  builder.sections = {
      {.name = ".text", .data = filled(0x123, 0x90)},
      {.name = ".data", .characteristics = data_section, .data = filled(0x10, 0xaa), .virtual_size = 0x2345}};
  return builder;
}

Image load(const FileBytes& bytes, const ImageOptions& options = {}) {
  const TemporaryFile file(bytes);
  return Image::load(file.path(), options);
}

/// The message of the refusal, after "….exe: "; checks that it is one line and names the file.
std::string refusal(const FileBytes& bytes, const ImageOptions& options = {}) {
  const TemporaryFile file(bytes);
  try {
    static_cast<void>(Image::load(file.path(), options));
  } catch (const Error& error) {
    const std::string message = error.what();
    const std::string prefix = file.path().string() + ": ";
    CHECK(message.starts_with(prefix));
    CHECK(message.find('\n') == std::string::npos);
    return message.substr(std::min(prefix.size(), message.size()));
  }
  return "(loaded)";
}

std::string refusal(const PeBuilder& builder) {
  return refusal(builder.build().bytes);
}

bool all_are(std::span<const std::byte> bytes, unsigned value) {
  return std::ranges::all_of(bytes, [&](std::byte b) { return std::to_integer<unsigned>(b) == value; });
}

}  // namespace

TEST_CASE("sections are zero-filled to whole pages, with the file's permissions", "[image]") {
  const auto [is_64, format, base] = GENERATE(table<bool, ImageFormat, std::uint64_t>(
      {{false, ImageFormat::pe32, 0x400000}, {true, ImageFormat::pe32_plus, 0x140000000}}));
  const Image image = load(two_sections(is_64).build().bytes);
  CHECK(image.format() == format);
  CHECK(image.base() == base);
  CHECK(image.size() == 0x5000);
  CHECK(image.name() == "image.exe");
  CHECK_FALSE(image.is_stand_in());
  CHECK(image.notes().empty());
  const auto segments = image.segments();
  REQUIRE(segments.size() == 3);
  CHECK(segments[0].name == "headers");
  CHECK(segments[0].address == base);
  CHECK_FALSE(segments[0].executable);
  CHECK(std::memcmp(segments[0].bytes.data(), "MZ", 2) == 0);

  const Segment& text = segments[1];
  CHECK(text.name == ".text");
  CHECK(text.address == base + 0x1000);
  CHECK(text.used == 0x123);
  CHECK(text.bytes.size() == 0x1000);
  CHECK(text.executable);
  CHECK_FALSE(text.writable);
  CHECK(all_are(text.bytes.first(0x123), 0x90));
  CHECK(all_are(text.bytes.subspan(0x123), 0));

  const Segment& data = segments[2];
  CHECK(data.name == ".data");
  CHECK(data.used == 0x2345);
  CHECK(data.bytes.size() == 0x3000);
  CHECK(data.writable);
  CHECK_FALSE(data.executable);
  CHECK(all_are(data.bytes.first(0x10), 0xaa));
  CHECK(all_are(data.bytes.subspan(0x10), 0));
  for (const Segment& segment : segments) {
    CHECK(reinterpret_cast<std::uintptr_t>(segment.bytes.data()) % 0x1000 == 0);
    CHECK(segment.bytes.size() % 0x1000 == 0);
  }
}

TEST_CASE("find and read keep within segments", "[image]") {
  PeBuilder builder = two_sections();
  builder.sections[1].address = 0x4000;  // rva:0x2000 to rva:0x4000 is a hole
  const Image image = load(builder.build().bytes);
  REQUIRE(image.segments().size() == 3);
  CHECK(image.find(0x3fffff) == nullptr);
  CHECK(image.find(0x400000)->name == "headers");
  CHECK(image.find(0x401000)->name == ".text");
  CHECK(image.find(0x401fff)->name == ".text");
  CHECK(image.find(0x402000) == nullptr);
  CHECK(image.find(0x403fff) == nullptr);
  CHECK(image.find(0x404000)->name == ".data");
  CHECK(image.find(0x407000) == nullptr);
  CHECK(image.find(0xffffffffffffffff) == nullptr);
  CHECK(image.read(0x401ff0, 0x10).size() == 0x10);
  CHECK(image.read(0x401ff0, 0x10).data() == image.segments()[1].bytes.data() + 0xff0);
  CHECK_THROWS_WITH(image.read(0x401ff0, 0x11),
                    bitwitness::tests::contains_text("run past the end of .text at 0x402000"));
  CHECK_THROWS_WITH(image.read(0x401ff0, SIZE_MAX), bitwitness::tests::contains_text("run past the end of .text"));
  CHECK_THROWS_WITH(image.read(0x402000, 1), bitwitness::tests::contains_text("0x402000 is not mapped"));
}

TEST_CASE("an image may be moved in the host", "[image]") {
  Image first = load(two_sections().build().bytes);
  const std::byte* const text = first.segments()[1].bytes.data();
  const Image second = std::move(first);
  CHECK(second.read(0x401000, 1).data() == text);
}

TEST_CASE("the hash is the file's", "[image]") {
  FileBytes bytes = two_sections().build().bytes;
  const std::string before = load(bytes).sha256();
  CHECK(before.size() == 64);
  CHECK(load(bytes).sha256() == before);
  bytes.push_back(std::byte{0});
  CHECK(load(bytes).sha256() != before);
}

TEST_CASE("oddities that Windows loads are accepted", "[image]") {
  PeBuilder builder = two_sections();
  SECTION("more bytes in the file than in memory: those on the last page are seen, the rest is not") {
    builder.sections[0].data = filled(0x2000, 0x91);
    builder.sections[0].virtual_size = 0x800;
    const Image image = load(builder.build().bytes);
    CHECK(image.segments()[1].used == 0x800);
    CHECK(image.segments()[1].bytes.size() == 0x1000);
    CHECK(all_are(image.segments()[1].bytes, 0x91));
  }
  SECTION("virtual size 0 means the size in the file") {
    builder.sections[0].virtual_size = 0;
    const Image image = load(builder.build().bytes);
    CHECK(image.segments()[1].used == 0x200);
  }
  SECTION("no raw data at file offset 0") {
    const BuiltPe built = builder.build();
    FileBytes bytes = built.bytes;
    put_u32(bytes, built.section_table + 20, 0);
    CHECK(all_are(load(bytes).segments()[1].bytes, 0));
  }
  SECTION("offsets are rounded down to sectors") {
    const BuiltPe built = builder.build();
    FileBytes bytes = built.bytes;
    put_u32(bytes, built.section_table + 20, static_cast<std::uint32_t>(built.section_offsets[0] + 0x1f));
    CHECK(all_are(load(bytes).segments()[1].bytes.first(0x123), 0x90));
  }
  SECTION("sections without names, in any order, and an overlay") {
    builder.sections[0].name = "";
    builder.overlay = filled(0x1000, 0xee);
    std::swap(builder.sections[0], builder.sections[1]);
    builder.sections[0].address = 0x8000;
    builder.sections[1].address = 0x1000;
    const Image image = load(builder.build().bytes);
    REQUIRE(image.segments().size() == 3);
    CHECK(image.segments()[1].name == "(unnamed)");
    CHECK(image.segments()[2].name == ".data");
  }
  SECTION("a wrong size of headers and of the image") {
    builder.size_of_headers = GENERATE(0U, 0x80000000U);
    builder.size_of_image = GENERATE(0U, 0x1000U, 0x10000000U);
    const Image image = load(builder.build().bytes);
    CHECK(image.segments()[0].bytes.size() == 0x1000);
    CHECK(image.size() == 0x5000);
  }
  SECTION("directories outside the image, and fewer of them") {
    for (auto& directory : builder.directories) directory = {0x7fff0000, 0x7fffffff};
    builder.directory_count = GENERATE(0U, 5U, 16U);
    CHECK(load(builder.build().bytes).exports().empty());
  }
  SECTION("padding of the last section missing") {
    builder.sections[1].virtual_size.reset();
    FileBytes bytes = builder.build().bytes;
    bytes.resize(bytes.size() - 0x1f0);
    const Image image = load(bytes);
    CHECK(all_are(image.segments()[2].bytes.first(0x10), 0xaa));
    REQUIRE(image.notes().size() == 1);
    CHECK(image.notes()[0] == "the file ends inside the padding of section .data");
    bytes.pop_back();
    CHECK(refusal(bytes).starts_with("section .data is cut short"));
  }
  SECTION("a small section alignment: what shares a page shares permissions") {
    builder.section_alignment = builder.file_alignment = 0x20;
    builder.sections[1].virtual_size.reset();
    const BuiltPe built = builder.build();
    const Image image = load(built.bytes);
    REQUIRE(image.segments().size() == 1);
    CHECK(image.segments()[0].name == "headers+.text+.data");
    CHECK(image.segments()[0].executable);
    CHECK(image.segments()[0].writable);
    CHECK(all_are(image.read(0x400000 + built.section_addresses[0], 0x123), 0x90));
    CHECK(all_are(image.read(0x400000 + built.section_addresses[1], 0x10), 0xaa));
  }
  SECTION("with a small alignment, a section's surplus in the file does not reach into the next") {
    builder.section_alignment = builder.file_alignment = 0x20;
    builder.sections = {{.name = ".text", .data = filled(0x100, 0x90), .virtual_size = 0x40},
                        {.name = ".bss", .characteristics = data_section, .virtual_size = 0x200}};
    const BuiltPe built = builder.build();
    const Image image = load(built.bytes);
    CHECK(all_are(image.read(0x400000 + built.section_addresses[0], 0x40), 0x90));
    CHECK(all_are(image.read(0x400000 + built.section_addresses[1], 0x200), 0));
  }
}

TEST_CASE("long section names are looked up", "[image]") {
  PeBuilder builder = two_sections();
  builder.sections[1].name = "/4";
  builder.symbols = {{.name = ".debug_information"}};
  CHECK(load(builder.build().bytes).segments()[2].name == ".debug_information");
}

TEST_CASE("the marker of stand-ins is recognised", "[image]") {
  PeBuilder builder = two_sections();
  builder.sections.push_back(
      {.name = ".standin", .characteristics = constant_section, .data = bytes_of("bitwitness stand-in, x87")});
  CHECK(load(builder.build().bytes).is_stand_in());
  builder.sections.back().data = bytes_of("bitwitness stand-ih");
  CHECK_FALSE(load(builder.build().bytes).is_stand_in());
  builder.sections.back() = {.name = ".stand", .data = bytes_of("bitwitness stand-in")};
  CHECK_FALSE(load(builder.build().bytes).is_stand_in());
}

TEST_CASE("what is not a PE file is refused by name", "[image]") {
  CHECK(refusal(FileBytes{}) == "is not a PE executable: the file is empty");
  CHECK(refusal(bytes_of("some text, longer than a header")) ==
        "is not a PE executable: no MZ signature at file offset 0");
  CHECK(refusal(bytes_of("\x7f"
                         "ELF and more")) == "is not a PE executable but an ELF file");
  CHECK(refusal(bytes_of("!<arch>\n")) == "is not a PE executable but a library of object files");
  FileBytes object(0x40);
  put_u16(object, 0, 0x14c);
  CHECK(refusal(object) == "is not a PE executable but an object file for x86");
  FileBytes dos(0x80);
  std::memcpy(dos.data(), "MZ", 2);
  put_u16(dos, 0x3c, 0x40);
  CHECK(refusal(dos) == "is not a PE executable: no PE signature at file offset 0x40");
  std::memcpy(dos.data() + 0x40, "NE", 2);
  CHECK(refusal(dos) == "is not a PE executable but a 16-bit NE one");
  put_u32(dos, 0x3c, 0x40000000);
  CHECK(refusal(dos).find("PE header should be at file offset 0x40000000, but the file has 0x80 bytes") !=
        std::string::npos);

  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  CHECK_THROWS_WITH(Image::load(folder), folder.string() + ": is not a PE executable but a directory");
  CHECK_THROWS_WITH(Image::load(folder / "no such file"), Catch::Matchers::EndsWith("no such file: no such file"));
  CHECK_THROWS_WITH(Image::load("/dev/null"), "/dev/null: is not a regular file");
  CHECK_THROWS_WITH(Image::load("two\nlines.exe"), "two\\x0alines.exe: no such file");
}

TEST_CASE("other machines and object files are refused by name", "[image]") {
  PeBuilder builder = two_sections();
  const auto [machine, name] = GENERATE(table<std::uint16_t, std::string>({{0x1c0, "ARM"},
                                                                           {0x1c4, "ARM Thumb-2"},
                                                                           {0xaa64, "ARM64"},
                                                                           {0x200, "Itanium"},
                                                                           {0x1f2, "PowerPC big-endian (Xbox 360)"},
                                                                           {0x7777, "an unknown machine"}}));
  builder.machine = machine;
  CHECK(refusal(builder).starts_with("is for " + name + " (machine type 0x"));
  builder.machine = 0x14c;
  builder.optional_header_size = 0;
  CHECK(refusal(builder) == "is an object file: it has no optional header (file offset 0x94)");
  builder.optional_header_size.reset();
  builder.magic = 0x20b;
  CHECK(refusal(builder) == "has optional header type 0x20b at file offset 0x98, which does not go with x86");
}

TEST_CASE("sections that are cut short, overlap or ask for too much are refused", "[image]") {
  PeBuilder builder = two_sections();
  SECTION("no sections") {
    builder.section_count = 0;
    CHECK(refusal(builder) == "has no sections (file offset 0x86)");
  }
  SECTION("more rows than the file has") {
    builder.section_count = 0xffff;
    CHECK(refusal(builder).starts_with("is cut short: its section table takes file offsets 0x178 to "));
  }
  SECTION("only empty sections") {
    for (BuilderSection& section : builder.sections) section = {.name = "x"};
    CHECK(refusal(builder) == "has only empty sections");
  }
  SECTION("cut short") {
    builder.sections[0].raw_size = 0x100000;
    builder.sections[0].virtual_size = 0x80000;
    CHECK(refusal(builder) ==
          "section .text is cut short: it takes file offsets 0x200 to 0x80200, but the file has 0x600 bytes");
    builder.sections[0].raw_size.reset();
    builder.sections[0].raw_offset = 0xfffffe00;
    builder.sections[0].data.clear();
    builder.sections[0].raw_size = 0x1000;
    CHECK(refusal(builder).starts_with("section .text is cut short: it takes file offsets 0xfffffe00 to 0x100000e00"));
  }
  SECTION("overlap") {
    builder.sections[0].virtual_size = 0x1001;
    builder.sections[1].address = 0x2000;
    CHECK(refusal(builder) == "sections .text (rva:0x1000 to rva:0x2001) and .data (rva:0x2000 to rva:0x4345) overlap");
  }
  SECTION("gigabytes in a section") {
    builder.sections[1].virtual_size = 0xfffff000;
    CHECK(refusal(builder) ==
          "section .data asks for 0xfffff000 bytes at rva:0x2000; an image may have 0x40000000 bytes");
    builder.sections[1].virtual_size = 0x1000;
    builder.sections[1].address = 0xfffff000;
    CHECK(refusal(builder).starts_with("section .data asks for 0x1000 bytes at rva:0xfffff000"));
  }
  SECTION("gigabytes in the header") {
    builder.size_of_image = 0x80000000;
    CHECK(refusal(builder) == "asks for an image of 0x80000000 bytes (file offset 0xd0); at most 0x40000000 are given");
  }
  SECTION("a base that leaves no room") {
    builder.image_base = 0xffffc000;
    CHECK(refusal(builder) == "does not fit at base 0xffffc000: it takes 0x5000 bytes");
    builder.image_base = 0x400800;
    CHECK(refusal(builder) == "has image base 0x400800, which is not a multiple of a page");
  }
}

TEST_CASE("images that hold only .NET code are refused", "[image]") {
  PeBuilder builder = two_sections();
  FileBytes clr(72);
  put_u32(clr, 0, 72);
  put_u32(clr, 16, 1);
  builder.sections[1] = {.name = ".clr", .characteristics = constant_section, .data = clr};
  builder.directories[14] = {0x2000, 72};
  CHECK(refusal(builder) == "holds only .NET code (CLR header at rva:0x2000); there is no machine code to run");
  put_u32(builder.sections[1].data, 16, 0x10);  // mixed
  CHECK(refusal(builder) == "(loaded)");
}
