#include "tests/plugin_support.hpp"

using namespace bitwitness;
using namespace bitwitness::tests;

TEST_CASE("a library that misbehaves is one line with the value") {
  const std::string& so = bad_library;
  check({
      {so + ":decode", "well, 0 wrong"},
      {so + ":prints", "well, 0 wrong"},
      {so + ":is_wrong", "well, 1 wrong"},
      {so + ":forgets", "well, 1 wrong"},
      {so + ":writes_less", "well, 10 wrong"},
      {so + ":nothing", "the library exports no symbol nothing"},
      {so + ":data", "data is data and not a function"},
      {so + ":wrong_size", "it describes itself as 'packed=8': packed=8: what is checked has values of 6 bytes"},
      {so + ":wrong_key", "it describes itself as 'colour=blue': 'colour' is none of packed, words, kind and fields"},
      {so + ":crashes", "was ended by SIGSEGV (invalid memory access) on value 03 00 00 00 00 00"},
      {so + ":crashes", "was ended by SIGSEGV (invalid memory access) on value 03 00 00 00 00 00", 20000},
      {so + ":hangs", "hangs: no progress in 2 s, and alone none in 0.5 s on value 03 00 00 00 00 00"},
      {so + ":aborts",
       "was ended by SIGABRT (abort, or an exception that nobody caught) on value 03 00 00 00 00 00; its last "
       "line: last words"},
      {so + ":exits", "called exit() on value 03 00 00 00 00 00"},
      {so + ":leaves", "exited with status 5 on value 03 00 00 00 00 00"},
      {so + ":ends_itself", "was ended by SIGTERM on value 03 00 00 00 00 00"},
      {so + ":eats", "was ended by SIGABRT (abort, or an exception that nobody caught) on value 03 00 00 00 00 00"},
      {so + ":writes_more", "wrote past the 4 words of a result on value 00 00 00 00 00 00"},
      {so + ":crashes_batch", "was ended by SIGSEGV (invalid memory access) on value 03 00 00 00 00 00", 9000},
      {so + ":hangs_batch", "hangs: no progress in 2 s, and alone none in 0.5 s on value 03 00 00 00 00 00"},
      {so + ":crowded_batch",
       "was ended by SIGABRT (abort, or an exception that nobody caught) in a batch of 10 values from 00 "
       "00 00 00 00 00 to 09 00 00 00 00 00, on none of which it does so alone"},
      {so + ":runs_over_batch", "wrote past the 4 words of a result on value 00 00 00 00 00 00"},
      {throwing_library + ":throws",
       "threw an exception: no such\\x0avalue on value 03 00 00 00 00 00; its last line: chatter"},
      {throwing_library + ":throws_number",
       "threw an exception: something that is no std::exception on value 03 00 00 00 00 00"},
  });
  // It closes the connection first and dies of that, or is found without it.
  CHECK_THAT(outcome(so + ":closes"), contains_text(" on value 03 00 00 00 00 00"));
}

TEST_CASE("a word that a library does not write is not what was there before") {
  for (const std::string symbol : {"forgets", "also_forgets"}) {
    const Subject subject = start(bad_library + ":" + symbol);
    for (int i = 0; i < 2; ++i) {
      const std::vector<std::uint32_t> words = words_of(subject, counting_values(10));
      CHECK(words[4 * 3 + 2] != 0xa5a5a5a5);
      CHECK(words[4 * 3 + 3] == 0xa5a5a5a5);
    }
  }
}

TEST_CASE("a library that misbehaves while it is loaded is one line") {
  const std::string text = load_library + ":decode";
  CHECK(outcome(text) == "well, 10 wrong");
  const auto how = [&](const char* value) {
    ::setenv("BITWITNESS_TEST_LOAD", value, 1);
    const std::string said = outcome(text, 10, patience, patience);
    ::unsetenv("BITWITNESS_TEST_LOAD");
    return said;
  };
  CHECK(how("abort") ==
        "decoder " + text + ": was ended by SIGABRT (abort, or an exception that nobody caught) while it was loaded");
  CHECK(how("exit") == "decoder " + text + ": called exit() while it was loaded");
  CHECK(how("hang") == "decoder " + text + ": hangs: no progress in 2 s while it was loaded");
}

TEST_CASE("a command that misbehaves is one line with the value") {
  const std::string ready = " before it said that it is ready";
  const std::string bad_value = " on value 03 00 00 00 00 00";
  const std::string alone = "hangs: no progress in 2 s, and alone none in 0.5 s" + bad_value;
  check({
      {bad_script + "well", "well, 0 wrong", 5000},
      {bad_script + "carriage", "well, 0 wrong"},
      {bad_script + "is_wrong", "well, 1 wrong"},
      {"exec:/nowhere/nothing", "cannot be executed: No such file or directory"},
      {"exec:nothing-of-this-name", "cannot be executed: No such file or directory"},
      {"exec:/dev/null", "cannot be executed: Permission denied"},
      {"exec:/tmp", "cannot be executed: Permission denied"},
      {"exec:" BITWITNESS_TESTS_DIR "/plugins/decoder.c", "cannot be executed: Permission denied"},
      {"exec:sleep 98765", "hangs: no progress in 2 s" + ready},
      {"exec:true", "exited with status 0" + ready},
      {"exec:cat", "answers the greeting with 'bitwitness-decoder 1 6 4' where 'ready 1' is expected"},
      {"exec:yes", "answers the greeting with 'y' where 'ready 1' is expected"},
      {bad_script + "ends_at_once", "exited with status 0" + ready},
      {bad_script + "garbage", "answers the greeting with '\\x1b[31m\\xff\\x00hello' where 'ready 1' is expected"},
      {bad_script + "endless", "answers the greeting with a line that does not end"},
      {bad_script + "other_version", "answers the greeting with 'ready 2' where 'ready 1' is expected"},
      {bad_script + "early", "answers the greeting with 'hello' where 'ready 1' is expected"},
      {bad_script + "wrong_size", "it describes itself as 'packed=8': packed=8: what is checked has values of 6 bytes"},
      {bad_script + "crashes", "was ended by SIGSEGV (invalid memory access) on value 03 00 00 00 00 00"},
      {bad_script + "raises",
       "exited with status 1 on value 03 00 00 00 00 00; its last line: ValueError: no such value"},
      {bad_script + "hangs", alone},
      {bad_script + "stubborn", alone},
      {bad_script + "closes_output", "closed its output on value 03 00 00 00 00 00"},
      {bad_script + "short", "exited with status 0 after 19 of 20 bytes on value 03 00 00 00 00 00"},
      {bad_script + "stalls", alone},
      {bad_script + "miscounts", "answers with 0 values where 1 value was asked for on value 03 00 00 00 00 00"},
      {bad_script + "counts_nothing", "answers with 0 values where 1 value was asked for" + bad_value},
      {bad_script + "counts_many", "answers with 2147483647 values where 1 value was asked for" + bad_value},
      {bad_script + "counts_negative", "answers with 4294967295 values where 1 value was asked for" + bad_value},
      {bad_script + "half_and_closed", "closed its output after 12 of 20 bytes" + bad_value},
      {bad_script + "kills_parent", "was ended together with the process that watches it" + bad_value},
      {bad_script + "gives_up", "exited with status 0" + bad_value},
      {bad_script + "hangs_together",
       "hangs: no progress in 2 s in a batch of 10 values from 00 00 00 00 00 00 to 09 00 00 00 00 00, on none of "
       "which "
       "it does so alone"},
      {bad_script + "slow",
       "hangs: no progress in 2 s in a batch of 10 values from 00 00 00 00 00 00 to 09 00 00 00 00 00"},
      {bad_script + "never_reads", "hangs: no progress in 2 s, and alone none in 0.5 s on value 00 00 00 00 00 00"},
      {bad_script + "shouts", "well, 0 wrong"},
      {bad_script + "deaf", "closed its input on value 00 00 00 00 00 00"},
      {bad_script + "stops_reading", "closed its input on value 00 00 00 00 00 00"},
      {bad_script + "late", "wrote 3 bytes that nobody asked for after its input had ended"},
      {bad_script + "lingers", "did not end within 2 s after its input had ended"},
      {bad_script + "fails_at_end", "exited with status 1 after its input had ended; its last line: no good end"},
      {bad_script + "exits_3", "exited with status 3 after its input had ended"},
      {bad_script + "daemon", "left processes running after its input had ended"},
      {bad_script + "grandchild", "left processes running after its input had ended"},
      {bad_script + "grandchild_with_output", "left processes running after its input had ended"},
  });
  CHECK_FALSE(has_children());
  CHECK_THAT(outcome(R"(exec:printf  "%s\n" 'a "b\n'\ "\$\"c" )"),
             contains_text(R"(answers the greeting with 'a "b\x5cn \x5c$"c' where)"));
  // Whether what is too much has come already is a matter of time.
  CHECK_THAT(outcome(bad_script + "eager"),
             contains_text(" that nobody asked for ") || contains_text("answers with 0 values"));
  CHECK_THAT(outcome(bad_script + "chatty"),
             contains_text("wrote 5 bytes that nobody asked for after its words on value 03 00 00 00 00 00") ||
                 contains_text("wrote 5 bytes that nobody asked for before it was asked on value 04 00 00 00 00 00"));
  CHECK_THAT(outcome(bad_script + "too_many_words"),
             contains_text("wrote 16 bytes that nobody asked for after its words on value 03 00 00 00 00 00") ||
                 contains_text("wrote 16 bytes that nobody asked for before it was asked on value 04 00 00 00 00 00"));
  CHECK_THAT(outcome(bad_script + "deaf_and_gone"), contains_text("exited with status 4"));
}
