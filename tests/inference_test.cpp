// What executing a routine tells of its signature.

#include "harness/probe/inference.hpp"

#include "harness/error.hpp"
#include "harness/image.hpp"
#include "tests/catch.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

using namespace bitwitness;

namespace {

struct Expected {
  std::string at;
  std::string signature;
};

Inference infer_at(const Image& image, const std::string& at) {
  return infer(image, image.resolve(at.starts_with("0x") ? at : "export:" + at));
}

void check_certain(const Image& image, const std::vector<Expected>& all) {
  for (const Expected& expected : all) {
    INFO(image.name() << " " << expected.at);
    const Inference inference = infer_at(image, expected.at);
    REQUIRE_FALSE(inference.candidates.empty());
    CHECK(to_string(inference.candidates.front().signature) == expected.signature);
    CHECK(inference.certain() != nullptr);
    CHECK_FALSE(inference.candidates.front().support.empty());
  }
}

/// Found, but told to be no more than that.
void check_uncertain(const Image& image, Confidence confidence, const std::vector<Expected>& all) {
  for (const Expected& expected : all) {
    INFO(image.name() << " " << expected.at);
    const Inference inference = infer_at(image, expected.at);
    CHECK(inference.certain() == nullptr);
    const auto same = [&expected](const Candidate& candidate) {
      return to_string(candidate.signature) == expected.signature;
    };
    const auto found = std::ranges::find_if(inference.candidates, same);
    REQUIRE(found != inference.candidates.end());
    CHECK(found->confidence == confidence);
  }
}

/// `said` is a part of what was seen.
void check_none(const Image& image, const std::vector<std::pair<std::string, std::string>>& all) {
  for (const auto& [at, said] : all) {
    INFO(image.name() << " " << at);
    const Inference inference = infer_at(image, at);
    CHECK(inference.candidates.empty());
    REQUIRE_FALSE(inference.seen.empty());
    CAPTURE(inference.seen);
    CHECK(std::ranges::any_of(inference.seen, [&said = said](const std::string& sentence) {
      return sentence.find(said) != std::string::npos;
    }));
  }
}

Image stand_in(const std::string& name) {
  return Image::load(BITWITNESS_STAND_INS_DIR "/" + name);
}
Image fixture(const std::string& name) {
  return Image::load(BITWITNESS_FIXTURES_DIR "/" + name);
}

std::string support_of(const Inference& inference) {
  std::string text;
  for (const Candidate& candidate : inference.candidates) {
    for (const std::string& clause : candidate.support) text += clause + "\n";
  }
  return text;
}

const std::vector<Expected> x87_stand_in = {{"0x103F1D0", "cdecl(in u8[6], out f32[4])"},
                                            {"0x103F340", "stdcall(in u8[6], in u8[6], out f32[4], out f32[4])"}};
const std::vector<Expected> sse2_stand_in = {{"0x103F1D0", "thiscall(in u8[6], out f32[4])"},
                                             {"0x103F340", "fastcall(in u8[12], out f32[8])"}};

}  // namespace

TEST_CASE("the stand-ins' four routines") {
  check_certain(stand_in("stand_in_x87.exe"), x87_stand_in);
  check_certain(stand_in("stand_in_sse2.exe"), sse2_stand_in);
}

TEST_CASE("twins with a mistake in what they compute have the same signatures") {
  for (const std::string mistake :
       {"constant_bit", "lanes_rotated", "no_clamp", "radicand_f32", "word_two_unmasked", "loop"}) {
    check_certain(fixture("broken_x87_" + mistake + ".exe"), x87_stand_in);
    check_certain(fixture("broken_sse2_" + mistake + ".exe"), sse2_stand_in);
  }
}

TEST_CASE("a twin that never writes w is taken for what it is") {
  check_certain(fixture("broken_x87_no_w.exe"), {{"0x103F1D0", "cdecl(in u8[6], out f32[3])"}});
  check_certain(fixture("broken_sse2_no_w.exe"), {{"0x103F340", "fastcall(in u8[12], out f32[3, +4, 3])"}});
}

TEST_CASE("what a compiler makes of every way to call an unpack, 32-bit") {
  for (const std::string name : {"probe_x87.dll", "probe_sse2.dll"}) {
    const Image image = fixture(name);
    check_certain(image, {
                             {"cdecl_in_out", "cdecl(in u8[6], out f32[4])"},
                             {"cdecl_out_in", "cdecl(out f32[4], in u8[6])"},
                             {"stdcall_in_out", "stdcall(in u8[6], out f32[4])"},
                             {"stdcall_out_in", "stdcall(out f32[4], in u8[6])"},
                             {"this_is_packed", "thiscall(in u8[6], out f32[4])"},
                             {"this_is_result", "thiscall(out f32[4], in u8[6])"},
                             {"fastcall_in_out", "fastcall(in u8[6], out f32[4])"},
                             {"returns_structure", "cdecl(out f32[4], in u8[6])"},
                             {"packed_by_value", "cdecl(value u8[6], out f32[4])"},
                             {"two_keys", "stdcall(in u8[6], in u8[6], out f32[4], out f32[4])"},
                             {"pair_in_a_row", "cdecl(in u8[12], out f32[8])"},
                             {"into_bones", "cdecl(in u8[12], out f32[4, +16, 4])"},
                             {"from_key", "cdecl(in u8[+4, 6], out f32[+16, 4])"},
                             {"lane_by_lane", "cdecl(in u8[6], out f32[1, +12, 1, +12, 1, +12, 1])"},
                             {"counted", "cdecl(in u8[6], out f32[4], u32 = 1)"},
                             {"indexed", "cdecl(in u8[6], out f32[4], u32 = 0)"},
                             {"by_table", "cdecl(in u8, out f32)"},
                             {"returns_float", "cdecl(value u16) -> f32"},
                             {"returns_integer", "cdecl(in u8[6]) -> u32"},
                             {"halves", "cdecl(inout f32[4])"},
                             {"in_esi_out_edi", "cdecl(in u8[6] @ esi, out f32[4] @ edi)"},
                             {"in_eax", "stdcall(in u8[6] @ eax, out f32[4])"},
                             {"guarded", "cdecl(in u8[6], out f32[4])"},
                         });
    check_none(image, {{"through_reader", "through a pointer that lies 4 bytes behind stack argument 1"},
                       {"gives_nothing", "it gives no result"}});
  }
}

TEST_CASE("what a compiler makes of every way to call an unpack, 64-bit") {
  const Image image = fixture("probe_64.dll");
  check_certain(image, {
                           {"cdecl_in_out", "win64(in u8[6], out f32[4])"},
                           {"cdecl_out_in", "win64(out f32[4], in u8[6])"},
                           {"this_is_packed", "win64(in u8[6], out f32[4])"},
                           {"this_is_result", "win64(out f32[4], in u8[6])"},
                           {"returns_structure", "win64(out f32[4], in u8[6])"},
                           {"packed_by_value", "win64(in u8[6], out f32[4])"},
                           {"two_keys", "win64(in u8[6], in u8[6], out f32[4], out f32[4])"},
                           {"pair_in_a_row", "win64(in u8[12], out f32[8])"},
                           {"into_bones", "win64(in u8[12], out f32[4, +16, 4])"},
                           {"from_key", "win64(in u8[+4, 6], out f32[+16, 4])"},
                           {"lane_by_lane", "win64(in u8[6], out f32[1, +12, 1, +12, 1, +12, 1])"},
                           {"counted", "win64(in u8[6], out f32[4], u32 = 1)"},
                           {"indexed", "win64(in u8[6], out f32[4], u32 = 0)"},
                           {"by_table", "win64(in u8, out f32)"},
                           {"returns_float", "win64(value u16) -> f32"},
                           {"returns_integer", "win64(in u8[6]) -> u32"},
                           {"halves", "win64(inout f32[4])"},
                           {"in_rsi_out_rdi", "win64(in u8[6] @ rsi, out f32[4] @ rdi)"},
                       });
  check_none(image, {{"through_reader", "through a pointer that lies 8 bytes behind rcx"},
                     {"gives_nothing", "it gives no result"}});
}

TEST_CASE("what supports a signature is said") {
  const Image image = fixture("probe_sse2.dll");
  const Image stand = stand_in("stand_in_sse2.exe");
  const std::string one = support_of(infer_at(stand, "0x103F1D0"));
  CHECK_THAT(one, tests::contains_text("removes 4 bytes of arguments (ret 4)"));
  CHECK_THAT(one, tests::contains_text("reads 6 bytes at [ecx +0..5] before anything is written there"));
  CHECK_THAT(one, tests::contains_text("stores 16 bytes at [stack argument 1 +0..15] as f32[4]"));
  CHECK_THAT(one, tests::contains_text("returns on 384 values tried"));
  CHECK_THAT(support_of(infer_at(image, "returns_structure")), tests::contains_text("returns stack argument 1 itself"));
  CHECK_THAT(support_of(infer_at(image, "counted")),
             tests::contains_text("stack argument 3 counts: one more reads 6 bytes and writes 16 bytes more"));
  CHECK_THAT(support_of(infer_at(image, "indexed")),
             tests::contains_text("stack argument 3 is an index: one more moves reads by 6 and writes by 0 bytes"));
  const Image conventions = fixture("conventions32.dll");
  CHECK_THAT(support_of(infer_at(conventions, "reads_8_of_6")),
             tests::contains_text("reads [stack argument 1 +0..7], whose last 2 bytes have no influence"));
}

TEST_CASE("what the calls of a routine say of it") {
  const Image x87 = stand_in("stand_in_x87.exe");
  CHECK_THAT(
      support_of(infer_at(x87, "0x103F1D0")),
      tests::contains_text("2 calls to it were found: 8 bytes pushed in all of them, removed by the caller in 1, "
                           "as cdecl with 2 arguments"));
  const std::string two_keys =
      "1 call to it was found: 16 bytes pushed and left to the routine to remove, as stdcall with 4 arguments";
  CHECK_THAT(support_of(infer_at(x87, "0x103F340")), tests::contains_text(two_keys));
  CHECK_THAT(support_of(infer_at(fixture("moved_call.exe"), "0x103F340")), tests::contains_text(two_keys));
  const Image sse2 = stand_in("stand_in_sse2.exe");
  CHECK_THAT(support_of(infer_at(sse2, "0x103F340")),
             tests::contains_text("1 call to it was found: ecx and edx loaded, as fastcall with 2 arguments"));
  CHECK(support_of(infer_at(sse2, "0x103F1D0")).find("to it w") == std::string::npos);
  const Image compiled = fixture("probe_sse2.dll");
  CHECK_THAT(
      support_of(infer_at(compiled, "this_is_packed")),
      tests::contains_text("1 call to it was found: ecx loaded, 4 bytes stored and left to the routine to remove, "
                           "as thiscall with 2 arguments"));
  CHECK_THAT(
      support_of(infer_at(compiled, "cdecl_in_out")),
      tests::contains_text("5 calls to it were found: 8 bytes passed on the stack in all of them, removed by the "
                           "caller in 3, as cdecl with 2 arguments"));
  CHECK_THAT(support_of(infer_at(compiled, "returns_float")),
             tests::contains_text("the code behind 2 of the 2 calls uses its result"));
  const Image wide = fixture("probe_64.dll");
  CHECK_THAT(support_of(infer_at(wide, "two_keys")),
             tests::contains_text("1 call to it was found: rcx, rdx, r8 and r9 loaded, as win64 with 4 arguments"));
  CHECK_THAT(support_of(infer_at(wide, "cdecl_in_out")),
             tests::contains_text("2 calls to it were found: rcx and rdx loaded in 1 of them, as win64"));
  CHECK_THAT(support_of(infer_at(wide, "counted")),
             tests::contains_text("1 call to it was found, and it passes 4 as r8"));
}

TEST_CASE("a number that all calls pass is taken for a setting first") {
  for (const std::string name : {"probe_x87.dll", "probe_sse2.dll", "probe_64.dll"}) {
    INFO(name);
    const Image image = fixture(name);
    const std::string convention = name == "probe_64.dll" ? "win64" : "cdecl";
    const Inference same = infer_at(image, "with_setting");
    REQUIRE(same.candidates.size() == 2);
    CHECK(to_string(same.candidates[0].signature) == convention + "(in u8[4], u32 = 3, out u32)");
    CHECK(to_string(same.candidates[1].signature) == convention + "(in u8[4], value u32, out u32)");
    CHECK(same.candidates[0].confidence == Confidence::likely);
    const std::string place = name == "probe_64.dll" ? "rdx" : "stack argument 2";
    const std::vector<std::string>& support = same.candidates[0].support;
    CHECK(std::ranges::find(support, "2 calls to it were found, and all pass 3 as " + place) != support.end());
    const Inference others = infer_at(image, "with_settings");
    REQUIRE(others.candidates.size() == 2);
    CHECK(to_string(others.candidates[0].signature) == convention + "(in u8[4], value u32, out u32)");
  }
}

TEST_CASE("a routine whose callers pass more than it uses is not certain") {
  for (const std::string name : {"probe_x87.dll", "probe_sse2.dll", "probe_64.dll"}) {
    INFO(name);
    const bool is_wide = name == "probe_64.dll";
    const Inference inference = infer_at(fixture(name), "ignores_third");
    REQUIRE(inference.candidates.size() == 1);
    CHECK(to_string(inference.candidates[0].signature) ==
          (is_wide ? "win64(in u8[6], out f32[4])" : "cdecl(in u8[6], out f32[4])"));
    CHECK(inference.candidates[0].confidence == Confidence::likely);
    const std::string sentence =
        std::string("1 call to it was found, and it does not fit: the caller ") +
        (is_wide ? "also loads r8, which is not used" : "pushes 12 bytes and removes them, where 8 are used");
    CHECK(std::ranges::find(inference.seen, sentence) != inference.seen.end());
  }
}

TEST_CASE("conventions, results and element types of 32-bit code") {
  check_certain(fixture("conventions32.dll"), {
                                                  {"cdecl_in_out", "cdecl(in u8[4], out u32)"},
                                                  {"stdcall_out_in", "stdcall(out u32, in u8[4])"},
                                                  {"thiscall_out_in", "thiscall(out u32, in u8[4])"},
                                                  {"fastcall_out_in", "fastcall(out u32, in u8[4])"},
                                                  {"value_u8", "cdecl(value u8, out u32)"},
                                                  {"value_u16", "cdecl(value u16, out u32)"},
                                                  {"value_u32", "cdecl(value u32, out u32)"},
                                                  {"value_u64", "cdecl(value u64, out u32[2])"},
                                                  {"value_u8_6", "cdecl(value u8[6], out u32[2])"},
                                                  {"values_three", "cdecl(value u8, value u16, value u32, out u32[3])"},
                                                  {"stdcall_value_u64", "stdcall(value u64, out u32)"},
                                                  {"registers_esi_edi", "cdecl(in u8[6] @ esi, out u32[2] @ edi)"},
                                                  {"register_value_eax", "cdecl(value u16 @ eax, out u32 @ edi)"},
                                                  {"register_value_xmm1", "cdecl(value f32 @ xmm1, out f32)"},
                                                  {"register_value_f64_xmm2", "cdecl(value f64 @ xmm2, out f64)"},
                                                  {"result_f32_xmm0", "cdecl(in u8[4]) -> f32 @ xmm0"},
                                                  {"result_u32", "cdecl(in u8[4]) -> u32"},
                                                  {"result_u64", "cdecl(in u8[8]) -> u64"},
                                                  {"inout_u32", "cdecl(inout u32)"},
                                                  {"inout_and_out", "cdecl(inout u32, out u32)"},
                                                  {"in_and_inout", "cdecl(in u8[4], inout u32)"},
                                                  {"three_outs", "cdecl(in u8[3], out u8, out u16, out u32)"},
                                                  {"two_in_u16", "cdecl(in u8[2], in u8[2], out u32)"},
                                                  {"out_u8_4", "cdecl(in u8[4], out u8[4])"},
                                                  {"out_i16_4", "cdecl(in u8[4], out u16[4])"},
                                                  {"out_u16_3", "cdecl(in u8[6], out u16[3])"},
                                                  {"out_f64_2", "cdecl(in u8[2], out f64[2])"},
                                                  {"aligns_its_stack", "cdecl(in u8[16], out u32[4])"},
                                                  {"reads_8_of_6", "cdecl(in u8[6], out u32[2])"},
                                                  {"never_writes_second", "cdecl(in u8[4], out u32[1, +4, 1])"},
                                                  {"uses_seh", "cdecl(in u8[4], out u32)"},
                                                  {"calls_another", "cdecl(in u8[4], out u32)"},
                                                  {"changes_its_arguments", "cdecl(in u8[4], out u32)"},
                                              });
}

TEST_CASE("conventions and results of 64-bit code") {
  check_certain(fixture("conventions64.dll"),
                {
                    {"in_out", "win64(in u8[4], out u32)"},
                    {"value_u64", "win64(value u64, out u64)"},
                    {"value_f32", "win64(value f32) -> f32"},
                    {"value_f64", "win64(value f64) -> f64"},
                    {"values_mixed", "win64(value f32, value u32, value f64, value u16, out u32[5])"},
                    {"value_u8_6_fifth", "win64(u64 = 0, u64 = 0, u64 = 0, out u32[2], in u8[6])"},
                    {"registers_rsi_rdi", "win64(in u8[6] @ rsi, out u32[2] @ rdi)"},
                    {"register_value_xmm9", "win64(out f32, value f32 @ xmm9)"},
                    {"result_u64", "win64(in u8[8]) -> u64"},
                    {"reads_teb", "win64(in u8[4], out u32)"},
                });
}

TEST_CASE("what can be read in two ways is not called certain") {
  const Image image = fixture("conventions32.dll");
  check_uncertain(image, Confidence::likely,
                  {
                      {"constant_u32", "cdecl(in u8[4], value u32, out u32)"},
                      {"constant_u32", "cdecl(in u8[4], u32 = 1, out u32)"},
                      {"thiscall_three", "thiscall(in u8[4], value u32, out u32)"},
                      {"fastcall_three", "fastcall(in u8[4], out u32, value u32)"},
                      {"result_f64", "cdecl(in u8[8]) -> f64"},
                      {"result_f64", "cdecl(in u8[8]) -> f32"},
                      {"value_f32", "cdecl(value f32) -> f64"},
                      {"value_f32", "cdecl(value f32) -> f32"},
                      {"out_and_result_f32", "stdcall(in u8[4], out f32) -> f32"},
                      {"result_f64_xmm3", "cdecl(in u8[8]) -> f64 @ xmm3"},
                      {"result_u32_ecx", "cdecl(in u8[4]) -> u32 @ ecx"},
                      {"reads_ebx", "cdecl(value u32 @ ebx, in u8[4], out u32)"},
                      {"divides", "cdecl(in u8[4], in u8[4], out u32)"},
                  });
  check_uncertain(fixture("conventions64.dll"), Confidence::likely, {{"result_u32_r9", "win64(in u8[4]) -> u32 @ r9"}});
  // The code that faults runs for one value only.
  check_uncertain(fixture("broken_x87_fault.exe"), Confidence::likely, x87_stand_in);
  check_uncertain(fixture("broken_sse2_fault.exe"), Confidence::likely, sse2_stand_in);
  const Inference both = infer_at(image, "out_and_result");
  REQUIRE(both.candidates.size() == 2);
  CHECK(to_string(both.candidates[1].signature) == "cdecl(in u8[4], out u32) -> u32");
}

TEST_CASE("what contradicts itself is no more than possible") {
  check_uncertain(fixture("conventions32.dll"), Confidence::possible,
                  {
                      {"counts_calls", "cdecl(in u8[4], out u32)"},
                      {"remembers_last", "cdecl(in u8[4], out u32)"},
                      {"reads_below_stack", "cdecl(in u8[4], out u32)"},
                      {"reads_above_arguments", "cdecl(in u8[4], out u32)"},
                      {"unwritten_when_odd", "cdecl(in u8[2], out u32)"},
                      {"faults_when_odd", "cdecl(in u8[2], out u32)"},
                      {"loops_when_odd", "cdecl(in u8[2], out u32)"},
                      {"count_3n_plus_4", "cdecl(value u32) -> u32"},
                  });
}

TEST_CASE("a routine that is none of these is answered with what was seen") {
  check_none(fixture("conventions32.dll"),
             {
                 {"calls_sleep", "calls the import KERNEL32.dll!Sleep"},
                 {"reads_imported", "reads the import msvcrt.dll!_adjust_fdiv"},
                 {"loops_forever", "has executed 50000 instructions and not returned"},
                 {"loops_forever_rep", "has executed 50000 instructions and not returned"},
                 {"recurses_forever", "where nothing is mapped"},
                 {"never_writes", "it gives no result"},
                 {"writes_before", "in front of where stack argument 2 points"},
                 {"writes_page_past", "it follows stack argument 2 further than 1280 bytes"},
                 {"returns_4_bytes", "it uses 2 stack arguments and removes 4 bytes"},
                 {"leaves_pushed", "it returns with the stack pointer -4 bytes off"},
                 {"jumps_to_zero", "it jumps to 0x0"},
                 {"reads_null", "reads 4 bytes at 0x10, where nothing is mapped"},
                 {"runs_ud2", "no instruction of the emulated CPU"},
                 {"runs_vaddss", "VEX-encoded"},
                 {"runs_rdtsc", "gives other results when it is called again"},
                 {"runs_hlt", "halts the CPU"},
                 {"writes_text", "writes 1 byte at"},
                 {"smashes_return", "jumps to 0x41414141"},
             });
  check_none(fixture("conventions64.dll"), {{"returns_8_bytes", "which win64 leaves to the caller"},
                                            {"reads_shadow_space", "keeps for register arguments"}});
}

TEST_CASE("the bits that each output word depends on") {
  const Inference inference = infer_at(stand_in("stand_in_sse2.exe"), "0x103F1D0");
  REQUIRE(inference.dependencies.size() == 4);
  for (const std::vector<bool>& word : inference.dependencies) {
    REQUIRE(word.size() == 48);
    CHECK_FALSE(word[47]);  // the third word's top bit is masked
    CHECK(word[46]);
    CHECK(word[15]);  // the index
    CHECK(word[31]);
  }
  const Inference outs = infer_at(fixture("conventions32.dll"), "three_outs");
  REQUIRE(outs.dependencies.size() == 3);
  for (std::size_t word = 0; word < 3; ++word) {
    for (std::size_t bit = 0; bit < 24; ++bit) {
      INFO("word " << word << ", bit " << bit);
      CHECK(outs.dependencies[word][bit] == (bit / 8 == word));
    }
  }
}

TEST_CASE("equal calls of infer give equal answers") {
  const Image image = fixture("probe_x87.dll");
  const Inference first = infer_at(image, "packed_by_value");
  const Inference second = infer_at(image, "packed_by_value");
  CHECK(first.calls == second.calls);
  CHECK(first.dependencies == second.dependencies);
  CHECK(support_of(first) == support_of(second));
}

TEST_CASE("functions that nobody here wrote are probed in little time") {
  constexpr double most_seconds = 10;  // far below one on a machine that does nothing else
  for (const std::string path :
       {BITWITNESS_MINGW32_DLL_DIR "/libgcc_s_dw2-1.dll", BITWITNESS_MINGW64_DLL_DIR "/libgcc_s_seh-1.dll"}) {
    if (!std::filesystem::exists(path)) {
      tests::skip("no " + path);
      return;
    }
    const Image image = Image::load(path);
    for (std::size_t i = 0; i < image.exports().size(); i += 12) {
      const NamedAddress& named = image.exports()[i];
      INFO(path << " " << named.name);
      const auto start = std::chrono::steady_clock::now();
      const Inference inference = infer(image, named.address);
      CHECK(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < most_seconds);
      CHECK((!inference.candidates.empty() || !inference.seen.empty()));
    }
  }
  const Image image = Image::load(BITWITNESS_MINGW32_DLL_DIR "/libgcc_s_dw2-1.dll");
  const Inference half = infer(image, image.resolve("symbol:___extendhfsf2"));
  REQUIRE(half.certain() != nullptr);
  CHECK(to_string(half.certain()->signature) == "cdecl(value u16) -> f32");
}

TEST_CASE("an address without code is refused") {
  const Image image = stand_in("stand_in_x87.exe");
  CHECK_THROWS_AS(infer(image, 0x10), Error);
  CHECK_THROWS_AS(infer(image, image.base()), Error);
}
