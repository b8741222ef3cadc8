// Signatures that a prober could take for sure though the code says otherwise.

#include "harness/image.hpp"
#include "harness/probe/inference.hpp"
#include "tests/catch.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

using namespace bitwitness;

namespace {

constexpr const char* gcc32 = BITWITNESS_MINGW32_DLL_DIR "/libgcc_s_dw2-1.dll";
constexpr const char* gcc64 = BITWITNESS_MINGW64_DLL_DIR "/libgcc_s_seh-1.dll";

struct Case {
  std::string name;
  std::string signature;  ///< of the first candidate
  std::string doubt;      ///< a part of what is said against it; empty when it must be certain
};

void check(const std::string& path, const std::vector<Case>& cases) {
  if (!std::filesystem::exists(path)) {
    tests::skip("no " + std::string(path));
    return;
  }
  const Image image = Image::load(path);
  for (const Case& expected : cases) {
    INFO(path << " " << expected.name);
    const Inference inference = infer(image, image.resolve("export:" + expected.name));
    REQUIRE_FALSE(inference.candidates.empty());
    const Candidate& first = inference.candidates.front();
    CHECK(to_string(first.signature) == expected.signature);
    CAPTURE(first.doubts);
    if (expected.doubt.empty()) {
      CHECK(first.confidence == Confidence::certain);
      continue;
    }
    CHECK(first.confidence != Confidence::certain);
    CHECK(std::ranges::any_of(first.doubts, [&expected](const std::string& doubt) {
      return doubt.find(expected.doubt) != std::string::npos;
    }));
  }
}

std::string fixture(const std::string& name) {
  return std::string(BITWITNESS_FIXTURES_DIR "/") + name;
}

}  // namespace

TEST_CASE("floats have the width with which they are computed") {
  check(fixture("probe_64.dll"), {{"sums_f64", "win64(value f64, value f64, value f32, value u32) -> f64", ""},
                                  {"sums_two", "win64(value f32, value f64) -> f64", ""},
                                  {"raises", "win64(value f32, value u32) -> f32", ""}});
  check(fixture("probe_sse2.dll"), {{"sums_two", "cdecl(value f32, value f64) -> f64", "needs 64 bits"}});
  check(BITWITNESS_MINGW32_DLL_DIR "/libgfortran-5.dll",
        {{"_gfortran_pow_r8_i8", "cdecl(value f64, value u64) -> f64", "needs 64 bits"}});
}

TEST_CASE("every argument that is read is found or missed aloud") {
  check(gcc32, {{"__ffsdi2", "cdecl(value u64) -> u32", ""}});
  check(gcc64, {{"__powisf2", "win64(value f32, value u32) -> f32", ""}});
  check(BITWITNESS_MINGW64_DLL_DIR "/libgfortran-5.dll",
        {{"_gfortran_ishftc8", "win64(value u64, value u32, value u32) -> u64", ""}});
  check(BITWITNESS_MINGW64_DLL_DIR "/libatomic-1.dll",
        {{"__atomic_is_lock_free", "win64(value u64, value u32) -> u32", "set only the low 1 byte"}});
  for (const std::string name : {"probe_x87.dll", "probe_sse2.dll"}) {
    check(fixture(name), {{"by_mode", "cdecl(in u8[2], out f32, value u32)", "data or a setting"},
                          {"reads_beside", "cdecl(in u8[4], out u32, u32 = 0)", "no influence of it was seen"}});
  }
  check(fixture("probe_64.dll"), {{"reads_beside", "win64(in u8[4], out u32)", "r8 is read before it is written"}});
}

TEST_CASE("a result is where conventions have it, and whole") {
  check(gcc32, {{"__fixunssfdi", "cdecl(value f32) -> u64", ""}, {"__fixunsdfdi", "cdecl(value f64) -> u64", ""}});
  check(gcc64, {{"__negti2", "win64(in u8[16]) -> f64", "16 bytes in xmm0"}});
  check(BITWITNESS_MINGW64_DLL_DIR "/libgomp-1.dll",
        {{"acc_on_device", "win64(value u32) -> u32 @ rcx", "no convention returns a result there"}});
  check(fixture("probe_sse2.dll"), {{"upper_half_is_zero", "cdecl(in u8[4]) -> u32", "same in every call"}});
}

TEST_CASE("special values are tried") {
  check(gcc32, {{"__negvsi2", "cdecl(value u32) -> u32", "abort"}, {"__absvdi2", "cdecl(value u64) -> u64", "abort"}});
  check(gcc64, {{"__negvdi2", "win64(value u64) -> u64", "abort"}});
}

TEST_CASE("code that no call reaches and what calls leave behind is said") {
  for (const std::string name : {"probe_x87.dll", "probe_sse2.dll", "probe_64.dll"}) {
    const std::string convention = name == "probe_64.dll" ? "win64" : "cdecl";
    check(fixture(name), {{"one_in_2_32", convention + "(in u8[4], out u32)", "no call led from the jump"},
                          {"remembers", convention + "(in u8, out u32)", "a call may depend on those before it"},
                          {"compares", convention + "(in u8[3], out u32)", ""}});
  }
}

TEST_CASE("a count or an index that was chosen is said to be") {
  const Image image = Image::load(fixture("probe_sse2.dll"));
  for (const auto& [name, text] : {std::pair{"counted", "the count 1 was chosen here: any other fits"},
                                   std::pair{"indexed", "the index 0 was chosen here: any other fits"}}) {
    const Inference inference = infer(image, image.resolve(std::string("export:") + name));
    REQUIRE(inference.certain() != nullptr);
    CHECK(std::ranges::any_of(inference.certain()->support,
                              [text = text](const std::string& clause) { return clause.starts_with(text); }));
  }
}
