// What a trace says of routines assembled here, byte by byte: operands, memory, flags, branches.
#include "tests/trace_support.hpp"

using namespace bitwitness;
using namespace bitwitness::tests;

TEST_CASE("A trace follows x87 pushes, pops and arithmetic at the precision that the control word asks for") {
  const Image image = image_of({0x8b, 0x44, 0x24, 0x04,  // mov eax, [esp + 4]
                                0xd9, 0x00,              // fld dword [eax]
                                0xd9, 0xe8,              // fld1
                                0xde, 0xf1,              // fdivrp st1: 1 / x
                                0xd9, 0xc0,              // fld st0
                                0xd9, 0xee,              // fldz
                                0xd9, 0xca,              // fxch st2
                                0xde, 0xc2,              // faddp st2
                                0xdd, 0xd8,              // fstp st0
                                0x8b, 0x44, 0x24, 0x08,  // mov eax, [esp + 8]
                                0xd9, 0x18,              // fstp dword [eax]
                                0xc3});
  const auto run = [&](std::uint16_t fpcw) {
    return trace_code(image, "cdecl(in f32, out f32)", bytes_of_u32({0x40400000}), {.fpcw = fpcw});
  };
  const std::string one = "3fff8000000000000000";
  const std::string three = "4000c000000000000000";
  const std::string zero = "00000000000000000000";
  for (const auto& [fpcw, third] :
       {std::pair{0x007f, "3ffdaaaaab0000000000"}, std::pair{0x027f, "3ffdaaaaaaaaaaaaa800"},
        std::pair{0x037f, "3ffdaaaaaaaaaaaaaaab"}}) {
    INFO(fpcw);
    const Trace trace = run(static_cast<std::uint16_t>(fpcw));
    REQUIRE(trace.steps.size() == 12);
    CHECK(trace.disagreement == "");
    check_continuity(trace);
    CHECK(x87_texts(trace.steps[1]) == std::vector<std::string>{"empty -> st0 " + three});
    CHECK(x87_texts(trace.steps[2]) == std::vector<std::string>{"empty -> st0 " + one});
    CHECK(trace.steps[2].depth_before == 1);
    CHECK(trace.steps[2].depth_after == 2);
    CHECK(x87_texts(trace.steps[3]) ==
          std::vector<std::string>{"st0 " + one + " -> empty", "st1 " + three + " -> st0 " + third});
    CHECK(trace.steps[3].depth_after == 1);
    CHECK(x87_texts(trace.steps[4]) == std::vector<std::string>{fmt::format("st0 {} -> st1 {}", third, third),
                                                                fmt::format("empty -> st0 {}", third)});
    CHECK(x87_texts(trace.steps[6]) == std::vector<std::string>{fmt::format("st0 {} -> st0 {}", zero, third),
                                                                fmt::format("st2 {} -> st2 {}", third, zero)});
    CHECK(x87_texts(trace.steps[7]) == std::vector<std::string>{fmt::format("st0 {} -> empty", third),
                                                                fmt::format("st2 {} -> st1 {}", zero, third)});
    const TraceStep& store = trace.steps[10];
    CHECK(x87_texts(store) == std::vector<std::string>{fmt::format("st0 {} -> empty", third)});
    CHECK(store.depth_after == 0);
    REQUIRE(store.memory.size() == 1);
    CHECK(store.memory[0].reading == Reading::f32);
    CHECK(trace_numbers::numbers_of(store.memory[0].after, Reading::f32) == std::vector<std::string>{"0.33333334"});
    CHECK(trace.words == std::vector<std::uint32_t>{0x3eaaaaab});
  }
}

TEST_CASE("Loads and stores of every floating-point width are single accesses with their numbers") {
  const Image image = image_of({0x8b, 0x44, 0x24, 0x04,              // mov eax, [esp + 4]
                                0xdd, 0x00,                          // fld qword [eax]
                                0xdb, 0x3d, 0x00, 0x20, 0x40, 0x00,  // fstp tbyte [data]
                                0xdb, 0x2d, 0x00, 0x20, 0x40, 0x00,  // fld tbyte [data]
                                0xda, 0x05, 0x10, 0x20, 0x40, 0x00,  // fiadd dword [data + 16]
                                0xdf, 0x1d, 0x14, 0x20, 0x40, 0x00,  // fistp word [data + 20]
                                0xa1, 0x14, 0x20, 0x40, 0x00,        // mov eax, [data + 20]
                                0xc3},
                               {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xfb, 0xff, 0xff, 0xff, 0, 0, 0, 0});
  const Trace trace = trace_code(image, "cdecl(in f64) -> u32", bytes_of_u32({0, 0x3ff80000}));  // 1.5
  REQUIRE(trace.steps.size() == 8);
  CHECK(trace.disagreement == "");
  const auto access = [&](std::size_t step) {
    REQUIRE(trace.steps[step].memory.size() == 1);
    const MemoryAccess& found = trace.steps[step].memory[0];
    const auto numbers =
        trace_numbers::numbers_of(found.access == Access::write ? found.after : found.before, found.reading);
    return memory_text(found) + (numbers.empty() ? "" : " = " + numbers[0]);
  };
  CHECK(is_like(access(1), "read 8 at 0x* argument 1: 0x3ff8000000000000 -> - = 1.5"));
  CHECK(access(2) == "write 10 at 0x402000 .data: 0x0 -> 0x3fffc000000000000000 = 1.5");
  CHECK(access(3) == "read 10 at 0x402000 .data: 0x3fffc000000000000000 -> - = 1.5");
  CHECK(access(4) == "read 4 at 0x402010 .data: 0xfffffffb -> - = -5");
  CHECK(access(5) == "write 2 at 0x402014 .data: 0x0 -> 0xfffc = -4");  // -3.5 to even
  CHECK(access(6) == "read 4 at 0x402014 .data: 0xfffc -> -");
  CHECK(trace.words == std::vector<std::uint32_t>{0xfffc});
}

TEST_CASE("80-bit values print as the shortest decimal of that format") {
  const auto text = [](std::uint64_t significand, std::uint16_t high) {
    Extended value{};
    std::memcpy(value.data(), &significand, 8);
    std::memcpy(value.data() + 8, &high, 2);
    return trace_numbers::extended_text(value) + " " + trace_numbers::extended_bits(value);
  };
  CHECK(text(0, 0) == "0 00000000000000000000");
  CHECK(text(0, 0x8000) == "-0 80000000000000000000");
  CHECK(text(0xc000000000000000, 0xbfff) == "-1.5 bfffc000000000000000");
  CHECK(text(0xb504f333f9de6484, 0x3ffe) == "0.7071067811865475244 3ffeb504f333f9de6484");
  CHECK(text(0x8000000000000000, 0x7fff) == "inf 7fff8000000000000000");
  CHECK(text(0xc000000000000000, 0xffff) == "-nan ffffc000000000000000");
  CHECK(text(0x4000000000000000, 0x3fff) == "invalid 3fff4000000000000000");
  CHECK(text(1, 0).starts_with("4e-4951 "));  // the smallest one
  CHECK(text(0xffffffffffffffff, 0x7ffe).starts_with("1.189731495357231765e+4932 "));
}

TEST_CASE("A trace shows the lanes of XMM registers before and after") {
  const Image image = image_of({0x8b, 0x44, 0x24, 0x04,  // mov eax, [esp + 4]
                                0x0f, 0x10, 0x00,        // movups xmm0, [eax]
                                0x0f, 0x58, 0xc0,        // addps xmm0, xmm0
                                0xf3, 0x0f, 0x5a, 0xc8,  // cvtss2sd xmm1, xmm0
                                0xf2, 0x0f, 0x59, 0xc9,  // mulsd xmm1, xmm1
                                0x0f, 0x2e, 0xc1,        // ucomiss xmm0, xmm1
                                0x8b, 0x44, 0x24, 0x08,  // mov eax, [esp + 8]
                                0x0f, 0x11, 0x00,        // movups [eax], xmm0
                                0xc3});
  const Bytes value = bytes_of_u32({0x3f800000, 0x40000000, 0x40400000, 0xc0800000});
  const Trace trace = trace_code(image, "cdecl(in f32[4], out f32[4])", value);
  using Lanes = std::array<std::uint32_t, 4>;
  REQUIRE(trace.steps.size() == 9);
  CHECK(trace.disagreement == "");
  check_continuity(trace);
  REQUIRE(trace.steps[1].xmm.size() == 1);
  CHECK(trace.steps[1].xmm[0].number == 0);
  CHECK(trace.steps[1].xmm[0].after == Lanes{0x3f800000, 0x40000000, 0x40400000, 0xc0800000});
  REQUIRE(trace.steps[1].memory.size() == 1);
  CHECK(trace.steps[1].memory[0].size == 16);
  CHECK(trace_numbers::numbers_of(trace.steps[1].memory[0].before, trace.steps[1].memory[0].reading) ==
        std::vector<std::string>{"1", "2", "3", "-4"});
  CHECK(trace.steps[2].xmm[0].before == Lanes{0x3f800000, 0x40000000, 0x40400000, 0xc0800000});
  CHECK(trace.steps[2].xmm[0].after == Lanes{0x40000000, 0x40800000, 0x40c00000, 0xc1000000});
  REQUIRE(trace.steps[3].xmm.size() == 2);  // the source too
  CHECK(trace.steps[3].xmm[0].before == trace.steps[3].xmm[0].after);
  CHECK(trace.steps[3].xmm[1].number == 1);
  CHECK(trace.steps[4].xmm[0].before[1] == 0x40000000);  // 2.0
  CHECK(trace.steps[4].xmm[0].after[1] == 0x40100000);   // 4.0
  CHECK(flags_text(trace.steps[5]) == "-pf-zf");         // 2 > 0: the stub left zf and pf
  REQUIRE(trace.steps[7].memory.size() == 1);
  CHECK(trace.steps[7].memory[0].size == 16);
  CHECK(trace.steps[7].memory[0].after.size() == 16);

  TraceReport report;
  report.trace = trace;
  const std::string text = to_text(report);
  CHECK_THAT(text, contains_text("xmm0[1] 40000000 (2) -> 40800000 (4)"));
  CHECK_THAT(text, contains_text("xmm1[0] 4000000000000000 (2) -> 4010000000000000 (4)"));
}

TEST_CASE("A trace tells of each conditional jump whether it was taken") {
  const Image image = image_of({0x8b, 0x44, 0x24, 0x04,  // mov eax, [esp + 4]
                                0x8b, 0x00,              // mov eax, [eax]
                                0x85, 0xc0,              // test eax, eax
                                0x74, 0x01,              // je +1
                                0x40,                    // inc eax
                                0xeb, 0x01,              // jmp +1
                                0xcc, 0xc3});            // int3; ret
  const auto run = [&](std::uint32_t value) {
    return trace_code(image, "cdecl(in u32) -> u32", bytes_of_u32({value}));
  };
  const std::string je = "je 0x40100b";
  const Trace zero = run(0);
  CHECK(step_of(zero, je).taken == true);
  CHECK(step_of(zero, je).next == 0x40100b);
  CHECK(std::ranges::none_of(zero.steps, [](const TraceStep& step) { return step.text == "inc eax"; }));
  const Trace five = run(5);
  CHECK(step_of(five, je).taken == false);
  CHECK(step_of(five, je).next == 0x40100a);
  CHECK(general_of(step_of(five, "inc eax"), 0).after == 6);
  CHECK(!step_of(five, "inc eax").taken);
  CHECK(step_of(five, "inc eax").is_sequential);
  const TraceStep& jump = step_of(five, "jmp 0x40100e");
  CHECK(!jump.taken);
  CHECK(!jump.is_sequential);
  CHECK(jump.next == 0x40100e);
  check_continuity(five);
}

TEST_CASE("A trace shows what memory held before and after, and where it lies") {
  const Image image = image_of({0x8b, 0x4c, 0x24, 0x04,              // mov ecx, [esp + 4]
                                0x0f, 0xb7, 0x41, 0x02,              // movzx eax, word [ecx + 2]
                                0x01, 0x05, 0x00, 0x20, 0x40, 0x00,  // add [data], eax
                                0x87, 0x05, 0x00, 0x20, 0x40, 0x00,  // xchg [data], eax
                                0x50,                                // push eax
                                0x58,                                // pop eax
                                0x8b, 0x4c, 0x24, 0x08,              // mov ecx, [esp + 8]
                                0x89, 0x01,                          // mov [ecx], eax
                                0x88, 0x61, 0x01,                    // mov [ecx + 1], ah
                                0xc3},
                               {0x44, 0x33, 0x22, 0x11});
  const Trace trace = trace_code(image, "cdecl(in u16[2], out u32)", bytes_of_u32({0x00105678}));
  REQUIRE(trace.steps.size() == 10);
  CHECK(trace.disagreement == "");
  check_continuity(trace);
  const auto texts = [&](std::size_t step) {
    std::vector<std::string> all;
    for (const MemoryAccess& access : trace.steps[step].memory) all.push_back(memory_text(access));
    return all;
  };
  const auto only = [&](std::size_t step) {
    REQUIRE(texts(step).size() == 1);
    return texts(step)[0];
  };
  const std::uint64_t argument = general_of(trace.steps[0], 1).after;
  CHECK(only(1) == fmt::format("read 2 at {:#x} argument 1: 0x10 -> -", argument + 2));
  CHECK(general_of(trace.steps[1], 0).after == 0x10);
  CHECK(texts(2) == std::vector<std::string>{"read 4 at 0x402000 .data: 0x11223344 -> -",
                                             "write 4 at 0x402000 .data: 0x11223344 -> 0x11223354"});
  CHECK(flags_text(trace.steps[2]) == "-pf-zf");
  CHECK(texts(3) == std::vector<std::string>{"read 4 at 0x402000 .data: 0x11223354 -> -",
                                             "write 4 at 0x402000 .data: 0x11223354 -> 0x10"});
  const std::uint64_t sp = general_of(trace.steps[4], 4).after;
  CHECK(is_like(only(4), fmt::format("write 4 at {:#x} stack: 0x* -> 0x11223354", sp)));
  CHECK(only(5) == fmt::format("read 4 at {:#x} stack: 0x11223354 -> -", sp));
  CHECK(general_of(trace.steps[5], 4).after == sp + 4);
  CHECK(is_like(only(7), "write 4 at 0x* argument 2: 0x7f5c5ba4 -> 0x11223354"));
  CHECK(is_like(only(8), "write 1 at 0x* argument 2: 0x33 -> 0x33"));
  CHECK(trace.words == std::vector<std::uint32_t>{0x11223354});
}

TEST_CASE("A trace shows changes of flags, condition codes and control words") {
  const Image image = image_of({0xf9, 0xfd, 0xfc,                          // stc; std; cld
                                0xd9, 0x2d, 0x00, 0x20, 0x40, 0x00,        // fldcw [data]
                                0x0f, 0xae, 0x15, 0x04, 0x20, 0x40, 0x00,  // ldmxcsr [data + 4]
                                0xd9, 0xee,                                // fldz
                                0xd9, 0xe4,                                // ftst
                                0xdf, 0xe0,                                // fnstsw ax
                                0xdd, 0xd8,                                // fstp st0
                                0x0f, 0xb6, 0xc4,                          // movzx eax, ah
                                0xc3},
                               {0x7f, 0x0c, 0, 0, 0x80, 0x7f, 0, 0});
  const Trace trace = trace_code(image, "cdecl(in u8) -> u32", {std::byte{0}});
  REQUIRE(trace.steps.size() == 11);
  CHECK(trace.disagreement == "");
  CHECK(flags_text(trace.steps[0]) == "+cf");
  CHECK(flags_text(trace.steps[1]) == "+df");
  CHECK(flags_text(trace.steps[2]) == "-df");
  REQUIRE(trace.steps[3].fpcw);
  CHECK(trace.steps[3].fpcw->before == 0x027f);
  CHECK(trace.steps[3].fpcw->after == 0x0c7f);
  REQUIRE(trace.steps[4].mxcsr);
  CHECK(trace.steps[4].mxcsr->before == 0x1f80);
  CHECK(trace.steps[4].mxcsr->after == 0x7f80);
  CHECK(!trace.steps[5].fpcw);
  CHECK(flags_text(trace.steps[6]) == "+c3");
  CHECK(x87_texts(trace.steps[6]).size() == 1);  // what was tested
  CHECK((general_of(trace.steps[7], 0).after & 0xffff) == 0x7800 - 0x3800 + (7 << 11));
  CHECK(trace.words.at(0) == 0x78);
}
