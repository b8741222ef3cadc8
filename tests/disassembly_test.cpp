#include "harness/disassembly.hpp"

#include "harness/sha256.hpp"
#include "tests/catch.hpp"
#include "tests/pe_builder.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

namespace bitwitness {
namespace {

constexpr std::uint64_t origin = 0x401000;

using tests::bytes_of;
using tests::data_section;
using tests::FileBytes;
using tests::PeBuilder;
using tests::TemporaryFile;

using Addresses = std::vector<std::uint64_t>;

// Where the code of `image_of` begins.
constexpr std::uint64_t base = 0x400000;

Image image_of(const FileBytes& code, bool is_64_bit = false) {
  PeBuilder builder;
  builder.is_64 = is_64_bit;
  builder.image_base = base;
  builder.sections = {{.name = ".text", .data = code},
                      {.name = ".data", .characteristics = data_section, .data = bytes_of({0x90, 0xc3})}};
  const TemporaryFile file(builder.build().bytes);
  return Image::load(file.path());
}

Addresses addresses_of(const Listing& listing) {
  Addresses addresses;
  for (const Instruction& instruction : listing.instructions) addresses.push_back(instruction.address);
  return addresses;
}

// The instruction that these bytes are, all of them.
Instruction decode(std::initializer_list<unsigned> values, bool is_64_bit = false) {
  const std::vector<std::byte> bytes = bytes_of(values);
  const std::optional<Instruction> instruction = disassemble_one(bytes, origin, is_64_bit);
  REQUIRE(instruction);
  CHECK(instruction->address == origin);
  CHECK(instruction->size == bytes.size());
  return *instruction;
}

Instruction decode_64(std::initializer_list<unsigned> values) {
  return decode(values, true);
}

}  // namespace

TEST_CASE("instructions are printed in Intel syntax", "[disassembly]") {
  CHECK(decode({0xd9, 0x40, 0x04}).text == "fld dword ptr [eax + 4]");
  CHECK(decode({0xdc, 0x0d, 0xd0, 0x13, 0xe4, 0x01}).text == "fmul qword ptr [0x1e413d0]");
  CHECK(decode({0xd9, 0x7c, 0x24, 0x2e}).text == "fnstcw word ptr [esp + 0x2e]");
  CHECK(decode({0xd9, 0xfa}).text == "fsqrt");
  CHECK(decode({0xf2, 0x0f, 0x59, 0xc1}).text == "mulsd xmm0, xmm1");
  CHECK(decode({0x0f, 0x28, 0x0d, 0x00, 0x30, 0x40, 0x00}).text == "movaps xmm1, xmmword ptr [0x403000]");
  CHECK(decode({0xf3, 0xa5}).text == "rep movsd dword ptr es:[edi], dword ptr [esi]");
  CHECK(decode({0xc3}).text == "ret");
  CHECK(decode_64({0xf3, 0x0f, 0x10, 0x05, 0xf8, 0x1f, 0x00, 0x00}).text == "movss xmm0, dword ptr [rip + 0x1ff8]");
}

TEST_CASE("what is not an instruction is nothing", "[disassembly]") {
  const auto is_nothing = [](std::initializer_list<unsigned> values, bool is_64_bit) {
    return !disassemble_one(bytes_of(values), origin, is_64_bit);
  };
  CHECK(is_nothing({}, false));
  CHECK(is_nothing({0xff, 0xff}, false));
  CHECK(is_nothing({0xe8, 0x00, 0x00}, false));
  CHECK(is_nothing({0xf0}, false));
  CHECK(is_nothing({0x06}, true));
  CHECK(decode({0x06}).text == "push es");
  // The bytes behind an instruction do not matter.
  const std::optional<Instruction> first = disassemble_one(bytes_of({0x90, 0xff, 0xff}), origin, false);
  REQUIRE(first);
  CHECK(first->size == 1);
}

TEST_CASE("control flow is told apart", "[disassembly]") {
  CHECK(decode({0x90}).flow == Flow::next);
  CHECK(decode({0xcd, 0x2e}).flow == Flow::next);
  CHECK(decode({0xe9, 0x00, 0x10, 0x00, 0x00}).flow == Flow::jump);
  CHECK(decode({0xeb, 0xfe}).flow == Flow::jump);
  CHECK(decode({0x74, 0x02}).flow == Flow::conditional_jump);
  CHECK(decode({0x0f, 0x8a, 0x00, 0x00, 0x00, 0x00}).flow == Flow::conditional_jump);
  CHECK(decode({0xe2, 0xfe}).flow == Flow::conditional_jump);
  CHECK(decode({0xe1, 0xfe}).flow == Flow::conditional_jump);
  CHECK(decode({0xe0, 0xfe}).flow == Flow::conditional_jump);
  CHECK(decode({0xe3, 0xfe}).flow == Flow::conditional_jump);
  CHECK(decode({0xe8, 0xfb, 0xff, 0xff, 0xff}).flow == Flow::call);
  CHECK(decode({0xff, 0xe0}).flow == Flow::indirect_jump);
  CHECK(decode({0xff, 0x25, 0x00, 0x20, 0x40, 0x00}).flow == Flow::indirect_jump);
  CHECK(decode({0xff, 0x24, 0x85, 0x00, 0x20, 0x40, 0x00}).flow == Flow::indirect_jump);
  CHECK(decode({0xea, 0x00, 0x00, 0x00, 0x00, 0x23, 0x00}).flow == Flow::indirect_jump);
  CHECK(decode({0xff, 0xd0}).flow == Flow::indirect_call);
  CHECK(decode({0xff, 0x52, 0x08}).flow == Flow::indirect_call);
  CHECK(decode({0x9a, 0x00, 0x00, 0x00, 0x00, 0x23, 0x00}).flow == Flow::indirect_call);
  CHECK(decode({0xc3}).flow == Flow::return_);
  CHECK(decode({0xc2, 0x08, 0x00}).flow == Flow::return_);
  CHECK(decode({0xf3, 0xc3}).flow == Flow::return_);
  CHECK(decode({0xcb}).flow == Flow::return_);
  CHECK(decode({0xcf}).flow == Flow::return_);
  CHECK(decode({0xcc}).flow == Flow::stop);
  CHECK(decode({0xf4}).flow == Flow::stop);
  CHECK(decode({0x0f, 0x0b}).flow == Flow::stop);
  CHECK(decode({0xcd, 0x29}).flow == Flow::stop);
}

TEST_CASE("direct targets are absolute and wrap at the width of the code", "[disassembly]") {
  CHECK(decode({0xe8, 0xfb, 0x0f, 0x00, 0x00}).target == 0x402000U);
  CHECK(decode({0xe9, 0xfb, 0xff, 0xff, 0xff}).target == origin);
  CHECK(decode({0x74, 0x02}).target == origin + 4);
  CHECK(decode({0xe9, 0x00, 0x00, 0x00, 0x80}).target == 0x80401005U);
  CHECK(decode({0xe9, 0x00, 0x00, 0x00, 0xff}).target == 0xff401005U);
  CHECK(decode_64({0xe9, 0x00, 0x00, 0x00, 0xff}).target == 0xffffffffff401005U);
  const FileBytes over_the_top = bytes_of({0xe9, 0x10, 0x00, 0x00, 0x00});
  CHECK(disassemble_one(over_the_top, 0xfffffff0, false)->target == 5U);
  CHECK(disassemble_one(over_the_top, 0xfffffff0, true)->target == 0x100000005U);
  CHECK_FALSE(decode({0xff, 0xd0}).target);
  CHECK_FALSE(decode({0xff, 0x15, 0x00, 0x20, 0x40, 0x00}).target);
  CHECK_FALSE(decode({0x90}).target);
  CHECK(decode({0xe8, 0xfb, 0x0f, 0x00, 0x00}).immediates.empty());
}

TEST_CASE("memory references are the absolute addresses that operands name", "[disassembly]") {
  const auto references = [](const Instruction& instruction) { return instruction.memory_references; };
  CHECK(references(decode({0xd9, 0x05, 0x00, 0x30, 0x40, 0x00})) == Addresses{0x403000});
  CHECK(references(decode({0xa1, 0x00, 0x30, 0x40, 0x00})) == Addresses{0x403000});
  CHECK(references(decode({0xff, 0x15, 0x00, 0x20, 0x40, 0x00})) == Addresses{0x402000});
  CHECK(references(decode({0xa1, 0x00, 0x00, 0x00, 0xf0})) == Addresses{0xf0000000});
  CHECK(references(decode({0xc7, 0x05, 0x00, 0x30, 0x40, 0x00, 0x5d, 0x06, 0x35, 0x38})) == Addresses{0x403000});
  // Tables, with an index or a pointer-sized register beside the address.
  CHECK(references(decode({0x8b, 0x04, 0x85, 0x00, 0x30, 0x40, 0x00})) == Addresses{0x403000});
  CHECK(references(decode({0xd9, 0x80, 0x00, 0x30, 0x40, 0x00})) == Addresses{0x403000});
  // Offsets into structures and frames, and thread-local memory.
  CHECK(references(decode({0xd9, 0x40, 0x04})).empty());
  CHECK(references(decode({0x8b, 0x85, 0x00, 0xff, 0xff, 0xff})).empty());
  CHECK(references(decode({0x64, 0xa1, 0x00, 0x00, 0x00, 0x00})).empty());
  CHECK(references(decode({0x8b, 0x00})).empty());

  CHECK(references(decode_64({0xf3, 0x0f, 0x10, 0x05, 0xf8, 0x1f, 0x00, 0x00})) == Addresses{0x403000});
  CHECK(references(decode_64({0xf3, 0x0f, 0x10, 0x05, 0xf8, 0xff, 0xff, 0xff})) == Addresses{0x401000});
  CHECK(references(decode_64({0x67, 0x8b, 0x05, 0x00, 0x00, 0x00, 0xff})) == Addresses{0xff401007});
  CHECK(references(decode_64({0x8b, 0x04, 0x25, 0x00, 0x30, 0x40, 0x00})) == Addresses{0x403000});
  CHECK(references(decode_64({0x48, 0xa1, 0x00, 0x30, 0x40, 0x00, 0x01, 0x00, 0x00, 0x00})) == Addresses{0x100403000});
  CHECK(references(decode_64({0x42, 0x8b, 0x84, 0x81, 0x00, 0x30, 0x40, 0x00})) == Addresses{0x403000});
  CHECK(references(decode_64({0x48, 0x8b, 0x45, 0xf8})).empty());
  CHECK(references(decode_64({0x65, 0x48, 0x8b, 0x04, 0x25, 0x30, 0x00, 0x00, 0x00})).empty());
}

TEST_CASE("immediates are zero-extended from the width of their operand", "[disassembly]") {
  const auto immediates = [](const Instruction& instruction) { return instruction.immediates; };
  CHECK(immediates(decode({0x68, 0x5d, 0x06, 0x35, 0x38})) == Addresses{0x3835065d});
  CHECK(immediates(decode({0xb8, 0xff, 0xff, 0xff, 0xff})) == Addresses{0xffffffff});
  CHECK(immediates(decode({0x83, 0xc0, 0xff})) == Addresses{0xffffffff});
  CHECK(immediates(decode({0x66, 0x83, 0xc0, 0xff})) == Addresses{0xffff});
  CHECK(immediates(decode({0xc6, 0x00, 0xff})) == Addresses{0xff});
  CHECK(immediates(decode({0xc2, 0x08, 0x00})) == Addresses{8});
  CHECK(immediates(decode({0xc7, 0x05, 0x00, 0x30, 0x40, 0x00, 0x5d, 0x06, 0x35, 0x38})) == Addresses{0x3835065d});
  CHECK(immediates(decode_64({0x48, 0xb8, 0x00, 0x00, 0x00, 0xa0, 0xcb, 0xa0, 0x06, 0x3f})) ==
        Addresses{0x3f06a0cba0000000});
  CHECK(immediates(decode_64({0x48, 0x83, 0xc0, 0xff})) == Addresses{0xffffffffffffffff});
  CHECK(immediates(decode_64({0xb8, 0xff, 0xff, 0xff, 0xff})) == Addresses{0xffffffff});
  CHECK(immediates(decode({0x90})).empty());
}

TEST_CASE("an instruction is read from an image", "[disassembly]") {
  const Image image = image_of(bytes_of({0xd9, 0x40, 0x04, 0xc3}));
  const std::optional<Instruction> instruction = disassemble_one(image, 0x401000);
  REQUIRE(instruction);
  CHECK(instruction->text == "fld dword ptr [eax + 4]");
  CHECK(instruction->address == 0x401000);
  CHECK(disassemble_one(image, 0x401003)->text == "ret");
  CHECK(disassemble_one(image, 0x402000)->text == "nop");
  CHECK_FALSE(disassemble_one(image, 0x500000));
  CHECK_FALSE(disassemble_one(image, 0));
  CHECK(disassemble_one(image_of(bytes_of({0xd9, 0x40, 0x04}), true), 0x401000)->text == "fld dword ptr [rax + 4]");
}

TEST_CASE("a routine is what direct control flow reaches", "[disassembly]") {
  const Image image = image_of(bytes_of({
      0x85, 0xc0,                    // 401000 test eax, eax
      0x74, 0x05,                    // 401002 je 401009
      0xe8, 0x07, 0x00, 0x00, 0x00,  // 401004 call 401010
      0xeb, 0x02,                    // 401009 jmp 40100d
      0xff, 0xff,                    // 40100b no code, and not reached
      0xc3,                          // 40100d ret
      0xcc, 0xcc,                    // 40100e
      0x90,                          // 401010 nop
      0xc3,                          // 401011 ret
  }));
  const Listing listing = disassemble_routine(image, 0x401000);
  CHECK(addresses_of(listing) == Addresses{0x401000, 0x401002, 0x401004, 0x401009, 0x40100d});
  CHECK(listing.undecodable.empty());
  CHECK(listing.complete);

  CHECK(addresses_of(disassemble_routine(image, 0x401000, 4096, true)) ==
        Addresses{0x401000, 0x401002, 0x401004, 0x401009, 0x40100d, 0x401010, 0x401011});
}

TEST_CASE("overlapping instructions are both listed", "[disassembly]") {
  const Image image = image_of(bytes_of({
      0x74, 0x01,                    // 401000 je 401003
      0xb8, 0xc3, 0x90, 0x90, 0x90,  // 401002 mov eax, 909090c3; 401003 ret
      0xc3,                          // 401007 ret
  }));
  const Listing listing = disassemble_routine(image, 0x401000);
  CHECK(addresses_of(listing) == Addresses{0x401000, 0x401002, 0x401003, 0x401007});
  CHECK(listing.complete);
}

TEST_CASE("a routine ends where it returns, stops or is not code", "[disassembly]") {
  const auto undecodable = [](const FileBytes& code) {
    return disassemble_routine(image_of(code), 0x401000).undecodable;
  };
  for (const FileBytes& ending : {bytes_of({0xc3, 0xff, 0xff}), bytes_of({0xcc, 0xff, 0xff}),
                                  bytes_of({0xf4, 0xff, 0xff}), bytes_of({0x0f, 0x0b, 0xff, 0xff})}) {
    const Listing listing = disassemble_routine(image_of(ending), 0x401000);
    CHECK(listing.instructions.size() == 1);
    CHECK(listing.undecodable.empty());
  }
  CHECK(undecodable(bytes_of({0x90, 0xff, 0xff})) == Addresses{0x401001});
  // Out of the image, into a section that is not executable, beyond the section's last byte, to one place twice.
  CHECK(undecodable(bytes_of({0xe9, 0x00, 0x00, 0x10, 0x00})) == Addresses{0x501005});
  CHECK(undecodable(bytes_of({0xe9, 0xfb, 0x0f, 0x00, 0x00})) == Addresses{0x402000});
  CHECK(undecodable(bytes_of({0x90, 0x90})) == Addresses{0x401002});
  CHECK(undecodable(bytes_of({0x74, 0x02, 0x75, 0x00, 0xff, 0xff})) == Addresses{0x401004});
  const Listing outside = disassemble_routine(image_of(bytes_of({0x90})), 0x10);
  CHECK(outside.instructions.empty());
  CHECK(outside.undecodable == Addresses{0x10});
}

TEST_CASE("a listing says when it is not the whole routine", "[disassembly]") {
  const Image image = image_of(bytes_of({0x90, 0x90, 0x90, 0x90, 0xc3}));
  CHECK(disassemble_routine(image, 0x401000, 5).complete);
  const Listing cut = disassemble_routine(image, 0x401000, 4);
  CHECK_FALSE(cut.complete);
  CHECK(cut.instructions.size() == 4);
  CHECK_FALSE(disassemble_routine(image, 0x401000, 0).complete);
  CHECK_FALSE(disassemble_routine(image_of(bytes_of({0xff, 0xe0})), 0x401000).complete);
  CHECK_FALSE(disassemble_routine(image_of(bytes_of({0xff, 0x25, 0x00, 0x20, 0x40, 0x00})), 0x401000).complete);
  CHECK(disassemble_routine(image_of(bytes_of({0xff, 0xd0, 0xc3})), 0x401000).complete);
  // A loop ends nothing.
  CHECK(disassemble_routine(image_of(bytes_of({0xeb, 0xfe})), 0x401000).complete);
}

TEST_CASE("a routine is identified by the bytes of its instructions", "[disassembly]") {
  const Image image = image_of(bytes_of({0x90, 0xeb, 0x02, 0xff, 0xff, 0xc3}));
  const Listing listing = disassemble_routine(image, 0x401000);
  CHECK(routine_sha256(image, listing) == sha256_hex(bytes_of({0x90, 0xeb, 0x02, 0xc3})));
  CHECK(routine_sha256(image, listing).size() == 64);
}

TEST_CASE("a real half decoder is listed whole", "[disassembly]") {
  const std::filesystem::path dll = BITWITNESS_MINGW32_DLL_DIR "/libgcc_s_dw2-1.dll";
  if (!std::filesystem::exists(dll)) {
    if (std::getenv("BITWITNESS_REQUIRE_FIXTURES") != nullptr) FAIL(dll << " is missing");
    tests::skip(dll.string() + " is missing (Debian: gcc-mingw-w64-i686-win32-runtime)");
    return;
  }
  const Image image = Image::load(dll);
  const std::uint64_t address = image.resolve("symbol:___extendhfsf2");
  const Listing listing = disassemble_routine(image, address);
  CHECK(listing.complete);
  CHECK(listing.undecodable.empty());
  CHECK(listing.instructions.size() > 40);
  CHECK(listing.instructions.front().address == address);
  const auto count = [&](auto has) {
    return std::count_if(listing.instructions.begin(), listing.instructions.end(), has);
  };
  CHECK(count([](const Instruction& i) { return i.text.starts_with("fnstcw word ptr [esp"); }) == 1);
  CHECK(count([](const Instruction& i) { return i.text.starts_with("fld dword ptr [esp"); }) >= 1);
  CHECK(count([](const Instruction& i) { return i.flow == Flow::call; }) == 1);
  CHECK(count([](const Instruction& i) { return i.flow == Flow::return_; }) >= 1);
  // It calls one routine, for exceptions, which it shares with others.
  const Listing with_callees = disassemble_routine(image, address, 4096, true);
  CHECK(with_callees.instructions.size() > listing.instructions.size());
  CHECK(routine_sha256(image, with_callees) != routine_sha256(image, listing));
}

TEST_CASE("several threads disassemble at once", "[disassembly]") {
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    threads.emplace_back([&texts, i] {
      const std::vector<std::byte> bytes = bytes_of({0xd9, 0x40, static_cast<unsigned>(i + 1)});
      for (int round = 0; round < 200; ++round) {
        const std::optional<Instruction> instruction = disassemble_one(bytes, origin, i % 2 == 1);
        texts[i] = instruction ? instruction->text : "nothing";
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(texts == std::vector<std::string>{"fld dword ptr [eax + 1]", "fld dword ptr [rax + 2]",
                                          "fld dword ptr [eax + 3]", "fld dword ptr [rax + 4]"});
}

TEST_CASE("the disassembler tells its version", "[disassembly]") {
  CHECK(capstone_version().find('.') != std::string::npos);
  CHECK(std::stoi(capstone_version()) >= 4);
}

}  // namespace bitwitness
