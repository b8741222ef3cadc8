#include "harness/target.hpp"
#include "tests/catch.hpp"
#include "tests/pe_builder.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>

namespace bitwitness {
namespace {

using tests::bytes_of;
using tests::FileBytes;

// Sections of the executable under test: 401000 code (padded with int3), 402000 constants, 403000 writable data, 911000
// code. The wanted callee is at 401100, another routine at 401180.
class Executable {
 public:
  Executable() : code_(0x200, std::byte{0xcc}), constants_(0x100), data_(0x100) {
    put(0x401100, bytes_of({0x55, 0x8b, 0xec, 0x5d, 0xc3}));
    put(0x401180, bytes_of({0x33, 0xc0, 0xc3}));
  }

  Executable& put(std::uint32_t address, const FileBytes& bytes) {
    FileBytes& section = address < 0x402000 ? code_ : address < 0x403000 ? constants_ : data_;
    std::copy(bytes.begin(), bytes.end(), section.begin() + static_cast<std::ptrdiff_t>(address & 0xfff));
    return *this;
  }

  Executable& put(std::uint32_t address, std::initializer_list<unsigned> bytes) {
    return put(address, bytes_of(bytes));
  }

  Executable& put_pointer(std::uint32_t address, std::uint32_t value) {
    return put(address, {value & 0xff, value >> 8 & 0xff, value >> 16 & 0xff, value >> 24});
  }

  // A call or jump (`opcode` e8 or e9) of five bytes.
  Executable& put_direct(unsigned opcode, std::uint32_t address, std::uint32_t target) {
    put(address, {opcode});
    return put_pointer(address + 1, target - (address + 5));
  }

  AnchorResult check(const Anchor& anchor) const {
    const Image image = load();
    Target target;
    target.anchors = {anchor};
    const std::vector<AnchorResult> results = check_anchors(target, image);
    REQUIRE(results.size() == 1);
    CHECK(results[0].found.find('\n') == std::string::npos);
    return results[0];
  }

  // The slot of KERNEL32.dll!Sleep.
  std::uint32_t import_slot() const {
    const Image image = load();
    REQUIRE(image.imports().size() == 1);
    return static_cast<std::uint32_t>(image.imports()[0].slot);
  }

 private:
  Image load() const {
    tests::PeBuilder builder;
    builder.sections = {{.name = ".text", .data = code_},
                        {.name = ".rdata", .characteristics = tests::constant_section, .data = constants_},
                        {.name = ".data", .characteristics = tests::data_section, .data = data_},
                        {.name = ".far", .data = bytes_of({0xc3}), .address = 0x511000}};
    builder.imports = {{.name = "KERNEL32.dll", .functions = {"Sleep"}}};
    const tests::TemporaryFile file(builder.build().bytes);
    return Image::load(file.path());
  }

  FileBytes code_;
  FileBytes constants_;
  FileBytes data_;
};

AnchorResult code_at(const Executable& executable, const std::string& at) {
  return executable.check({AnchorKind::code, false, at, "", {}, ""});
}

// Whether a call to 401100 starts at or returns to 401050.
AnchorResult call_at(const Executable& executable, const std::string& at = "0x401050") {
  return executable.check({AnchorKind::call, false, at, "0x401100", {}, ""});
}

AnchorResult constant_in(const Executable& executable) {
  return executable.check({AnchorKind::constant, false, "0x401050", "", {"3f06a0cba0000000", "3835065d"}, ""});
}

void holds(const AnchorResult& result, const std::string& found) {
  CHECK(result.holds);
  CHECK(result.found == found);
}

void fails(const AnchorResult& result, const std::string& found) {
  CHECK_FALSE(result.holds);
  CHECK(result.found == found);
}

}  // namespace

TEST_CASE("a code anchor holds where there is code", "[anchors]") {
  holds(code_at(Executable(), "0x401100"), "push ebp at 0x401100");
  holds(code_at(Executable(), "rva:0x1100"), "push ebp at 0x401100");
  // What a call does not come back to need not be code.
  holds(code_at(Executable().put_direct(0xe8, 0x401050, 0x401100).put(0x401055, {0xff, 0xff}), "0x401050"),
        "call 0x401100 at 0x401050");
}

TEST_CASE("a code anchor says what else there is", "[anchors]") {
  fails(code_at(Executable(), "0x501000"), "no memory of the image at 0x501000");
  fails(code_at(Executable(), "0x402000"), "segment '.rdata', which is not executable");
  fails(code_at(Executable(), "0x401200"), "padding behind segment '.text'");
  fails(code_at(Executable(), "0x401050"), "int3 at 0x401050");
  fails(code_at(Executable().put(0x401050, FileBytes(0x20)), "0x401050"), "zero bytes");
  fails(code_at(Executable().put(0x401050, {0xff, 0xff, 1, 2, 3, 4, 5, 6}), "0x401050"),
        "bytes ff ff 01 02 03 04 05 06 at 0x401050, which are no instruction");
  fails(code_at(Executable().put(0x401050, {0x90, 0x74, 0x00, 0xff, 0xff, 1, 2, 3, 4, 5, 6}), "0x401050"),
        "bytes ff ff 01 02 03 04 05 06 at 0x401053, which are no instruction");
  fails(code_at(Executable().put(0x4011fe, {0x90, 0x90}), "0x4011fe"),
        "instructions that run out of the segment at 0x401200");
  const AnchorResult unknown = code_at(Executable(), "symbol:unpack");
  CHECK_FALSE(unknown.holds);
  CHECK(unknown.found.find("symbol:unpack") != std::string::npos);
}

TEST_CASE("a call anchor holds for a direct call that starts there or returns there", "[anchors]") {
  holds(call_at(Executable().put_direct(0xe8, 0x401050, 0x401100)), "call to 0x401100 at 0x401050");
  holds(call_at(Executable().put_direct(0xe8, 0x40104b, 0x401100)), "call to 0x401100 at 0x40104b");
  holds(call_at(Executable().put_direct(0xe9, 0x401050, 0x401100)), "jump to 0x401100 at 0x401050");
}

TEST_CASE("a call anchor holds for a call through thunks", "[anchors]") {
  holds(call_at(Executable().put_direct(0xe8, 0x401050, 0x401080).put_direct(0xe9, 0x401080, 0x401100)),
        "call to 0x401080 at 0x401050, which leads to 0x401100");
  holds(call_at(Executable()
                    .put_direct(0xe8, 0x40104b, 0x401080)
                    .put(0x401080, {0xff, 0x25, 0x00, 0x20, 0x40, 0x00})
                    .put_pointer(0x402000, 0x401100)),
        "call to 0x401080 at 0x40104b, which leads to 0x401100");
  // A ring of thunks leads nowhere.
  const AnchorResult ring =
      call_at(Executable().put_direct(0xe8, 0x401050, 0x401080).put_direct(0xe9, 0x401080, 0x401080));
  fails(ring, "call to 0x401080 at 0x401050");
}

TEST_CASE("a call anchor holds for a call through a pointer to the callee", "[anchors]") {
  for (const std::uint32_t at : {0x401050U, 0x40104aU}) {
    const std::string where = at == 0x401050 ? "0x401050" : "0x40104a";
    holds(call_at(Executable().put(at, {0xff, 0x15, 0x10, 0x20, 0x40, 0x00}).put_pointer(0x402010, 0x401100)),
          "call dword ptr [0x402010] at " + where + ", which holds 0x401100");
  }
}

TEST_CASE("a call whose callee only running tells does not break a call anchor", "[anchors]") {
  holds(call_at(Executable().put(0x401050, {0xff, 0xd0})),
        "call eax at 0x401050, whose callee is known only when it runs");
  holds(call_at(Executable().put(0x40104e, {0xff, 0xd0})),
        "call eax at 0x40104e, whose callee is known only when it runs");
  holds(call_at(Executable().put(0x40104d, {0xff, 0x52, 0x08})),
        "call dword ptr [edx + 8] at 0x40104d, whose callee is known only when it runs");
  holds(call_at(Executable().put(0x401049, {0xff, 0x14, 0x85, 0x10, 0x20, 0x40, 0x00})),
        "call dword ptr [eax*4 + 0x402010] at 0x401049, whose callee is known only when it runs");
  holds(call_at(Executable().put(0x401050, {0xff, 0x15, 0x10, 0x30, 0x40, 0x00})),
        "call dword ptr [0x403010] at 0x401050, which holds 0x0 in the file and may hold another callee when it runs");
}

TEST_CASE("a call anchor says what else there is", "[anchors]") {
  fails(call_at(Executable()), "int3 at 0x401050");
  fails(call_at(Executable().put(0x401050, {0x8b, 0x45, 0x08})), "mov eax, dword ptr [ebp + 8] at 0x401050");
  fails(call_at(Executable(), "0x501000"), "no memory of the image at 0x501000");
  fails(call_at(Executable(), "0x402000"), "segment '.rdata', which is not executable");
  fails(call_at(Executable().put_direct(0xe8, 0x401050, 0x401180)), "call to 0x401180 at 0x401050");
  fails(call_at(Executable().put_direct(0xe8, 0x40104b, 0x401180)), "call to 0x401180 at 0x40104b");
  fails(call_at(Executable().put_direct(0xe8, 0x401050, 0x401180).put_direct(0xe8, 0x40104b, 0x401181)),
        "call to 0x401180 at 0x401050 and call to 0x401181 at 0x40104b");
  fails(call_at(Executable().put_direct(0xe8, 0x401051, 0x401100).put(0x401050, {0x90})), "nop at 0x401050");
  fails(call_at(Executable().put_direct(0xe9, 0x401050, 0x401180)), "jmp 0x401180 at 0x401050");
  fails(call_at(Executable().put(0x401050, {0xff, 0x15, 0x10, 0x20, 0x40, 0x00}).put_pointer(0x402010, 0x401180)),
        "call dword ptr [0x402010] at 0x401050, which holds 0x401180");
  const std::uint32_t slot = Executable().import_slot();
  fails(call_at(Executable().put(0x401050, {0xff, 0x15}).put_pointer(0x401052, slot)),
        "call to KERNEL32.dll!Sleep at 0x401050");
  // The end of a direct call to 911000 reads as call dword ptr [eax].
  fails(call_at(Executable().put(0x40104b, {0xe8, 0xb0, 0xff, 0x50, 0x00})), "call to 0x911000 at 0x40104b");
  // A call some bytes earlier returns elsewhere.
  fails(call_at(Executable().put(0x40104c, {0xff, 0xd0, 0x90, 0x90})), "int3 at 0x401050");
  // A call of nothing in the image is no call.
  fails(call_at(Executable().put(0x40104b, {0xe8, 0x00, 0x00, 0x00, 0x70})), "int3 at 0x401050");
}

TEST_CASE("a constant anchor holds for memory, immediates, halves and lanes", "[anchors]") {
  const FileBytes as_f64 = bytes_of({0x00, 0x00, 0x00, 0xa0, 0xcb, 0xa0, 0x06, 0x3f});
  const FileBytes as_f32 = bytes_of({0x5d, 0x06, 0x35, 0x38});
  const auto fmul_f64 = bytes_of({0xdc, 0x0d, 0x10, 0x20, 0x40, 0x00, 0xc3});
  const auto fmul_f32 = bytes_of({0xd8, 0x0d, 0x10, 0x20, 0x40, 0x00, 0xc3});
  holds(constant_in(Executable().put(0x401050, fmul_f64).put(0x402010, as_f64)),
        "3f06a0cba0000000 at 0x402010, named by fmul qword ptr [0x402010] at 0x401050");
  holds(constant_in(Executable().put(0x401050, fmul_f32).put(0x402010, as_f32)),
        "3835065d at 0x402010, named by fmul dword ptr [0x402010] at 0x401050");
  holds(constant_in(Executable().put(0x401050, {0x68, 0x5d, 0x06, 0x35, 0x38, 0xc3})),
        "3835065d in push 0x3835065d at 0x401050");
  holds(constant_in(Executable().put(0x401050, {0x68, 0xcb, 0xa0, 0x06, 0x3f, 0x68, 0x00, 0x00, 0x00, 0xa0, 0xc3})),
        "3f06a0cba0000000 in halves in push 0xa0000000 at 0x401055 and push 0x3f06a0cb at 0x401050");
  holds(constant_in(Executable().put(0x401050, {0x68, 0x10, 0x20, 0x40, 0x00, 0xc3}).put(0x402010, as_f32)),
        "3835065d at 0x402010, named by push 0x402010 at 0x401050");
  holds(constant_in(Executable().put(0x401050, {0x0f, 0x59, 0x05, 0x10, 0x20, 0x40, 0x00, 0xc3}).put(0x40201c, as_f32)),
        "3835065d at 0x40201c, named by mulps xmm0, xmmword ptr [0x402010] at 0x401050");
  holds(constant_in(Executable()
                        .put_direct(0xe8, 0x401050, 0x401080)
                        .put(0x401055, {0xc3})
                        .put(0x401080, fmul_f64)
                        .put(0x402010, as_f64)),
        "3f06a0cba0000000 at 0x402010, named by fmul qword ptr [0x402010] at 0x401080");
}

TEST_CASE("a constant anchor says that nothing names the constant", "[anchors]") {
  fails(constant_in(Executable()), "int3 at 0x401050");
  fails(constant_in(Executable().put(0x401050, {0x33, 0xc0, 0x90, 0xc3})), "no reference to it in 3 instructions");
  fails(constant_in(Executable().put(0x401050, {0x90, 0xff, 0xe0})),
        "no reference to it in 2 instructions, more behind an indirect jump");
  // One bit off, in memory that another width would match, and one half alone.
  fails(constant_in(Executable()
                        .put(0x401050, {0xdc, 0x0d, 0x10, 0x20, 0x40, 0x00, 0xc3})
                        .put(0x402010, {0x01, 0x00, 0x00, 0xa0, 0xcb, 0xa0, 0x06, 0x3f})),
        "no reference to it in 2 instructions");
  fails(constant_in(Executable()
                        .put(0x401050, {0xd8, 0x0d, 0x10, 0x20, 0x40, 0x00, 0xc3})
                        .put(0x402014, {0x5d, 0x06, 0x35, 0x38})),
        "no reference to it in 2 instructions");
  fails(constant_in(Executable().put(0x401050, {0x68, 0xcb, 0xa0, 0x06, 0x3f, 0xc3})),
        "no reference to it in 2 instructions");
}

TEST_CASE("every anchor of a target has its result, in order", "[anchors]") {
  tests::PeBuilder builder;
  builder.sections = {{.name = ".text", .data = bytes_of({0x55, 0xc3})}};
  const tests::TemporaryFile file(builder.build().bytes);
  const Image image = Image::load(file.path());
  Target target;
  target.anchors = {{AnchorKind::code, true, "0x401000", "", {}, "it is there"},
                    {AnchorKind::code, false, "0x501000", "", {}, ""}};
  const std::vector<AnchorResult> results = check_anchors(target, image);
  REQUIRE(results.size() == 2);
  CHECK(results[0].holds);
  CHECK(results[0].anchor.required);
  CHECK(results[0].anchor.says == "it is there");
  CHECK_FALSE(results[1].holds);
  CHECK_FALSE(results[1].anchor.required);
}

}  // namespace bitwitness
