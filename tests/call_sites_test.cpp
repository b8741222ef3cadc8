// What stands around the calls of a routine.

#include "harness/probe/call_sites.hpp"

#include "harness/probe/call_evidence.hpp"
#include "tests/catch.hpp"
#include "tests/pe_builder.hpp"

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <string>

using namespace bitwitness;

namespace {

using tests::bytes_of;
using tests::FileBytes;

constexpr std::uint32_t base = 0x400000;
constexpr std::uint32_t routine = 0x401800;  // `ret` alone: only its callers are looked at

/// An executable with code at 401000, filled with int3.
class Code {
 public:
  explicit Code(bool is_64_bit = false) : bytes_(0x1000, std::byte{0xcc}), is_64_bit_(is_64_bit) {
    put(routine, {0xc3});
  }

  Code& put(std::uint32_t address, std::initializer_list<unsigned> bytes) { return put(address, bytes_of(bytes)); }

  Code& put(std::uint32_t address, const FileBytes& bytes) {
    std::ranges::copy(bytes, bytes_.begin() + (address - base - 0x1000));
    return *this;
  }

  /// A call, or a jump with another opcode.
  Code& call(std::uint32_t address, std::uint32_t target = routine, unsigned opcode = 0xe8) {
    FileBytes bytes(5, std::byte{0});
    bytes[0] = static_cast<std::byte>(opcode);
    tests::put_u32(bytes, 1, target - address - 5);
    return put(address, bytes);
  }

  [[nodiscard]] DirectCalls find() const {
    tests::PeBuilder builder;
    builder.is_64 = is_64_bit_;
    builder.image_base = base;
    builder.sections = {{".text", tests::code_section, bytes_, {}, {}, {}, {}}};
    const tests::TemporaryFile file(builder.build().bytes);
    const Image image = Image::load(file.path());
    return find_call_sites(image, routine);
  }

  [[nodiscard]] DirectCall only() const {
    DirectCalls calls = find();
    REQUIRE(calls.found == 1);
    REQUIRE(calls.sites.size() == 1);
    return calls.sites[0];
  }

 private:
  FileBytes bytes_;
  bool is_64_bit_;
};

using Kind = PassedWord::Kind;

void check_word(const PassedWord& word, Kind kind, std::uint64_t number = 0) {
  CHECK(word.kind == kind);
  CHECK(word.number == number);
}

}  // namespace

TEST_CASE("words that are pushed and removed") {
  Code code;
  // push esi; push -1; lea eax, [ebp - 10h]; push eax; mov ecx, 5; push ecx; push [esi]
  code.put(0x401100, {0x56, 0x6a, 0xff, 0x8d, 0x45, 0xf0, 0x50, 0xb9, 5, 0, 0, 0, 0x51, 0xff, 0x36});
  code.call(0x40110f);
  code.put(0x401114, {0xd9, 0x1f, 0x83, 0xc4, 0x10, 0x5e, 0xc3});  // fstp dword [edi]; add esp, 16; pop esi; ret
  const DirectCall site = code.only();
  CHECK(site.address == 0x40110f);
  REQUIRE(site.stack.size() == 5);
  CHECK(site.pushed() == 5);
  check_word(site.stack[0], Kind::memory);
  check_word(site.stack[1], Kind::immediate, 5);
  check_word(site.stack[2], Kind::local);
  check_word(site.stack[3], Kind::immediate, 0xffffffff);
  check_word(site.stack[4], Kind::register_);
  CHECK(site.given_back == 16);
  CHECK(site.returns_soon);
  CHECK(site.result.st0 == 4);
  CHECK_FALSE(site.result.eax);
}

TEST_CASE("words that are stored into room that is kept for calls") {
  Code code;
  // sub esp, 1ch; mov dword [esp + 4], 3; xor edx, edx; lea ecx, [esp + 10h]; mov [esp], edx
  code.put(0x401100, {0x83, 0xec, 0x1c, 0xc7, 0x44, 0x24, 0x04, 3,    0,    0,
                      0,    0x31, 0xd2, 0x8d, 0x4c, 0x24, 0x10, 0x89, 0x14, 0x24});
  code.call(0x401114);
  code.put(0x401119, {0x01, 0xc3, 0x83, 0xec, 0x08, 0xeb, 0x10});  // add ebx, eax; sub esp, 8; jmp
  const DirectCall site = code.only();
  REQUIRE(site.stack.size() == 2);
  CHECK(site.pushed() == 0);
  check_word(site.stack[0], Kind::immediate, 0);
  check_word(site.stack[1], Kind::immediate, 3);
  REQUIRE(site.general[1].has_value());
  check_word(*site.general[1], Kind::local);
  CHECK(site.given_back == -8);
  CHECK_FALSE(site.returns_soon);
  CHECK(site.result.eax);
  CHECK(site.result.st0 == 0);
}

TEST_CASE("a part of a word and a float are passed, but no number is known") {
  Code code;
  // sub esp, 12; mov word [esp], 1; fstp qword [esp + 4]
  code.put(0x401100, {0x83, 0xec, 0x0c, 0x66, 0xc7, 0x04, 0x24, 1, 0, 0xdd, 0x5c, 0x24, 0x04});
  code.call(0x40110d);
  const DirectCall site = code.only();
  REQUIRE(site.stack.size() == 3);
  for (const PassedWord& word : site.stack) check_word(word, Kind::unknown);
}

TEST_CASE("64-bit calls load registers and store behind the home words") {
  Code code(true);
  // lea rcx, [rsp + 40h]; mov edx, 7; mov r8, rdx; mov qword [rsp + 20h], 9; mov dword [rsp + 28h], 2; xorps xmm3, xmm3
  code.put(0x401100, {0x48, 0x8d, 0x4c, 0x24, 0x40, 0xba, 7,    0,    0,    0, 0x49, 0x89, 0xd0, 0x48, 0xc7, 0x44, 0x24,
                      0x20, 9,    0,    0,    0,    0xc7, 0x44, 0x24, 0x28, 2, 0,    0,    0,    0x0f, 0x57, 0xdb});
  code.call(0x401121);
  code.put(0x401126, {0xf3, 0x0f, 0x11, 0x03, 0xc3});  // movss [rbx], xmm0
  const DirectCall site = code.only();
  check_word(site.general[1].value(), Kind::local);
  check_word(site.general[2].value(), Kind::immediate, 7);
  check_word(site.general[8].value(), Kind::immediate, 7);
  CHECK(site.unread == (1u << 1 | 1u << 8));
  CHECK(site.xmm == 1u << 3);
  REQUIRE(site.stack.size() == 2);
  check_word(site.stack[0], Kind::immediate, 9);
  check_word(site.stack[1], Kind::immediate, 2);
  CHECK(site.result.xmm0);
}

TEST_CASE("operands that look like instructions are not taken for them") {
  Code code;
  code.put(0x401100, {0x68, 4, 0, 0, 0, 0xb8, 0x6a, 0x01, 0x6a, 0x02});  // push 4; mov eax, 26a016ah
  code.call(0x40110a);
  const DirectCall site = code.only();
  REQUIRE(site.stack.size() == 1);
  check_word(site.stack[0], Kind::immediate, 4);
  check_word(site.general[0].value(), Kind::immediate, 0x026a016a);
}

TEST_CASE("what was done before another call or jump is not counted") {
  Code code;
  code.put(0x401100, {0x6a, 0x01, 0xb9, 1, 0, 0, 0}).call(0x401107, 0x401900).put(0x40110c, {0x6a, 0x02});
  code.call(0x40110e);
  const DirectCall site = code.only();
  REQUIRE(site.stack.size() == 1);
  check_word(site.stack[0], Kind::immediate, 2);
  CHECK_FALSE(site.general[1].has_value());
}

TEST_CASE("a way in from elsewhere hides what is before it") {
  for (const bool is_far : {false, true}) {
    Code code;
    // jne L; push 1; jmp M; L: push 2; M: push 3; call
    code.put(0x401100, {0x85, 0xc0, 0x75, 0x04, 0x6a, 0x01, 0xeb, 0x02, 0x6a, 0x02, 0x6a, 0x03});
    if (is_far) code.put(0x401104, {0x90, 0x90, 0x90, 0x90}).call(0x401600, 0x40110a, 0xe9);
    code.call(0x40110c);
    const DirectCall site = code.only();
    REQUIRE(site.stack.size() == 1);
    check_word(site.stack[0], Kind::immediate, 3);
  }
}

TEST_CASE("calls through a jump that stands alone count") {
  Code code;
  code.put(0x401100, {0x6a, 0x02}).call(0x401102).call(0x401700, routine, 0xe9);
  code.put(0x401200, {0x6a, 0x03}).call(0x401202, 0x401700);
  const DirectCalls calls = code.find();
  REQUIRE(calls.found == 2);
  check_word(calls.sites[1].stack.at(0), Kind::immediate, 3);
  // A jump behind other code ends a function: calls of its address do not exist, what looks like one is something else.
  code.put(0x4016fe, {0x5e, 0x5d});
  CHECK(code.find().found == 1);
}

TEST_CASE("a short jump that stands alone is one of these") {
  for (const std::uint32_t jump : {routine - 0x81, routine + 0x40, routine + 0x7e}) {
    Code code;
    code.put(jump, {0xeb, (routine - jump - 2) & 0xff}).put(0x401200, {0x6a, 0x03}).call(0x401202, jump);
    CHECK(code.find().found == 1);
  }
  Code beyond;  // a distance of 80h leads the other way
  beyond.put(routine - 0x82, {0xeb, 0x80}).put(0x401200, {0x6a, 0x03}).call(0x401202, routine - 0x82);
  CHECK(beyond.find().found == 0);
}

TEST_CASE("of very many calls some are read") {
  Code code;
  for (std::uint32_t i = 0; i < 40; ++i) code.put(0x401100 + 16 * i, {0x6a, i}).call(0x401102 + 16 * i);
  const DirectCalls calls = code.find();
  CHECK(calls.found == 40);
  CHECK(calls.sites.size() == most_call_sites);
  for (std::uint32_t i = 0; i < calls.sites.size(); ++i) {
    CHECK(calls.sites[i].address == 0x401102 + 16 * i);
    check_word(calls.sites[i].stack.at(0), Kind::immediate, i);
  }
}

TEST_CASE("a call at the edges of a section, and bytes that are no code") {
  Code code;
  code.call(0x401000).call(0x401ffb);
  code.put(0x401100, FileBytes(64, std::byte{0xff})).call(0x401140);  // decodes in no way
  const DirectCalls calls = code.find();
  REQUIRE(calls.found == 1);
  CHECK(calls.sites[0].address == 0x401ffb);
  CHECK(calls.sites[0].stack.empty());
}

TEST_CASE("a routine without calls has none") {
  CHECK(Code().find().found == 0);
}

TEST_CASE("a result that callers store as f32 is one first") {
  const auto candidate = [](const char* text) { return Candidate{parse_signature(text), Confidence::likely, {}}; };
  DirectCalls calls{1, std::vector<DirectCall>(1)};
  const Usage usage;
  for (const unsigned stored : {4u, 8u, 0u}) {
    std::vector<Candidate> candidates{candidate("cdecl(value u16) -> f64"), candidate("cdecl(value u16) -> f32")};
    calls.sites[0].result.st0 = stored;
    order_results(candidates, {calls, usage, {}, false});
    CHECK(candidates[0].signature.result.value().scalar == (stored == 4 ? Scalar::f32 : Scalar::f64));
  }
}
