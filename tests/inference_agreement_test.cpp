// Signatures that were inferred, used: every routine that unpacks agrees with the decoder of its rule.

#include "harness/cli/decoder_subject.hpp"
#include "harness/image.hpp"
#include "harness/probe/inference.hpp"
#include "harness/values.hpp"
#include "harness/verification.hpp"
#include "tests/catch.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

using namespace bitwitness;

namespace {

constexpr std::array<std::string_view, 17> one_key{
    "cdecl_in_out",    "cdecl_out_in",      "stdcall_in_out",  "stdcall_out_in", "this_is_packed", "this_is_result",
    "fastcall_in_out", "returns_structure", "packed_by_value", "from_key",       "lane_by_lane",   "counted",
    "indexed",         "in_esi_out_edi",    "in_eax",          "in_rsi_out_rdi", "guarded"};
constexpr std::array<std::string_view, 3> two_keys{"two_keys", "pair_in_a_row", "into_bones"};

RunReport verify_inferred(const Image& image, std::string_view name, std::string_view decoder) {
  const std::uint64_t address = image.resolve("export:" + std::string(name));
  const Inference inference = infer(image, address);
  REQUIRE(inference.certain() != nullptr);
  const Subject subject = cli::subject_of(cli::require_decoder(decoder));
  const ValueSet values =
      ValueSet::build(subject.packed_size, subject.fields, std::array<std::string, 1>{"random:6000"});
  return verify(image, {std::string(name), address, inference.certain()->signature}, subject, {}, values);
}

std::size_t check_all(const Image& image, std::span<const std::string_view> names, std::string_view decoder) {
  std::size_t checked = 0;
  for (const std::string_view name : names) {
    const auto has_name = [name](const NamedAddress& found) { return found.name == name; };
    if (std::ranges::none_of(image.exports(), has_name)) continue;  // not of this width
    INFO(image.name() << " " << name);
    const RunReport run = verify_inferred(image, name, decoder);
    CHECK(run.verdict() == Verdict::agree);
    CHECK(run.counts.agreed == run.distinct);
    CHECK(run.counts.agreed > 4000);
    ++checked;
  }
  return checked;
}

}  // namespace

TEST_CASE("what every way to call an unpack gives agrees with the decoder") {
  struct Case {
    std::string file;
    std::size_t one;
    std::size_t two;
  };
  for (const Case& expected :
       {Case{"probe_x87.dll", 16, 3}, Case{"probe_sse2.dll", 16, 3}, Case{"probe_64.dll", 14, 3}}) {
    const Image image = Image::load(BITWITNESS_FIXTURES_DIR "/" + expected.file);
    CHECK(check_all(image, one_key, "packed_quat48") == expected.one);
    CHECK(check_all(image, two_keys, "packed_quat48_pair") == expected.two);
  }
}
