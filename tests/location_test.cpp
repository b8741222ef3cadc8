#include "harness/probe/location.hpp"

#include "decoders/registry.hpp"
#include "harness/cli/decoder_subject.hpp"
#include "harness/cli/location_report.hpp"
#include "harness/target.hpp"
#include "tests/catch.hpp"
#include "tests/location_builds.hpp"
#include "tests/pe_builder.hpp"
#include "tests/program.hpp"
#include "tests/real_executables.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <string>

#include <nlohmann/json.hpp>

// Both moved stand-ins (tests/fixtures/stand_in.inc, -DMOVED), alone and within an image of 20 MB.

using namespace bitwitness;
using namespace bitwitness::tests::location;

namespace {

using tests::bytes_of;
using tests::FileBytes;
using tests::operator+;

const std::vector<KnownConstant> constants = {
    {ConstantKind::f64, 0x3f06a0cba0000000, true},
    {ConstantKind::f32, 0x3835065d, true},
    {ConstantKind::mask, 0x7fff, false},
    {ConstantKind::mask, 0x8000, false},
    {ConstantKind::shift, 15, false},
    {ConstantKind::f32, 0x3f3504f3, false},
};

WantedRoutine wanted(const std::string& decoder) {
  WantedRoutine routine;
  routine.name = decoder;
  routine.subject = cli::subject_of(*decoders::find_decoder(decoder));
  routine.signatures = {usual_signatures(routine.subject), register_signatures(routine.subject)};
  return routine;
}

std::vector<WantedRoutine> both() {
  return {wanted("packed_quat48"), wanted("packed_quat48_pair")};
}

const FoundCode* find(const RoutineLocation& routine, std::uint64_t address) {
  const auto found = std::ranges::find(routine.candidates, address, &FoundCode::address);
  return found == routine.candidates.end() ? nullptr : &*found;
}

bool has_reason(const FoundCode& code, const std::string& part) {
  return std::ranges::any_of(code.reasons,
                             [&](const std::string& reason) { return reason.find(part) != std::string::npos; });
}

void check_found(const RoutineLocation& routine, std::uint64_t address, const std::string& signature) {
  INFO(routine.name);
  CHECK(routine.standing == Standing::clear);
  REQUIRE_FALSE(routine.candidates.empty());
  const FoundCode& first = routine.candidates[0];
  CHECK(first.address == address);
  REQUIRE(first.trial);
  CHECK(first.trial->tried == 64);
  CHECK(first.trial->agreed == 64);
  CHECK(to_string(first.trial->signature) == signature);
  for (std::size_t i = 1; i < routine.candidates.size(); ++i) {
    const auto& trial = routine.candidates[i].trial;
    CHECK((!trial || trial->agreed < trial->tried));
  }
}

void check_both(const Location& location, const Kind& kind) {
  REQUIRE(location.routines.size() == 2);
  check_found(location.routines[0], one_key, kind.one_key);
  check_found(location.routines[1], two_keys, kind.two_keys);
  const auto& calls = location.routines[1].calls;
  REQUIRE(calls.size() == 1);
  CHECK(calls[0].address == kind.call);
  CHECK(calls[0].returns == kind.call + 5);
  CHECK(calls[0].function == (kind.name == "x87" ? 0x16c3384 : 0x16c3387));
}

}  // namespace

TEST_CASE("both routines and the sampler's call are found in stand-ins that were moved") {
  for (const Kind& kind : kinds) {
    INFO(kind.name);
    const Image image = Image::load(moved(kind));
    const Location location = locate(image, both(), constants);
    check_both(location, kind);
    CHECK(location.references == (kind.name == "x87" ? 3 : 6));
    CHECK(has_reason(location.routines[0].candidates[0],
                     kind.name == "x87" ? "refers to f32 3835065d at 0x1802000, in fmul dword ptr [0x1802000]"
                                        : "refers to f64 3f06a0cba0000000 at 0x1802000, in mulsd xmm0"));
  }
}

TEST_CASE("both routines are found among 20 MB of other code, and decoys are never first") {
  for (const Kind& kind : kinds) {
    INFO(kind.name);
    Build build(kind);
    fill_with_functions(build);
    put_dll(build, "libstdc++-6.dll", 0x500000, 0x200000);
    put_dll(build, "libgcc_s_dw2-1.dll", 0x800000, 0x100000);
    put_decoys(build);
    const Image image = build.load();
    const auto start = std::chrono::steady_clock::now();
    const Location location = locate(image, both(), constants);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::cout << kind.name << ": " << location.code_bytes << " bytes searched in " << seconds << " s\n";
    CHECK(seconds < 60);
    CHECK(location.code_bytes > 20'000'000);
    check_both(location, kind);
    for (std::uint64_t decoy = decoys; decoy <= near_decoy; decoy += decoy_size) {
      INFO(std::hex << decoy);
      const FoundCode* const found = find(location.routines[0], decoy);
      REQUIRE(found != nullptr);
      if (decoy != near_decoy) CHECK((!found->trial || found->trial->agreed == 0));
    }
    const FoundCode& near = *find(location.routines[0], near_decoy);
    REQUIRE(near.trial);
    CHECK(near.trial->agreed > 8);
    CHECK(near.trial->agreed < 56);
    CHECK(location.routines[0].candidates[1].address == near_decoy);
  }
}

TEST_CASE("a 64-bit image's references are distances, and a jump to the routine is named, not listed") {
  const Image image = Image::load(fixtures + "/located64.exe");
  const Location location = locate(image, std::vector{wanted("packed_quat48")}, constants);
  check_found(location.routines[0], 0x140002340, "win64(in u8[6], out f32[4])");
  CHECK(has_reason(location.routines[0].candidates[0], "refers to f64 3f06a0cba0000000 at 0x140003008, in mulsd"));
  CHECK(location.routines[0].candidates[0].thunks == std::vector<std::uint64_t>{0x140002500});
  REQUIRE(location.routines[0].calls.size() == 1);
  CHECK(location.routines[0].calls[0].address == 0x140002609);
}

TEST_CASE("two routines that agree are not clear, one that agrees in part is not the routine") {
  const Kind& kind = kinds[1];
  Build build(kind);
  const FileBytes routine = build.at(one_key, two_keys - one_key);
  build.put(decoys, routine);
  const std::vector one = {wanted("packed_quat48")};
  const Location twice = locate(build.load(), one, constants);
  CHECK(twice.routines[0].standing == Standing::several);
  REQUIRE(twice.routines[0].candidates.size() >= 2);
  REQUIRE(twice.routines[0].candidates[1].trial);
  CHECK(twice.routines[0].candidates[1].trial->is_full());
  CHECK(twice.routines[0].calls.empty());

  put_decoys(build);
  build.put(endless_decoy, FileBytes(decoy_size, std::byte{0xcc}));  // takes a second with every signature there is
  build.put(one_key, FileBytes(routine.size(), std::byte{0xcc}));
  const Location near = locate(build.load(), one, constants);
  CHECK(near.routines[0].standing == Standing::partial);
  REQUIRE_FALSE(near.routines[0].candidates.empty());
  CHECK(near.routines[0].candidates[0].address == near_decoy);
}

TEST_CASE("a routine that only calls another is no second one") {
  Build build(kinds[0]);
  // push [esp + 8]; push [esp + 8]; call; add esp, 8; ret
  build.put(decoys, bytes_of({0xff, 0x74, 0x24, 0x08, 0xff, 0x74, 0x24, 0x08}));
  build.put_call(decoys + 8, one_key);
  build.put(decoys + 13, bytes_of({0x83, 0xc4, 0x08, 0xc3}));
  const Location location = locate(build.load(), both(), constants);
  check_both(location, kinds[0]);
  const auto& notes = location.routines[0].notes;
  REQUIRE(notes.size() == 1);
  CHECK(notes[0] == "0x1100000 agrees too: it calls 0xda4450");
}

TEST_CASE("an image without the routines gives nothing that behaves") {
  Build build(kinds[0]);
  build.code.assign(0x400000, std::byte{0xcc});
  for (const bool with_decoys : {false, true}) {
    if (with_decoys) {
      fill_with_functions(build);
    }
    const Location location = locate(build.load(), both(), constants);
    for (const RoutineLocation& routine : location.routines) {
      CHECK(routine.standing == (with_decoys ? Standing::unconfirmed : Standing::nothing));
      CHECK(routine.candidates.empty() == !with_decoys);
      CHECK(routine.calls.empty());
    }
    CHECK(location.references == 0);
  }
}

TEST_CASE("instructions of another build lead to the routine without any constant") {
  for (const Kind& kind : kinds) {
    INFO(kind.name);
    const Image original = Image::load(stand_ins + "/stand_in_" + kind.name + ".exe");
    auto routines = both();
    routines[0].like = LikeRoutine{&original, 0x103f1d0};
    routines[1].like = LikeRoutine{&original, 0x103f340};
    const Image image = Image::load(moved(kind));
    const Location location = locate(image, routines, {});
    check_both(location, kind);
    for (const RoutineLocation& routine : location.routines) {
      CHECK(routine.candidates[0].alike == 1.0);
      CHECK(has_reason(routine.candidates[0], "same instructions as stand_in_" + kind.name + ".exe at 0x103f"));
    }
    // Other instructions in the middle: near, and told from the same.
    const Image twin = Image::load(fixtures + "/broken_" + kind.name + "_no_clamp.exe");
    const Location near = locate(twin, std::vector{routines[0]}, {});
    REQUIRE_FALSE(near.routines[0].candidates.empty());
    const FoundCode& first = near.routines[0].candidates[0];
    CHECK(first.address == 0x103f1d0);
    CHECK(near.routines[0].standing == Standing::partial);
    REQUIRE(first.alike);
    CHECK(*first.alike >= 0.5);
    CHECK(*first.alike < 1.0);
  }
}

TEST_CASE("a routine that takes a value and returns a float is found in real libraries") {
  struct Library {
    tests::Width width;
    std::string name;
    std::string symbol;
    std::uint64_t other_base;
    std::string signature;
  };
  const std::array<Library, 2> libraries{{
      {tests::Width::bits_32, "libgcc_s_dw2-1.dll", "symbol:___extendhfsf2", 0x20000000, "cdecl(value u16) -> f32"},
      {tests::Width::bits_64, "libgcc_s_seh-1.dll", "symbol:__extendhfsf2", 0x20000000, "win64(value u16) -> f32"},
  }};
  for (const Library& library : libraries) {
    INFO(library.name);
    const auto path = tests::mingw_dll(library.width, library.name);
    if (!path) return;
    const Image image = Image::load(*path);
    const Image elsewhere = Image::load(*path, {.base = library.other_base});
    auto half = wanted("half");
    half.like = LikeRoutine{&elsewhere, elsewhere.resolve(library.symbol)};
    const Location location = locate(image, std::vector{half}, {});
    REQUIRE(location.routines[0].standing == Standing::clear);
    const FoundCode& first = location.routines[0].candidates[0];
    CHECK(first.address == image.resolve(library.symbol));
    CHECK(first.alike == 1.0);
    CHECK(to_string(first.trial->signature) == library.signature);
    CHECK(has_reason(first, "in the function table") == (library.width == tests::Width::bits_64));
  }
}

TEST_CASE("signatures that a routine's return contradicts are not proposed") {
  const Image image = Image::load(moved(kinds[1]));
  const auto proposer = usual_signatures(cli::subject_of(*decoders::find_decoder("packed_quat48")));
  std::vector<std::string> texts;
  for (const Signature& signature : proposer(image, one_key)) texts.push_back(to_string(signature));
  CHECK(std::ranges::find(texts, "thiscall(in u8[6], out f32[4])") != texts.end());
  CHECK(std::ranges::find(texts, "thiscall(out f32[4], in u8[6])") != texts.end());
  CHECK(std::ranges::none_of(texts, [](const std::string& text) { return text.starts_with("cdecl"); }));
}

TEST_CASE("a decoder that gives the same words for every value cannot tell anything") {
  auto routine = wanted("packed_quat48");
  routine.subject.decode = [](std::span<const std::byte>, std::span<std::uint32_t> words) {
    std::ranges::fill(words, 0U);
  };
  const Image image = Image::load(moved(kinds[0]));
  CHECK_THROWS_WITH(locate(image, std::vector{routine}, constants),
                    Catch::Matchers::Contains("the same words for every value"));
}

TEST_CASE("the program finds, writes a target, and verify accepts it", "[program]") {
  const tests::Folder folder;
  for (const Kind& kind : kinds) {
    INFO(kind.name);
    const std::string out = folder.file(kind.name + ".toml");
    const tests::Result located =
        tests::run(folder, {"locate", "--image", moved(kind), "--out", out, "--json", folder.file("found.json")});
    CHECK(located.status == 0);
    CHECK(located.err == "");
    CHECK(located.out.find("packed_quat48: found at 0xda4450 (rva:0x9a4450)") != std::string::npos);
    CHECK(located.out.find("agrees with packed_quat48_pair on 64 of 64 values as " + kind.two_keys) !=
          std::string::npos);
    CHECK(located.out.find("STAND-IN") != std::string::npos);
    const auto json = nlohmann::json::parse(tests::contents(folder.file("found.json")));
    CHECK(json["schema"] == "bitwitness-location/1");
    CHECK(json["routines"][0]["candidates"][0]["address"] == "0xda4450");
    CHECK(json["routines"][1]["calls"][0]["clear"] == true);
    CHECK(json["routines"][1]["calls"][0]["sites"][0]["returns"] == (kind.name == "x87" ? "0x16c33a9" : "0x16c33a4"));

    const Target target = load_target(out);
    REQUIRE(target.routines.size() == 2);
    CHECK(target.routines[0].at == "0xda4450");
    CHECK(to_string(*target.routines[1].signature) == kind.two_keys);
    CHECK(target.anchors.size() == 4);
    for (const AnchorResult& anchor : check_anchors(target, Image::load(moved(kind)))) CHECK(anchor.holds);
    const tests::Result verified =
        tests::run(folder, {"verify", "--image", moved(kind), "--target", out, "--values", "random:500"});
    CHECK(verified.err == "");
    CHECK(verified.status == 0);
  }
}

TEST_CASE("the program's exit status says how much was found", "[program]") {
  const tests::Folder folder;
  const std::string out = folder.file("out.toml");
  const tests::Words broken = {"locate", "--image", fixtures + "/broken_sse2_word_two_unmasked.exe"};
  CHECK(tests::run(folder, broken).status == 1);
  const std::string other = fixtures + "/conventions32.dll";
  const tests::Result nothing = tests::run(folder, {"locate", "--image", other, "--out", out});
  CHECK(nothing.status == 3);
  CHECK(nothing.out.find("packed_quat48: not found") != std::string::npos);
  CHECK(nothing.err.find("nothing is written") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(out));

  const std::string image = moved(kinds[0]);
  const auto refuse = [&](const tests::Words& more, const std::string& named) {
    tests::check_refused(tests::run(folder, tests::Words{"locate", "--image", image} + more), named);
  };
  refuse({"--routine", "nonesuch"}, "nonesuch");
  refuse({"--target", "nonesuch"}, "nonesuch");
  refuse({"--limit", "0"}, "--limit 0");
  refuse({"--at", "0x401000"}, "--at 0x401000");
  refuse({"--like", image, "--at", "0xda4450"}, "--at 0xda4450");
  refuse({"--like", image, "--at", "0x10", "--routine", "packed_quat48"}, "0x10");
  refuse({"--like", "/nonexistent.exe"}, "/nonexistent.exe");
  refuse({"--out", image}, "--out");
  refuse({"--out", out, "--json", out}, "--json");
}
