// Holds the audit's table against this computer's processor: each row in every form, over values of every kind.
#include "harness/probe/instruction_audit.hpp"
#include "tests/catch.hpp"
#include "tests/host_support.hpp"
#include "tests/instruction_trials.hpp"
#include "tests/pe_builder.hpp"

#include <map>
#include <set>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

/// What the audit of a routine with this instruction says of it.
Exactness audited(const Trial& trial) {
  PeBuilder builder;
  builder.is_64 = trial.is_64_bit;
  FileBytes code(trial.code.begin(), trial.code.end());
  code.push_back(std::byte{0xc3});
  builder.sections = {{.name = ".text", .data = std::move(code)}};
  const TemporaryFile file(builder.build().bytes);
  const Image image = Image::load(file.path());
  for (const AuditedRow& row : audit(image, image.base() + 0x1000).rows) {
    if (row.addresses.front() == image.base() + 0x1000) return row.row.exactness;
  }
  return Exactness::unknown;
}

struct Sum {
  Exactness exactness = Exactness::unknown;
  Measured all;
};

/// Rows that are not run: on some lengths these make the emulator read beyond its own memory.
bool is_never_run(std::string_view mnemonic) {
  return mnemonic == "pcmpestri" || mnemonic == "pcmpestrm";
}

}  // namespace

TEST_CASE("What the table says of each instruction is what both witnesses do") {
  if (const std::string reason = why_no_host(32); !reason.empty()) {
    skip(reason);
    return;
  }
  std::map<std::string, Sum> sums;
  for (const Trial& trial : all_trials()) {
    INFO(trial.text);
    Sum& sum = sums[trial.mnemonic()];
    sum.exactness = audited(trial);
    const Measured measured = measure(trial);
    CHECK(sum.exactness != Exactness::unknown);
    if (trial.shape == Shape::refused) {
      CHECK(sum.exactness == Exactness::refused);
      CHECK(measured.not_returned == measured.values);
      sum.all.differed = 1;
      continue;
    }
    CHECK(measured.not_returned == 0);
    INFO(measured.example);
    if (sum.exactness == Exactness::exact) CHECK(measured.differed == 0);
    if (sum.exactness == Exactness::finite) CHECK(measured.differed_plain == 0);
    sum.all.differed += measured.differed;
    sum.all.differed_plain += measured.differed_plain;
  }
  for (const auto& [mnemonic, sum] : sums) {
    INFO(mnemonic);
    if (sum.exactness == Exactness::finite) CHECK(sum.all.differed > 0);
    if (sum.exactness == Exactness::approximate || sum.exactness == Exactness::wrong) CHECK(sum.all.differed_plain > 0);
  }
  for (const InstructionRow& row : instruction_rows()) {
    INFO(row.mnemonic);
    CHECK(sums.contains(std::string(row.mnemonic)) != is_never_run(row.mnemonic));
  }
}
