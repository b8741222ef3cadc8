#include "tests/catch.hpp"
#include "tests/program.hpp"

#include <chrono>
#include <string>

#include <nlohmann/json.hpp>

// Runs the program as a user does, with decoders outside of it.

using namespace bitwitness::tests;

namespace {

const std::string x87 = BITWITNESS_STAND_INS_DIR "/stand_in_x87.exe";
const std::string plugins = BITWITNESS_PLUGINS_DIR;
const std::string good_library = plugins + "/decoder.so:decode";
const std::string bad_library = plugins + "/misbehaving.so:";
const std::string good_script = "exec:python3 " BITWITNESS_TESTS_DIR "/plugins/decoder.py";
const std::string bad_script = "exec:python3 " BITWITNESS_TESTS_DIR "/plugins/misbehaving.py ";
const Words at = {"--at", "0x103f1d0", "--signature", "cdecl(in u8[6], out f32[4])"};
const Words routine = {"--routine", "packed_quat48"};
const Words special = {"--values", "special", "random:20000", "hex:030000000000"};
const Words bad_value = {"--values", "hex:030000000000", "hex:040000000000"};

Words verify(const std::string& decoder, const Words& more) {
  return Words{"verify", "--image", x87, "--decoder", decoder} + more;
}

nlohmann::json report_of(const Result& result) {
  return nlohmann::json::parse(result.out);
}

}  // namespace

TEST_CASE("verify agrees with the C and the Python example") {
  const Folder folder;
  const Result registered = run(folder, verify("packed_quat48", routine + special + Words{"--json", "-"}));
  for (const std::string& decoder : {good_library, good_script, bad_library + "good"}) {
    INFO(decoder);
    const Result one = run(folder, verify(decoder, routine + special + Words{"--json", "-", "--jobs", "1"}));
    CHECK(one.status == 0);
    CHECK(one.err == "");
    CHECK(run(folder, verify(decoder, routine + special + Words{"--json", "-", "--jobs", "3"})).out == one.out);
    CHECK(one.out.find(plugins) == std::string::npos);
    const nlohmann::json mine = report_of(one)["runs"][0];
    const nlohmann::json theirs = report_of(registered)["runs"][0];
    // The target's decoder has told the fields that special values cross.
    CHECK(mine["values"] == theirs["values"]);
    CHECK(mine["digest"] == theirs["digest"]);
    CHECK(mine["verdict"] == "agree");
  }
  const nlohmann::json run_report =
      report_of(run(folder, verify(good_library, at + special + Words{"--json", "-"})))["runs"][0];
  CHECK(run_report["decoder"] == "decoder.so:decode");
  CHECK(run_report["notes"].dump().find("the decoder's file decoder.so has SHA-256 ") != std::string::npos);
}

TEST_CASE("a wrong library is a difference, and the command that repeats it names the library as given") {
  const Folder folder;
  const Result result = run(folder, verify(bad_library + "is_wrong", at + special));
  CHECK(result.status == 1);
  CHECK(result.out.find("difference 1 of 1: 03 00 00 00 00 00") != std::string::npos);
  CHECK(result.out.find("decoder misbehaving.so:is_wrong, witness") != std::string::npos);
  const std::size_t repeat = result.out.find("repeat: bitwitness ");
  REQUIRE(repeat != std::string::npos);
  const std::size_t start = repeat + std::string("repeat: bitwitness ").size();
  const std::string line = result.out.substr(start, result.out.find('\n', start) - start);
  CHECK(line.find("--decoder " + bad_library + "is_wrong") != std::string::npos);
  CHECK(run_shell(folder, quoted(BITWITNESS_PROGRAM) + " " + line).status == 1);
  CHECK(run(folder, verify(bad_script + "is_wrong", at + bad_value)).status == 1);
}

TEST_CASE("a decoder that fails is one line, no report and exit status 2") {
  const Folder folder;
  const std::string value = " on value 03 00 00 00 00 00";
  for (const std::string jobs : {"1", "3"}) {
    check_refused(run(folder, verify(bad_library + "crashes", at + special + Words{"--jobs", jobs})),
                  "decoder " + bad_library + "crashes: was ended by SIGSEGV (invalid memory access)" + value + "\n");
  }
  check_refused(run(folder, verify(bad_library + "hangs", at + bad_value + Words{"--decoder-timeout", "1"})),
                "hangs: no progress in 1 s, and alone none in 0.5 s" + value);
  check_refused(run(folder, verify(bad_library + "aborts", at + bad_value)), value + "; its last line: last words");
  check_refused(run(folder, verify(bad_library + "none", at + bad_value)), "the library exports no symbol none");
  check_refused(run(folder, verify(bad_script + "raises", at + bad_value)), value + "; its last line: ValueError");
  check_refused(run(folder, verify(bad_script + "late", at + bad_value)), "wrote 3 bytes that nobody asked for");
  check_refused(run(folder, verify("exec:/nowhere/nothing", at + bad_value)), "cannot be executed");
  check_refused(run(folder, verify("nothing.so:decode", at + bad_value)), "nothing.so: No such file");
  check_refused(run(folder, verify("nothing.so", at + bad_value)), "expected LIBRARY.so:SYMBOL");
  check_refused(run(folder, verify(good_library, at + bad_value + Words{"--decoder-timeout", "0"})),
                "--decoder-timeout 0");
  check_refused(run(folder, verify(good_library, at + Words{"--values", "corpus:" + folder.path.string()})), "corpus:");
  check_refused(run(folder, verify(good_library, at + bad_value + Words{"--json", plugins + "/decoder.so"})),
                "would overwrite");
}

TEST_CASE("a trace shows the words of a decoder outside of the program") {
  const Folder folder;
  const Words trace = {"trace", "--image", x87};
  const Words value = {"--values", "hex:030000000000"};
  for (const std::string& decoder : {good_library, good_script}) {
    CHECK(run(folder, trace + at + value + Words{"--decoder", decoder}).status == 0);
  }
  const Result wrong = run(folder, trace + at + value + Words{"--decoder", bad_library + "is_wrong", "--json", "-"});
  CHECK(wrong.status == 1);
  CHECK(report_of(wrong)["decoder"] == "misbehaving.so:is_wrong");
  CHECK(report_of(wrong)["verdict"] == "differ");
  check_refused(run(folder, trace + at + value + Words{"--decoder", bad_library + "crashes"}),
                "on value 03 00 00 00 00 00");
}

TEST_CASE("what a report names is not executed") {
  const Folder folder;
  const std::string report = folder.file("report.json");
  CHECK(run(folder, verify(bad_library + "is_wrong", at + bad_value + Words{"--json", report})).status == 1);
  const Words trace = {"trace", "--image", x87, "--from-difference", report};
  check_refused(run(folder, trace),
                "decoder misbehaving.so:is_wrong is outside of this program: only --decoder can name");
  CHECK(run(folder, trace + Words{"--decoder", bad_library + "is_wrong"}).status == 1);
  CHECK(run(folder, trace + Words{"--decoder", good_library}).status == 0);
  std::string text = contents(report);
  const std::string name = "misbehaving.so:is_wrong";
  text.replace(text.find(name), name.size(), "exec:touch " + folder.file("executed"));
  write(report, text);
  check_refused(run(folder, trace), "only --decoder can name");
  CHECK_FALSE(std::filesystem::exists(folder.file("executed")));
}

TEST_CASE("results are not written over a decoder's own files") {
  const Folder folder;
  const std::string script = folder.path.string() + "/mine.py";
  const std::string text = contents(BITWITNESS_TESTS_DIR "/plugins/decoder.py");
  write(script, text);
  const Result result = run(folder, verify("exec:python3 " + script, at + bad_value + Words{"--json", script}));
  check_refused(result, "--json " + script);
  CHECK(contents(script) == text);
}

TEST_CASE("an interrupt ends a run whose decoder hangs") {
  const Folder folder;
  for (const std::string& decoder : {bad_library + "hangs", bad_script + "hangs"}) {
    INFO(decoder);
    const auto begin = std::chrono::steady_clock::now();
    const Result result =
        run_shell(folder, "timeout -s INT 6 " +
                              command_line(verify(decoder, at + bad_value + Words{"--decoder-timeout", "600"})));
    CHECK(result.status == 124);  // of timeout; the report says the rest
    CHECK(result.out.find("not run 2\n") != std::string::npos);
    CHECK(result.out.find("interrupted before anything was compared") != std::string::npos);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
  }
}
