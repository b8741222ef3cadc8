#include "harness/disassembly.hpp"

#include "tests/catch.hpp"

#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

namespace bitwitness {
namespace {

constexpr std::uint64_t origin = 0x401000;

using Addresses = std::vector<std::uint64_t>;

std::vector<std::byte> bytes_of(std::initializer_list<unsigned> values) {
  std::vector<std::byte> bytes;
  for (const unsigned value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
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
  CHECK(decode({0x0f, 0xb9, 0xc0}).flow == Flow::stop);
  CHECK(decode({0xcd, 0x29}).flow == Flow::stop);
}

TEST_CASE("direct targets are absolute and wrap at the width of the code", "[disassembly]") {
  CHECK(decode({0xe8, 0xfb, 0x0f, 0x00, 0x00}).target == 0x402000U);
  CHECK(decode({0xe9, 0xfb, 0xff, 0xff, 0xff}).target == origin);
  CHECK(decode({0x74, 0x02}).target == origin + 4);
  CHECK(decode({0xe9, 0x00, 0x00, 0x00, 0x80}).target == 0x80401005U);
  CHECK(decode({0xe9, 0x00, 0x00, 0x00, 0xff}).target == 0xff401005U);
  CHECK(decode_64({0xe9, 0x00, 0x00, 0x00, 0xff}).target == 0xffffffffff401005U);
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
