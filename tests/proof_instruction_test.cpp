// Each instruction that lifts know, lifted and evaluated, against this computer's processor: over values of every kind
// and under every rounding and precision. The instructions that they do not know are listed, so that none goes missing.
#include "harness/proof/evaluate.hpp"
#include "harness/proof/lifter.hpp"
#include "harness/values.hpp"
#include "tests/catch.hpp"
#include "tests/host_support.hpp"
#include "tests/instruction_trials.hpp"
#include "tests/pe_builder.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

constexpr std::size_t values_per_environment = 500;

// All of them as 64-bit code, which more computers run; what they do is the same in both.
// xmm0 and xmm1, eax and edx from a value; xmm0, xmm1, eax, edx, flags and 16 bytes of memory to the result.
constexpr std::string_view vector_begin = "56574889ce4889d70f10060f104e100f114724488b06488b56104839f6";
constexpr std::string_view no_flags = "c7472000000000";
constexpr std::string_view compare_flags = "c74720000000000f9447200f9247210f9a4722";
constexpr std::string_view vector_end = "0f11070f134f10488947184889571c5f5ec3";
// st(0) and st(1) or memory at esi + 16; depth and condition codes, stack from 4 on, memory from 40 on, flags at 152.
constexpr std::string_view x87_begin = "56574889ce4889d75731c0b930000000f3ab5f";
constexpr std::string_view load_second = "db6e10";
constexpr std::string_view load_one = "d9e8";
constexpr std::string_view load_first = "db2e";
constexpr std::string_view x87_flags = "0f9487980000000f9287990000000f9a879a000000";
constexpr std::string_view x87_depth = "89c2dfe025003800008907899794000000";
constexpr std::string_view x87_conditions = "89c2dfe025007d00008907899794000000";
constexpr std::array<std::string_view, 3> store_slot = {"db7f04", "db7f10", "db7f1c"};
constexpr std::string_view leave = "5f5ec3";

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [text](std::string_view prefix) { return text.starts_with(prefix); });
}

FileBytes code_of(const Trial& trial) {
  const std::string mnemonic = trial.mnemonic();
  FileBytes code;
  const auto add = [&code](const std::vector<std::byte>& bytes) {
    code.insert(code.end(), bytes.begin(), bytes.end());
  };
  const auto add_hex = [&add](std::string_view hex) { add(parse_hex(hex)); };
  const auto add_trial = [&] {
    add(trial.before);
    add(trial.code);
    add(trial.after);
  };
  if (!is_x87(trial.shape)) {
    add_hex(vector_begin);
    add_trial();
    add_hex(starts_with_any(mnemonic, {"comis", "ucomis"}) ? compare_flags : no_flags);
    add_hex(vector_end);
    return code;
  }
  add_hex(x87_begin);
  add_hex(trial.shape == Shape::x87 || trial.shape == Shape::x87_store ? load_second : load_one);
  add_hex(load_first);
  add_trial();
  if (starts_with_any(mnemonic, {"fcomi", "fucomi"})) add_hex(x87_flags);
  add_hex(starts_with_any(mnemonic, {"fcom", "fucom", "ficom", "ftst"}) ? x87_conditions : x87_depth);
  for (unsigned i = 0; i < trial.left; ++i) add_hex(store_slot.at(i));
  add_hex(leave);
  return code;
}

/// What came of one instruction.
struct Tried {
  bool is_known = false;
  std::string reason;
  std::size_t values = 0;
  std::size_t differences = 0;
  std::string example;
};

/// Lifts code once per environment, guided by its first value, and compares what it gives on the values that take the
/// same path.
class Trier {
 public:
  Trier(const FileBytes& code, const std::string& signature) : file_(built(code)), image_(Image::load(file_.path())) {
    routine_ = {"tried", image_.base() + 0x1000, parse_signature(signature)};
    machine_ = make_host_machine(image_, routine_);
    program_ = proof::program_of(image_);
    lifter_ = std::make_unique<proof::Lifter>(store_, program_, routine_.address, routine_.signature);
  }

  /// Returns false when the code cannot be lifted.
  bool run(Tried& tried, const std::vector<std::byte>& values, const Environment& environment) {
    const std::size_t size = routine_.signature.packed_size();
    const std::size_t words = routine_.signature.word_count();
    const auto value_at = [&](std::size_t i) { return std::span(values).subspan(i * size, size); };
    const proof::Lift lift = lifter_->run(value_at(0), environment);
    if (!lift.lifted) {
      tried.reason = fmt::format("0x{:x} {}: {}", lift.address, lift.instruction, lift.reason);
      return false;
    }
    Batch batch;
    machine_->run(batch, values, environment);
    std::vector<proof::NodeId> roots = lift.words;
    for (const auto& condition : lift.path) roots.push_back(condition.condition);
    proof::Evaluation evaluation(store_, roots);
    for (std::size_t i = 0; i < values.size() / size; ++i) {
      if (batch.outcomes[i] != OutcomeKind::returned) FAIL(batch.incidents.at(0).reason);
      evaluation.run(value_at(i));
      bool takes_path = true;
      for (std::size_t c = 0; c < lift.path.size(); ++c) {
        takes_path = takes_path && (evaluation[words + c] != 0) == lift.path[c].taken;
      }
      if (!takes_path) continue;
      ++tried.values;
      for (std::size_t word = 0; word < words; ++word) {
        const auto ours = static_cast<std::uint32_t>(evaluation[word]);
        const std::uint32_t theirs = batch.words[i * words + word];
        if (ours == theirs) continue;
        ++tried.differences;
        if (!tried.example.empty()) continue;
        tried.example =
            fmt::format("{} under {:04x}, {:04x}: word {} is {:08x}, the processor's {:08x}: {}", to_hex(value_at(i)),
                        environment.fpcw, environment.mxcsr, word, ours, theirs, to_text(store_, lift.words[word]));
      }
    }
    return true;
  }

 private:
  static FileBytes built(const FileBytes& code) {
    PeBuilder builder;
    builder.is_64 = true;
    builder.sections = {{.name = ".text", .data = code}};
    return builder.build().bytes;
  }

  TemporaryFile file_;
  Image image_;
  Routine routine_;
  std::unique_ptr<Machine> machine_;
  proof::Program program_;
  proof::Store store_;
  std::unique_ptr<proof::Lifter> lifter_;
};

Tried try_instruction(const Trial& trial) {
  Trier trier(code_of(trial), fmt::format("win64(in u8[32], out u32[{}])", is_x87(trial.shape) ? 48 : 13));
  RandomWords random(2);
  Tried tried;
  for (const Environment& environment : environments_of(trial.shape)) {
    if (!trier.run(tried, draw_values(trial, random, values_per_environment), environment)) return tried;
  }
  tried.is_known = true;
  return tried;
}

/// Integer code, the flags it defines (c z s p o) and what it says.
struct IntegerForm {
  std::string_view code;
  std::string_view flags;
  std::string_view text;
};

constexpr IntegerForm integer_forms[] = {
#include "tests/proof_integer_forms.inc"
};

/// rax, rcx and rdx from a value and, behind the code, to the result; then a byte per flag.
FileBytes code_of(const IntegerForm& form) {
  std::string hex = "56574889ce4889d7488b06488b4e08488b561039f6";
  hex += form.code;
  hex += "48c7471800000000";
  constexpr std::array<std::pair<char, std::string_view>, 5> setters = {
      {{'c', "0f924718"}, {'z', "0f944719"}, {'s', "0f98471a"}, {'p', "0f9a471b"}, {'o', "0f90471c"}}};
  for (const auto& [flag, code] : setters) {
    if (form.flags.find(flag) != std::string_view::npos) hex += code;
  }
  hex += "48890748894f08488957105f5ec3";
  return parse_hex(hex);
}

std::vector<std::byte> draw_integers(RandomWords& random, std::size_t count) {
  std::vector<std::byte> values;
  for (std::size_t i = 0; i < 3 * count; ++i) {
    std::uint64_t word = random.next();
    const std::uint32_t kind = random.below(8);
    if (kind == 0) word = random.below(8) - std::uint64_t{4};
    if (kind == 1) word = std::uint64_t{1} << random.below(64);
    if (kind == 2) word = ~std::uint64_t{0} << random.below(64);
    if (kind == 3) word &= 0x8080808080808080;
    if (kind == 4 && i > 0) std::memcpy(&word, values.data() + values.size() - 8, 8);
    const auto bytes = std::as_bytes(std::span(&word, 1));
    values.insert(values.end(), bytes.begin(), bytes.end());
  }
  return values;
}

/// What lifts do not know of what is tried, or not in every mode (fldpi and its like round), or not with what it is
/// tried with (shifts of lanes by a count from the value), or what gives bits that no lift follows (stmxcsr, fnstsw).
const std::set<std::string> not_known = {
    "addsubpd",   "addsubps",   "aesdec",   "aesdeclast", "aesenc",     "aesenclast", "aesimc",      "aeskeygenassist",
    "blendpd",    "blendps",    "blendvpd", "blendvps",   "cvtpd2pi",   "cvtpi2pd",   "cvtpi2ps",    "cvtps2pi",
    "cvttpd2pi",  "cvttps2pi",  "dppd",     "dpps",       "extractps",  "f2xm1",      "fbld",        "fbstp",
    "fcos",       "fldl2e",     "fldl2t",   "fldlg2",     "fldln2",     "fldpi",      "fnsave",      "fnstenv",
    "fnstsw",     "fpatan",     "fprem",    "fprem1",     "fptan",      "fscale",     "fsin",        "fsincos",
    "fxam",       "fxrstor",    "fxtract",  "fyl2x",      "fyl2xp1",    "haddpd",     "haddps",      "hsubpd",
    "hsubps",     "insertps",   "lfence",   "mfence",     "movddup",    "movdq2q",    "movntdq",     "movnti",
    "movntpd",    "movntps",    "movq2dq",  "movshdup",   "movsldup",   "mpsadbw",    "pabsb",       "pabsd",
    "pabsw",      "paddsb",     "paddsw",   "paddusb",    "paddusw",    "palignr",    "pavgb",       "pavgw",
    "pblendvb",   "pblendw",    "pcmpeqq",  "pcmpgtq",    "pcmpistri",  "pcmpistrm",  "pextrb",      "pextrd",
    "pextrq",     "phaddd",     "phaddsw",  "phaddw",     "phminposuw", "phsubd",     "phsubsw",     "phsubw",
    "pinsrb",     "pinsrd",     "pinsrq",   "pmaddubsw",  "pmaxsb",     "pmaxsd",     "pmaxud",      "pmaxuw",
    "pminsb",     "pminsd",     "pminud",   "pminuw",     "pmuldq",     "pmulhrsw",   "prefetchnta", "prefetcht0",
    "prefetcht1", "prefetcht2", "psadbw",   "pshufb",     "psignb",     "psignd",     "psignw",      "pslld",
    "psllq",      "psllw",      "psrad",    "psraw",      "psrld",      "psrlq",      "psrlw",       "psubsb",
    "psubsw",     "psubusb",    "psubusw",  "ptest",      "rcpps",      "rcpss",      "roundpd",     "roundps",
    "roundsd",    "roundss",    "rsqrtps",  "rsqrtss",    "sfence",     "stmxcsr"};

}  // namespace

TEST_CASE("what is lifted from each instruction on numbers is what the processor does") {
  if (const std::string reason = bitwitness::tests::why_no_host(64); !reason.empty()) {
    bitwitness::tests::skip(reason);
    return;
  }
  std::set<std::string> unknown;
  std::size_t known = 0;
  for (const Trial& trial : all_trials()) {
    if (trial.shape == Shape::query || trial.shape == Shape::refused || trial.shape == Shape::general) continue;
    const bool is_mmx = trial.text.find("mm") != std::string::npos && trial.text.find("xmm") == std::string::npos;
    const bool is_32_bit_only = trial.after.size() > 4 && trial.before.front() != std::byte{0x66};  // moves esp
    if (is_mmx || is_32_bit_only) continue;
    INFO(trial.text);
    const Tried tried = try_instruction(trial);
    if (!tried.is_known) {
      INFO(tried.reason);
      CHECK_FALSE(tried.reason.empty());
      unknown.insert(trial.mnemonic());
      continue;
    }
    ++known;
    INFO(tried.example);
    CHECK(tried.values > 0);
    CHECK(tried.differences == 0);
  }
  CHECK(known > 300);
  CHECK(unknown == not_known);
}

TEST_CASE("what is lifted from each instruction on integers is what the processor does, flags included") {
  if (const std::string reason = bitwitness::tests::why_no_host(64); !reason.empty()) {
    bitwitness::tests::skip(reason);
    return;
  }
  RandomWords random(3);
  for (const IntegerForm& form : integer_forms) {
    INFO(form.text << " (" << form.code << "), flags " << form.flags);
    Trier trier(code_of(form), "win64(in u8[24], out u32[8])");
    Tried tried;
    const bool is_lifted = trier.run(tried, draw_integers(random, 1000), {});
    INFO(tried.reason << tried.example);
    CHECK(is_lifted);
    CHECK(tried.values > 600);
    CHECK(tried.differences == 0);
  }
}
