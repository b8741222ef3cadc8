#pragma once
#include "harness/machine.hpp"
#include "harness/witness_run.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

// The options that several commands take, as given on the command line. Each group is added to a command with
// add_options and then read by the function that the group names.

namespace bitwitness::cli {

/// Which executable, and what stands around it. Read by load_image (selection.hpp).
struct ImageArguments {
  std::optional<std::string> image;
  std::optional<std::string> base;
  std::vector<std::string> dlls;
  std::vector<std::string> memory;
  bool no_runtime = false;
};

/// Which routines of it, and against what. Read by select_routines (selection.hpp).
struct RoutineArguments {
  std::optional<std::string> target;
  std::vector<std::string> routines;
  std::optional<std::string> at;
  std::vector<std::string> signatures;
  std::optional<std::string> decoder;
  std::optional<std::string> decoder_timeout;
  std::vector<std::string> registers;
  bool ignore_anchors = false;
};

/// Which packed values. Read by ValueSet::build, parse_shard and parse_memory.
struct ValueArguments {
  std::vector<std::string> sources;
  std::optional<std::string> shard;
  bool scan = false;
  std::optional<std::string> memory;
};

/// Under which floating-point state. Read by parse_environments.
struct EnvironmentArguments {
  std::vector<std::string> fpcw;
  std::vector<std::string> mxcsr;
};

/// How to run. Read by parse_run.
struct RunArguments {
  std::string witness = "unicorn";
  std::optional<std::string> jobs;
  std::optional<std::string> limit;
  std::optional<std::string> budget;
};

/// Where results go. Read by check_outputs.
struct OutputArguments {
  std::optional<std::string> json;
  std::optional<std::string> junit;
  std::optional<std::string> html;
  std::optional<std::string> timings;
};

void add_options(CLI::App& command, ImageArguments& arguments);
void add_options(CLI::App& command, RoutineArguments& arguments);
/// Adds only those of the routine options that say where routines are.
void add_place_options(CLI::App& command, RoutineArguments& arguments);
void add_options(CLI::App& command, ValueArguments& arguments);
void add_options(CLI::App& command, EnvironmentArguments& arguments);
void add_options(CLI::App& command, RunArguments& arguments);
void add_options(CLI::App& command, OutputArguments& arguments);

struct RunSettings {
  std::string witness = "unicorn";
  MachineFactory make_machine;
  unsigned jobs = 1;
  std::size_t limit = 20;
  std::uint64_t budget = MachineOptions().budget;
};

/// Reads a decimal number between two bounds. Throws Error that names the option.
std::uint64_t parse_count(std::string_view option, std::string_view text, std::uint64_t least, std::uint64_t most);

/// Reads hex digits, with or without 0x, up to a bound. Throws Error that names the option.
std::uint64_t parse_hex_number(std::string_view option, std::string_view text, std::uint64_t most);

/// Returns every combination of the control words given, of which "sweep" stands for several, without repetition; the
/// default environment when none is. Throws Error.
std::vector<Environment> parse_environments(const EnvironmentArguments& arguments);

/// Returns what an emulator does not do that a processor does in an environment, one sentence each, for a run's notes.
std::vector<std::string> environment_notes(const Environment& environment, std::string_view witness = "unicorn");

/// Reads how many threads to use; one per processor when nothing is given. Throws Error.
unsigned parse_jobs(const std::optional<std::string>& text);

/// Reads how many seconds a decoder outside of this program may take without progress. Throws Error.
std::chrono::milliseconds parse_decoder_timeout(const std::optional<std::string>& text);

/// Reads how many bytes collecting values may take. Throws Error.
std::uint64_t parse_memory(const std::optional<std::string>& text);

/// Reads the numbers and the witness. Throws Error.
RunSettings parse_run(const RunArguments& arguments);

/// Tells whether two paths lead to one file.
bool same_file(const std::string& a, const std::string& b);

/// A place that results go to, by the option that names it.
struct OutputFile {
  std::string_view option;
  std::string path;
};

/// Returns the places of a run's results.
std::vector<OutputFile> output_files(const OutputArguments& arguments);

/// Throws Error when two results go to one place, one would overwrite a file that is read, alone or in a folder, or a
/// file cannot be written.
void check_outputs(const std::vector<OutputFile>& outputs, const std::vector<std::string>& inputs);

/// Checks the places of a run's results.
void check_outputs(const OutputArguments& arguments, const std::vector<std::string>& inputs);

}  // namespace bitwitness::cli
