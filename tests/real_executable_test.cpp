// Executables that nobody here wrote: the compiler's own run-time libraries for Windows, as Debian ships them.

#include "decoders/registry.hpp"
#include "harness/cli/decoder_subject.hpp"
#include "harness/image.hpp"
#include "harness/values.hpp"
#include "harness/verification.hpp"
#include "tests/catch.hpp"
#include "tests/real_executables.hpp"

#include <filesystem>
#include <string>
#include <vector>

using namespace bitwitness;

namespace {

RunReport run_half(const Image& image, const std::string& symbol, const std::string& signature,
                   const Environment& environment = {}) {
  const Subject subject = cli::subject_of(*decoders::find_decoder("half"));
  const Routine routine{"half", image.resolve("symbol:" + symbol), parse_signature(signature)};
  const std::vector<std::string> all = {"all"};
  VerifyOptions options;
  options.jobs = 2;
  return verify(image, routine, subject, environment, ValueSet::build(2, subject.fields, all), options);
}

void check_agrees(const RunReport& report) {
  CHECK(report.verdict() == Verdict::agree);
  CHECK(report.counts.agreed == 65536);
  CHECK(report.isolation.unstable == 0);
}

}  // namespace

TEST_CASE("all halves through the 32-bit libgcc agree with the native decoder") {
  const auto path = tests::mingw_dll(tests::Width::bits_32, "libgcc_s_dw2-1.dll");
  if (!path) return;
  const Image image = Image::load(*path);
  CHECK_FALSE(image.is_stand_in());
  check_agrees(run_half(image, "___extendhfsf2", "cdecl(value u16) -> f32"));
  // Its result travels through the x87 unit, where every half is exact at any precision.
  for (const std::uint16_t fpcw : std::vector<std::uint16_t>{0x007f, 0x037f}) {
    check_agrees(run_half(image, "___extendhfsf2", "cdecl(value u16) -> f32", {fpcw, 0x1f80}));
  }
}

TEST_CASE("all halves through the 64-bit libgcc agree with the native decoder") {
  const auto path = tests::mingw_dll(tests::Width::bits_64, "libgcc_s_seh-1.dll");
  if (!path) return;
  const Image image = Image::load(*path);
  CHECK(image.format() == ImageFormat::pe32_plus);
  check_agrees(run_half(image, "__extendhfsf2", "win64(value u16) -> f32"));
}

TEST_CASE("the real routine agrees from any base") {
  const auto path = tests::mingw_dll(tests::Width::bits_32, "libgcc_s_dw2-1.dll");
  if (!path) return;
  const Image image = Image::load(*path, {.base = 0x01000000});
  CHECK(image.base() == 0x01000000);
  check_agrees(run_half(image, "___extendhfsf2", "cdecl(value u16) -> f32"));
}

TEST_CASE("a wrong convention for the real routine is told, not compared") {
  const auto path = tests::mingw_dll(tests::Width::bits_32, "libgcc_s_dw2-1.dll");
  if (!path) return;
  const RunReport report = run_half(Image::load(*path), "___extendhfsf2", "stdcall(value u16) -> f32");
  CHECK(report.counts.faulted == 65536);
  REQUIRE(!report.failures.empty());
  CHECK(report.failures[0].reason == "leaves its 4 bytes of arguments on the stack, which stdcall removes: cdecl?");
}
