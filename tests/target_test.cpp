#include "harness/target.hpp"

#include "harness/error.hpp"
#include "tests/catch.hpp"
#include "tests/pe_builder.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "vectors/embedded_targets.hpp"
namespace bitwitness {
namespace {

template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::string parse_error(const std::string& text) {
  return error_of([&] { parse_target(text, "game.toml"); });
}

// A routine, on lines 2 to 5 of a file whose first line names the target, with one line changed or added.
std::string with_routine(const std::string& name, const std::string& at, const std::string& decoder,
                         const std::string& more = "") {
  return "name = \"game\"\n[[routine]]\n" + name + "\n" + at + "\n" + decoder + "\n" + more;
}

const std::string good_name = "name = \"unpack\"";
const std::string good_at = "at = \"0x401000\"";
const std::string good_decoder = "decoder = \"half\"";

// An anchor, on line 2 and those after it.
std::string with_anchor(const std::string& lines) {
  return "name = \"game\"\n[[anchor]]\n" + lines;
}

}  // namespace

TEST_CASE("a target file is read", "[target]") {
  const Target target = parse_target(R"(
name = "game"
description = "A game."

[[routine]]
name = "unpack"
at = "0x401000"
decoder = "half"
signature = "cdecl(value u16) -> f32"
note = "A note."

[[routine]]
name = "open"
at = "symbol:_open"
decoder = "packed_quat48"
signature = "auto"

[[routine]]
name = "silent"
at = "export:silent"
decoder = "packed_quat48"

[[anchor]]
kind = "code"
level = "required"
at = "rva:0x1000"
says = "it is there"

[[anchor]]
kind = "call"
level = "expected"
at = "0x401005"
to = "0x402000"

[[anchor]]
kind = "constant"
level = "expected"
at = "0x401000"
bits = ["3F06A0CBA0000000", "3835065d"]
)",
                                     "game.toml");
  CHECK(target.name == "game");
  CHECK(target.description == "A game.");
  REQUIRE(target.routines.size() == 3);
  CHECK(target.routines[0].name == "unpack");
  CHECK(target.routines[0].at == "0x401000");
  CHECK(target.routines[0].decoder == "half");
  CHECK(target.routines[0].signature == parse_signature("cdecl(value u16) -> f32"));
  CHECK(target.routines[0].note == "A note.");
  CHECK(target.routines[1].at == "symbol:_open");
  CHECK_FALSE(target.routines[1].signature);
  CHECK_FALSE(target.routines[2].signature);
  REQUIRE(target.anchors.size() == 3);
  CHECK(target.anchors[0].kind == AnchorKind::code);
  CHECK(target.anchors[0].required);
  CHECK(target.anchors[0].at == "rva:0x1000");
  CHECK(target.anchors[0].says == "it is there");
  CHECK(target.anchors[1].kind == AnchorKind::call);
  CHECK_FALSE(target.anchors[1].required);
  CHECK(target.anchors[1].to == "0x402000");
  CHECK(target.anchors[2].kind == AnchorKind::constant);
  CHECK(target.anchors[2].bits == std::vector<std::string>{"3f06a0cba0000000", "3835065d"});
}

TEST_CASE("an unknown key is an error with its line and the known keys", "[target]") {
  CHECK(parse_error("name = \"game\"\n\nrelease = 1\n") ==
        "game.toml:3: unknown key 'release' in the target; known: name, description, routine, anchor");
  CHECK(parse_error(with_routine(good_name, "adress = \"0x401000\"", good_decoder)) ==
        "game.toml:4: unknown key 'adress' in routine 'unpack'; known: name, at, decoder, signature, note");
  CHECK(parse_error(with_anchor("kind = \"code\"\nlevel = \"required\"\nat = \"0x1\"\nto = \"0x2\"\n")) ==
        "game.toml:6: unknown key 'to' in anchor 1; known: kind, level, at, says");
  CHECK(parse_error(with_anchor(
            "kind = \"call\"\nbits = [\"00000000\"]\nlevel = \"required\"\nat = \"0x1\"\nto = \"0x2\"\n")) ==
        "game.toml:4: unknown key 'bits' in anchor 1; known: kind, level, at, to, says");
  CHECK(parse_error("name = \"game\"\n\"new\\nline\" = 1\n") ==
        "game.toml:2: unknown key 'new\\x0aline' in the target; known: name, description, routine, anchor");
}

TEST_CASE("a missing key is an error with the line of its table", "[target]") {
  CHECK(parse_error("description = \"\"\n") == "game.toml:1: the target lacks the key 'name'");
  CHECK(parse_error("") == "game.toml:1: the target lacks the key 'name'");
  CHECK(parse_error(with_routine("", good_at, good_decoder)) == "game.toml:2: routine 1 lacks the key 'name'");
  CHECK(parse_error(with_routine(good_name, "", good_decoder)) == "game.toml:2: routine 'unpack' lacks the key 'at'");
  CHECK(parse_error(with_routine(good_name, good_at, "")) == "game.toml:2: routine 'unpack' lacks the key 'decoder'");
  CHECK(parse_error(with_anchor("level = \"required\"\nat = \"0x1\"\n")) ==
        "game.toml:2: anchor 1 lacks the key 'kind'");
  CHECK(parse_error(with_anchor("kind = \"code\"\nat = \"0x1\"\n")) == "game.toml:2: anchor 1 lacks the key 'level'");
  CHECK(parse_error(with_anchor("kind = \"code\"\nlevel = \"required\"\n")) ==
        "game.toml:2: anchor 1 lacks the key 'at'");
  CHECK(parse_error(with_anchor("kind = \"call\"\nlevel = \"required\"\nat = \"0x1\"\n")) ==
        "game.toml:2: anchor 1 lacks the key 'to'");
  CHECK(parse_error(with_anchor("kind = \"constant\"\nlevel = \"required\"\nat = \"0x1\"\n")) ==
        "game.toml:2: anchor 1 lacks the key 'bits'");
}

TEST_CASE("a value of the wrong type or form is an error with its line", "[target]") {
  CHECK(parse_error("name = 3\n") == "game.toml:1: name of the target: expected a string, found an integer");
  CHECK(parse_error(with_routine(good_name, "at = 0x401000", good_decoder)) ==
        "game.toml:4: at of routine 'unpack': expected a string, found an integer");
  CHECK(parse_error(with_routine(good_name, good_at, good_decoder, "note = [\"a\"]")) ==
        "game.toml:6: note of routine 'unpack': expected a string, found an array");
  CHECK(parse_error("name = \"game\"\nroutine = 1\n") ==
        "game.toml:2: routine of the target: expected tables, each headed [[routine]]");
  CHECK(parse_error("name = \"game\"\nroutine = [1]\n") == "game.toml:2: expected tables, each headed [[routine]]");
  CHECK(parse_error("name = \"game\"\n[routine]\nname = \"unpack\"\n") ==
        "game.toml:2: routine of the target: expected tables, each headed [[routine]]");
  CHECK(parse_error("name = \"a game\"\n") ==
        "game.toml:1: name of the target: 'a game' is not a name of 1 to 64 letters, digits, '_', '.' and '-'");
  CHECK(parse_error(with_routine("name = \"\"", good_at, good_decoder))
            .starts_with("game.toml:3: name of routine 1: ''"));
  CHECK(parse_error(with_routine(good_name, good_at, "decoder = \"a b\"")).starts_with("game.toml:5: decoder of"));
  for (const std::string location : {"", "401000", "0x", "0x40100g", "0x10000000000000000", "rva:", "rva:1000",
                                     "export:", "symbol:", "offset:0x1"}) {
    INFO(location);
    CHECK(parse_error(with_routine(good_name, "at = \"" + location + "\"", good_decoder)) ==
          "game.toml:4: at of routine 'unpack': '" + location +
              "' is no location: 0x…, rva:0x…, export:NAME or symbol:NAME");
  }
  CHECK(parse_error(with_routine(good_name, "at = \"rva:0xABCdef\"", good_decoder)).empty());
  CHECK(parse_error(with_routine(good_name, "at = \"symbol:a\\nb\"", good_decoder))
            .starts_with("game.toml:4: at of routine 'unpack': 'symbol:a\\x0ab' is no location"));
  CHECK(parse_error(with_routine(good_name, good_at, good_decoder, "note = \"\"\"a\nb\"\"\"")) ==
        "game.toml:6: note of routine 'unpack': expected one line without control characters");
  CHECK(parse_error(with_routine(good_name, good_at, good_decoder, "signature = \"cdecl(in u8[6], out f32[4)\"")) ==
        "game.toml:6: signature of routine 'unpack': signature 'cdecl(in u8[6], out f32[4)': column 26: expected ',' "
        "or ']'");
  const std::string head = "kind = \"constant\"\nlevel = \"expected\"\nat = \"0x1\"\n";
  CHECK(parse_error(with_anchor(head + "bits = [\n\"3835065d\",\n\"3835065\"]\n")) ==
        "game.toml:8: bits: '3835065' is neither 8 (f32) nor 16 (f64) hex digits");
  CHECK(parse_error(with_anchor(head + "bits = [\"3835065g\"]\n")).starts_with("game.toml:6: bits: '3835065g' is"));
  CHECK(parse_error(with_anchor(head + "bits = []\n")) ==
        "game.toml:6: bits of anchor 1: expected an array of strings, at least one");
  CHECK(parse_error(with_anchor(head + "bits = \"3835065d\"\n")).find("expected an array") != std::string::npos);
  CHECK(parse_error(with_anchor(head + "bits = [1]\n")) ==
        "game.toml:6: bits of anchor 1: expected a string, found an integer");
  CHECK(parse_error(with_anchor("kind = \"data\"\n")) ==
        "game.toml:3: kind of anchor 1: 'data' is neither code, call nor constant");
  CHECK(parse_error(with_anchor("kind = \"code\"\nlevel = \"optional\"\nat = \"0x1\"\n")) ==
        "game.toml:4: level of anchor 1: 'optional' is neither required nor expected");
}

TEST_CASE("two routines of one name are an error", "[target]") {
  const std::string routine = "[[routine]]\n" + good_name + "\n" + good_at + "\n" + good_decoder + "\n";
  CHECK(parse_error("name = \"game\"\n" + routine + routine) ==
        "game.toml:7: name of routine 'unpack': an earlier routine has the same name");
}

TEST_CASE("what is not TOML is an error with its line", "[target]") {
  const std::string error = parse_error("name = \"game\"\nname = \"again\"\n");
  CHECK(error.starts_with("game.toml:2: "));
  CHECK(error.find("name") != std::string::npos);
  CHECK(parse_error("name = \"game\n").starts_with("game.toml:1: "));
  CHECK(parse_error("name = \"game\"\n\n[[routine\n").starts_with("game.toml:3: "));
  CHECK(parse_error("name = \"g\xff\"\n").starts_with("game.toml:1: "));
  CHECK(parse_error("name = \"game\"\n\n[[=\n\n[[anchor]]\n") == "game.toml:3: malformed TOML");
  CHECK(parse_error("[[=") == "game.toml:1: malformed TOML");
}

TEST_CASE("deep nesting is an error, not a full stack", "[target]") {
  std::string dots = "a";
  for (int i = 0; i < 100000; ++i) dots += ".a";
  CHECK(parse_error("name = \"game\"\n" + dots + " = 1\n") == "game.toml:2: a line has at most 100 dots");
  CHECK(parse_error("name = \"game\"\n[" + dots + "]\n") == "game.toml:2: a line has at most 100 dots");
  CHECK(parse_error("a = " + std::string(100000, '[')).starts_with("game.toml:1: "));
  std::string tables = "a = ";
  for (int i = 0; i < 100000; ++i) tables += "{a = [\n";
  CHECK(parse_error(tables).starts_with("game.toml:"));
}

TEST_CASE("the example of the format's description is a target", "[target]") {
  std::ifstream stream(BITWITNESS_SOURCE_DIR "/vectors/README.md");
  REQUIRE(stream);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const std::size_t begin = text.find("```toml\n");
  REQUIRE(begin != std::string::npos);
  const std::string example = text.substr(begin + 8, text.find("```", begin + 8) - begin - 8);
  const Target target = parse_target(example, "README.md");
  CHECK(target.routines.size() == 1);
  CHECK(target.anchors.size() == 1);
}

TEST_CASE("a target is loaded by name", "[target]") {
  CHECK(known_targets() == std::vector<std::string>{"sws"});
  for (const EmbeddedTarget& target : embedded_targets()) {
    INFO(target.name);
    CHECK(load_target(target.name).name == target.name);
  }
  CHECK(error_of([] { load_target("swz"); }) == "no target is named 'swz'; known: sws, or the path of a .toml file");
}

TEST_CASE("a target is loaded from a file", "[target]") {
  const tests::TemporaryFile file(tests::bytes_of("name = \"mine\"\nfoo = 1\n"), 0, "mine.toml");
  const std::string path = file.path().string();
  CHECK(error_of([&] { load_target(path); }).starts_with(path + ":2: unknown key 'foo'"));
  file.write(tests::bytes_of("name = \"mine\"\n"));
  CHECK(load_target(path).name == "mine");
  file.write(tests::bytes_of("name = \"mine\"\n#" + std::string(1 << 20, ' ')));
  CHECK(error_of([&] { load_target(path); }) == path + ": longer than 1048576 bytes");
  CHECK(error_of([] { load_target("./nothing"); }) == "./nothing: the target file cannot be opened");
  CHECK(error_of([] { load_target("nothing.toml"); }) == "nothing.toml: the target file cannot be opened");
  CHECK(error_of([] { load_target("/tmp/"); }) == "/tmp/: is a directory, expected a target file");
}

TEST_CASE("the sws target states what seed 000 states", "[target]") {
  const Target target = load_target("sws");
  REQUIRE(target.routines.size() == 2);
  CHECK(target.routines[0].name == "packed_quat48");
  CHECK(target.routines[0].at == "0x103F1D0");
  CHECK(target.routines[0].decoder == "packed_quat48");
  CHECK(target.routines[1].name == "packed_quat48_pair");
  CHECK(target.routines[1].at == "0x103F340");
  CHECK(target.routines[1].decoder == "packed_quat48_pair");
  for (const TargetRoutine& routine : target.routines) CHECK_FALSE(routine.signature);
  REQUIRE(target.anchors.size() == 4);
  CHECK(target.anchors[2].kind == AnchorKind::call);
  CHECK(target.anchors[2].at == "0x1060BC7");
  CHECK(target.anchors[2].to == "0x103F340");
  CHECK(target.anchors[3].kind == AnchorKind::constant);
  CHECK(target.anchors[3].bits == std::vector<std::string>{"3f06a0cba0000000", "3835065d"});
  for (const Anchor& anchor : target.anchors) CHECK(anchor.required == (anchor.kind != AnchorKind::constant));
}

}  // namespace bitwitness
