#pragma once
#include "harness/report.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// What the writers of reports and the command line share. Not for other modules.

namespace bitwitness::report_parts {

/// What every report says of an image that this project assembled for its own tests.
inline constexpr std::string_view stand_in_warning = "STAND-IN executable: assembled for tests, not the game";

/// Returns a text fit for one line of a terminal or of XML: bytes that are not UTF-8 and characters that either forbids
/// become U+FFFD, control characters their code, as in "\x1b".
std::string printable(std::string_view text);

/// Prints an address: "0x103f1d0".
std::string address_text(std::uint64_t address);

/// Prints an output word as a number: the shortest decimal that gives the same bits, or an integer.
std::string number_text(std::uint32_t word, WordKind kind);

/// Prints `part` of `whole` in percent, rounded down to hundredths: "99.99 %". `whole` is neither 0 nor below `part`.
std::string percentage(std::uint64_t part, std::uint64_t whole);

/// Prints an ulp distance; "nan" when it is the largest value, which no two numbers have.
std::string distance_text(std::uint64_t distance);

/// Prints "run 7: agreed 4, differed 3, …".
std::string counts_text(const Counts& counts);

/// Prints the environment: "fpcw 027f, mxcsr 1f80".
std::string environment_text(const Environment& environment);

/// Prints what came of the emulator's self-test where that is not as of Unicorn 2.0.1: "243 of 278 self-test vectors as
/// on hardware; quirks: …; not found: …". Empty where it is, or none was run.
std::string self_test_text(const Engine& engine);

/// Prints where the values of a run came from, how many distinct ones there are and which shard of them this is.
std::string values_text(const RunReport& run);

/// Prints a difference's words, one line each, indented by four: a mark where they differ, name, bits and number of
/// both sides, ulp distance.
std::string words_text(const Difference& difference, const RunReport& run);

/// Prints how a value failed: "faulted at 0x103f1ff, mov eax, dword ptr [ecx]: reads 4 bytes at 0x10, which is not
/// mapped".
std::string failure_text(const Failure& failure);

/// Prints what running a sample alone showed; empty when no value was run again.
std::string isolation_text(const Isolation& isolation);

/// The same of a run; of a replay it says that it was the recording that ran them.
std::string isolation_text(const RunReport& run);

/// Prints facts as the notes at a run's end, at most a fixed number of them and how many there are besides: "on 12
/// values the routine reads 4 bytes at 0x1200000 (first: 34 12)".
std::vector<std::string> fact_notes(std::span<const Fact> facts);

/// Returns the shell command that repeats one value of a run.
std::string repeat_command(const Report& report, const RunReport& run, std::span<const std::byte> value);

/// Prints the verdict with what it rests on, one line: "agree: 7 of 7 values agreed bit for bit, 1 of 1 runs".
std::string verdict_text(const Report& report);

/// Returns a source as reports name it: of an absolute path only the file name, so that equal runs give equal bytes
/// wherever their files lie.
std::string portable_source(std::string_view source);

}  // namespace bitwitness::report_parts
