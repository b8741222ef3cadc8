#pragma once
#include "decoders/registry.hpp"
#include "harness/error.hpp"
#include "harness/plugins/external_decoder.hpp"
#include "harness/values.hpp"
#include "tests/catch.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

// Decoders outside of the program, started for the tests of them. BITWITNESS_PLUGINS_DIR (libraries) and
// BITWITNESS_TESTS_DIR (scripts) come from CMake.

namespace bitwitness::tests {

inline const std::string good_library = BITWITNESS_PLUGINS_DIR "/decoder.so";
inline const std::string bad_library = BITWITNESS_PLUGINS_DIR "/misbehaving.so";
inline const std::string load_library = BITWITNESS_PLUGINS_DIR "/misbehaving_load.so";
inline const std::string throwing_library = BITWITNESS_PLUGINS_DIR "/throwing.so";
inline const std::string good_script = "exec:python3 " BITWITNESS_TESTS_DIR "/plugins/decoder.py";
inline const std::string bad_script = "exec:python3 " BITWITNESS_TESTS_DIR "/plugins/misbehaving.py ";

// For those that hang, and for the rest on a machine that is busy.
inline constexpr std::chrono::milliseconds patience{2000};
inline constexpr std::chrono::milliseconds endless{100'000};

inline DecoderShape rotation() {
  return shape_of(parse_signature("cdecl(in u8[6], out f32[4])"));
}

inline Subject start(const std::string& text, std::chrono::milliseconds timeout = endless,
                     std::chrono::milliseconds start_timeout = endless) {
  ExternalDecoderOptions options;
  options.timeout = timeout;
  options.start_timeout = start_timeout;
  options.library_memory = std::uint64_t{256} << 20;
  return make_external_subject(text, rotation(), options);
}

/// Values 00 00 00 00 00 00, 01 00 …, of which the misbehaving dislike the fourth.
inline std::vector<std::byte> counting_values(std::size_t count) {
  std::vector<std::byte> packed(6 * count);
  for (std::size_t i = 0; i < count; ++i) {
    packed[6 * i] = static_cast<std::byte>(i);
    packed[6 * i + 1] = static_cast<std::byte>(i >> 8U);
  }
  return packed;
}

inline std::vector<std::byte> random_values(const std::string& count) {
  const std::vector<std::string> sources = {"random:" + count + ":5"};
  const ValueSet values = ValueSet::build(6, {}, sources);
  std::vector<std::byte> packed(6 * static_cast<std::size_t>(values.size()));
  values.read(0, packed);
  return packed;
}

inline std::vector<std::uint32_t> words_of(const Subject& subject, std::span<const std::byte> packed) {
  std::vector<std::uint32_t> words(packed.size() / 6 * 4);
  if (!subject.decode_batch(packed, words, {})) throw Error("stopped");
  return words;
}

inline std::vector<std::uint32_t> expected_words(std::span<const std::byte> packed) {
  std::vector<std::uint32_t> words(packed.size() / 6 * 4);
  for (std::size_t i = 0; i < packed.size() / 6; ++i) {
    decoders::find_decoder("packed_quat48")->decode(packed.subspan(6 * i, 6), std::span(words).subspan(4 * i, 4));
  }
  return words;
}

/// Starts a decoder, has it decode and ends it; returns what the Error says, or "well" and the number of wrong values.
inline std::string outcome(const std::string& text, std::size_t count = 10, std::chrono::milliseconds timeout = endless,
                           std::chrono::milliseconds start_timeout = endless) {
  try {
    const Subject subject = start(text, timeout, start_timeout);
    const std::vector<std::byte> packed = counting_values(count);
    const std::vector<std::uint32_t> words = words_of(subject, packed);
    subject.finish();
    const std::vector<std::uint32_t> expected = expected_words(packed);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      wrong += std::equal(&words[4 * i], &words[4 * i] + 4, &expected[4 * i]) ? 0U : 1U;
    }
    return "well, " + std::to_string(wrong) + " wrong";
  } catch (const Error& error) {
    return error.what();
  }
}

struct Case {
  std::string text;
  std::string outcome;  ///< all that follows "decoder TEXT: "
  std::size_t count = 10;
};

/// Runs some of them side by side, as those that hang take their time.
inline void check(const std::vector<Case>& cases) {
  constexpr unsigned at_once = 10;
  std::vector<std::string> outcomes(cases.size());
  std::atomic<std::size_t> next = 0;
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < at_once; ++i) {
      threads.emplace_back([&] {
        for (std::size_t at = next++; at < cases.size(); at = next++) {
          const bool hangs = cases[at].outcome.find(" 2 s") != std::string::npos;
          const bool at_start = cases[at].outcome.ends_with("is ready");
          outcomes[at] = outcome(cases[at].text, cases[at].count, hangs ? patience : endless,
                                 hangs && at_start ? patience : endless);
        }
      });
    }
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& each = cases[i];
    const std::string prefix = each.outcome.starts_with("well") ? "" : "decoder " + each.text + ": ";
    CHECK(outcomes[i] == prefix + each.outcome);
  }
}

inline std::set<std::string> open_descriptors() {
  std::set<std::string> open;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    open.insert(entry.path().filename().string());
  return open;
}

inline std::size_t shared_mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find("memfd:bitwitness") != std::string::npos ? 1U : 0U;
  return count;
}

/// Counts the processes whose command line has a text in it.
inline std::size_t processes_with(const std::string& text) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "cmdline", std::ios::binary);
    std::string line;
    std::getline(file, line, '\x01');  // nothing of a process that has just ended
    count += line.find(text) != std::string::npos ? 1U : 0U;
  }
  return count;
}

inline bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

}  // namespace bitwitness::tests
