#include "harness/error.hpp"
#include "harness/machine.hpp"
#include "harness/verification.hpp"
#include "tests/host_support.hpp"
#include "tests/machine_runs.hpp"
#include "tests/pe_builder.hpp"

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

const RestrictTests restricted(needs_64_bit_host);

/// A routine of 64-bit code, win64(in u32, out u32), as an image.
Image image_of(FileBytes code) {
  PeBuilder builder;
  builder.is_64 = true;
  builder.sections = {{.name = ".text", .data = std::move(code)}};
  const TemporaryFile file(builder.build().bytes);
  return Image::load(file.path());
}

Routine routine_in(const Image& image, std::string_view signature = "win64(in u32, out u32)") {
  return {"tried", image.base() + 0x1000, parse_signature(signature)};
}

// movss xmm0, [rcx]; … ; movss [rdx], xmm0; ret
FileBytes on_float(std::initializer_list<unsigned> middle) {
  FileBytes code = bytes_of({0xf3, 0x0f, 0x10, 0x01});
  for (const std::byte byte : bytes_of(middle)) code.push_back(byte);
  for (const std::byte byte : bytes_of({0xf3, 0x0f, 0x11, 0x02, 0xc3})) code.push_back(byte);
  return code;
}

Batch run_both(const Image& image, const Bytes& packed, std::string_view signature = "win64(in u32, out u32)",
               const Environment& environment = {}) {
  Batch batch;
  make_both_machine(image, routine_in(image, signature))->run(batch, packed, environment);
  return batch;
}

}  // namespace

TEST_CASE("What emulator and processor both say is a result") {
  const Image image = image_of(on_float({0xf3, 0x0f, 0x51, 0xc0}));  // sqrtss xmm0, xmm0
  const Batch batch = run_both(image, bytes_of_u32({0x40800000, 0x3f800000, 0x42c80000}));
  CHECK(batch.outcomes == std::vector(3, OutcomeKind::returned));
  CHECK(batch.words == Words{0x40000000, 0x3f800000, 0x41200000});
  CHECK(batch.incidents.empty());
}

TEST_CASE("An approximation that only the processor makes is disputed, and the instruction named") {
  const Image image = image_of(on_float({0xf3, 0x0f, 0x52, 0xc0}));  // rsqrtss xmm0, xmm0
  const Bytes packed = bytes_of_u32({0x40490fdb, 0x7f800000, 0x3f9d70a4});
  const auto machine = make_both_machine(image, routine_in(image));
  Batch batch;
  machine->run(batch, packed, {});
  // 1 / sqrt(infinity) is zero on both.
  CHECK(batch.outcomes == std::vector{OutcomeKind::disputed, OutcomeKind::returned, OutcomeKind::disputed});
  REQUIRE(batch.incidents.size() == 2);
  CHECK(batch.incidents[0].index == 0);
  CHECK(batch.incidents[1].index == 2);
  CHECK(is_like(batch.incidents[0].reason, "the emulator gives 3f106*; the processor gives 3f10*"));
  Incident incident = batch.incidents[0];
  machine->explain(incident, std::span(packed).first(4), {});
  CHECK(incident.address == image.base() + 0x1000 + 4);
  CHECK(incident.instruction == "rsqrtss xmm0, xmm0");
  machine->run_alone(batch, packed, {});
  CHECK(batch.outcomes == std::vector{OutcomeKind::disputed, OutcomeKind::returned, OutcomeKind::disputed});
}

TEST_CASE("A store that rounds otherwise is found in memory") {
  // fld dword [rcx]; fstp dword [rdx] of a signalling NaN, which the emulator copies as it is.
  const Image image = image_of(bytes_of({0xd9, 0x01, 0xd9, 0x1a, 0xc3}));
  const Bytes packed = bytes_of_u32({0x7f800001});
  const auto machine = make_both_machine(image, routine_in(image));
  Batch batch;
  machine->run(batch, packed, {});
  REQUIRE(batch.outcomes == std::vector{OutcomeKind::disputed});
  CHECK(batch.incidents[0].reason == "the emulator gives 7f800001; the processor gives 7fc00001");
  machine->explain(batch.incidents[0], packed, {});
  CHECK(is_like(batch.incidents[0].instruction, "f*"));
}

TEST_CASE("Code that only one of them runs is disputed") {
  const Image image = image_of(on_float({0xc5, 0xfa, 0x58, 0xc0}));  // vaddss xmm0, xmm0, xmm0
  const Batch batch = run_both(image, bytes_of_u32({0x3f800000}));
  REQUIRE(batch.outcomes == std::vector{OutcomeKind::disputed});
  CHECK(is_like(batch.incidents[0].reason,
                "the emulator stops at vaddss xmm0, xmm0, xmm0, which is VEX-encoded*; the processor gives 40000000"));
}

TEST_CASE("A fault of both is a fault") {
  const Image image = image_of(bytes_of({0x8b, 0x04, 0x25, 0x10, 0, 0, 0, 0xc3}));  // mov eax, [0x10]
  const Batch batch = run_both(image, bytes_of_u32({1, 2}));
  CHECK(batch.outcomes == std::vector(2, OutcomeKind::faulted));
  REQUIRE(batch.incidents.size() == 2);
  CHECK(batch.incidents[1].reason == "reads 4 bytes at 0x10, where nothing is mapped");
}

TEST_CASE("Disputes are counted by themselves and explained in reports") {
  const Image image = image_of(on_float({0xf3, 0x0f, 0x52, 0xc0}));
  Subject subject;
  subject.name = "zero";
  subject.packed_size = 4;
  subject.word_names = {"x"};
  subject.decode = [](std::span<const std::byte>, std::span<std::uint32_t> words) { words[0] = 0; };
  VerifyOptions options;
  options.make_machine = [](const Image& tried, const Routine& routine, const MachineOptions& given) {
    return make_both_machine(tried, routine, given);
  };
  options.limit = 2;
  const std::vector<std::string> sources = {"hex:db0f4940", "hex:0000807f", "hex:a4709d3f", "hex:a5709d3f"};
  const RunReport run = verify(image, routine_in(image), subject, {}, ValueSet::build(4, {}, sources), options);
  CHECK(run.witness == "both");
  CHECK(run.counts.run == 4);
  CHECK(run.counts.disputed == 3);
  CHECK(run.counts.agreed == 1);
  CHECK(run.counts.differed == 0);
  CHECK(run.counts.without_result() == 3);
  CHECK(run.verdict() == Verdict::differ);
  REQUIRE(run.failures.size() == 2);
  for (const Failure& failure : run.failures) {
    CHECK(failure.kind == OutcomeKind::disputed);
    CHECK(failure.instruction == "rsqrtss xmm0, xmm0");
  }
}
