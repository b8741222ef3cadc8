#include "tests/program.hpp"

#include <chrono>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace {

using bitwitness::tests::contents;
using bitwitness::tests::Folder;
using bitwitness::tests::quoted;
using bitwitness::tests::Result;
using bitwitness::tests::run_shell;

std::string verify_into(const std::string& output) {
  return quoted(BITWITNESS_PROGRAM) +
         " verify --routine packed_quat48 --values special --signature 'cdecl(in u8[6], out f32[4])' --json " +
         quoted(output);
}

TEST_CASE("a report goes through a pipe to whoever reads it, however late") {
  const Folder folder;
  const std::string pipe = folder.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const Result result =
      run_shell(folder, "{ sleep 0.3; cat " + quoted(pipe) + " > " + quoted(folder.file("got")) + "; } & timeout 20 " +
                            verify_into(pipe) + "; status=$?; wait; exit $status");
  CHECK(result.status == 0);
  CHECK(contents(folder.file("got")).starts_with("{\n"));
  CHECK(contents(folder.file("got")).ends_with("}\n"));
}

TEST_CASE("a pipe that nobody reads does not keep an interrupted run") {
  const Folder folder;
  const std::string pipe = folder.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const auto start = std::chrono::steady_clock::now();
  const Result result = run_shell(folder, "timeout --signal TERM 1 " + verify_into(pipe));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
  CHECK(result.err == "bitwitness: --json " + pipe + ": cannot write: interrupted before anything read it\n");
  CHECK(result.out.find("agree: ") != std::string::npos);
}

TEST_CASE("a socket is no place for a report") {
  const Folder folder;
  const std::string path = folder.file("s");
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  REQUIRE(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  const Result result = run_shell(folder, "timeout 20 " + verify_into(path));
  ::close(socket);
  CHECK(result.status == 2);
  CHECK(result.err == "bitwitness: --json " + path + ": cannot write: No such device or address\n");
}

}  // namespace
