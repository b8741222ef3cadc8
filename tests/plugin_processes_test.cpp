#include "tests/plugin_support.hpp"
#include "tests/program.hpp"

#include <csignal>
#include <functional>

#include <sys/wait.h>
#include <unistd.h>

// What decoders outside of the program leave behind, whatever they and the program come to.

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

/// A text that no other test's processes have.
std::string unique_seconds() {
  static int number = 0;
  return "9" + std::to_string(++number) + std::to_string(::getpid());
}

std::string sleeper(const std::string& seconds) {
  return std::string("sleep\0", 6) + seconds;
}

/// Waits until something holds for a while: the kernel takes a moment to name what is executed and to bury what was
/// killed, and an interpreter may be started by way of others.
bool becomes_true(const std::function<bool()>& holds) {
  constexpr int enough = 5;
  int steady = 0;
  for (int i = 0; i < 3000 && steady < enough; ++i) {
    steady = holds() ? steady + 1 : 0;
    if (steady < enough) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return steady == enough;
}

pid_t start_program(const Words& arguments) {
  std::vector<std::string> words = Words{BITWITNESS_PROGRAM} + arguments;
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }
  return pid;
}

}  // namespace

TEST_CASE("nothing outlives a program that is killed") {
  const Folder folder;
  const std::string library = folder.file("lib" + unique_seconds() + ".so");
  std::filesystem::copy_file(bad_library, library);
  struct Killed {
    std::string decoder;
    std::string marker;
    std::size_t processes;  ///< with the marker: the program, the one that watches, the decoder and what it leaves
  };
  const std::string stubborn = unique_seconds();
  const std::string daemon = unique_seconds();
  for (const Killed& each : {Killed{library + ":hangs", library, 3}, Killed{library + ":hangs_batch", library, 3},
                             Killed{bad_script + "stubborn " + stubborn, stubborn, 3},
                             Killed{bad_script + "daemon_and_hangs " + daemon, daemon, 4}}) {
    INFO(each.decoder);
    const pid_t program =
        start_program({"verify", "--image", BITWITNESS_STAND_INS_DIR "/stand_in_x87.exe", "--at", "0x103f1d0",
                       "--signature", "cdecl(in u8[6], out f32[4])", "--values", "hex:030000000000",
                       "--decoder-timeout", "600", "--jobs", "1", "--decoder", each.decoder});
    const bool runs = becomes_true([&] { return processes_with(each.marker) == each.processes; });
    int early = 0;
    INFO("ended before it was killed: " << ::waitpid(program, &early, WNOHANG) << ", status " << early);
    INFO("processes: " << processes_with(each.marker));
    CHECK(runs);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ::kill(program, SIGKILL);
    ::waitpid(program, nullptr, 0);
    CHECK(becomes_true([&] { return processes_with(each.marker) == 0; }));
  }
}

TEST_CASE("nothing that a decoder started outlives it") {
  for (const std::string how : {"grandchild", "daemon"}) {
    INFO(how);
    const std::string seconds = unique_seconds();
    {
      const Subject subject = start(bad_script + how + " " + seconds);
      CHECK(becomes_true([&] { return processes_with(sleeper(seconds)) == 1; }));
      CHECK_THROWS_AS(subject.finish(), Error);
      // What is told is gone, too: it was ended with the decoder.
      CHECK(processes_with(sleeper(seconds)) == 0);
    }
    const std::string other = unique_seconds();
    {
      const Subject dropped = start(bad_script + how + " " + other);
      CHECK(becomes_true([&] { return processes_with(sleeper(other)) == 1; }));
    }
    CHECK(processes_with(sleeper(other)) == 0);
  }
}

TEST_CASE("after many failures no descriptor and no child is left") {
  const std::set<std::string> before = open_descriptors();
  for (int i = 0; i < 10; ++i) {
    for (const std::string& text : {std::string("exec:false"), std::string("exec:/nowhere/nothing"),
                                    bad_library + ":nothing", bad_library + ":crashes", bad_script + "raises"}) {
      CHECK_THAT(outcome(text), contains_text("decoder "));
    }
  }
  CHECK(open_descriptors() == before);
  CHECK_FALSE(has_children());
}

TEST_CASE("how a decoder ended is known to a program that ignores SIGCHLD") {
  const auto handler = ::signal(SIGCHLD, SIG_IGN);
  CHECK(outcome(good_script) == "well, 0 wrong");
  CHECK_THAT(outcome(bad_script + "exits_3"), contains_text("exited with status 3 after its input had ended"));
  CHECK_THAT(outcome(bad_script + "crashes"), contains_text("was ended by SIGSEGV"));
  CHECK_THAT(outcome(bad_script + "grandchild"), contains_text("left processes running"));
  ::signal(SIGCHLD, handler);
}

TEST_CASE("children that are no decoders are left alone") {
  const pid_t ended = ::fork();
  if (ended == 0) ::_exit(7);
  const pid_t living = ::fork();
  if (living == 0) {
    ::sleep(600);
    ::_exit(0);
  }
  CHECK(outcome(good_script) == "well, 0 wrong");
  CHECK_THAT(outcome(bad_script + "crashes"), contains_text("SIGSEGV"));
  int status = 0;
  CHECK(::waitpid(ended, &status, 0) == ended);
  CHECK(WEXITSTATUS(status) == 7);
  CHECK(::waitpid(living, nullptr, WNOHANG) == 0);
  ::kill(living, SIGKILL);
  ::waitpid(living, nullptr, 0);
}

TEST_CASE("a hang of a batch is told after about one timeout") {
  constexpr std::chrono::milliseconds timeout{3000};
  for (const std::string& text : {bad_script + "hangs", bad_library + ":hangs_batch"}) {
    INFO(text);
    const Subject subject = start(text, timeout);
    const auto begin = std::chrono::steady_clock::now();
    CHECK_THROWS_AS(words_of(subject, counting_values(10)), Error);
    const auto took = std::chrono::steady_clock::now() - begin;
    CHECK(took > timeout);
    CHECK(took < timeout * 11 / 6);
  }
}

TEST_CASE("files of one run share a decoder's processes") {
  const std::string seconds = unique_seconds();
  ExternalDecoders decoders;
  const std::string text = bad_script + "well " + seconds;
  DecoderShape other_names = rotation();
  other_names.word_names = {"a", "b", "c", "d"};
  const Subject first = decoders.subject(text, rotation());
  const Subject second = decoders.subject(text, other_names);
  CHECK(first.word_names[0] == "word0");
  CHECK(second.word_names[0] == "a");
  const auto count = [&] { return processes_with(seconds); };
  CHECK(becomes_true([&] { return count() == 2; }));  // it and the one that watches it
  CHECK(words_of(first, counting_values(10)) == words_of(second, counting_values(10)));
  CHECK(count() == 2);
  first.finish();
  CHECK(count() == 0);
  CHECK(words_of(second, counting_values(10)) == expected_words(counting_values(10)));
  CHECK(count() == 2);
  second.finish();
  DecoderShape wide = rotation();
  wide.word_names.emplace_back("fifth");
  const Subject third = decoders.subject(text, wide);
  CHECK(count() == 2);
}

TEST_CASE("replay of several files starts one process of a decoder") {
  const Folder folder;
  Words replay = {"replay", "--jobs", "1"};
  for (const std::string name : {"a.bwv", "b.bwv", "c.bwv"}) {
    replay.push_back(folder.file(name));
    const auto result = run(folder, {"record", "--image", BITWITNESS_STAND_INS_DIR "/stand_in_x87.exe", "--routine",
                                     "packed_quat48", "--values", "random:100", "--out", replay.back()});
    REQUIRE(result.status == 0);
  }
  // One that finds the folder there is not the only one.
  const std::string only = "exec:sh -c 'mkdir \"$0\" || exit 9; python3 \"$1\"; s=$?; rmdir \"$0\"; exit $s' " +
                           folder.file("lock") + " " BITWITNESS_TESTS_DIR "/plugins/decoder.py";
  const auto result = run(folder, replay + Words{"--decoder", only});
  CHECK(result.err == "");
  CHECK(result.status == 0);
  CHECK(run(folder, replay + Words{"--decoder", only, "--decoder", only}).status == 0);
}
