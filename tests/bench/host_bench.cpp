// Speed of the host witness as ratios within one run. Nothing is asserted about time: the machine may be busy.
#include "harness/image.hpp"
#include "harness/machine.hpp"
#include "harness/values.hpp"
#include "tests/bench/bare_host_loop.hpp"
#include "tests/bench/in_turn.hpp"
#include "tests/catch.hpp"
#include "tests/host_support.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

using namespace bitwitness;
using bench::BareHostLoop;
using bench::Form;
using bench::in_turn;
using tests::why_no_host;

TEST_CASE("host witness against a bare loop and the emulator", "[!benchmark][host]") {
  constexpr std::size_t count = values_per_chunk;
  struct StandIn {
    std::string file;
    std::uint64_t address;
    std::string signature;
    Form form;
  };
  const std::string stand_ins = BITWITNESS_STAND_INS_DIR "/";
  for (const StandIn& stand_in :
       {StandIn{stand_ins + "stand_in_x87.exe", 0x103f1d0, "cdecl(in u8[6], out f32[4])", Form::cdecl_in_out},
        StandIn{stand_ins + "stand_in_sse2.exe", 0x103f1d0, "thiscall(in u8[6], out f32[4])", Form::thiscall_in_out},
        StandIn{BITWITNESS_FIXTURES_DIR "/located64.exe", 0x140002340, "win64(in u8[6], out f32[4])",
                Form::win64_in_out}}) {
    const Image image = Image::load(stand_in.file);
    if (const std::string why = why_no_host(image.format() == ImageFormat::pe32_plus ? 64 : 32); !why.empty()) {
      fmt::print("{}: {}\n", stand_in.file, why);
      continue;
    }
    const Routine routine{"packed_quat48", stand_in.address, parse_signature(stand_in.signature)};
    const std::vector<std::string> sources = {"random:20000"};
    const ValueSet values = ValueSet::build(6, {}, sources);
    std::vector<std::byte> packed(count * 6);
    values.read(0, packed);
    BareHostLoop bare(image, stand_in.address, stand_in.form, count, false);
    BareHostLoop resetting(image, stand_in.address, stand_in.form, count, true);
    std::ranges::copy(packed, bare.packed().begin());
    std::ranges::copy(packed, resetting.packed().begin());
    const auto host = make_host_machine(image, routine);
    const auto unicorn = make_unicorn_machine(image, routine);
    Batch on_host;
    Batch on_unicorn;
    const auto times = in_turn({[&] { bare.run(); }, [&] { resetting.run(); }, [&] { host->run(on_host, packed, {}); },
                                [&] { unicorn->run(on_unicorn, packed, {}); }},
                               41);
    CHECK(std::ranges::equal(on_host.words, on_unicorn.words));
    CHECK(std::ranges::equal(on_host.words, bare.words()));
    CHECK(std::ranges::equal(on_host.words, resetting.words()));
    const auto each = [](double time) { return time / count * 1e9; };
    fmt::print("{}: bare loop {:.1f} ns a value, with fninit {:.1f} ns, host witness {:.1f} ns, unicorn {:.0f} ns\n",
               stand_in.file, each(times[0]), each(times[1]), each(times[2]), each(times[3]));
    fmt::print("  host witness / bare loop: {:.2f} x its time, {:.2f} x with fninit\n", times[2] / times[0],
               times[2] / times[1]);
    fmt::print("  unicorn / host witness: {:.1f} x its time\n", times[3] / times[2]);
  }
}
