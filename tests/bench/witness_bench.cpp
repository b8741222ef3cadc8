// Speed of the harness as ratios within one run. Nothing is asserted about time: the machine may be busy.

#include "decoders/registry.hpp"
#include "harness/cli/decoder_subject.hpp"
#include "harness/image.hpp"
#include "harness/machine.hpp"
#include "harness/values.hpp"
#include "harness/verification.hpp"
#include "tests/bench/bare_loop.hpp"
#include "tests/bench/in_turn.hpp"
#include "tests/catch.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>

using namespace bitwitness;
using bench::BareLoop;
using bench::Form;
using bench::in_turn;
using bench::median;
using bench::seconds;

namespace {

constexpr std::uint64_t six_byte_form = 0x103f1d0;

struct StandIn {
  std::string file;
  std::string signature;
  Form form;
};

const std::vector<StandIn> stand_ins = {
    {"stand_in_x87.exe", "cdecl(in u8[6], out f32[4])", Form::cdecl_in_out},
    {"stand_in_sse2.exe", "thiscall(in u8[6], out f32[4])", Form::thiscall_in_out},
};

Image load(const StandIn& stand_in) {
  return Image::load(std::string(BITWITNESS_STAND_INS_DIR) + "/" + stand_in.file);
}

Subject packed_quat48() {
  return cli::subject_of(*decoders::find_decoder("packed_quat48"));
}

}  // namespace

TEST_CASE("verify against a bare loop in the guest", "[!benchmark][witness]") {
  for (const StandIn& stand_in : stand_ins) {
    const Image image = load(stand_in);
    const Routine routine{"packed_quat48", six_byte_form, parse_signature(stand_in.signature)};
    const Subject subject = packed_quat48();
    const std::vector<std::string> sources = {"random:400000"};
    const ValueSet values = ValueSet::build(6, subject.fields, sources);
    const auto count = static_cast<double>(values.size());

    BareLoop bare(image, six_byte_form, stand_in.form, static_cast<std::size_t>(values.size()));
    values.read(0, bare.packed());
    const auto verify_with = [&](unsigned jobs, std::uint64_t& agreed) {
      VerifyOptions options;
      options.jobs = jobs;
      agreed = verify(image, routine, subject, {}, values, options).counts.agreed;
    };
    std::uint64_t one = 0;
    std::uint64_t two = 0;
    std::vector<std::byte> packed(bare.packed().begin(), bare.packed().end());
    std::vector<std::uint32_t> words(4);
    std::uint64_t sum = 0;
    const auto times = in_turn({
        [&] { bare.run(); },
        [&] { verify_with(1, one); },
        [&] { verify_with(2, two); },
        [&] {  // what surrounds the witness: building the values, decoding, comparing
          const ValueSet again = ValueSet::build(6, subject.fields, sources);
          again.read(0, packed);
          for (std::size_t i = 0; i < values.size(); ++i) {
            subject.decode(std::span(packed).subspan(6 * i, 6), words);
            if (std::memcmp(words.data(), bare.words().data() + 4 * i, 16) == 0) ++sum;
          }
        },
    });
    CHECK(one == values.size());
    CHECK(two == values.size());
    CHECK(sum % values.size() == 0);
    fmt::print("{}: bare loop {:.0f} ns a value, verify {:.0f} ns\n", stand_in.file, times[0] / count * 1e9,
               times[1] / count * 1e9);
    fmt::print("  verify on one thread / bare loop: {:.2f} x its speed\n", times[0] / times[1]);
    fmt::print("  verify on two threads / one: {:.2f} x\n", times[1] / times[2]);
    fmt::print("  values, decoder and comparison: {:.1f} % of verify on one thread\n", 100 * times[3] / times[1]);
  }
}

TEST_CASE("verify against one emulator start a value", "[!benchmark][witness]") {
  for (const StandIn& stand_in : stand_ins) {
    const Image image = load(stand_in);
    const Routine routine{"packed_quat48", six_byte_form, parse_signature(stand_in.signature)};
    const Subject subject = packed_quat48();
    const std::vector<std::string> sources = {"random:40000"};
    const ValueSet values = ValueSet::build(6, subject.fields, sources);
    BareLoop bare(image, six_byte_form, stand_in.form, static_cast<std::size_t>(values.size()));
    values.read(0, bare.packed());
    const auto times =
        in_turn({[&] { bare.run_call_by_call(); }, [&] { (void)verify(image, routine, subject, {}, values); }});
    fmt::print("{}: verify / call by call: {:.2f} x its speed\n", stand_in.file, times[0] / times[1]);
  }
}

TEST_CASE("from start to the first value", "[!benchmark][startup]") {
  for (const StandIn& stand_in : stand_ins) {
    const std::vector<std::string> sources = {"hex:341278564523"};
    std::vector<double> all;
    for (int round = 0; round < 21; ++round) {
      all.push_back(seconds([&] {
        const Image image = load(stand_in);
        const Routine routine{"packed_quat48", six_byte_form, parse_signature(stand_in.signature)};
        const Subject subject = packed_quat48();
        CHECK(verify(image, routine, subject, {}, ValueSet::build(6, subject.fields, sources)).counts.agreed == 1);
      }));
    }
    fmt::print("{}: load, set up, run and compare one value: median {:.1f} ms, most {:.1f} ms\n", stand_in.file,
               median(all) * 1e3, std::ranges::max(all) * 1e3);
  }
}

TEST_CASE("memory of a run", "[!benchmark][memory]") {
  const StandIn& stand_in = stand_ins.front();
  const Image image = load(stand_in);
  const Routine routine{"packed_quat48", six_byte_form, parse_signature(stand_in.signature)};
  const Subject subject = packed_quat48();
  const std::vector<std::string> sources = {"random:4000000"};
  const ValueSet values = ValueSet::build(6, subject.fields, sources);
  VerifyOptions options;
  options.jobs = 2;
  CHECK(verify(image, routine, subject, {}, values, options).counts.agreed == values.size());
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double bytes = static_cast<double>(usage.ru_maxrss) * 1024;
  const double count = static_cast<double>(values.size());
  fmt::print("{} values on two threads: at most {:.0f} MB in the process; above 100 MB, {:.0f} bytes a value\n",
             values.size(), bytes / 1e6, std::max(0.0, bytes - 100e6) / count);
}
