#include "tests/catch.hpp"
#include "tests/program.hpp"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

// verify --resume as a user has it: real signals, real files.

using namespace bitwitness::tests;

namespace {

namespace fs = std::filesystem;

const std::string library = BITWITNESS_FIXTURES_DIR "/translations32.dll";
const std::string x87 = BITWITNESS_STAND_INS_DIR "/stand_in_x87.exe";

Words translation(const std::string& name, const Words& more) {
  return Words{"verify",
               "--image",
               library,
               "--at",
               "export:unpack_" + name,
               "--signature",
               "cdecl(in u32, out f32[3])",
               "--decoder",
               "translation_11_11_10"} +
         more;
}

/// A command that runs beside the test.
class Running {
 public:
  Running(const Folder& folder, const Words& arguments) {
    const std::string out = folder.file("running.out");
    const std::string err = folder.file("running.err");
    err_ = err;
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      std::vector<char*> words{const_cast<char*>(BITWITNESS_PROGRAM)};
      for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
      words.push_back(nullptr);
      for (const auto& [descriptor, path] : {std::pair{1, &out}, std::pair{2, &err}}) {
        ::dup2(::open(path->c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), descriptor);
      }
      ::execv(BITWITNESS_PROGRAM, words.data());
      ::_exit(127);
    }
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  [[nodiscard]] bool has_ended() {
    if (pid_ >= 0 && ::waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = -1;
    return pid_ < 0;
  }

  void signal(int number) { ::kill(pid_, number); }

  /// Waits for the end and returns what waitpid says.
  int wait() {
    if (pid_ >= 0) ::waitpid(pid_, &status_, 0);
    pid_ = -1;
    return status_;
  }

  [[nodiscard]] std::string err() const { return contents(err_); }

 private:
  pid_t pid_ = -1;
  int status_ = 0;
  std::string err_;
};

/// Every write gives the file a new node.
std::pair<ino_t, off_t> identity(const std::string& path) {
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0) return {};
  return {there.st_ino, there.st_size};
}

struct Interruptions {
  int killed = 0;
  int interrupted = 0;
};

/// Runs a command again and again, ending it by these signals in turn as soon as it has kept something new, until it
/// comes to its end by itself.
Interruptions run_interrupted(const Folder& folder, const std::string& file, const Words& command,
                              const std::vector<int>& signals) {
  Interruptions count;
  for (std::size_t session = 0; session < 200; ++session) {
    const auto before = identity(file);
    Running running(folder, command + Words{"--resume", file, "--jobs", std::to_string(1 + session % 3)});
    while (!running.has_ended() && (identity(file).second == 0 || identity(file) == before)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    const int number = signals[session % signals.size()];
    if (!running.has_ended()) running.signal(number);
    const int status = running.wait();
    INFO(running.err());
    // The last one may have been killed behind its last write.
    if (session > 0)
      CHECK_THAT(running.err(), contains_text("--resume " + file + ": ") && contains_text(" done before"));
    if (WIFSIGNALED(status)) {
      CHECK(WTERMSIG(status) == SIGKILL);
      ++count.killed;
      continue;
    }
    REQUIRE(WIFEXITED(status));
    if (running.err().find("the same command goes on") == std::string::npos) return count;
    CHECK(WEXITSTATUS(status) == 1);
    CHECK_THAT(running.err(), contains_text(" values are done and kept; the same command goes on with them\n"));
    ++count.interrupted;
  }
  FAIL("the run does not come to its end");
  return count;
}

/// The outputs of a command, one behind the other.
std::string all_outputs(const Folder& folder, const Words& command, int status) {
  std::string all;
  for (const std::string option : {"--json", "--junit", "--html"}) {
    const Result result = run(folder, command + Words{option, "-"});
    INFO(result.err);
    CHECK(result.status == status);
    all += result.out;
  }
  const Result text = run(folder, command);
  CHECK(text.status == status);
  return all + text.out;
}

}  // namespace

TEST_CASE("a run that is interrupted and killed reports what one without interruption does", "[resume]") {
  const Folder folder;
  const std::string file = folder.file("state");
  // Two million of the 2^32 values.
  const Words command = translation("x87", {"--values", "all", "--shard", "9/2048"});
  const std::string whole = all_outputs(folder, command, 0);
  const Interruptions count = run_interrupted(folder, file, command, {SIGKILL, SIGINT, SIGTERM});
  CHECK(count.killed + count.interrupted >= 1);
  CHECK(all_outputs(folder, command + Words{"--resume", file}, 0) == whole);
  const Result again = run(folder, command + Words{"--resume", file, "--json", folder.file("again.json")});
  CHECK(again.err == "bitwitness: --resume " + file + ": all 2097152 values were done before, none is run again\n");
  for (const auto& entry : fs::directory_iterator(folder.path)) {
    CHECK_FALSE(entry.path().extension() == ".tmp");
  }
}

TEST_CASE("several routines in several environments are kept, with their differences", "[resume]") {
  const Folder folder;
  const std::string file = folder.file("state");
  const Words command = {"verify", "--image", x87, "--values", "random:250000", "--fpcw", "sweep", "--limit", "7"};
  const std::string whole = all_outputs(folder, command, 1);
  const Interruptions count = run_interrupted(folder, file, command, {SIGINT, SIGINT, SIGKILL});
  CHECK(count.killed + count.interrupted >= 1);
  CHECK(all_outputs(folder, command + Words{"--resume", file}, 1) == whole);
}

TEST_CASE("a run on the processor is kept", "[resume]") {
  const Folder folder;
  const std::string file = folder.file("state");
  // Not every system runs 32-bit code.
  const Words command = {"verify",
                         "--image",
                         BITWITNESS_FIXTURES_DIR "/translations64.dll",
                         "--at",
                         "export:unpack_sse2",
                         "--signature",
                         "win64(in u32, out f32[3])",
                         "--decoder",
                         "translation_11_11_10",
                         "--values",
                         "random:1000000",
                         "--witness",
                         "host"};
  const std::string whole = all_outputs(folder, command, 0);
  run_interrupted(folder, file, command, {SIGINT, SIGKILL});
  CHECK(all_outputs(folder, command + Words{"--resume", file}, 0) == whole);
}

TEST_CASE("an interrupted report is incomplete, says how much is done, and how to go on", "[resume]") {
  const Folder folder;
  const std::string file = folder.file("state");
  const Words command = translation("sse2", {"--values", "all", "--jobs", "2"});
  Running running(folder, command + Words{"--resume", file, "--json", folder.file("report.json")});
  while (!running.has_ended() && identity(file).second == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  // Nobody else has the file meanwhile.
  check_refused(run(folder, command + Words{"--resume", file}), "--resume " + file + ": another process is using it");
  running.signal(SIGINT);
  REQUIRE(WEXITSTATUS(running.wait()) == 1);
  const auto report = nlohmann::json::parse(contents(folder.file("report.json")));
  CHECK(report["verdict"] == "incomplete");
  const auto done = report["runs"][0]["counts"]["run"].get<std::uint64_t>();
  CHECK(done > 0);
  CHECK(running.err().ends_with("bitwitness: --resume " + file + ": " + std::to_string(done) +
                                " of 4294967296 values are done and kept; the same command goes on with them\n"));
}

TEST_CASE("a file of another run is refused by what differs", "[resume]") {
  const Folder folder;
  const std::string file = folder.file("state");
  const Words values = {"--values", "random:3000"};
  const Words command = translation("sse2", values + Words{"--resume", file});
  REQUIRE(run(folder, command).status == 0);
  const std::string before = contents(file);
  write(folder.path / "zeros.bin", std::string(4096, '\0'));
  fs::copy(library, folder.path / "other.dll");
  {
    std::fstream other(folder.path / "other.dll", std::ios::binary | std::ios::in | std::ios::out);
    other.seekp(-1, std::ios::end);
    other.put('x');
  }
  struct Row {
    Words more;
    std::string named;
  };
  const std::vector<Row> rows = {
      {{"--budget", "1000"}, "--budget '1000000' → '1000'"},
      {{"--limit", "3"}, "--limit '20' → '3'"},
      {{"--fpcw", "007f"}, "the environments 'fpcw 027f, mxcsr 1f80' → 'fpcw 007f, mxcsr 1f80'"},
      {{"--fpcw", "sweep"}, "the environments "},
      {{"--base", "0x20000000"}, "the image's base '0x10000000' → '0x20000000'"},
      {{"--memory", "0x20304050=00"}, "--memory '' → '0x20304050=00'"},
      {{"--memory", "0x20304000=" + folder.file("zeros.bin")}, "--memory '' → '0x20304000=zeros.bin'"},
      {{"--no-runtime"}, "--no-runtime 'not given' → 'given'"},
      {{"--with-dll", BITWITNESS_FIXTURES_DIR "/paths32.dll"}, "--with-dll '' → 'paths32.dll "},
      {{"--register", "esi=1"}, "routine 1: its signature "},
      {{"--shard", "1/2"}, "routine 1: the shard '1/1' → '1/2'"},
      {{"--values", "special"}, "routine 1: the sources "},
  };
  for (const Row& row : rows) {
    INFO(row.named);
    check_refused(run(folder, command + row.more),
                  "--resume " + file + ": is of another run (old → new): " + row.named);
  }
  const auto with = [&](const std::string& option, const std::string& text) {
    Words changed = command;
    *(std::find(changed.begin(), changed.end(), option) + 1) = text;
    return changed;
  };
  check_refused(run(folder, with("--image", folder.file("other.dll"))), "the image's SHA-256 ");
  check_refused(run(folder, with("--at", "export:unpack_x87")), "routine 1: its name 'unpack_sse2' → 'unpack_x87'");
  check_refused(run(folder, with("--signature", "cdecl(in u32, out f32[3], u32 = 1)")), "routine 1: its signature ");
  // Nothing of that has touched it.
  CHECK(contents(file) == before);
  CHECK(run(folder, command).status == 0);
}

TEST_CASE("a decoder is told by its name and by what is in its files", "[resume]") {
  const Folder folder;
  const std::string file = folder.file("state");
  fs::copy(BITWITNESS_TESTS_DIR "/plugins/decoder.py", folder.path / "decoder.py");
  const std::string script = "exec:python3 " + folder.file("decoder.py");
  const auto with = [&](const std::string& decoder) {
    return run(folder, {"verify", "--image", x87, "--routine", "packed_quat48", "--values", "random:3000", "--decoder",
                        decoder, "--resume", file});
  };
  REQUIRE(with(script).status == 0);
  CHECK(contents(file).find(folder.path.string()) == std::string::npos);
  CHECK(with(script).status == 0);
  check_refused(with("packed_quat48"), "routine 1: the decoder 'exec:python3 decoder.py' → 'packed_quat48'");
  check_refused(with("exec:python3 -B " + folder.file("decoder.py")), "routine 1: the decoder ");
  write(folder.path / "decoder.py", contents(folder.path / "decoder.py") + "# changed\n");
  check_refused(with(script), "routine 1: the decoder's files ");
}

TEST_CASE("values of a file are told by what is in them", "[resume]") {
  const Folder folder;
  const std::string file = folder.file("state");
  write(folder.path / "values.txt", "01020304\n05060708\n");
  const Words command = translation("sse2", {"--values", "file:" + folder.file("values.txt"), "--resume", file});
  REQUIRE(run(folder, command).status == 0);
  write(folder.path / "values.txt", "01020304\n05060709\n");
  check_refused(run(folder, command), "routine 1: the SHA-256 of the values ");
}

TEST_CASE("--resume takes neither what is read nor what is written, and nothing that cannot be written", "[resume]") {
  const Folder folder;
  const Words command = translation("sse2", {"--values", "random:100"});
  check_refused(run(folder, command + Words{"--resume", library}), "--resume " + library + ": would overwrite ");
  check_refused(run(folder, command + Words{"--resume", folder.file("a"), "--json", folder.file("a")}),
                "--json and --resume both go to ");
  check_refused(run(folder, command + Words{"--resume", folder.path.string()}), "it is a directory");
  check_refused(run(folder, command + Words{"--resume", folder.file("no/such/folder")}), "--resume ");
  check_refused(run(folder, command + Words{"--resume", "/dev/null"}), "--resume /dev/null: is not a regular file");
  check_refused(run(folder, command + Words{"--resume", "-"}), "--resume needs the name of a file");
  write(folder.path / "text", "not a state\n");
  check_refused(run(folder, command + Words{"--resume", folder.file("text")}),
                "offset 0: is not a file that keeps a run");
  CHECK(contents(folder.path / "text") == "not a state\n");
  // A run that is refused leaves no file behind.
  check_refused(run(folder, translation("sse2", {"--values", "file:nowhere", "--resume", folder.file("new")})),
                "nowhere");
  CHECK_FALSE(fs::exists(folder.path / "new"));
  // An empty file has nothing: the run starts, and is kept there.
  write(folder.path / "empty", "");
  CHECK(run(folder, command + Words{"--resume", folder.file("empty")}).err == "");
  CHECK(fs::file_size(folder.path / "empty") > 0);
  // A link stays one.
  fs::create_symlink("target", folder.path / "link");
  write(folder.path / "target", "");
  CHECK(run(folder, command + Words{"--resume", folder.file("link")}).status == 0);
  CHECK(fs::is_symlink(folder.path / "link"));
  CHECK(fs::file_size(folder.path / "target") > 0);
}
