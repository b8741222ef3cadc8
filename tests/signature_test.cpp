#include "harness/signature.hpp"

#include "harness/error.hpp"
#include "tests/catch.hpp"

#include <string>
#include <vector>

namespace bitwitness {
namespace {

// The message of the Error that `action` throws; empty when it throws none.
template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::string parse_error(std::string_view text) {
  return error_of([&] { parse_signature(text); });
}

Register general(std::uint8_t number) {
  return {RegisterClass::general, number};
}

Register xmm(std::uint8_t number) {
  return {RegisterClass::xmm, number};
}

// The bits of the constant in a signature that has one as its first argument.
std::uint64_t literal_of(const std::string& constant) {
  return parse_signature("cdecl(" + constant + ", in u8) -> f32").arguments.at(0).literal;
}

std::string literal_error(const std::string& constant) {
  return parse_error("cdecl(" + constant + ", in u8) -> f32");
}

}  // namespace

TEST_CASE("a signature is read into convention, arguments and result", "[signature]") {
  const Signature signature = parse_signature("thiscall(in u8[6], out f32[4] @ esi, inout u64, u32 = 0x10) -> f64");
  CHECK(signature.convention == Convention::thiscall_call);
  REQUIRE(signature.arguments.size() == 4);
  CHECK(signature.arguments[0] == Argument{Role::in, {Scalar::u8, 6, true}, 0, {}});
  CHECK(signature.arguments[1] == Argument{Role::out, {Scalar::f32, 4, true}, 0, general(6)});
  CHECK(signature.arguments[2] == Argument{Role::inout, {Scalar::u64, 1, false}, 0, {}});
  CHECK(signature.arguments[3] == Argument{Role::constant, {Scalar::u32, 1, false}, 16, {}});
  CHECK(signature.result == Result{Scalar::f64, {}});
  CHECK(signature.packed_size() == 6 + 8);
  CHECK(signature.word_count() == 4 + 2 + 2);
}

TEST_CASE("words of an output follow element count, not bytes", "[signature]") {
  CHECK(parse_signature("cdecl(in u8, out u8[3])").word_count() == 3);
  CHECK(parse_signature("cdecl(in u8, out i16)").word_count() == 1);
  CHECK(parse_signature("cdecl(in u8, out f64[3], out u32) -> u64").word_count() == 6 + 1 + 2);
  CHECK(parse_signature("cdecl(value u16[3], value u64, f64 = 1) -> f32").packed_size() == 14);
}

TEST_CASE("blanks are free", "[signature]") {
  const Signature expected = parse_signature("cdecl(in u8[6] @ esi, i32 = -1) -> f32 @ xmm0");
  CHECK(parse_signature("cdecl(in u8[6]@esi,i32=-1)->f32@xmm0") == expected);
  CHECK(parse_signature("  cdecl ( in\tu8 [ 6 ] @ esi , i32 = -1 ) -> f32 @ xmm0  ") == expected);
  CHECK(parse_error("cdecl(in u8[6]) - > f32") ==
        "signature 'cdecl(in u8[6]) - > f32': column 17: expected '->' or the end");
  CHECK(parse_error("cdecl(inu8[6]) -> f32") ==
        "signature 'cdecl(inu8[6]) -> f32': column 7: expected in, out, inout, value, or a type with '='");
}

TEST_CASE("what is printed is read back the same", "[signature]") {
  const std::vector<std::string> canonical{
      "cdecl(value u16) -> f32",
      "stdcall(in u8[6], out f32[4])",
      "fastcall(inout u8[1])",
      "thiscall(in u64[2], out f64, value i8, i16 = -32768) -> u64",
      "win64(in u8[6] @ rcx, out f32[4] @ r15) -> f64 @ xmm15",
      "cdecl(in u8[6] @ esi, out f32[4] @ edi, value f32 @ xmm7) -> u32 @ ecx",
      "cdecl(in u8 @ r8, out u8)",
      "cdecl(f32 = -0, f64 = 1e+300, f32 = 0x7fc00001, f64 = 0xfff0000000000000, in u8) -> f32",
      "auto",
      "cdecl(in u8[+4, 6], out f32[4, +16, 4], inout u16[1, +2, 1, +6, 3])",
  };
  for (const std::string& text : canonical) {
    INFO(text);
    CHECK(to_string(parse_signature(text)) == text);
    CHECK(parse_signature(to_string(parse_signature(text))) == parse_signature(text));
  }
  CHECK(parse_signature("auto()") == parse_signature("auto"));
}

TEST_CASE("registers have a name per width and one number", "[signature]") {
  const std::vector<std::pair<std::string, std::string>> names{{"eax", "rax"}, {"ecx", "rcx"}, {"edx", "rdx"},
                                                               {"ebx", "rbx"}, {"esp", "rsp"}, {"ebp", "rbp"},
                                                               {"esi", "rsi"}, {"edi", "rdi"}};
  for (std::uint8_t number = 0; number < 8; ++number) {
    CHECK(to_string(general(number), false) == names[number].first);
    CHECK(to_string(general(number), true) == names[number].second);
    if (number == 4) continue;
    for (const std::string& name : {names[number].first, names[number].second}) {
      CHECK(parse_signature("cdecl(in u8 @ " + name + ") -> f32").arguments[0].place == general(number));
    }
  }
  for (std::uint8_t number = 0; number < 16; ++number) {
    const std::string name = "xmm" + std::to_string(number);
    CHECK(parse_signature("cdecl(value f32 @ " + name + ") -> f32").arguments[0].place == xmm(number));
    CHECK(to_string(xmm(number), number % 2 == 0) == name);
    if (number < 8) continue;
    const std::string wide = "r" + std::to_string(number);
    CHECK(parse_signature("win64(in u8 @ " + wide + ") -> f32").arguments[0].place == general(number));
    CHECK(to_string(general(number), true) == wide);
  }
  for (const std::string name : {"esp", "rsp"}) {
    CHECK(parse_error("cdecl(in u8 @ " + name + ") -> f32") ==
          "signature 'cdecl(in u8 @ " + name +
              ") -> f32': column 15: expected a register other than the stack pointer");
  }
  for (const std::string name : {"", "r7", "r16", "xmm16", "xmm", "xmm01", "r08", "r8d", "ax", "st0", "EAX"}) {
    INFO(name);
    CHECK(parse_error("cdecl(in u8 @ " + name + ") -> f32") ==
          "signature 'cdecl(in u8 @ " + name +
              ") -> f32': column 15: expected a register: eax … edi, "
              "rax … r15 or xmm0 … xmm15");
  }
}

TEST_CASE("a register takes what fits it, once", "[signature]") {
  CHECK(parse_error("cdecl(in u8 @ eax, value u8 @ rax) -> f32") ==
        "signature 'cdecl(in u8 @ eax, value u8 @ rax) -> f32': column 31: expected a register that no other argument "
        "has: rax is taken");
  CHECK(parse_error("cdecl(in u8 @ eax, value u8 @ xmm0) -> u32 @ eax").empty());
  CHECK(parse_error("cdecl(in u8 @ xmm0) -> f32")
            .ends_with("column 15: expected a general register: the argument is a pointer"));
  CHECK(parse_error("cdecl(in u8, u32 = 1 @ xmm0) -> f32")
            .ends_with("column 24: expected a general register: the constant is an integer"));
  CHECK(parse_error("cdecl(in u8, f32 = 1 @ xmm0) -> f32").empty());
  CHECK(parse_error("cdecl(value u8[8] @ xmm0) -> f32").empty());
  CHECK(parse_error("cdecl(value u8[9] @ xmm0) -> f32")
            .ends_with("column 21: expected a register that holds 9 bytes: xmm0 takes 8"));
  CHECK(parse_error("cdecl(value u8[6] @ eax) -> f32")
            .ends_with("column 21: expected a register that holds 6 bytes: eax takes 4"));
  CHECK(parse_error("win64(value u8[6] @ rax) -> f32").empty());
  CHECK(parse_error("cdecl(in u8[6] @ eax) -> f32").empty());
  CHECK(parse_error("cdecl(in u8) -> u64 @ ecx")
            .ends_with("column 23: expected a register that holds 8 bytes: ecx takes 4"));
  CHECK(parse_error("win64(in u8) -> u64 @ rcx").empty());
}

TEST_CASE("literals keep their exact bits", "[signature]") {
  CHECK(literal_of("u8 = 255") == 0xff);
  CHECK(literal_of("u8 = 0xFf") == 0xff);
  CHECK(literal_of("i8 = -128") == 0x80);
  CHECK(literal_of("i16 = -1") == 0xffff);
  CHECK(literal_of("i32 = -0x80000000") == 0x80000000);
  CHECK(literal_of("i64 = -9223372036854775808") == 0x8000000000000000);
  CHECK(literal_of("i64 = 9223372036854775807") == 0x7fffffffffffffff);
  CHECK(literal_of("u64 = 18446744073709551615") == 0xffffffffffffffff);
  CHECK(literal_of("f32 = 1.5") == 0x3fc00000);
  CHECK(literal_of("f32 = 1") == 0x3f800000);
  CHECK(literal_of("f32 = -0.0") == 0x80000000);
  CHECK(literal_of("f32 = 0.1") == 0x3dcccccd);
  CHECK(literal_of("f64 = 0.1") == 0x3fb999999999999a);
  CHECK(literal_of("f64 = -2.5e-3") == 0xbf647ae147ae147b);
  CHECK(literal_of("f32 = 1e-45") == 1);
  CHECK(literal_of("f32 = 0x3835065D") == 0x3835065d);
  CHECK(literal_of("f64 = 0x3F06A0CBA0000000") == 0x3f06a0cba0000000);
}

TEST_CASE("literals out of their type's range are refused at their column", "[signature]") {
  CHECK(literal_error("u8 = 256") ==
        "signature 'cdecl(u8 = 256, in u8) -> f32': column 12: expected an integer from 0 to 255");
  CHECK(literal_error("u16 = -1").ends_with("column 13: expected an integer from 0 to 65535"));
  CHECK(literal_error("i8 = 128").ends_with("column 12: expected an integer from -128 to 127"));
  CHECK(literal_error("i8 = 0xff").ends_with("expected an integer from -128 to 127"));
  CHECK(literal_error("i8 = -129").ends_with("expected an integer from -128 to 127"));
  CHECK(literal_error("u64 = 18446744073709551616").ends_with("expected an integer from 0 to 18446744073709551615"));
  CHECK(literal_error("i64 = 9223372036854775808").ends_with("to 9223372036854775807"));
  for (const std::string text : {"", "x", "0x", "1.5", "1e3", "--1", "-", "1 2"}) {
    INFO(text);
    CHECK_FALSE(literal_error("u32 = " + text).empty());
  }
  for (const std::string text : {"", "inf", "nan", "1e39", "1e", ".", "-0x1", "0x100000000", "+1"}) {
    INFO(text);
    CHECK(literal_error("f32 = " + text)
              .ends_with("column 13: expected a finite decimal that f32 can hold, or its bits in hex"));
  }
}

TEST_CASE("what a pointer's target passes over is neither packed nor output", "[signature]") {
  const Signature signature = parse_signature("cdecl(in u8[+4, 6], out f32[4, +16, 4, +3, 1])");
  CHECK(signature.packed_size() == 6);
  CHECK(signature.word_count() == 9);
  CHECK(signature.arguments[0].type.extent() == 10);
  const Type& type = signature.arguments[1].type;
  CHECK(type.size() == 36);
  CHECK(type.extent() == 55);
  CHECK(type.offset_of(0) == 0);
  CHECK(type.offset_of(3) == 12);
  CHECK(type.offset_of(4) == 32);
  CHECK(type.offset_of(8) == 51);
  const auto ends = [](const std::string& text, std::string_view end) {
    CAPTURE(text);
    CHECK(parse_error(text).ends_with(end));
  };
  ends("cdecl(in u8[4, 4], out u8)", "column 16: expected '+' and the bytes to pass over");
  ends("cdecl(in u8[+4], out u8)", "column 15: expected ',': elements follow the bytes that are passed over");
  ends("cdecl(in u8[4, +4], out u8)", "column 18: expected ',': elements follow the bytes that are passed over");
  ends("cdecl(in u8[+4, +4, 1], out u8)", "column 17: expected a count of elements from 1 to 1024");
  ends("cdecl(in u8[+0, 1], out u8)", "column 14: expected a count of bytes to pass over from 1 to 1024");
  ends("cdecl(in u8[+99999999999, 1], out u8)", "column 14: expected a count of bytes to pass over from 1 to 1024");
  ends("cdecl(in u8[+1024, 1], out u8)", "column 21: expected at most 1024 bytes");
  ends("cdecl(value u8[+4, 6], out u8)",
       "column 13: expected no '+': only what a pointer points to has bytes to pass over");
  ends("cdecl(in u8, out f32[+1000, 1], out f32[+1000, 1])", "expected at most 1024 bytes of output");
}

TEST_CASE("errors are one line with the text, the column and what was expected", "[signature]") {
  CHECK(parse_error("cdecl(in u8[6], out f32[4)") ==
        "signature 'cdecl(in u8[6], out f32[4)': column 26: expected ',' or ']'");
  CHECK(parse_error("") == "signature '': column 1: expected cdecl, stdcall, thiscall, fastcall, win64 or auto");
  CHECK(parse_error("pascal(in u8)").find("column 1: expected cdecl") != std::string::npos);
  CHECK(parse_error("cdecl") == "signature 'cdecl': column 6: expected '('");
  CHECK(parse_error("cdecl(in u8") == "signature 'cdecl(in u8': column 12: expected '@', ',' or ')'");
  CHECK(parse_error("cdecl(in u8 @ eax") == "signature 'cdecl(in u8 @ eax': column 18: expected ',' or ')'");
  CHECK(parse_error("cdecl(in u8,)") ==
        "signature 'cdecl(in u8,)': column 13: expected in, out, inout, value, or a type with '='");
  CHECK(parse_error("cdecl(in u12)").ends_with("column 10: expected a type: u8 … u64, i8 … i64, f32 or f64"));
  CHECK(parse_error("cdecl(u8[6])")
            .ends_with("column 12: expected '=': a type without in, out, inout or value is a constant"));
  CHECK(parse_error("cdecl(in u8, u8[2] = 1)").ends_with("column 14: expected a scalar: a constant is not an array"));
  CHECK(parse_error("cdecl(in u8) -> u8").ends_with("column 17: expected f32, f64, u32 or u64"));
  CHECK(parse_error("cdecl(in u8) -> f32 f32").ends_with("column 21: expected '@' or the end"));
  CHECK(parse_error("cdecl(in u8) -> f32 @ xmm0 x").ends_with("column 28: expected the end"));
  CHECK(parse_error("auto(in u8)").ends_with("column 6: expected ')': auto takes no arguments"));
  CHECK(parse_error("auto -> f32").ends_with("column 6: expected the end: auto leaves arguments and result open"));
  CHECK(parse_error("cdecl(in\nu8)") ==
        "signature 'cdecl(in?u8)': column 9: expected a type: u8 … u64, i8 … i64, f32 or f64");
}

TEST_CASE("a signature without packed input or without output is refused", "[signature]") {
  CHECK(parse_error("cdecl() -> f32")
            .ends_with("column 7: expected an 'in', 'inout' or 'value' argument with the packed bytes"));
  CHECK(parse_error("cdecl(out f32, u32 = 1)").find("column 23: expected an 'in'") != std::string::npos);
  CHECK(parse_error("cdecl(in u8)")
            .ends_with("column 13: expected '-> result': there is no 'out' or 'inout' argument either"));
  CHECK(parse_error("cdecl(inout u8)").empty());
}

TEST_CASE("limits hold at their edge", "[signature]") {
  CHECK(parse_signature("cdecl(in u8[200], value u8[56]) -> f32").packed_size() == max_packed_size);
  CHECK(
      parse_error("cdecl(in u8[200], value u8[57]) -> f32").ends_with("column 25: expected at most 256 packed bytes"));
  CHECK(parse_signature("cdecl(in u8, out f64[127], out u8[8])").word_count() == 254 + 8);
  CHECK(parse_error("cdecl(in u8, out f64[127], out u8[9])")
            .ends_with("column 32: expected at most 1024 bytes of output"));
  for (const std::string count : {"0", "", "1025", "4294967295", "4294967296", "18446744073709551617", "-1", "0x4"}) {
    INFO(count);
    CHECK(parse_error("cdecl(in u8[" + count + "]) -> f32")
              .ends_with("column 13: expected a count of elements from 1 to 1024"));
  }
  std::string many = "cdecl(in u8";
  for (std::size_t i = 1; i < max_arguments; ++i) many += ", u8 = 1";
  CHECK(parse_signature(many + ") -> f32").arguments.size() == max_arguments);
  CHECK(parse_error(many + ", u8 = 1) -> f32").ends_with("expected at most 16 arguments"));
  const std::string endless = parse_error("cdecl(" + std::string(1 << 20, ' '));
  CHECK(endless.ends_with("column 1025: expected the end: a signature has at most 1024 characters"));
  CHECK(endless.size() < 200);
}

TEST_CASE("a signature that an image's width cannot have is refused", "[signature]") {
  const auto refusal = [](std::string_view text, bool is_64_bit) {
    return error_of([&] { require_callable(parse_signature(text), is_64_bit); });
  };
  CHECK(refusal("cdecl(in u8) -> f32", false).empty());
  CHECK(refusal("win64(in u8) -> f32", true).empty());
  CHECK(refusal("win64(in u8) -> f32", false) ==
        "signature 'win64(in u8) -> f32': the image is 32-bit, and win64 is a convention of 64-bit code");
  for (const std::string convention : {"cdecl", "stdcall", "thiscall", "fastcall"}) {
    CHECK(refusal(convention + "(in u8) -> f32", true) ==
          "signature '" + convention + "(in u8) -> f32': the image is 64-bit, whose convention is win64");
  }
  CHECK(refusal("auto", false) == "signature 'auto': arguments and result are not known: give them with --signature");
  CHECK(refusal("auto", true).find("--signature") != std::string::npos);
  CHECK(refusal("cdecl(in u8 @ r8) -> f32", false).ends_with("r8 exists only in 64-bit code, and the image is 32-bit"));
  CHECK(refusal("cdecl(value f32 @ xmm8) -> f32", false).find("xmm8 exists only") != std::string::npos);
  CHECK(refusal("cdecl(in u8) -> f32 @ xmm15", false).find("xmm15 exists only") != std::string::npos);
  CHECK(refusal("win64(in u8 @ r8, value f32 @ xmm8) -> f32 @ xmm15", true).empty());
  CHECK(refusal("thiscall(value u64, in u8) -> f32", false)
            .ends_with("thiscall passes its first argument in ecx, which cannot hold u64"));
  CHECK(refusal("thiscall(f32 = 1, in u8) -> f32", false).ends_with("cannot hold f32"));
  CHECK(refusal("thiscall(value u16, out f32)", false).empty());
  CHECK(refusal("thiscall(u32 = 1, in u8) -> f32", false).empty());
  CHECK(refusal("thiscall(value u64 @ xmm0, in u8) -> f32", false).empty());
  CHECK(refusal("thiscall(value u8[4], out f32)", false).ends_with("cannot hold u8[4]"));
  CHECK(refusal("win64(value u8[6]) -> f32", true).empty());
}

TEST_CASE("a placed argument may not lie where the convention puts another", "[signature]") {
  const auto refusal = [](std::string_view text, bool is_64_bit) {
    return error_of([&] { require_callable(parse_signature(text), is_64_bit); });
  };
  CHECK(refusal("fastcall(in u8 @ ecx, out f32)", false) ==
        "signature 'fastcall(in u8 @ ecx, out f32)': ecx is also where fastcall puts an argument without a register: "
        "place that one too");
  CHECK(refusal("fastcall(in u8 @ edx, out f32)", false).empty());
  CHECK(refusal("fastcall(in u8 @ edx, out f32, u32 = 1)", false).find("edx is also where") != std::string::npos);
  CHECK(refusal("fastcall(in u8 @ ecx, out f32 @ edx)", false).empty());
  CHECK(refusal("thiscall(in u8, out f32 @ ecx)", false).find("ecx is also where thiscall") != std::string::npos);
  CHECK(refusal("thiscall(in u8, out f32 @ edx)", false).empty());
  CHECK(refusal("cdecl(in u8 @ ecx, out f32)", false).empty());
  CHECK(refusal("win64(in u8, out f32 @ rcx)", true).find("rcx is also where win64") != std::string::npos);
  CHECK(refusal("win64(in u8, out f32 @ rdx)", true).empty());
  CHECK(refusal("win64(in u8, in u8, in u8, out f32 @ r8)", true).find("r8 is also") != std::string::npos);
  CHECK(refusal("win64(in u8, value f32 @ xmm0, out f32)", true).find("xmm0 is also") != std::string::npos);
  CHECK(refusal("win64(in u8, value f32 @ xmm2, out f32)", true).empty());
  CHECK(refusal("fastcall(in u8, value f32 @ xmm0, out f32)", false).empty());
}

}  // namespace bitwitness
