#include "harness/probe/instruction_audit.hpp"

#include "harness/error.hpp"
#include "harness/jump_tables.hpp"
#include "harness/machine.hpp"
#include "tests/host_support.hpp"
#include "tests/pe_builder.hpp"
#include "tests/program.hpp"

#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace bitwitness;
namespace tests = bitwitness::tests;
using tests::bytes_of;
using tests::FileBytes;
using Json = nlohmann::json;

namespace {

constexpr std::uint64_t code_address = 0x401000;

/// Tells whether a text holds the pieces of a pattern in their order, with anything where it has a `*`.
bool is_like(std::string_view text, std::string_view pattern) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return text.ends_with(pattern);
  const std::size_t found = text.find(pattern.substr(0, star));
  if (found == std::string_view::npos) return false;
  return is_like(text.substr(found + star), pattern.substr(star + 1));
}

FileBytes file_of(FileBytes code, bool is_64_bit = false) {
  tests::PeBuilder builder;
  builder.is_64 = is_64_bit;
  builder.sections = {{.name = ".text", .data = std::move(code)}};
  return builder.build().bytes;
}

Image image_of(std::initializer_list<unsigned> code, bool is_64_bit = false) {
  const tests::TemporaryFile file(file_of(bytes_of(code), is_64_bit));
  return Image::load(file.path());
}

/// "wrong fisttp 1", worst first.
std::vector<std::string> rows_of(const Audit& audit) {
  std::vector<std::string> rows;
  for (const AuditedRow& audited : audit.rows) {
    rows.push_back(
        fmt::format("{} {} {}", to_string(audited.row.exactness), audited.mnemonic, audited.addresses.size()));
  }
  return rows;
}

std::vector<std::string> unfollowed_of(const Audit& audit) {
  std::vector<std::string> all;
  for (const Unfollowed& left : audit.unfollowed)
    all.push_back(fmt::format("{:#x} {}: {}", left.address, left.text, left.reason));
  return all;
}

using Texts = std::vector<std::string>;

// mov eax, [esp + 4]; mov ecx, [esp + 8]; …; ret: cdecl(in …, out …)
FileBytes routine(std::initializer_list<unsigned> middle) {
  FileBytes code = bytes_of({0x8b, 0x44, 0x24, 0x04, 0x8b, 0x4c, 0x24, 0x08});
  for (const std::byte byte : bytes_of(middle)) code.push_back(byte);
  code.push_back(std::byte{0xc3});
  return code;
}

/// A routine of one of the kinds that the emulator alone cannot vouch for.
struct Fixture {
  std::string mnemonic;
  std::string exactness;
  std::string instruction;
  FileBytes code;
  std::string signature;
  std::string decoder;
  Texts values;
  std::uint64_t least_disputed;
  std::uint64_t most_disputed;
  std::string reason;  // pattern of the first dispute
};

const char* const word = "cdecl(in u32, out u32)";

std::vector<Fixture> fixtures() {
  std::vector<Fixture> all;
  // movss xmm0, [eax]; rsqrtss xmm0, xmm0; movss [ecx], xmm0: pi, 1.23 and infinity
  all.push_back({"rsqrtss",
                 "approximate",
                 "rsqrtss xmm0, xmm0",
                 routine({0xf3, 0x0f, 0x10, 0x00, 0xf3, 0x0f, 0x52, 0xc0, 0xf3, 0x0f, 0x11, 0x01}),
                 word,
                 "raw_sws_10",
                 {"hex:db0f4940", "hex:a4709d3f", "hex:0000807f"},
                 2,
                 2,
                 "the emulator gives 3f*; the processor gives 3f*"});
  // fld qword [eax]; fsin; fstp qword [ecx]
  all.push_back({"fsin",
                 "approximate",
                 "fsin",
                 routine({0xdd, 0x00, 0xd9, 0xfe, 0xdd, 0x19}),
                 "cdecl(in u64, out u32[2])",
                 "raw_rr_25",
                 {"random:2000"},
                 1,
                 1999,
                 "the emulator gives *; the processor gives *"});
  // fld dword [eax]; fisttp dword [ecx]: 2^32, 2^31 and 1.5
  all.push_back({"fisttp",
                 "wrong",
                 "fisttp dword ptr [ecx]",
                 routine({0xd9, 0x00, 0xdb, 0x09}),
                 word,
                 "raw_rr_21",
                 {"hex:0000804f", "hex:0000004f", "hex:0000c03f"},
                 2,
                 2,
                 "the emulator gives 7fffffff; the processor gives 80000000"});
  // movss xmm0, [eax]; vaddss xmm0, xmm0, xmm0; movss [ecx], xmm0
  all.push_back({"vaddss",
                 "refused",
                 "vaddss xmm0, xmm0, xmm0",
                 routine({0xf3, 0x0f, 0x10, 0x00, 0xc5, 0xfa, 0x58, 0xc0, 0xf3, 0x0f, 0x11, 0x01}),
                 word,
                 "raw_sws_10",
                 {"hex:0000803f"},
                 1,
                 1,
                 "the emulator stops at vaddss*; the processor gives 40000000"});
  // fld dword [eax]; fstp dword [ecx]: two integers that look like signalling NaNs, one like a quiet one, one number
  all.push_back({"fld",
                 "finite",
                 "fld dword ptr [eax]",
                 routine({0xd9, 0x00, 0xd9, 0x19}),
                 word,
                 "raw_rr_21",
                 {"hex:0100807f", "hex:341280ff", "hex:0000c07f", "hex:78563412"},
                 2,
                 2,
                 "the emulator gives 7f800001; the processor gives 7fc00001"});
  return all;
}

Texts verify_words(const Fixture& fixture, const std::string& image, const std::string& witness) {
  Texts words = {"verify",          "--image",   image,           "--at",      "0x401000", "--signature",
                 fixture.signature, "--decoder", fixture.decoder, "--witness", witness};
  words.insert(words.end(), {"--json", "-", "--values"});
  words.insert(words.end(), fixture.values.begin(), fixture.values.end());
  return words;
}

std::size_t notes_like(const Json& notes, const std::string& pattern) {
  return static_cast<std::size_t>(
      std::ranges::count_if(notes, [&pattern](const Json& note) { return is_like(note.get<std::string>(), pattern); }));
}

}  // namespace

TEST_CASE("Rows name their mnemonic once, and all but exact ones say why") {
  std::set<std::string_view> seen;
  for (const InstructionRow& row : instruction_rows()) {
    INFO(row.mnemonic);
    CHECK(seen.insert(row.mnemonic).second);
    CHECK((row.exactness == Exactness::exact) == row.reason.empty());
    CHECK(row.exactness != Exactness::unknown);
  }
}

TEST_CASE("Instructions are found by their text") {
  const auto class_of = [](std::string_view text) {
    const InstructionRow* row = find_row(text);
    return row == nullptr ? std::string_view("none") : to_string(row->exactness);
  };
  CHECK(class_of("rsqrtss xmm0, xmm1") == "approximate");
  CHECK(class_of("movaps xmm0, xmm1") == "exact");
  CHECK(class_of("mov eax, ecx") == "none");
  CHECK(class_of("rep movsd dword ptr es:[edi], dword ptr [esi]") == "none");
  CHECK(class_of("cmpsd dword ptr [esi], dword ptr es:[edi]") == "none");
  CHECK(class_of("movsd xmm0, qword ptr [eax]") == "exact");
  CHECK(class_of("pfrsqrt mm0, mm1") == "unknown");
  CHECK(class_of("fnonsense st(1)") == "unknown");
  CHECK(class_of("sha1rnds4 xmm0, xmm1, 1") == "unknown");
  CHECK(class_of("vaddss xmm0, xmm0, xmm0") == "unknown");
  CHECK(class_of("cpuid") == "wrong");
  CHECK(class_of("syscall") == "refused");
}

TEST_CASE("An audit follows jumps and calls and counts what it meets") {
  // jz +1; nop; call 0x401010; fsin; ret … fldz; rsqrtss; movaps; ret
  const Image image = image_of({0x74, 0x01, 0x90, 0xe8, 0x08, 0x00, 0x00, 0x00, 0xd9, 0xfe, 0xd9, 0xfe, 0xc3,
                                0xcc, 0xcc, 0xcc, 0xd9, 0xee, 0xf3, 0x0f, 0x52, 0xc1, 0x0f, 0x28, 0xc1, 0xc3});
  const Audit found = audit(image, code_address);
  CHECK(rows_of(found) == Texts{"approximate fsin 2", "approximate rsqrtss 1", "exact fldz 1", "exact movaps 1"});
  CHECK(found.rows[0].addresses == std::vector<std::uint64_t>{0x401008, 0x40100a});
  CHECK(found.rows[1].addresses == std::vector<std::uint64_t>{0x401012});
  CHECK(found.instructions == 10);
  CHECK(found.unfollowed.empty());
  CHECK_FALSE(found.is_cut);
  CHECK_FALSE(found.is_trusted());
}

TEST_CASE("What an audit cannot follow is said") {
  tests::PeBuilder builder;
  builder.sections = {{.name = ".text", .data = bytes_of({0xc3})}};
  builder.imports = {{.name = "OTHER.dll", .functions = {"Function"}}};
  const auto slot = [&builder] {
    const tests::TemporaryFile file(builder.build().bytes);
    return Image::load(file.path()).imports()[0].slot;
  }();
  const auto low = static_cast<std::uint32_t>(slot);
  const auto byte = [low](unsigned shift) { return (low >> shift) & 0xffU; };
  // call [import]; call eax; call far away; jmp ecx
  builder.sections[0].data = bytes_of(
      {0xff, 0x15, byte(0), byte(8), byte(16), byte(24), 0xff, 0xd0, 0xe8, 0x00, 0x00, 0x10, 0x00, 0xff, 0xe1});
  const tests::TemporaryFile file(builder.build().bytes);
  const Image image = Image::load(file.path());
  REQUIRE(image.imports()[0].slot == slot);
  const Audit found = audit(image, code_address);
  CHECK(unfollowed_of(found) ==
        Texts{fmt::format("0x401000 call dword ptr [{:#x}]: calls Function of OTHER.dll, an import", slot),
              "0x401006 call eax: calls an address that only running it tells",
              "0x40100d jmp ecx: jumps to an address that only running it tells", "0x50100d : no code is there"});
  CHECK_FALSE(found.is_trusted());
  const Texts notes = audit_notes(found);
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].find("0x401000 was not audited") != std::string::npos);
}

TEST_CASE("An audit follows jumps through tables that nothing writes") {
  tests::PeBuilder builder;
  // jmp [eax*4 + 0x402000]; fsin; ret; fcos; ret; int3
  builder.sections = {
      {.name = ".text",
       .data = bytes_of({0xff, 0x24, 0x85, 0x00, 0x20, 0x40, 0x00, 0xd9, 0xfe, 0xc3, 0xd9, 0xff, 0xc3, 0xcc})},
      {.name = ".rdata",
       .characteristics = tests::constant_section,
       .data = bytes_of({0x07, 0x10, 0x40, 0x00, 0x0a, 0x10, 0x40, 0x00, 0x0d, 0x00, 0x00, 0x00})}};
  const auto audited = [&builder] {
    const tests::TemporaryFile file(builder.build().bytes);
    return audit(Image::load(file.path()), code_address);
  };
  CHECK(rows_of(audited()) == Texts{"approximate fcos 1", "approximate fsin 1"});
  CHECK(audited().instructions == 5);
  CHECK(audited().unfollowed.empty());
  builder.sections[1].characteristics = tests::data_section;
  CHECK(audited().unfollowed.size() == 1);
  builder.sections[1].characteristics = tests::constant_section;
  builder.sections[1].data[2] = std::byte{0x50};  // the first entry leads out of the image
  CHECK(audited().unfollowed.size() == 1);
  // A table that is entered in its middle.
  builder.sections[1].data[2] = std::byte{0x40};
  builder.sections[0].data[3] = std::byte{0x04};
  CHECK(audited().unfollowed.size() == 1);
  CHECK_FALSE(audited().is_trusted());
  // One longer than is followed.
  builder.sections[0].data[3] = std::byte{0x00};
  FileBytes many;
  for (std::size_t i = 0; i < max_table_entries; ++i) {
    for (const std::byte byte : bytes_of({0x07, 0x10, 0x40, 0x00})) many.push_back(byte);
  }
  builder.sections[1].data = std::move(many);
  CHECK(audited().unfollowed.size() == 1);
  CHECK_FALSE(audited().is_trusted());
}

TEST_CASE("An audit ends at its limit") {
  const Image image = image_of({0x90, 0x90, 0x90, 0x90, 0xc3});
  CHECK(audit(image, code_address, 5).is_trusted());
  const Audit found = audit(image, code_address, 4);
  CHECK(found.is_cut);
  CHECK_FALSE(found.is_trusted());
}

TEST_CASE("A status word is trusted where only condition codes are looked at") {
  const auto rows_after = [](std::initializer_list<unsigned> rest) {
    FileBytes code = bytes_of({0xd8, 0xd1, 0xdf, 0xe0});  // fcom st(1); fnstsw ax
    for (const std::byte byte : bytes_of(rest)) code.push_back(byte);
    const tests::TemporaryFile file(file_of(std::move(code)));
    return rows_of(audit(Image::load(file.path()), code_address)).front();
  };
  CHECK(rows_after({0xf6, 0xc4, 0x41, 0xc3}) != "wrong fnstsw 1");  // test ah, 0x41
  CHECK(rows_after({0x80, 0xe4, 0x45, 0xc3}) != "wrong fnstsw 1");  // and ah, 0x45
  CHECK(rows_after({0x9e, 0xc3}) != "wrong fnstsw 1");              // sahf
  CHECK(rows_after({0xf6, 0xc4, 0x43, 0xc3}) == "wrong fnstsw 1");  // test ah, 0x43: C1 too
  CHECK(rows_after({0xa8, 0x01, 0xc3}) == "wrong fnstsw 1");        // test al, 1
  CHECK(rows_after({0xc3}) == "wrong fnstsw 1");
}

TEST_CASE("Calls into bound libraries are audited") {
  tests::PeBuilder library;
  library.image_base = 0x10000000;
  library.sections = {{.name = ".text", .data = bytes_of({0xd9, 0xfe, 0xc3})}};
  library.exports = {{.name = "Function", .address = 0x1000}};
  tests::PeBuilder user;
  user.sections = {{.name = ".text", .data = bytes_of({0xc3})}};
  user.imports = {{.name = "OTHER.dll", .functions = {"Function"}}};
  const auto load = [](const tests::PeBuilder& builder, std::string_view name) {
    const tests::TemporaryFile file(builder.build().bytes, 0, name);
    return Image::load(file.path());
  };
  const auto slot = static_cast<std::uint32_t>(load(user, "image.exe").imports()[0].slot);
  const auto byte = [slot](unsigned shift) { return (slot >> shift) & 0xffU; };
  user.sections[0].data = bytes_of({0xff, 0x15, byte(0), byte(8), byte(16), byte(24), 0xc3});
  Surroundings surroundings;
  surroundings.libraries.push_back(load(library, "OTHER.dll"));
  const Image image = Image::link(load(user, "image.exe"), std::move(surroundings));
  const Audit found = audit(image, code_address);
  CHECK(rows_of(found) == Texts{"approximate fsin 1"});
  CHECK(found.unfollowed.empty());
}

TEST_CASE("Fixtures are audited for what they are") {
  const tests::Folder folder;
  for (const Fixture& fixture : fixtures()) {
    INFO(fixture.mnemonic);
    const tests::TemporaryFile file(file_of(fixture.code));
    const tests::Result result =
        tests::run(folder, {"audit", "--image", file.path().string(), "--at", "0x401000", "--json", "-"});
    const bool is_trusted = fixture.exactness == "finite";
    CHECK(result.status == (is_trusted ? 0 : 1));
    CHECK(result.err == "");
    const Json json = Json::parse(result.out);
    CHECK(json["schema"] == "bitwitness-audit/1");
    const Json& routine = json["routines"][0];
    CHECK(routine["trusted"] == is_trusted);
    CHECK(routine["counts"][fixture.exactness] >= 1);
    bool is_named = false;
    for (const Json& row : routine["rows"]) {
      if (row["mnemonic"] != fixture.mnemonic) continue;
      is_named = true;
      CHECK(row["class"] == fixture.exactness);
      CHECK(row["first"] == fixture.instruction);
      CHECK(row["count"] == 1);
      CHECK_FALSE(row["reason"].get<std::string>().empty());
    }
    CHECK(is_named);
    const tests::Result text = tests::run(folder, {"audit", "--image", file.path().string(), "--at", "0x401000"});
    CHECK(text.status == result.status);
    CHECK(text.out.find(fmt::format("{:<11} {}", fixture.exactness, fixture.mnemonic)) != std::string::npos);
  }
}

TEST_CASE("A run of the emulator alone says what cannot stand for a processor") {
  const tests::Folder folder;
  for (const Fixture& fixture : fixtures()) {
    INFO(fixture.mnemonic);
    const tests::TemporaryFile file(file_of(fixture.code));
    const tests::Result result = tests::run(folder, verify_words(fixture, file.path().string(), "unicorn"));
    INFO(result.err);
    REQUIRE(!result.out.empty());
    for (const std::string_view claim : {"proven", "proof", "certain", "guarantee"}) {
      CHECK(result.out.find(claim) == std::string::npos);
    }
    CHECK(notes_like(Json::parse(result.out)["runs"][0]["notes"],
                     "the emulator alone ran this: " + fixture.instruction + " at 0x4010*(" + fixture.exactness +
                         ": it *--witness both*") == 1);
  }
}

TEST_CASE("A run of the emulator alone says nothing where all is exact") {
  const tests::Folder folder;
  // fild dword [eax]; fistp dword [ecx]
  const Fixture exact = {"", "", "", routine({0xdb, 0x00, 0xdb, 0x19}), word, "raw_rr_21", {"hex:78563412"}, 0, 0, ""};
  const tests::TemporaryFile file(file_of(exact.code));
  const tests::Result result = tests::run(folder, verify_words(exact, file.path().string(), "unicorn"));
  CHECK(result.status == 0);
  CHECK(notes_like(Json::parse(result.out)["runs"][0]["notes"], "*the emulator alone*") == 0);
}

TEST_CASE("Both witnesses dispute what the audit warns of") {
  if (const std::string reason = tests::why_no_host(32); !reason.empty()) {
    tests::skip(reason);
    return;
  }
  const tests::Folder folder;
  for (const Fixture& fixture : fixtures()) {
    INFO(fixture.mnemonic);
    const tests::TemporaryFile file(file_of(fixture.code));
    const tests::Result result = tests::run(folder, verify_words(fixture, file.path().string(), "both"));
    INFO(result.err);
    CHECK(result.status == 1);
    const Json run = Json::parse(result.out)["runs"][0];
    const auto disputed = run["counts"].value("disputed", std::uint64_t{0});
    CHECK(disputed >= fixture.least_disputed);
    CHECK(disputed <= fixture.most_disputed);
    CHECK(notes_like(run["notes"], "*the emulator alone*") == 0);
    REQUIRE(!run["failures"].empty());
    const Json& first = run["failures"][0];
    CHECK(first["outcome"] == "disputed");
    CHECK(is_like(first["reason"].get<std::string>(), fixture.reason));
  }
}

TEST_CASE("Commands refuse what they cannot audit") {
  const tests::Folder folder;
  tests::check_refused(tests::run(folder, {"audit", "--at", "0x10"}), "0x10");
  tests::check_refused(tests::run(folder, {"audit", "--routine", "nonsense"}), "nonsense");
  tests::check_refused(tests::run(folder, {"audit", "--signature", "auto"}), "--signature");
  tests::check_refused(tests::run(folder, {"audit", "--json", "/nonsense/audit.json"}), "--json");
}
