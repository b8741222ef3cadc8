#include "tests/catch.hpp"
#include "tests/program.hpp"

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

// Runs the program as a user does. BITWITNESS_PROGRAM, BITWITNESS_STAND_INS_DIR and BITWITNESS_FIXTURES_DIR come from
// CMake.

namespace {

namespace fs = std::filesystem;
using namespace bitwitness::tests;

const fs::path stand_ins = BITWITNESS_STAND_INS_DIR;
const fs::path fixtures = BITWITNESS_FIXTURES_DIR;
const std::string x87 = (stand_ins / "stand_in_x87.exe").string();
const std::string one_key = "packed_quat48=cdecl(in u8[6], out f32[4])";
const std::string two_keys = "packed_quat48_pair=stdcall(in u8[6], in u8[6], out f32[4], out f32[4])";

/// A quick run on the x87 stand-in.
Words verify_words(const Words& more) {
  return Words{"verify", "--image", x87, "--jobs", "1"} + more;
}

const std::string sse2 = (stand_ins / "stand_in_sse2.exe").string();
const Words four_values = {"--values", "hex:341278564523", "hex:349278564523", "hex:341278d64523", "hex:349278d64523"};
const Words one_routine = {"--routine", "packed_quat48"};

/// A copy of the x87 stand-in without the marker that makes it one.
std::string unmarked_stand_in(const Folder& folder) {
  std::string bytes = contents(x87);
  const std::size_t at = bytes.find("bitwitness stand-in:");
  REQUIRE(at != std::string::npos);
  bytes.replace(at, 10, "BITWITNESS");
  write(folder.path / "game.exe", bytes);
  return folder.file("game.exe");
}

}  // namespace

TEST_CASE("input that cannot be used exits 2 with one line that names it", "[cli]") {
  struct Case {
    Words arguments;
    std::string named;
  };
  const Folder folder;
  write(folder.path / "target.toml", "name = \"t\"\nnonsense = 1\n");
  const std::string at = "0x103f1d0";
  const std::string cdecl_text = "cdecl(in u8[6], out f32[4])";
  const std::vector<Case> cases = {
      {{}, "a command is required"},
      {{"frobnicate"}, "frobnicate"},
      {{"verify", "--frobnicate"}, "--frobnicate"},
      {{"verify", "frobnicate"}, "frobnicate"},
      {{"verify", "--image"}, "--image"},
      {{"verify", "--image", "a.exe", "--image", "b.exe"}, "--image"},
      {{"verify", "--image", "/nonexistent.exe"}, "/nonexistent.exe"},
      {{"verify", "--image", "new\nline.exe"}, "line.exe"},
      {{"verify", "--image", ""}, ""},
      {{"verify", "--image", folder.path.string()}, folder.path.string()},
      {{"verify", "--image", BITWITNESS_PROGRAM}, BITWITNESS_PROGRAM},
      {verify_words({"--jobs", "2"}), "--jobs"},
      {{"verify", "--jobs", "0"}, "--jobs 0"},
      {{"verify", "--jobs", "-1"}, "--jobs"},
      {{"verify", "--jobs", "2x"}, "--jobs 2x"},
      {{"verify", "--jobs", "99999999999999999999"}, "--jobs 99999999999999999999"},
      {{"verify", "--limit", "many"}, "--limit many"},
      {{"verify", "--budget", "0"}, "--budget 0"},
      {verify_words({"--shard", "0/3"}), "0/3"},
      {verify_words({"--shard", "4/3"}), "4/3"},
      {verify_words({"--shard", "half"}), "half"},
      {verify_words({"--fpcw", "12345"}), "--fpcw 12345"},
      {verify_words({"--fpcw", "027f", "zz"}), "--fpcw zz"},
      {verify_words({"--fpcw", "017f"}), "--fpcw 017f"},
      {verify_words({"--mxcsr", "10000"}), "--mxcsr 10000"},
      {verify_words({"--fpcw", "sweep:all"}), "--fpcw sweep:all: unknown; it is sweep or sweep:rounding"},
      {verify_words({"--mxcsr", "sweeping"}), "--mxcsr sweeping: unknown; it is sweep"},
      {{"trace", "--image", x87, "--routine", "packed_quat48", "--values", "hex:341278564523", "--fpcw", "sweep"},
       "--fpcw"},
      {{"probe", "--image", x87, "--at", at, "--fpcw", "sweep"}, "--fpcw"},
      {{"audit", "--image", x87, "--at", "0x10"}, "0x10"},
      {{"audit", "--image", x87, "--at", at, "--json", x87}, "overwrite"},
      {verify_words({"--base", "zz"}), "--base zz"},
      {verify_words({"--witness", "jury"}), "--witness jury"},
      {verify_words({"--target", "nosuch"}), "nosuch"},
      {verify_words({"--target", folder.file("target.toml")}), "target.toml:2"},
      {verify_words({"--routine", "nosuch"}), "packed_quat48"},
      {verify_words({"--signature", "nosuch=" + cdecl_text}), "nosuch"},
      {verify_words({"--signature", "cdecl(in u8[6"}), "cdecl(in u8[6"},
      {verify_words({"--signature", cdecl_text, "--signature", cdecl_text}), "--signature"},
      {verify_words({"--signature", one_key, "--signature", one_key}), "packed_quat48"},
      {verify_words({"--signature", "win64(in u8[6], out f32[4])"}), "win64"},
      {verify_words({"--at", at, "--decoder", "half"}), "inferred signature cdecl(in u8[6], out f32[4])"},
      {verify_words({"--at", "0x1060bc7", "--decoder", "half"}), "--signature"},
      {{"probe", "--image", x87, "--at", "zz"}, "zz"},
      {{"probe", "--image", x87, "--at", "0x10"}, "0x10"},
      {{"probe", "--image", x87, "--at", at, "--routine", "packed_quat48"}, "--at"},
      {{"probe", "--image", x87, "--routine", "nosuch"}, "nosuch"},
      {{"probe", "--image", x87, "--target", "nosuch"}, "nosuch"},
      {{"probe", "--image", x87, "--at", at, "--fpcw", "027f", "007f"}, "--fpcw"},
      {{"probe", "--image", x87, "--json", x87}, "overwrite"},
      {verify_words({"--at", at, "--signature", cdecl_text}), "--decoder"},
      {verify_words({"--at", at, "--signature", one_key, "--decoder", "packed_quat48"}), "packed_quat48="},
      {verify_words({"--at", at, "--target", "sws"}), "--at"},
      {verify_words({"--at", at, "--routine", "packed_quat48"}), "--at"},
      {verify_words({"--at", "zz", "--signature", cdecl_text, "--decoder", "packed_quat48"}), "zz"},
      {verify_words({"--at", "0x10", "--signature", cdecl_text, "--decoder", "packed_quat48"}), "0x10"},
      {verify_words({"--at", "symbol:no", "--signature", cdecl_text, "--decoder", "packed_quat48"}), "symbol:no"},
      {verify_words({"--at", at, "--signature", cdecl_text, "--decoder", "nosuch"}), "packed_quat48_pair"},
      {verify_words({"--at", at, "--signature", cdecl_text, "--decoder", "half"}), "half takes 2"},
      {verify_words({"--values", "hex:zz"}), "hex:zz"},
      {verify_words({"--values", "hex:12"}), "hex:12"},
      {verify_words({"--values", "file:/nonexistent.txt"}), "/nonexistent.txt"},
      {verify_words({"--values", "random:x"}), "random:x"},
      {verify_words({"--values", "nosuch"}), "nosuch"},
      {verify_words({"--values", "all"}), "all"},
      {verify_words({"--json", folder.path.string()}), "--json"},
      {verify_words({"--json", folder.file("no/such/folder.json")}), "--json"},
      {verify_words({"--json", ""}), "--json"},
      {verify_words({"--json", folder.file("no\nsuch/folder.json")}), "--json"},
      {{"verify", "--fro\nb"}, "--fro"},
      {verify_words({"--json", "-", "--junit", "-"}), "--junit"},
      {verify_words({"--json", folder.file("a"), "--junit", folder.file("./a")}), "--junit"},
      {verify_words({"--json", x87}), "overwrite"},
      {{"decode"}, "name"},
      {{"decode", "packed_quat48"}, "hex"},
      {{"decode", "nosuch", "00"}, "packed_quat48_pair"},
      {{"decode", "packed_quat48", "3412785645"}, "3412785645"},
      {{"decode", "packed_quat48", "34127856452"}, "34127856452"},
      {{"decode", "packed_quat48", "34127856452x"}, "34127856452x"},
      {{"list", "nosuch"}, "nosuch"},
      {{"list", "targets", "--target", "nosuch"}, "nosuch"},
  };
  const std::string image_before = contents(x87);
  for (const Case& bad : cases) {
    CAPTURE(bad.arguments);
    const Result result = run(folder, bad.arguments);
    CAPTURE(result.err);
    check_refused(result, bad.named);
  }
  CHECK(contents(x87) == image_before);
}

TEST_CASE("help and version go to standard output", "[cli]") {
  const Folder folder;
  const Result version = run(folder, {"--version"});
  CHECK(version.status == 0);
  CHECK(std::regex_match(version.out, std::regex("bitwitness [0-9]+\\.[0-9]+\\.[0-9]+\n")));
  const Result help = run(folder, {"--help"});
  CHECK(help.status == 0);
  for (const char* word : {"verify", "decode", "list", "Exit status"}) CHECK(help.out.find(word) != std::string::npos);
  const Result verify_help = run(folder, {"verify", "--help"});
  CHECK(verify_help.status == 0);
  for (const char* option : {"--image", "--at", "--values", "--shard", "--fpcw", "--json", "--ignore-anchors"}) {
    CHECK(verify_help.out.find(option) != std::string::npos);
  }
}

TEST_CASE("decode prints words and numbers", "[cli]") {
  const Folder folder;
  const Result text = run(folder, {"decode", "packed_quat48", "341278564523", "34 92 78 56 45 23", "341278d64523",
                                   "349278D64523", "153f6b7f1e3f"});
  CHECK(text.status == 0);
  for (const char* line : {"34 12 78 56 45 23  3f433af1 bf018814 3e7e3c18 bea2849b\n  x  3f433af1  0.7626181\n",
                           "34 92 78 56 45 23  bf018814 3f433af1 3e7e3c18 bea2849b\n",
                           "34 12 78 d6 45 23  bf018814 3e7e3c18 3f433af1 bea2849b\n",
                           "34 92 78 d6 45 23  bf018814 3e7e3c18 bea2849b 3f433af1\n",
                           "15 3f 6b 7f 1e 3f  3f369ac4 bc25d240 3f336255 bc1f7500\n"}) {
    CHECK(text.out.find(line) != std::string::npos);
  }
  const Result json = run(folder, {"decode", "half", "007e", "--json", "-"});
  CHECK(json.status == 0);
  const auto document = nlohmann::json::parse(json.out);
  CHECK(document["values"][0]["words"][0]["bits"] == "7fc00000");
  CHECK(document["values"][0]["words"][0]["number"] == "nan");
}

TEST_CASE("list names what there is", "[cli]") {
  const Folder folder;
  CHECK(run(folder, {"list", "targets"}).out.find("sws: 2 routines") != std::string::npos);
  const std::string routines = run(folder, {"list", "routines"}).out;
  CHECK(routines.find("sws packed_quat48_pair at 0x103F340: signature not known") != std::string::npos);
  const std::string decoders = run(folder, {"list", "decoders"}).out;
  CHECK(decoders.find("packed_quat48: 6 bytes to 4 f32 words\n  words  x y z w") != std::string::npos);
  const Result all = run(folder, {"list"});
  CHECK(all.status == 0);
  for (const std::string& part : {routines, decoders}) CHECK(all.out.find(part) != std::string::npos);
}

TEST_CASE("verify without an image works on the built stand-in", "[cli]") {
  const Folder folder;
  const Result result = run(folder, Words{"verify"} + four_values + one_routine);
  CHECK(result.status == 0);
  CHECK(result.err == "");
  CHECK(result.out.starts_with("stand_in_x87.exe  sha256 "));
  CHECK(
      result.out.substr(0, result.out.find('\n')).ends_with("STAND-IN executable: assembled for tests, not the game"));
  CHECK(last_line(result.out) == "agree: 4 of 4 values agreed bit for bit, 1 of 1 runs");
}

TEST_CASE("a difference exits 1 and its command repeats it", "[cli]") {
  const Folder folder;
  const fs::path image = folder.path / "it's a twin.exe";
  fs::copy_file(fixtures / "broken_x87_constant_bit.exe", image);
  const Result first = run(folder, {"verify", "--image", image.string(), "--routine", "packed_quat48", "--signature",
                                    one_key, "--values", "random:100", "--limit", "3"});
  CHECK(first.status == 1);
  CHECK(last_line(first.out).starts_with("differ: "));
  std::smatch match;
  REQUIRE(std::regex_search(first.out, match, std::regex("\n(  difference 1 of [^]*?)  repeat: bitwitness (.*)\n")));
  const std::string words = match[1].str().substr(match[1].str().find('\n') + 1);
  const Result again = run_shell(folder, quoted(BITWITNESS_PROGRAM) + " " + match[2].str());
  CHECK(again.status == 1);
  CHECK(again.out.find(words) != std::string::npos);
  CHECK(again.out.find("run 1: agreed 0, differed 1,") != std::string::npos);
}

TEST_CASE("comparing nothing exits 3", "[cli]") {
  const Folder folder;
  const Result result =
      run(folder, verify_words(Words{"--values", "hex:000000000000", "--shard", "2/2"} + one_routine));
  CHECK(result.status == 3);
  CHECK(last_line(result.out) == "vacuous: nothing was compared");
}

TEST_CASE("reports are written whole and do not depend on the number of threads", "[cli]") {
  const Folder folder;
  const Words values = {"--values", "random:3000", "special", "--fpcw", "007f"};
  const fs::path reports = folder.path / "reports";
  fs::create_directory(reports);
  const auto report = [&reports](const char* name) { return (reports / name).string(); };
  write(report("1.json"), "old");
  CHECK(run(folder, Words{"verify", "--image", x87, "--jobs", "1", "--json", report("1.json"), "--junit",
                          report("1.xml"), "--timings", report("1.time")} +
                        values)
            .status == 1);
  CHECK(run(folder,
            Words{"verify", "--image", x87, "--jobs", "3", "--json", report("2.json"), "--junit", report("2.xml")} +
                values)
            .status == 1);
  CHECK(contents(report("1.json")) == contents(report("2.json")));
  CHECK(contents(report("1.xml")) == contents(report("2.xml")));
  CHECK(std::distance(fs::directory_iterator(reports), fs::directory_iterator()) == 5);
  const auto document = nlohmann::json::parse(contents(report("1.json")));
  CHECK(document["schema"] == "bitwitness-report/1");
  CHECK(document["image"]["stand_in"] == true);
  CHECK(document["engine"]["cpu"] != "");
  const auto timings = nlohmann::json::parse(contents(report("1.time")));
  CHECK(timings["runs"][0]["seconds"].get<double>() > 0);

  const Result json = run(folder, Words{"verify", "--image", x87, "--json", "-"} + values);
  CHECK(json.out == contents(report("1.json")));
  const Result junit = run(folder, Words{"verify", "--image", x87, "--junit", "-"} + values);
  CHECK(junit.out == contents(report("1.xml")));
}

TEST_CASE("files that are links or devices keep being that", "[cli]") {
  const Folder folder;
  write(folder.path / "real.json", "");
  fs::create_symlink("real.json", folder.path / "link.json");
  const Words command = verify_words(four_values + one_routine);
  CHECK(run(folder, command + Words{"--json", folder.file("link.json"), "--junit", "/dev/null"}).status == 0);
  CHECK(fs::is_symlink(folder.path / "link.json"));
  CHECK(contents(folder.path / "real.json").starts_with("{"));
  CHECK(fs::is_character_file("/dev/null"));
}

TEST_CASE("output that cannot be written exits 2", "[cli]") {
  const Folder folder;
  const std::string command = command_line(verify_words(four_values + one_routine));
  for (const char* redirection : {" >/dev/full", " >&-"}) {
    CAPTURE(redirection);
    check_refused(run_shell(folder, command + redirection), "standard output");
  }
  check_refused(run_shell(folder, command_line({"list"}) + " >/dev/full"), "standard output");
  const std::string list = folder.file("list.txt");
  write(list, "341278564523\n");
  check_refused(run_shell(folder, command + " --values file:" + list + " --json " + list), "would overwrite");
  CHECK(contents(list) == "341278564523\n");
  // One output that fails does not cost the others.
  const Result full = run_shell(folder, command + " --json /dev/full");
  CHECK(full.status == 2);
  CHECK(full.out.find("\nagree: ") != std::string::npos);
  CHECK(full.err.starts_with("bitwitness: --json /dev/full"));
}

TEST_CASE("signatures that a target leaves open are inferred", "[cli]") {
  const Folder folder;
  const std::string game = unmarked_stand_in(folder);
  const Words command = Words{"verify", "--image", game} + four_values;
  const std::string inferred = "Signature inferred by executing the routine: cdecl(in u8[6], out f32[4])";
  const Result open = run(folder, command + one_routine);
  CHECK(open.status == 0);
  CHECK(open.out.find(inferred) != std::string::npos);
  CHECK(open.out.find("STAND-IN") == std::string::npos);
  const Result asked = run(folder, command + one_routine + Words{"--signature", "auto"});
  CHECK(asked.out == open.out);
  const Result given = run(folder, command + one_routine + Words{"--signature", one_key});
  CHECK(given.status == 0);
  CHECK(given.out.find(inferred) == std::string::npos);
  const Result both = run(folder, {"verify", "--image", game, "--signature", one_key, "--values", "random:50"});
  CHECK(both.status == 0);
  CHECK(both.out.find("inferred by executing the routine: stdcall(in u8[6], in u8[6], out f32[4], out f32[4])") !=
        std::string::npos);
  CHECK(run(folder, {"verify", "--image", sse2, "--values", "random:50"}).status == 0);
  CHECK(run(folder,
            {"verify", "--image", game, "--at", "0x103f1d0", "--decoder", "packed_quat48", "--values", "random:50"})
            .status == 0);
}

TEST_CASE("what cannot be inferred has to be given", "[cli]") {
  const Folder folder;
  const std::string image = (fixtures / "conventions32.dll").string();
  const auto verify_at = [&](const std::string& name, const std::string& decoder) {
    return run(folder, {"verify", "--image", image, "--at", "export:" + name, "--decoder", decoder});
  };
  check_refused(verify_at("constant_u32", "packed_quat32"),
                "leaves open which: likely cdecl(in u8[4], value u32, out u32)");
  check_refused(verify_at("loops_forever", "half"), "tells no signature: it has executed 50000 instructions");
  check_refused(run(folder, {"verify", "--image", (fixtures / "broken_x87_no_w.exe").string()}),
                "inferred signature cdecl(in u8[6], out f32[3])");
}

TEST_CASE("probe tells the signature, what supports it and what to run next", "[cli]") {
  const Folder folder;
  const Result both = run(folder, {"probe", "--image", sse2, "--json", folder.file("probe.json")});
  CHECK(both.status == 0);
  CHECK(both.out.find("STAND-IN") != std::string::npos);
  CHECK(both.out.find("\n  certain: thiscall(in u8[6], out f32[4])\n") != std::string::npos);
  CHECK(both.out.find("\n  certain: fastcall(in u8[12], out f32[8])\n") != std::string::npos);
  CHECK(both.out.find("\n  words 0 to 3 depend on bits 0-46\n") != std::string::npos);
  CHECK(both.out.find("--at '0x103F1D0' --signature 'thiscall(in u8[6], out f32[4])' --decoder packed_quat48\n") !=
        std::string::npos);
  const auto document = nlohmann::json::parse(contents(folder.path / "probe.json"));
  CHECK(document["schema"] == "bitwitness-probe/1");
  REQUIRE(document["routines"].size() == 2);
  CHECK(document["routines"][0]["candidates"][0]["confidence"] == "certain");
  CHECK(document["routines"][0]["dependencies"][3] == "0-46");
  const std::string image = (fixtures / "conventions32.dll").string();
  CHECK(run(folder, {"probe", "--image", image, "--at", "export:constant_u32"}).status == 1);
  const Result none = run(folder, {"probe", "--image", image, "--at", "export:calls_sleep"});
  CHECK(none.status == 3);
  CHECK(none.out.find("  seen: it calls the import KERNEL32.dll!Sleep\n") != std::string::npos);
}

TEST_CASE("a required anchor that does not hold stops, an expected one is a note", "[cli]") {
  const Folder folder;
  const auto target = [&folder](const std::string& level) {
    const std::string path = folder.file(level + ".toml");
    write(path,
          "name = \"t\"\n[[routine]]\nname = \"r\"\nat = \"0x103F1D0\"\ndecoder = \"packed_quat48\"\n"
          "signature = \"cdecl(in u8[6], out f32[4])\"\nnote = \"a note of the target\"\n"
          "[[anchor]]\nkind = \"call\"\nlevel = \"" +
              level + "\"\nat = \"0x103F1D0\"\nto = \"0x103F340\"\nsays = \"it calls itself twice\"\n");
    return path;
  };
  const Words command = verify_words(four_values);
  check_refused(run(folder, command + Words{"--target", target("required")}), "it calls itself twice");
  const Result ignored = run(folder, command + Words{"--target", target("required"), "--ignore-anchors"});
  CHECK(ignored.status == 0);
  CHECK(ignored.out.find("\nnote: required anchor of target t does not hold: it calls itself twice") !=
        std::string::npos);
  const Result expected = run(folder, command + Words{"--target", target("expected")});
  CHECK(expected.status == 0);
  CHECK(expected.out.find("\nnote: expected anchor of target t does not hold: it calls itself twice") !=
        std::string::npos);
  CHECK(expected.out.find("\n  note: a note of the target\n") != std::string::npos);
}

TEST_CASE("an interruption reports what was done and exits 1", "[cli]") {
  const Folder folder;
  Words fpcw = {"--fpcw"};
  for (const char* word : {"027f", "037f", "067f", "0a7f", "0e7f", "0b7f", "077f", "0f7f"}) fpcw.emplace_back(word);
  const std::string command =
      command_line(verify_words(Words{"--values", "random:300000", "--json", folder.file("report.json")} + fpcw));
  const Result result = run_shell(folder, "timeout --preserve-status -s TERM 3 " + command);
  CHECK(result.status == 1);
  CHECK(result.err == "");
  const auto document = nlohmann::json::parse(contents(folder.path / "report.json"));
  REQUIRE(document["runs"].size() == 16);
  const auto counted = [&document](std::size_t i) {
    const auto& counts = document["runs"][i]["counts"];
    CHECK(document["runs"][i]["values"]["distinct"] == counts["run"].get<int>() + counts["not_run"].get<int>());
    return counts["run"].get<int>();
  };
  CHECK(counted(0) > 0);
  CHECK(counted(15) == 0);
  CHECK((document["verdict"] == "incomplete" || document["verdict"] == "differ"));
}

TEST_CASE("progress is shown on a terminal and erased", "[cli]") {
  const Folder folder;
  const std::string command = command_line(verify_words(Words{"--values", "random:1500000"} + one_routine));
  const Result result = run_shell(folder, "script -qec " + quoted(command) + " /dev/null");
  CHECK(result.status == 0);
  CAPTURE(result.out);
  CHECK(std::regex_search(
      result.out, std::regex("\rpacked_quat48 1/1: [0-9]+ % of [0-9]+, 0 differ, [0-9]+/s, [0-9]+ s left\x1b\\[K\r")));
  CHECK(std::regex_search(result.out, std::regex("\r\x1b\\[Kpacked_quat48: [0-9]+ values in ")));
  CHECK(run_shell(folder, command).err == "");
}
