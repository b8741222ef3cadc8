#include "tests/catch.hpp"
#include "tests/pe_builder.hpp"
#include "tests/program.hpp"

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

// --with-dll, --memory, --register and --no-runtime, on routines that give their value back where all is in place.

namespace {

namespace fs = std::filesystem;
using namespace bitwitness::tests;

const std::string library = (fs::path(BITWITNESS_FIXTURES_DIR) / "surroundings32.dll").string();

Words verify_words(const std::string& routine, const Words& more = {}) {
  return Words{"verify",
               "--image",
               library,
               "--at",
               "export:" + routine,
               "--signature",
               "cdecl(in u32, out u32)",
               "--decoder",
               "raw_rr_21",
               "--values",
               "random:200"} +
         more;
}

}  // namespace

TEST_CASE("--memory sets bytes from digits and from files", "[cli]") {
  const Folder folder;
  CHECK(run(folder, verify_words("reads_memory")).status == 1);
  const Result digits = run(folder, verify_words("reads_memory", {"--memory", "0x20304050=00000000"}));
  CHECK(digits.status == 0);
  CHECK(digits.out.find("note: 4 bytes at 0x20304050 were set\n") != std::string::npos);
  write(folder.path / "zeros.bin", std::string(4096, '\0'));
  CHECK(run(folder, verify_words("reads_memory", {"--memory", "0x20304000=" + folder.file("zeros.bin")})).status == 0);
  const Result one = run(folder, verify_words("reads_memory", {"--memory", "0x20304050=01000000"}));
  CHECK(one.status == 1);
  // The line that repeats a difference needs the memory as well.
  CHECK(one.out.find(" --memory 0x20304050=01000000") != std::string::npos);
  check_refused(run(folder, verify_words("reads_memory", {"--memory", "0x20304050"})), "--memory 0x20304050");
  check_refused(run(folder, verify_words("reads_memory", {"--memory", "nowhere=00"})), "--memory nowhere=00");
  check_refused(run(folder, verify_words("reads_memory", {"--memory", "0x20304050=missing"})), "missing");
}

TEST_CASE("--with-dll binds imports, at a base that is free", "[cli]") {
  const Folder folder;
  PeBuilder builder;
  builder.image_base = 0x10000000;  // where the library itself lies
  // mov eax, [esp + 4]; ret
  builder.sections = {{.name = ".text", .data = bytes_of({0x8b, 0x44, 0x24, 0x04, 0xc3}), .address = 0x1000}};
  builder.exports = {{"answer", 0x1000}};
  builder.relocations = {{.address = 0x1010}};
  const FileBytes bytes = builder.build().bytes;
  write(folder.path / "Helper.dll", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  CHECK(run(folder, verify_words("calls_helper")).out.find("helper.dll!answer") != std::string::npos);
  const Result bound = run(folder, verify_words("calls_helper", {"--with-dll", folder.file("Helper.dll")}));
  INFO(bound.out << bound.err);
  CHECK(bound.status == 0);
  CHECK(bound.out.find("note: Helper.dll is mapped at 0x60000000, sha256 ") != std::string::npos);
  check_refused(run(folder, verify_words("calls_helper", {"--with-dll", folder.file("none.dll")})), "none.dll");
  check_refused(run(folder, verify_words("calls_helper", {"--with-dll", folder.file("Helper.dll"), "--json",
                                                          folder.file("Helper.dll")})),
                "would overwrite");
}

TEST_CASE("--no-runtime leaves imports of a C library unbound", "[cli]") {
  const Folder folder;
  CHECK(run(folder, verify_words("calls_helper", {"--no-runtime"})).out.find("runs code of this program") ==
        std::string::npos);
  CHECK(run(folder, verify_words("calls_helper")).out.find("MSVCRT.dll!sqrt runs code of this program's own") !=
        std::string::npos);
}

TEST_CASE("--register sets a register at each call", "[cli]") {
  const Folder folder;
  const Words memory = {"--memory", "0x20304050=00000000"};
  const Result set = run(folder, verify_words("reads_memory", memory + Words{"--register", "esi=0x402000"}));
  CHECK(set.status == 0);
  CHECK(set.out.find("cdecl(in u32, out u32, u32 = 4202496 @ esi)") != std::string::npos);
  check_refused(run(folder, verify_words("reads_memory", memory + Words{"--register", "esi"})), "--register esi");
  check_refused(run(folder, verify_words("reads_memory", memory + Words{"--register", "st7=1"})), "--register");
}

TEST_CASE("verify names the way that writable data decided, and --memory decides it otherwise", "[cli]") {
  const Folder folder;
  const auto verify = [&folder](const Words& more) {
    const std::string paths = (fs::path(BITWITNESS_FIXTURES_DIR) / "paths32.dll").string();
    return run(folder, Words{"verify", "--image", paths, "--at", "export:reads_level", "--signature",
                             "cdecl(in u32, out u32)", "--decoder", "raw_rr_21", "--values", "hex:01020304"} +
                           more);
  };
  const Result as_in_file = verify({});
  CHECK(as_in_file.status == 0);
  CHECK(as_in_file.out.find("note: on the first value (01 02 03 04) the routine reads 4 bytes of writable data at "
                            "0x10003000 (.data): 00000000 as in the file") != std::string::npos);
  CHECK(as_in_file.out.find("the jump at 0x100010b3, which depends on it, was taken") != std::string::npos);
  const Result set = verify({"--memory", "0x10003000=02000000"});
  CHECK(set.status == 1);
  CHECK(set.out.find("02000000, as --memory sets it; the jump at 0x100010b3, which depends on it, was not taken") !=
        std::string::npos);
}

TEST_CASE("a routine that calls _CIsqrt agrees with its rule, its signature inferred", "[cli]") {
  const Folder folder;
  const Result result =
      run(folder, {"verify", "--image", (fs::path(BITWITNESS_FIXTURES_DIR) / "probe_crt.dll").string(), "--at",
                   "export:root_by_crt", "--signature", "auto", "--decoder", "packed_quat48", "--values", "special",
                   "--values", "random:20000"});
  INFO(result.out << result.err);
  CHECK(result.status == 0);
  CHECK(result.out.find("msvcrt.dll!_CIsqrt runs code of this program's own") != std::string::npos);
}
