// Every other routine of the test libraries: how its values end, and what is said about them.
#include "harness/error.hpp"
#include "tests/machine_runs.hpp"
#include "tests/pe_builder.hpp"

#include <algorithm>
#include <set>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

using Packed = const std::byte*;

std::uint32_t u32(Packed p, std::size_t at = 0) {
  return read_as<std::uint32_t>(p + at);
}
std::uint32_t u16(Packed p, std::size_t at = 0) {
  return read_as<std::uint16_t>(p + at);
}

/// What a routine does on every value. `*` in a text stands for anything.
struct Case {
  const char* name;
  const char* signature;  ///< null for one word in and one out
  OutcomeKind kind;
  Words (*words)(Packed);  ///< of a value that returns; null when they are the emulator's own
  const char* instruction;
  std::string reason;
  std::vector<const char*> notes;
};

Words next(Packed p) {
  return {u32(p) + 1};
}
Words next_and_zero(Packed p) {
  return {u32(p) + 1, 0};
}
Words next_two(Packed p) {
  return {u32(p) + 1, u32(p) + 2};
}
Words six_bytes(Packed p) {
  return {u32(p), u16(p, 4)};
}

/// A routine that comes back with words; what it does beside that is noted.
Case gives(const char* name, const char* signature, Words (*words)(Packed), std::vector<const char*> notes = {}) {
  return {name, signature, OutcomeKind::returned, words, "", "", std::move(notes)};
}

Case faults(const char* name, const char* instruction, const std::string& reason, const char* signature = nullptr) {
  return {name, signature, OutcomeKind::faulted, nullptr, instruction, reason, {}};
}

// Which code it is that a processor refuses is the emulator's own knowledge.
constexpr const char* no_instruction =
    on_each("is not an instruction that the emulated CPU has", "is not an instruction that this computer's CPU has");
constexpr const char* far_by_register =
    on_each("is no instruction: far jumps and calls take their address from memory", no_instruction);
constexpr const char* privileged =
    on_each("is privileged: no program may execute it", "raises the general protection exception (13)");

const char* const two_words = "cdecl(in u32, out u32[2])";
const char* const two_words_64 = "win64(in u32, out u32[2])";

// Routines whose values differ from one another, or whose words depend on what the signature leaves open: see
// machine_environment_test.cpp, machine_memory_test.cpp and machine_isolation_test.cpp.
const std::vector<std::string> tested_elsewhere_32 = {"builds_table_once",
                                                      "caches_square",
                                                      "copies_16",
                                                      "copies_4",
                                                      "counts_calls",
                                                      "depends_past_value",
                                                      "divides",
                                                      "entry_registers",
                                                      "entry_xmm",
                                                      "environment",
                                                      "faults_when_odd",
                                                      "jumps_to_value",
                                                      "leaves_flags",
                                                      "leaves_fpcw",
                                                      "leaves_mxcsr",
                                                      "loops_when_odd",
                                                      "reads_above_arguments",
                                                      "reads_below_stack",
                                                      "reads_ebx",
                                                      "reads_ecx",
                                                      "reads_xmm5",
                                                      "remembers_last",
                                                      "runs_cpuid",
                                                      "runs_rdtsc",
                                                      "unwritten_when_odd",
                                                      "writes_poison"};
const std::vector<std::string> tested_elsewhere_64 = {
    "caches_square", "copies_16",         "counts_calls", "depends_past_register", "depends_past_value",
    "divides",       "entry_registers",   "environment",  "faults_when_odd",       "leaves_fpcw",
    "leaves_mxcsr",  "reads_below_stack", "reads_r11",    "reads_shadow_space"};

const std::vector<Case> cases_32 = {
    gives("clobbers_saved", nullptr, next),
    gives("leaves_direction", two_words, next_and_zero, {"returns with the direction flag set"}),
    gives("leaves_x87_values", two_words, next_and_zero, {"leaves 3 values on the x87 stack"}),
    gives("empties_x87", nullptr, next, {"takes 1 value from an empty x87 stack"}),
    gives("leaves_xmm", nullptr, next),
    faults("returns_8_bytes", "ret 8",
           "removes its 8 bytes of arguments, which cdecl leaves to the caller: stdcall, thiscall or fastcall?"),
    faults("returns_4_bytes", "ret 4", "returns with the stack pointer 4 bytes below where stdcall leaves it",
           "stdcall(in u32, out u32)"),
    faults("returns_no_bytes", "ret", "leaves its 8 bytes of arguments on the stack, which stdcall removes: cdecl?",
           "stdcall(in u32, out u32)"),
    faults("leaves_pushed", "jmp ecx", "returns with the stack pointer 4 bytes below where cdecl leaves it"),
    gives("reads_8_of_6", "cdecl(in u8[6], out u32[2])", six_bytes),
    faults("writes_past", "mov dword ptr [edx + 8], 0xbadf00d",
           "writes 4 bytes at 0x*000, just past the end of argument 2 (out u32[2])", two_words),
    gives("writes_before", two_words, next_two, {"writes 4 bytes before argument 2 (out u32[2])"}),
    faults("writes_page_past", "mov dword ptr [edx + 0x1000], eax",
           "writes 4 bytes at 0x*ffc, 4092 bytes past the end of argument 2 (out u32)"),
    faults("writes_page_before", "mov dword ptr [edx - 0x1000], eax",
           "writes 4 bytes at 0x*ffc, 4096 bytes before argument 2 (out u32)"),
    {"writes_half_word",
     two_words,
     OutcomeKind::unwritten,
     nullptr,
     "ret",
     "returns without having written all of output word 1 (out u32[2])",
     {}},
    {"never_writes_second",
     "cdecl(in u32, out u32[3])",
     OutcomeKind::unwritten,
     nullptr,
     "ret",
     "returns without having written all of output word 1 (out u32[3])",
     {}},
    {"never_writes",
     nullptr,
     OutcomeKind::unwritten,
     nullptr,
     "ret",
     "returns without having written all of output word 0 (out u32)",
     {}},
    faults("writes_text", "mov byte ptr [*], 0x90", "writes 1 byte at 0x1000*, in .text, which is read-only"),
    faults("writes_rdata", "mov dword ptr [*], eax", "writes 4 bytes at 0x10003008, in .rdata, which is read-only"),

    faults("calls_sleep", "call dword ptr [*]", "calls the import KERNEL32.dll!Sleep"),
    faults("calls_sleep_thunk", "jmp dword ptr [*]", "calls the import KERNEL32.dll!Sleep"),
    faults("calls_sqrt", "call dword ptr [*]", "calls the import msvcrt.dll!sqrt", "cdecl(in f64) -> f64"),
    faults("reads_imported", "mov ecx, dword ptr [ecx]", "reads the imported variable msvcrt.dll!_adjust_fdiv"),
    faults("runs_int3", "int3", "raises the breakpoint exception (3)"),
    faults("runs_int_80", "int 0x80", "raises interrupt 0x80"),
    faults("runs_int_2e", "int 0x2e", "raises interrupt 0x2e"),
    faults("runs_syscall", "syscall", "calls the operating system"),
    faults("runs_sysenter", "sysenter", "calls the operating system"),
    faults("runs_hlt", "hlt", "halts the CPU"),
    faults("jumps_far", "(far jump or call to a register)", far_by_register),
    faults("begins_far", "(far jump or call to a register)", far_by_register),
    faults("leads_far", on_each("nop", "(far jump or call to a register)"),
           on_each("leads to the code at 0x10*, on which the emulator breaks off", no_instruction)),
    faults("runs_in", "in al, 0x60", "reads I/O port 0x60"),
    faults("runs_out", "out 0x80, al", "writes I/O port 0x80"),
    faults("runs_ud2", "ud2", no_instruction),
    faults("runs_mov_cr0", "mov eax, cr0", privileged),
    tries_host
        ? gives("runs_vaddss", nullptr, next)
        : faults("runs_vaddss", "vaddss xmm0, xmm1, xmm2", "is VEX-encoded, which the emulator would execute wrongly"),
    faults("sets_trap_flag", "nop", "raises the debug exception (1)"),
    faults("jumps_to_zero", "jmp ecx", "jumps to code at 0x0, where nothing is mapped"),
    faults("jumps_to_data", "jmp 0x10004011", "jumps to code at 0x10004011, in .data, which is not executable"),
    faults("jumps_into_stack", "ret", "jumps to code at 0x*, on the stack, which is not executable"),
    faults("reads_null", "mov eax, dword ptr [0x10]", "reads 4 bytes at 0x10, where nothing is mapped"),
    faults("writes_null", "mov dword ptr [0x10], eax", "writes 4 bytes at 0x10, where nothing is mapped"),
    faults("reads_top", "mov eax, dword ptr [*]", "reads 4 bytes at 0xfffffffc, where nothing is mapped"),
    {"loops_forever", nullptr, OutcomeKind::out_of_budget, nullptr, "jmp 0x1000*", over_budget(5000), {}},
    {"loops_forever_rep",
     nullptr,
     OutcomeKind::out_of_budget,
     nullptr,
     on_each("rep movsb *", "*"),
     over_budget(5000),
     {}},
    faults("recurses_forever", "call 0x1000*", "writes 4 bytes at 0x*, where the stack is exhausted"),
    faults("smashes_return", "ret", "jumps to code at 0x41414141, where nothing is mapped"),
    gives("smashes_callers_stack", nullptr, next, {"writes to the stack above its arguments"}),
    // It leaves the block as it was: on the host no write is seen, nor where a value's input is 0 already.
    tries_host ? gives("uses_seh", nullptr, next)
               : gives("uses_seh", nullptr, next, {"writes to 0x0, fs:[0x0] in the thread's block"}),
    gives("writes_input", nullptr, next, {"writes to its input, in argument 1 (in u32)"}),
};

const std::vector<Case> cases_64 = {
    gives("clobbers_saved", nullptr, next),
    gives("leaves_direction", two_words_64, next_and_zero, {"returns with the direction flag set"}),
    gives("leaves_x87_values", two_words_64, next_and_zero, {"leaves 3 values on the x87 stack"}),
    faults("returns_8_bytes", "ret 8", "returns with the stack pointer 8 bytes above where win64 leaves it"),
    faults("leaves_pushed", "jmp r8", "returns with the stack pointer 8 bytes below where win64 leaves it"),
    gives("reads_8_of_6", "win64(in u8[6], out u32[2])", six_bytes),
    faults("writes_past", "mov dword ptr [rdx + 8], 0xbadf00d",
           "writes 4 bytes at 0x*000, just past the end of argument 2 (out u32[2])", two_words_64),
    gives("writes_before", two_words_64, next_two, {"writes 4 bytes before argument 2 (out u32[2])"}),
    {"writes_half_word",
     two_words_64,
     OutcomeKind::unwritten,
     nullptr,
     "ret",
     "returns without having written all of output word 1 (out u32[2])",
     {}},
    {"never_writes_second",
     "win64(in u32, out u32[3])",
     OutcomeKind::unwritten,
     nullptr,
     "ret",
     "returns without having written all of output word 1 (out u32[3])",
     {}},
    faults("writes_text", "mov byte ptr [*], 0x90", "writes 1 byte at 0x18000*, in .text, which is read-only"),
    faults("calls_sleep", "call qword ptr [*]", "calls the import KERNEL32.dll!Sleep"),
    faults("calls_sqrt", "jmp qword ptr [*]", "calls the import msvcrt.dll!sqrt", "win64(in f64) -> f64"),
    faults("reads_imported", "mov r8d, dword ptr [r8]", "reads the imported variable msvcrt.dll!_fmode"),
    faults("runs_int3", "int3", "raises the breakpoint exception (3)"),
    faults("runs_int_80", "int 0x80", "raises interrupt 0x80"),
    faults("runs_syscall", "syscall", "calls the operating system"),
    faults("runs_hlt", "hlt", "halts the CPU"),
    faults("jumps_far", "(far jump or call to a register)", far_by_register),
    faults("begins_far", "(far jump or call to a register)", far_by_register),
    faults("leads_far", on_each("nop", "(far jump or call to a register)"),
           on_each("leads to the code at 0x18000*, on which the emulator breaks off", no_instruction)),
    faults("runs_in", "in al, 0x60", "reads I/O port 0x60"),
    faults("runs_ud2", "ud2", no_instruction),
    faults("runs_mov_cr0", "mov rax, cr0", privileged),
    tries_host
        ? gives("runs_vaddss", nullptr, next)
        : faults("runs_vaddss", "vaddss xmm0, xmm1, xmm2", "is VEX-encoded, which the emulator would execute wrongly"),
    faults("jumps_to_zero", "jmp rcx", "jumps to code at 0x0, where nothing is mapped"),
    faults("jumps_to_data", "jmp 0x18000400c", "jumps to code at 0x18000400c, in .data, which is not executable"),
    faults("reads_null", "mov eax, dword ptr [0x10]", "reads 4 bytes at 0x10, where nothing is mapped"),
    faults("reads_noncanonical", "mov eax, dword ptr [rcx]",
           "reads 4 bytes at 0x8000000000000000, where nothing is mapped"),
    {"loops_forever", nullptr, OutcomeKind::out_of_budget, nullptr, "jmp 0x18000*", over_budget(5000), {}},
    faults("recurses_forever", "call 0x18000*", "writes 8 bytes at 0x*, where the stack is exhausted"),
    faults("smashes_return", "ret", "jumps to code at 0x4141414141414141, where nothing is mapped"),
    gives("reads_teb", nullptr, next),
    gives("writes_input", nullptr, next, {"writes to its input, in argument 1 (in u32)"}),
};

void check_ends(const Case& tested, const Image& image, std::span<const Bytes> values, const std::vector<Ended>& ends) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    INFO(tested.name << ", value " << i << ": " << ends[i]);
    CHECK(ends[i].kind == tested.kind);
    if (tested.kind == OutcomeKind::returned) {
      CHECK(ends[i].words == tested.words(values[i].data()));
      continue;
    }
    if (tries_host && tested.kind == OutcomeKind::out_of_budget) {  // where it was by then is chance
      CHECK(ends[i].instruction.empty());
      CHECK(ends[i].address == 0);
      CHECK(is_like(ends[i].reason, over_budget(5000)));
      continue;
    }
    CHECK(is_like(ends[i].instruction, tested.instruction));
    CHECK(is_like(ends[i].reason, tested.reason));
    const Segment* segment = image.find(ends[i].address);
    CHECK((segment != nullptr && segment->executable));
  }
}

void check_case(const Image& image, const Case& tested) {
  INFO(tested.name);
  const char* plain = image.format() == ImageFormat::pe32 ? "cdecl(in u32, out u32)" : "win64(in u32, out u32)";
  Tried routine(image, std::string("export:") + tested.name, tested.signature != nullptr ? tested.signature : plain,
                {.budget = 5000});
  const std::vector<Bytes> values = some_values(routine.signature().packed_size(), 3, 2);
  const std::vector<Ended> together = routine.run(values);
  check_ends(tested, image, values, together);
  std::vector<std::string> notes;
  const bool is_unseen_once = tries_host && std::string_view(tested.name) == "writes_input";  // one value is 0
  const std::size_t seen = values.size() - (is_unseen_once ? 1 : 0);
  for (const char* note : tested.notes) notes.push_back(fmt::format("{} × {}", seen, note));
  CHECK(routine.notes() == notes);
  // Where and why a value stops does not depend on what ran before it.
  CHECK(comparable(routine.run_alone(values)) == comparable(together));
  CHECK(comparable(routine.run(values)) == comparable(together));
}

void check_all(const Image& image, std::span<const Case> cases, std::span<const std::string> tested_elsewhere) {
  std::multiset<std::string> tested(tested_elsewhere.begin(), tested_elsewhere.end());
  for (const Case& one : cases) {
    check_case(image, one);
    tested.insert(one.name);
  }
  // They lie behind the well-behaved ones, which machine_arguments_test.cpp tests.
  std::multiset<std::string> all;
  for (const NamedAddress& exported : image.exports()) {
    if (exported.address >= image.resolve("export:clobbers_saved")) all.insert(exported.name);
  }
  CHECK(tested == all);
}

/// Runs a routine of a test library with a signature that is not its own, and returns how a value of zeros ends.
Ended misread(unsigned bits, const char* name, const char* signature) {
  const Image image = load_conventions(bits);
  Tried routine(image, std::string("export:") + name, signature);
  const std::vector<Bytes> values(4, Bytes(routine.signature().packed_size(), std::byte{0}));
  const std::vector<Ended> ends = routine.run(values);
  CHECK(ends == std::vector<Ended>(4, ends[0]));
  CHECK(routine.run_alone(values) == ends);
  CHECK(ends[0].kind == OutcomeKind::faulted);
  return ends[0];
}

std::string refusal(const Image& image, std::uint64_t address, std::string_view signature) {
  try {
    BITWITNESS_TRIED_MACHINE(image, {"tried", address, parse_signature(signature)});
  } catch (const Error& error) {
    return error.what();
  }
  return "(made)";
}

}  // namespace

TEST_CASE("Every other 32-bit routine ends as it should") {
  check_all(load_conventions(32), cases_32, tested_elsewhere_32);
}

TEST_CASE("Every other 64-bit routine ends as it should", "[64-bit]") {
  check_all(load_conventions(64), cases_64, tested_elsewhere_64);
}

TEST_CASE("A signature that lacks what a routine uses is told by the register or argument") {
  CHECK(misread(32, "registers_esi_edi", "cdecl(in u8[6], out u32[2])").reason ==
        "reads 4 bytes at esi + 0x0, and the signature gives esi no value");
  CHECK(misread(32, "registers_esi_edi", "cdecl(in u8[6] @ esi, out u32[2])").reason ==
        "writes 4 bytes at edi + 0x0, and the signature gives edi no value");
  CHECK(misread(32, "thiscall_in_out", "cdecl(in u32, out u32)").reason ==
        "reads 4 bytes at ecx + 0x0, and the signature gives ecx no value");
  CHECK(misread(32, "registers_all", "cdecl(in u32 @ eax, out u32)").reason ==
        "writes 4 bytes at ebp + 0x0, and the signature gives ebp no value");
  CHECK(misread(32, "cdecl_in_out", "cdecl(in u32) -> u32").reason ==
        "writes 4 bytes through stack argument 2, which the signature does not have");
  CHECK(misread(32, "values_three", "cdecl(value u8) -> u32").reason ==
        "writes 4 bytes through stack argument 4, which the signature does not have");
  CHECK(misread(64, "registers_rsi_rdi", "win64(in u8[6], out u32[2])").reason ==
        "reads 4 bytes at rsi + 0x0, and the signature gives rsi no value");
  CHECK(misread(64, "registers_all", "win64(in u32 @ rax, out u32)").reason ==
        "writes 4 bytes at rbp + 0x0, and the signature gives rbp no value");
  CHECK(misread(64, "six_arguments", "win64(in u32, u32 = 1, u32 = 2, u32 = 3, u32 = 4) -> u32").reason ==
        "writes 4 bytes through stack argument 6, which the signature does not have");
  CHECK(misread(64, "value_u8_6_fifth", "win64(value u8[6]) -> u32").reason ==
        "reads 4 bytes through stack argument 5, which the signature does not have");
}

TEST_CASE("Pointers that a routine takes from stack words nobody wrote are told as such") {
  const Image image_32 = load_fixture("isolation32.dll");
  CHECK(Tried(image_32, "export:reads_unset_stack", "cdecl(in u32) -> u32").run_one(bytes_of_u32({1})).reason ==
        "reads 4 bytes through a stack word that nothing has been written to");
  const Image image_64 = load_fixture("isolation64.dll");
  CHECK(Tried(image_64, "export:reads_unset_home", "win64(in u32) -> u32").run_one(bytes_of_u32({1})).reason ==
        "reads 4 bytes through the stack word kept for register argument 2, which its caller leaves open");
}

TEST_CASE("A store that begins in an output and ends past it is told by the output") {
  const Ended ended = misread(32, "copies_16", "cdecl(in u32[4], out u32[2])");
  CHECK(is_like(ended.instruction, "movups *"));
  CHECK(is_like(ended.reason, "writes * at 0x*, just past the end of argument 2 (out u32[2])"));
}

TEST_CASE("A routine that takes more stack arguments than its signature has is told by the stack") {
  const Ended ended = misread(32, "stdcall_value_u64", "stdcall(out u32 @ esi, value u32)");
  CHECK(is_like(ended.reason, "writes 4 bytes through stack argument 3, which the signature does not have"));
  CHECK(misread(32, "fastcall_three", "fastcall(in u32, out u32)").reason ==
        "returns with the stack pointer 4 bytes above where fastcall leaves it");
  CHECK(misread(32, "stdcall_in_out", "cdecl(in u32, out u32)").reason ==
        "removes its 8 bytes of arguments, which cdecl leaves to the caller: stdcall, thiscall or fastcall?");
}

TEST_CASE("An x87 result that never comes is an unwritten word") {
  const Image image = load_conventions(32);
  Tried routine(image, "export:result_u32", "cdecl(in u32) -> f32");
  const Ended ended = routine.run_one(bytes_of_u32({7}));
  CHECK(ended.kind == OutcomeKind::unwritten);
  CHECK(ended.reason == "returns without having written all of output word 0 (the result (f32))");
}

TEST_CASE("An import by ordinal is named by its number") {
  PeBuilder builder;
  builder.sections = {{.name = ".text", .data = bytes_of({0xff, 0x25, 0, 0, 0, 0, 0xc3})}};  // jmp [slot]
  builder.imports = {{.name = "OLD.dll", .functions = {"#12", "Named"}}};
  const auto load = [&builder] {
    const TemporaryFile file(builder.build().bytes);
    return Image::load(file.path());
  };
  put_u32(builder.sections[0].data, 2, static_cast<std::uint32_t>(load().imports()[0].slot));
  const Image image = load();
  Tried routine(image, fmt::format("{:#x}", image.base() + 0x1000), "cdecl(in u32) -> u32");
  CHECK(routine.run_one(bytes_of_u32({0})).reason == "calls the import OLD.dll!#12");
}

TEST_CASE("A machine is not made for what is not code or cannot be called") {
  const Image image = load_conventions(32);
  const std::uint64_t code = image.resolve("export:cdecl_in_out");
  const char* plain = "cdecl(in u32, out u32)";
  CHECK(refusal(image, code, plain) == "(made)");
  CHECK(is_like(refusal(image, 0x10003000, plain), "*routine tried*0x10003000*"));  // .rdata
  CHECK(is_like(refusal(image, 0x10005000, plain), "*routine tried*0x10005000*"));  // .bss
  CHECK(is_like(refusal(image, 0x10000000, plain), "*routine tried*0x10000000*"));  // the headers
  CHECK(is_like(refusal(image, 0x10008000, plain), "*routine tried*0x10008000*"));  // behind the image
  CHECK(is_like(refusal(image, 0x10, plain), "*routine tried*0x10*"));
  CHECK(is_like(refusal(image, code, "win64(in u32, out u32)"), "*win64*"));
  CHECK(is_like(refusal(image, code, "auto"), "*--signature*"));
  const Image image_64 = load_conventions(64);
  CHECK(is_like(refusal(image_64, image_64.resolve("export:in_out"), plain), "*win64*"));
}
