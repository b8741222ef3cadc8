#include "tests/plugin_support.hpp"

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

namespace fs = std::filesystem;

}  // namespace

TEST_CASE("a C library and a Python script give the bits of the registered decoder") {
  const std::vector<std::byte> packed = random_values("30000");
  const std::vector<std::uint32_t> expected = expected_words(packed);
  for (const std::string& text :
       {good_library + ":decode", bad_library + ":good_batch", bad_library + ":good", good_script}) {
    INFO(text);
    const Subject subject = start(text);
    CHECK(words_of(subject, packed) == expected);
    std::vector<std::uint32_t> one(4);
    subject.decode(std::span(packed).first(6), one);
    CHECK(std::equal(one.begin(), one.end(), expected.begin()));
    subject.finish();
    CHECK(words_of(subject, packed) == expected);
    subject.finish();
  }
}

TEST_CASE("a subject is named without folders, says its file's SHA-256 and what it describes") {
  const Subject library = start(good_library + ":decode");
  CHECK(library.name == "decoder.so:decode");
  CHECK(library.option == good_library + ":decode");
  REQUIRE(library.notes.size() == 1);
  CHECK_THAT(library.notes[0], contains_text("the decoder's file decoder.so has SHA-256 "));
  CHECK(library.word_names == std::vector<std::string>{"x", "y", "z", "w"});
  REQUIRE(library.fields.size() == 6);
  CHECK(library.fields[3].name == "index_high");
  CHECK(library.fields[3].offset == 31);
  CHECK(library.fields[3].width == 1);
  const Subject script = start(good_script);
  CHECK(script.name == "exec:python3 decoder.py");
  REQUIRE(script.notes.size() == 1);
  CHECK_THAT(script.notes[0], contains_text("the decoder's file decoder.py has SHA-256 "));
  CHECK(script.word_names == library.word_names);
  const Subject plain = start(bad_library + ":prints");
  CHECK(plain.word_names == std::vector<std::string>{"word0", "word1", "word2", "word3"});
  REQUIRE(plain.fields.size() == 1);
  CHECK(plain.fields[0].width == 48);
}

TEST_CASE("a description is read strictly") {
  DecoderShape shape = rotation();
  apply_description(shape, "  kind=u32  words=a,b,c,d fields=low:1,high:47 packed=6 ");
  CHECK(shape.word_kind == WordKind::u32);
  CHECK(shape.word_names[3] == "d");
  REQUIRE(shape.fields.size() == 2);
  CHECK(shape.fields[1].offset == 1);
  for (const std::string text :
       {"packed=7", "packed=", "packed=6x", "words=a,b,c", "words=a,b,c,", "words=a,b,c,d e", "words=a,b,a,d",
        "kind=f64", "fields=a:47", "fields=a:49", "fields=a:48,b:0", "fields=a", "fields=:48", "fields=a:99999999999",
        "colour=blue", "=", "kind=f32 kind=f32"}) {
    INFO(text);
    DecoderShape other = rotation();
    CHECK_THROWS_AS(apply_description(other, text), Error);
  }
}

TEST_CASE("the shape of a signature names words by number and tells their kind") {
  CHECK(rotation().word_kind == WordKind::f32);
  CHECK(shape_of(parse_signature("cdecl(value u16) -> u32")).word_kind == WordKind::u32);
  CHECK(shape_of(parse_signature("cdecl(in u8[4], out i16[3])")).word_kind == WordKind::i32);
  CHECK(shape_of(parse_signature("cdecl(in u8[4], out i32[3], out f32)")).word_kind == WordKind::u32);
  const DecoderShape wide = shape_of(parse_signature("cdecl(in u8[4], out f64[2])"));
  CHECK(wide.word_kind == WordKind::u32);
  CHECK(wide.word_names == std::vector<std::string>{"word0", "word1", "word2", "word3"});
}

TEST_CASE("what names no decoder is refused before anything is executed") {
  const fs::path folder = fs::temp_directory_path() / ("bitwitness-plugin-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const std::string other = (folder / "other.so").string();
  std::string elf(4096, '\0');
  std::ifstream(good_library, std::ios::binary).read(elf.data(), static_cast<std::streamsize>(elf.size()));
  const auto write = [&](std::size_t at, char byte) {
    std::string changed = elf;
    changed[at] = byte;
    std::ofstream(other, std::ios::binary) << changed;
  };
  const auto refused = [](const std::string& text) { return outcome(text).substr(("decoder " + text + ": ").size()); };

  CHECK(refused("nothing.so") == "expected LIBRARY.so:SYMBOL or exec:COMMAND");
  CHECK(refused(good_library) == "expected LIBRARY.so:SYMBOL or exec:COMMAND");
  CHECK(refused(good_library + ":") == "expected LIBRARY.so:SYMBOL or exec:COMMAND");
  CHECK(refused(":decode") == "expected LIBRARY.so:SYMBOL or exec:COMMAND");
  CHECK(refused("exec:") == "exec: needs a command");
  CHECK(refused("exec:  ") == "exec: needs a command");
  CHECK(refused("exec:'' a") == "exec: needs a command");
  CHECK(refused("exec:a \"b'") == "the command has a \" without its other one");
  CHECK(refused("exec:a\\").ends_with("the command ends with a backslash"));
  CHECK_THAT(refused("/nowhere/nothing.so:decode"), contains_text("/nowhere/nothing.so"));
  CHECK_THAT(refused("/tmp:decode"), contains_text("/tmp"));
  write(0, 'M');
  CHECK(refused(other + ":decode") == other + " is no shared library (ELF)");
  write(18, '\xb7');
  CHECK_THAT(refused(other + ":decode"),
             contains_text("is built for another processor (ELF machine 183, 64 bits; this is "));
  write(4, 1);
  CHECK_THAT(refused(other + ":decode"), contains_text("32 bits; this is "));
  write(16, 2);
  CHECK(refused(other + ":decode") == other + " is an ELF file, but no shared library");
  write(0, elf[0]);  // cut short
  CHECK_THAT(refused(other + ":decode"), contains_text(" loaded"));

  // A colon in a path, a relative one and a name without a slash.
  const std::string odd = (folder / "a:b c.so").string();
  fs::copy_file(good_library, odd, fs::copy_options::overwrite_existing);
  const fs::path before = fs::current_path();
  fs::current_path(folder);
  for (const std::string& text : {odd + ":decode", std::string("./a:b c.so:decode"), std::string("a:b c.so:decode")}) {
    CHECK(outcome(text) == "well, 0 wrong");
  }
  fs::current_path(before);
  fs::remove_all(folder);

  DecoderShape none;
  CHECK_THROWS_AS(make_external_subject(good_library + ":decode", none), Error);
  CHECK(names_external_decoder("exec:x"));
  CHECK(names_external_decoder("./x"));
  CHECK(names_external_decoder("x.so"));
  CHECK_FALSE(names_external_decoder("packed_quat48"));
}

TEST_CASE("no process, descriptor or memory stays") {
  const std::set<std::string> before = open_descriptors();
  for (const std::string& text :
       {good_library + ":decode", bad_library + ":crashes", bad_library + ":nothing", good_script,
        bad_script + "crashes", bad_script + "garbage", bad_script + "grandchild_with_output"}) {
    INFO(text);
    outcome(text);
    CHECK(open_descriptors() == before);
    CHECK_FALSE(has_children());
    CHECK(shared_mappings() == 0);
  }
  // Other tests have such processes, too.
  const std::string seconds = "98" + std::to_string(::getpid());
  const std::string sleeper = std::string("sleep\0", 6) + seconds;
  // The kernel takes a moment to name what is executed and to bury what was killed.
  const auto comes_to = [&sleeper](std::size_t count) {
    for (int i = 0; i < 250 && processes_with(sleeper) != count; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return processes_with(sleeper) == count;
  };
  {
    const Subject subject = start(bad_script + "grandchild " + seconds);
    words_of(subject, counting_values(1));
    CHECK(comes_to(1));
  }
  CHECK(comes_to(0));
}

TEST_CASE("a request to stop ends a wait at once") {
  using Clock = std::chrono::steady_clock;
  constexpr auto prompt = std::chrono::seconds(2);
  constexpr auto long_timeout = std::chrono::minutes(10);
  for (const std::string& text : {bad_library + ":hangs", bad_library + ":hangs_batch", bad_script + "hangs"}) {
    INFO(text);
    const Subject subject = start(text, long_timeout);
    const std::vector<std::byte> packed = counting_values(10);
    std::vector<std::uint32_t> words(40);
    std::stop_source stop;
    const std::jthread stopper([&stop] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      stop.request_stop();
    });
    const auto begin = Clock::now();
    CHECK_FALSE(subject.decode_batch(packed, words, stop.get_token()));
    CHECK(Clock::now() - begin < prompt);
  }
  std::stop_source stop;
  stop.request_stop();
  ExternalDecoderOptions options;
  options.timeout = long_timeout;
  options.stop = stop.get_token();
  CHECK_THROWS_AS(make_external_subject("exec:sleep 98765", rotation(), options), Error);
}

TEST_CASE("several threads decode at once, each with a process of its own") {
  const std::vector<std::byte> packed = random_values("20000");
  const std::vector<std::uint32_t> expected = expected_words(packed);
  for (const std::string& text : {good_library + ":decode", good_script}) {
    const Subject subject = start(text, std::chrono::seconds(60));
    std::vector<std::future<std::vector<std::uint32_t>>> results;
    for (int i = 0; i < 4; ++i) {
      results.push_back(std::async(std::launch::async, [&] { return words_of(subject, packed); }));
    }
    for (auto& result : results) CHECK(result.get() == expected);
    subject.finish();
  }
}

TEST_CASE("a decoder that does not read ends no program that has SIGPIPE as it was") {
  CHECK_THAT(outcome(bad_script + "deaf", 5000), contains_text("closed its input"));
}
