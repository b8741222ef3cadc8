// How traces end, what they leave out, and that they show what the machine does.
#include "tests/trace_support.hpp"

using namespace bitwitness;
using namespace bitwitness::tests;

TEST_CASE("A trace ends with the instruction that stopped the call") {
  const Image conventions = load_conventions(32);
  const Bytes one = bytes_of_u32({1});
  const auto run = [&](const std::string& name) {
    return trace_at(conventions, "export:" + name, "cdecl(in u32, out u32)", one);
  };
  struct Case {
    std::string name;
    std::string last;
    bool is_completed;
    std::string reason;
  };
  const std::vector<Case> cases = {
      {"reads_null", "mov *", false, "reads 4 bytes at 0x10, *"},
      {"writes_null", "mov *", false, "writes 4 bytes at 0x10, *"},
      {"jumps_to_zero", "*", true, "jumps to code at 0x0, *"},
      {"runs_int3", "int3", false, "raises the breakpoint exception (3)"},
      {"runs_ud2", "ud*2", false, "is not an instruction that the emulated CPU has"},
      {"runs_hlt", "hlt", false, "halts the CPU"},
      {"runs_in", "in *", false, "reads I/O port 0x60"},
      {"runs_out", "out *", false, "writes I/O port 0x80"},
      {"runs_vaddss", "vaddss *", false, "is VEX-encoded, *"},
      {"runs_mov_cr0", "mov eax, cr0", false, "is privileged: *"},
      {"calls_sleep", "call *", true, "calls the import KERNEL32.dll!Sleep"},
      {"returns_8_bytes", "ret 8", true, "removes its 8 bytes *"},
  };
  for (const Case& expected : cases) {
    INFO(expected.name);
    const Trace trace = run(expected.name);
    CHECK(trace.outcome == OutcomeKind::faulted);
    CHECK(is_like(trace.incident.reason, expected.reason));
    CHECK(trace.disagreement == "");
    CHECK(trace.words.empty());
    REQUIRE(!trace.steps.empty());
    CHECK(is_like(trace.steps.back().text, expected.last));
    CHECK(trace.steps.back().address == trace.incident.address);
    CHECK(trace.steps.back().is_completed == expected.is_completed);
    CHECK(trace.instructions == trace.steps.size());
    for (const GeneralOperand& operand : trace.steps.back().general) {
      if (!expected.is_completed) CHECK(operand.before == operand.after);
    }
    check_continuity(trace);
  }
  const TraceStep reads = run("reads_null").steps.back();
  REQUIRE(reads.memory.size() == 1);
  CHECK(memory_text(reads.memory[0]) == "read 4 at 0x10 : - -> -");
  const Trace jumps = run("jumps_to_zero");
  CHECK(jumps.steps.back().next == 0);
  const Trace poison = trace_at(conventions, "export:writes_poison", "cdecl(in u32, out u32[2])", one);
  CHECK(poison.words.size() == 2);
  CHECK(poison.disagreement == "");  // it gives what its output held before
  const Trace unwritten = run("never_writes");
  CHECK(unwritten.outcome == OutcomeKind::unwritten);
  CHECK(unwritten.disagreement == "");
}

TEST_CASE("A trace keeps as many steps as asked for, and the call goes on") {
  const Image conventions = load_conventions(32);
  const Trace whole = trace_at(conventions, "export:straight_2000", "cdecl(in u32, out u32)", bytes_of_u32({5}));
  REQUIRE(whole.steps.size() > 1000);
  CHECK(whole.instructions == whole.steps.size());
  CHECK(whole.omitted() == 0);
  const Trace capped =
      trace_at(conventions, "export:straight_2000", "cdecl(in u32, out u32)", bytes_of_u32({5}), {}, {.limit = 7});
  CHECK(capped.steps.size() == 7);
  CHECK(capped.instructions == whole.instructions);
  CHECK(capped.omitted() == whole.instructions - 7);
  CHECK(capped.words == whole.words);
  CHECK(capped.disagreement == "");
  TraceReport report;
  report.trace = capped;
  CHECK_THAT(to_text(report), contains_text(fmt::format("… {} more not listed (--limit 7)", capped.omitted())));

  const Trace endless = trace_at(conventions, "export:loops_forever", "cdecl(in u32, out u32)", bytes_of_u32({5}), {},
                                 {.budget = 100, .limit = 10});
  CHECK(endless.outcome == OutcomeKind::out_of_budget);
  CHECK(endless.steps.size() == 10);
  CHECK(endless.instructions == 100);
  CHECK(endless.disagreement == "");

  const Trace none = trace_at(conventions, "export:straight_2000", "cdecl(in u32, out u32)", bytes_of_u32({5}), {},
                              {.budget = whole.instructions - 1, .limit = 0});
  CHECK(none.outcome == OutcomeKind::out_of_budget);
  CHECK(none.steps.empty());
  CHECK(none.disagreement == "");
  const Trace enough = trace_at(conventions, "export:straight_2000", "cdecl(in u32, out u32)", bytes_of_u32({5}), {},
                                {.budget = whole.instructions, .limit = 0});
  CHECK(enough.outcome == OutcomeKind::returned);
  CHECK(enough.disagreement == "");
}

TEST_CASE("Each repetition of a repeated instruction is a step") {
  const Image image = image_of({0x56, 0x57,                    // push esi; push edi
                                0x8b, 0x74, 0x24, 0x0c,        // mov esi, [esp + 12]
                                0x8b, 0x7c, 0x24, 0x10,        // mov edi, [esp + 16]
                                0xb9, 0x03, 0x00, 0x00, 0x00,  // mov ecx, 3
                                0xf3, 0xa5,                    // rep movsd
                                0x5f, 0x5e, 0xc3});            // pop edi; pop esi; ret
  const Trace trace = trace_code(image, "cdecl(in u32[3], out u32[3])", bytes_of_u32({7, 8, 9}));
  CHECK(trace.disagreement == "");
  check_continuity(trace);
  std::vector<std::string> copied;
  for (const TraceStep& step : trace.steps) {
    if (!step.text.starts_with("rep")) continue;
    for (const MemoryAccess& access : step.memory) {
      if (access.access == Access::write) copied.push_back(trace_numbers::bits_text(access.after));
    }
  }
  CHECK(copied == std::vector<std::string>{"0x7", "0x8", "0x9"});
  CHECK(trace.words == std::vector<std::uint32_t>{7, 8, 9});
}

TEST_CASE("64-bit code is traced with its registers") {
  const Image image = image_of({0x4c, 0x8b, 0x01,              // mov r8, [rcx]
                                0x4d, 0x89, 0xc1,              // mov r9, r8
                                0x49, 0xc1, 0xe9, 0x20,        // shr r9, 32
                                0xf2, 0x44, 0x0f, 0x10, 0x09,  // movsd xmm9, [rcx]
                                0xf2, 0x44, 0x0f, 0x11, 0x0a,  // movsd [rdx], xmm9
                                0xc3},
                               {0}, true);
  const Trace trace = trace_code(image, "win64(in f64, out f64)", bytes_of_u32({0x11223344, 0x40080000}));
  REQUIRE(trace.steps.size() == 6);
  CHECK(trace.is_64_bit);
  CHECK(trace.disagreement == "");
  check_continuity(trace);
  CHECK(general_of(trace.steps[0], 8).after == 0x4008000011223344);
  CHECK(general_of(trace.steps[0], 1).before == general_of(trace.steps[0], 1).after);
  CHECK(general_of(trace.steps[1], 9).after == 0x4008000011223344);
  CHECK(general_of(trace.steps[1], 8).before == 0x4008000011223344);  // named
  CHECK(general_of(trace.steps[2], 9).after == 0x40080000);
  REQUIRE(trace.steps[3].xmm.size() == 1);
  CHECK(trace.steps[3].xmm[0].number == 9);
  CHECK(trace.steps[3].xmm[0].after[1] == 0x40080000);
  REQUIRE(trace.steps[4].memory.size() == 1);
  CHECK(trace.steps[4].memory[0].reading == Reading::f64);
  TraceReport report;
  report.trace = trace;
  CHECK_THAT(to_text(report), contains_text("r9 0x4008000011223344 -> 0x40080000"));
  const Image conventions = load_conventions(64);
  const Trace result =
      trace_at(conventions, "export:result_u64", "win64(in u64) -> u64", bytes_of_u32({0x01234567, 0x89abcdef}));
  CHECK(result.words == std::vector<std::uint32_t>{0x89abcdef, 0x01234567});
  CHECK(result.disagreement == "");
}

TEST_CASE("Traces of the stand-ins end as the machine does, whatever the value and the control word") {
  struct Case {
    std::string kind;
    std::string address;
    std::string signature;
  };
  const std::vector<Case> cases = {
      {"x87", "0x103f1d0", "cdecl(in u8[6], out f32[4])"},
      {"x87", "0x103f340", "stdcall(in u8[6], in u8[6], out f32[4], out f32[4])"},
      {"sse2", "0x103f1d0", "thiscall(in u8[6], out f32[4])"},
      {"sse2", "0x103f340", "fastcall(in u8[12], out f32[8])"},
  };
  for (const Case& one : cases) {
    const Image image = stand_in(one.kind);
    const Signature signature = parse_signature(one.signature);
    Tried machine(image, one.address, one.signature);
    for (const Bytes& value : some_values(signature.packed_size(), 6, 11)) {
      for (const std::uint16_t fpcw : {std::uint16_t{0x027f}, std::uint16_t{0x007f}}) {
        INFO(one.kind << " " << one.address << " " << to_hex(value) << " fpcw " << fpcw);
        const Environment environment{.fpcw = fpcw};
        const Trace trace = trace_at(image, one.address, one.signature, value, environment);
        CHECK(trace.disagreement == "");
        CHECK(trace.notes.empty());
        CHECK(trace.words == machine.run_alone(std::span(&value, 1), environment).at(0).words);
        CHECK(trace.instructions > 40);
        check_continuity(trace);
      }
    }
  }
}

TEST_CASE("A trace owns up when it does not show what the machine does") {
  const Image conventions = load_conventions(32);
  const Trace trace = trace_at(conventions, "export:runs_rdtsc", "cdecl(in u32, out u32)", bytes_of_u32({1}));
  CHECK(trace.outcome == OutcomeKind::returned);
  CHECK(is_like(trace.disagreement, "the traced call gave the words *, the machine's *"));
  TraceReport report;
  report.trace = trace;
  CHECK(report.verdict() == TraceVerdict::unreliable);
  CHECK_THAT(to_text(report), contains_text("UNRELIABLE: the traced call gave"));
}

TEST_CASE("A trace passes on what the machine observes") {
  const Image conventions = load_conventions(32);
  const auto notes = [&](const std::string& name, std::string_view signature) {
    return trace_at(conventions, "export:" + name, signature, bytes_of_u32({1})).notes;
  };
  CHECK(notes("cdecl_in_out", "cdecl(in u32, out u32)").empty());
  CHECK(notes("leaves_fpcw", "cdecl(in u32, out u32[2])") ==
        std::vector<std::string>{"it returns with the x87 control word 0c7f"});
  const auto reads = notes("reads_ebx", "cdecl(in u32, out u32)");
  REQUIRE(reads.size() == 1);
  CHECK(is_like(reads[0], "in a batch it gives the words ????????: they depend on more than the value") == false);
  CHECK(is_like(reads[0], "in a batch it gives the words *: they depend on more than the value"));
}

TEST_CASE("A value of another size, an address that is not code and an open signature are refused") {
  const Image image = stand_in("x87");
  const auto refusal = [&](std::uint64_t address, std::string_view signature, std::size_t size) -> std::string {
    try {
      static_cast<void>(trace(image, {"tried", address, parse_signature(signature)}, Bytes(size), {}));
    } catch (const Error& error) {
      return error.what();
    }
    return "(traced)";
  };
  const char* signature = "cdecl(in u8[6], out f32[4])";
  CHECK(refusal(0x103f1d0, signature, 6) == "(traced)");
  CHECK(is_like(refusal(0x103f1d0, signature, 5), "value *5 bytes*takes 6"));
  CHECK(is_like(refusal(0x10, signature, 6), "*0x10*"));
  CHECK(is_like(refusal(0x103f1d0, "win64(in u8[6], out f32[4])", 6), "*win64*"));
}
