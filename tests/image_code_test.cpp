// Whether an address can be code; hashes, close names, and text for messages.
#include "harness/close_names.hpp"
#include "harness/code_statistics.hpp"
#include "harness/error.hpp"
#include "harness/image.hpp"
#include "harness/printable.hpp"
#include "harness/sha256.hpp"
#include "tests/catch.hpp"
#include "tests/pe_builder.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

using namespace bitwitness;
using namespace bitwitness::tests;
using Catch::Matchers::EndsWith;

namespace {

FileBytes noise(std::size_t size, std::uint64_t seed) {
  FileBytes bytes;
  for (std::size_t i = 0; i < size; ++i) {
    seed = seed * 6364136223846793005U + 1442695040888963407U;
    bytes.push_back(static_cast<std::byte>(seed >> 56U));
  }
  return bytes;
}

/// Bytes that vary about as much as code does.
FileBytes plain(std::size_t size) {
  FileBytes bytes = noise(size, 7);
  for (std::byte& b : bytes) b &= std::byte{0x2f};
  return bytes;
}

Image load(const PeBuilder& builder) {
  const TemporaryFile file(builder.build().bytes);
  return Image::load(file.path());
}

}  // namespace

TEST_CASE("code is looked for in executable memory only", "[image]") {
  PeBuilder builder;
  FileBytes code = plain(0x1800);
  std::fill_n(code.begin() + 0x100, 8, std::byte{0});
  std::fill_n(code.begin() + 0x200, 7, std::byte{0});
  builder.sections = {{.name = ".text", .data = code, .virtual_size = 0x2800},
                      {.name = ".data", .characteristics = data_section, .data = plain(0x100)},
                      {.name = "UPX0", .characteristics = 0xe0000080, .virtual_size = 0x3000}};
  const Image image = load(builder);
  CHECK_NOTHROW(image.require_code(0x401000, "--at 0x401000"));
  CHECK_NOTHROW(image.require_code(0x401200, "x"));
  CHECK_NOTHROW(image.require_code(0x4027ff, "x"));
  CHECK_THROWS_WITH(
      image.require_code(0x401100, "x"),
      EndsWith("image.exe: x: 0x401100 holds only zeros in .text: code that is not in the file, or not unpacked"));
  CHECK_THROWS_WITH(image.require_code(0x403000, "x"),
                    EndsWith("0x403000 holds only zeros in .text: code that is not in the file, or not unpacked"));
  CHECK_THROWS_WITH(image.require_code(0x4037ff, "x"),
                    EndsWith("0x4037ff holds only zeros in .text: code that is not in the file, or not unpacked"));
  CHECK_THROWS_WITH(image.require_code(0x403800, "x"),
                    EndsWith("0x403800 lies behind the end of .text, in the padding of its last page"));
  CHECK_THROWS_WITH(image.require_code(0x404000, "--at rva:0x4000"),
                    EndsWith("--at rva:0x4000: 0x404000 lies in .data, which is not executable"));
  CHECK_THROWS_WITH(image.require_code(0x405100, "x"),
                    EndsWith("0x405100 holds only zeros in UPX0: code that is not in the file, or not unpacked"));
  CHECK_THROWS_WITH(image.require_code(0x400000, "x"), EndsWith("0x400000 lies in headers, which is not executable"));
  CHECK_THROWS_WITH(image.require_code(0x1000, "x"),
                    EndsWith("0x1000 is not mapped; the image takes 0x400000 to 0x408000"));
  CHECK_THROWS_WITH(image.require_code(0x408000, "x"),
                    EndsWith("0x408000 is not mapped; the image takes 0x400000 to 0x408000"));
}

TEST_CASE("packed code sections are named as such", "[image]") {
  PeBuilder builder;
  FileBytes packed = noise(0x20000, 11);
  const FileBytes stub = plain(0x1000);
  std::copy(stub.begin(), stub.end(), packed.begin() + 0x8000);
  builder.sections = {{.name = ".text", .data = packed}, {.name = ".plain", .data = plain(0x4000)}};
  const Image image = load(builder);
  for (const std::uint64_t address : {0x401000U, 0x408000U, 0x40a000U, 0x420fffU}) {
    CHECK_THROWS_WITH(image.require_code(address, "x"),
                      EndsWith("does not hold readable code: section .text looks packed or encrypted"));
  }
  CHECK_NOTHROW(image.require_code(0x409000, "x"));
  CHECK_NOTHROW(image.require_code(0x421000, "x"));
}

TEST_CASE("entropy is in bits per byte", "[image]") {
  CHECK(byte_entropy({}) == 0);
  CHECK(byte_entropy(FileBytes(100)) == 0);
  FileBytes all;
  for (unsigned i = 0; i < 256; ++i) all.push_back(static_cast<std::byte>(i));
  CHECK(std::abs(byte_entropy(all) - 8) < 1e-9);
  CHECK(std::abs(byte_entropy(bytes_of("abababab")) - 1) < 1e-9);
  CHECK(looks_packed(noise(0x10000, 3), 0));
  CHECK(looks_packed(noise(0x10000, 3), 0xffff));
  CHECK(looks_packed(noise(1024, 3), 100));
  CHECK_FALSE(looks_packed(noise(511, 3), 0));
  CHECK_FALSE(looks_packed(plain(0x10000), 0x8000));
  CHECK_FALSE(looks_packed({}, 0));
  FileBytes table_among_code = plain(0x10000);
  const FileBytes table = noise(0x400, 5);
  std::copy(table.begin(), table.end(), table_among_code.begin() + 0x8000);
  CHECK_FALSE(looks_packed(table_among_code, 0x8000));
}

TEST_CASE("hashes can be fed in pieces", "[sha256]") {
  CHECK(sha256_hex({}) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex(bytes_of("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 hash;
  hash.update(bytes_of("a"));
  CHECK(hash.hex() == sha256_hex(bytes_of("a")));
  hash.update(bytes_of("bc"));
  CHECK(hash.hex() == sha256_hex(bytes_of("abc")));
}

TEST_CASE("text for messages is one line", "[printable]") {
  CHECK(printable("a b~") == "a b~");
  CHECK(printable("\n\t\x7f\\") == "\\x0a\\x09\\x7f\\x5c");
  CHECK(printable("\xc3\xa9") == "\\xc3\\xa9");
  CHECK(printable("\xc3\xa9", true) == "\xc3\xa9");
}

TEST_CASE("close names are the likely ones, closest first", "[close_names]") {
  using Names = std::vector<std::string_view>;
  const Names known = {"unpack_pair", "unpack", "UnpackQuat", "pack", "zebra", "unpick"};
  CHECK(close_names("unpack", known) == Names{"unpack", "unpick", "pack"});
  CHECK(close_names("UNPACK", known, 1) == Names{"unpack"});
  CHECK(close_names("Quat", known) == Names{"UnpackQuat"});
  CHECK(close_names("at", known).empty());
  CHECK(close_names("", known).empty());
  CHECK(close_names(std::string(200, 'u'), known).empty());
}
