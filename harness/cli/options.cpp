#include "harness/cli/options.hpp"

#include "harness/cli/output.hpp"
#include "harness/environment_names.hpp"
#include "harness/error.hpp"
#include "harness/plugins/external_decoder.hpp"
#include "harness/values.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <thread>

#include <fmt/format.h>

namespace bitwitness::cli {

namespace {

constexpr unsigned most_jobs = 1024;  // far above any machine; a typing error should not start a million threads
constexpr std::uint64_t most_listed = 1'000'000;

// Less than the first would make thousands of temporary files of a large corpus.
constexpr std::uint64_t least_memory = std::uint64_t{16} << 20;
constexpr std::uint64_t most_memory = std::uint64_t{1} << 44;

std::optional<std::uint64_t> parse_number(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::uint16_t parse_fpcw(const std::string& text) {
  const auto fpcw = static_cast<std::uint16_t>(parse_hex_number("--fpcw", text, 0xffff));
  if ((fpcw >> 8 & 3) == 1) {
    throw Error(fmt::format("--fpcw {}: precision control 01 is reserved (00 is 24 bits, 10 is 53, 11 is 64)", text));
  }
  return fpcw;
}

/// Bits 16 to 31 are reserved: a processor faults when they are loaded.
std::uint32_t parse_mxcsr(const std::string& text) {
  return static_cast<std::uint32_t>(parse_hex_number("--mxcsr", text, 0xffff));
}

/// Reads x87 control words: one in hex digits, or the words of a sweep.
std::vector<std::uint16_t> parse_fpcw_words(const std::string& text) {
  if (text == "sweep") return swept_fpcw(false);
  if (text == "sweep:rounding") return swept_fpcw(true);
  if (!text.starts_with("sweep")) return {parse_fpcw(text)};
  throw Error(fmt::format("--fpcw {}: unknown; it is sweep or sweep:rounding", text));
}

std::vector<std::uint32_t> parse_mxcsr_words(const std::string& text) {
  if (text == "sweep") return swept_mxcsr();
  if (!text.starts_with("sweep")) return {parse_mxcsr(text)};
  throw Error(fmt::format("--mxcsr {}: unknown; it is sweep", text));
}

bool replaces_file_in(const std::string& path, const std::string& folder) {
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error) || !std::filesystem::exists(path, error)) return false;
  const std::filesystem::path inside =
      std::filesystem::canonical(path, error).lexically_relative(std::filesystem::canonical(folder, error));
  return !error && !inside.empty() && *inside.begin() != "..";
}

}  // namespace

void add_options(CLI::App& command, ImageArguments& arguments) {
  command
      .add_option("--image", arguments.image, "PE executable or DLL (default: the stand-in built with this program)")
      ->type_name("FILE");
  command.add_option("--base", arguments.base, "load it at this address instead of its own")->type_name("HEX");
  command.add_option("--with-dll", arguments.dlls, "map this library too and bind imports to its exports")
      ->type_name("FILE")
      ->allow_extra_args(false);
  command
      .add_option("--memory", arguments.memory,
                  "set memory before anything runs: hex bytes, or a file's; LOCATION as --at")
      ->type_name("LOCATION=HEX|FILE")
      ->allow_extra_args(false);
  command.add_flag("--no-runtime", arguments.no_runtime, "leave imports from a C library unbound");
}

void add_place_options(CLI::App& command, RoutineArguments& arguments) {
  const auto target =
      command.add_option("--target", arguments.target, "what is known of the executable (default: sws)")
          ->type_name("NAME|FILE");
  const auto routine =
      command.add_option("--routine", arguments.routines, "routines of the target (default: all)")->type_name("NAME");
  const auto ignore =
      command.add_flag("--ignore-anchors", arguments.ignore_anchors, "go on when a required anchor does not hold");
  command.add_option("--at", arguments.at, "0x…, rva:0x…, export:NAME or symbol:NAME, instead of a target's routines")
      ->type_name("LOCATION")
      ->excludes(target)
      ->excludes(routine)
      ->excludes(ignore);
}

void add_options(CLI::App& command, RoutineArguments& arguments) {
  add_place_options(command, arguments);
  command
      .add_option("--signature", arguments.signatures,
                  "what a routine takes and gives, e.g. 'cdecl(in u8[6], out f32[4])'; NAME=TEXT for one routine")
      ->type_name("[NAME=]TEXT")
      ->allow_extra_args(false);
  command
      .add_option("--register", arguments.registers,
                  "what a register holds at each call, as a constant argument in it: esi=0x402000")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command
      .add_option("--decoder", arguments.decoder,
                  "registered decoder (see: list decoders), C function of a shared library, or exec: and a command")
      ->type_name("NAME|LIBRARY.so:SYMBOL|exec:COMMAND");
  command
      .add_option("--decoder-timeout", arguments.decoder_timeout,
                  "seconds without progress after which a library or a command is ended (default: 10)")
      ->type_name("N");
}

void add_options(CLI::App& command, ValueArguments& arguments) {
  command
      .add_option(
          "--values", arguments.sources,
          "hex:BYTES, file:PATH, corpus:PATH (animation files), special, fields, random:N[:SEED], all (default: "
          "special fields random:1000000)")
      ->type_name("SOURCE");
  command.add_option("--shard", arguments.shard, "take the I-th of N parts of the values")->type_name("I/N");
  command.add_flag("--scan", arguments.scan, "search files of a corpus that are not exactly one object for objects");
  command
      .add_option("--values-memory", arguments.memory, "collect a corpus in so much memory, the rest in files (1024)")
      ->type_name("MIB");
}

void add_options(CLI::App& command, EnvironmentArguments& arguments) {
  command
      .add_option("--fpcw", arguments.fpcw,
                  "x87 control words (default: 027f); sweep: 027f 007f 037f, the precisions of 53, 24 and 64 bits; "
                  "sweep:rounding: each of these with all four rounding modes")
      ->type_name("HEX|sweep[:rounding]");
  command
      .add_option("--mxcsr", arguments.mxcsr,
                  "SSE control words (default: 1f80); sweep: 1f80, 9f80 (FTZ), 1fc0 (DAZ) and 9fc0 (both)")
      ->type_name("HEX|sweep");
}

void add_options(CLI::App& command, RunArguments& arguments) {
  command
      .add_option("--witness", arguments.witness,
                  "what executes the routine: unicorn (the default), host (this computer's processor) or both")
      ->type_name("unicorn");
  command.add_option("--jobs", arguments.jobs, "threads (default: one per processor)")->type_name("N");
  command.add_option("--limit", arguments.limit, "differences and failures to list (default: 20)")->type_name("N");
  command.add_option("--budget", arguments.budget, "instructions one value may execute (default: 1000000)")
      ->type_name("N");
}

void add_options(CLI::App& command, OutputArguments& arguments) {
  command.add_option("--json", arguments.json, "write the report as JSON; - is standard output")->type_name("FILE");
  command.add_option("--junit", arguments.junit, "write the report as JUnit XML; - is standard output")
      ->type_name("FILE");
  command.add_option("--html", arguments.html, "write the report as one page of HTML; - is standard output")
      ->type_name("FILE");
  command.add_option("--timings", arguments.timings, "write how long each run took, as JSON")->type_name("FILE");
}

std::uint64_t parse_count(std::string_view option, std::string_view text, std::uint64_t least, std::uint64_t most) {
  const auto value = parse_number(text, 10);
  if (value && *value >= least && *value <= most) return *value;
  throw Error(fmt::format("{} {}: expected a number from {} to {}", option, text, least, most));
}

std::uint64_t parse_hex_number(std::string_view option, std::string_view text, std::uint64_t most) {
  const bool prefixed = text.starts_with("0x") || text.starts_with("0X");
  const auto value = parse_number(prefixed ? text.substr(2) : text, 16);
  if (value && *value <= most) return *value;
  throw Error(fmt::format("{} {}: expected hex digits, at most {:x}", option, text, most));
}

std::vector<Environment> parse_environments(const EnvironmentArguments& arguments) {
  std::vector<Environment> with_fpcw;
  for (const std::string& text : arguments.fpcw) {
    for (const std::uint16_t fpcw : parse_fpcw_words(text)) with_fpcw.push_back({.fpcw = fpcw});
  }
  if (with_fpcw.empty()) with_fpcw.emplace_back();
  std::vector<Environment> all;
  const auto add = [&all](const Environment& environment) {
    if (std::find(all.begin(), all.end(), environment) == all.end()) all.push_back(environment);
  };
  for (Environment environment : with_fpcw) {
    if (arguments.mxcsr.empty()) add(environment);
    for (const std::string& text : arguments.mxcsr) {
      for (const std::uint32_t mxcsr : parse_mxcsr_words(text)) {
        environment.mxcsr = mxcsr;
        add(environment);
      }
    }
  }
  return all;
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error)) return true;
  return std::filesystem::absolute(a, error).lexically_normal() ==
         std::filesystem::absolute(b, error).lexically_normal();
}

std::vector<std::string> environment_notes(const Environment& environment, std::string_view witness) {
  if (witness == "host") return {};
  constexpr unsigned fpcw_masks = 0x3f;
  constexpr unsigned mxcsr_masks = 0x1f80;
  constexpr unsigned flush_to_zero = 0x8000;
  constexpr unsigned denormals_are_zero = 0x40;
  std::vector<std::string> notes;
  if ((environment.fpcw & fpcw_masks) != fpcw_masks) {
    notes.push_back(fmt::format("fpcw {:04x} unmasks exceptions that the emulator does not raise", environment.fpcw));
  }
  if ((environment.mxcsr & mxcsr_masks) != mxcsr_masks) {
    notes.push_back(fmt::format("mxcsr {:04x} unmasks exceptions that the emulator does not raise", environment.mxcsr));
  }
  if ((environment.mxcsr & flush_to_zero) != 0) {
    notes.push_back(fmt::format("mxcsr {:04x} flushes tiny results to zero, the emulator does not", environment.mxcsr));
  }
  if ((environment.mxcsr & denormals_are_zero) != 0) {
    notes.push_back(fmt::format("mxcsr {:04x} reads denormals as zero, the emulator does not in minima and maxima",
                                environment.mxcsr));
  }
  return notes;
}

unsigned parse_jobs(const std::optional<std::string>& text) {
  if (text) return static_cast<unsigned>(parse_count("--jobs", *text, 1, most_jobs));
  return std::clamp(std::thread::hardware_concurrency(), 1U, most_jobs);
}

std::chrono::milliseconds parse_decoder_timeout(const std::optional<std::string>& text) {
  constexpr std::uint64_t most_seconds = 86'400;
  if (!text) return ExternalDecoderOptions().timeout;
  return std::chrono::seconds(parse_count("--decoder-timeout", *text, 1, most_seconds));
}

std::uint64_t parse_memory(const std::optional<std::string>& text) {
  return text ? parse_count("--values-memory", *text, least_memory >> 20, most_memory >> 20) << 20
              : default_values_memory;
}

RunSettings parse_run(const RunArguments& arguments) {
  RunSettings settings;
  settings.witness = arguments.witness;
  if (arguments.witness == "unicorn") {
    settings.make_machine = [](const Image& image, const Routine& routine, const MachineOptions& options) {
      return make_unicorn_machine(image, routine, options);
    };
  } else if (arguments.witness == "host") {
    settings.make_machine = [](const Image& image, const Routine& routine, const MachineOptions& options) {
      return make_host_machine(image, routine, options);
    };
  } else if (arguments.witness == "both") {
    settings.make_machine = [](const Image& image, const Routine& routine, const MachineOptions& options) {
      return make_both_machine(image, routine, options);
    };
  } else {
    throw Error(fmt::format("--witness {}: unknown; it is unicorn, host or both", arguments.witness));
  }
  settings.jobs = parse_jobs(arguments.jobs);
  if (arguments.limit) settings.limit = parse_count("--limit", *arguments.limit, 0, most_listed);
  if (arguments.budget) {
    settings.budget = parse_count("--budget", *arguments.budget, 1, std::numeric_limits<std::int64_t>::max());
  }
  return settings;
}

void check_outputs(const std::vector<OutputFile>& outputs, const std::vector<std::string>& inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& [option, path] = outputs[i];
    for (std::size_t j = 0; j < i; ++j) {
      const bool both_standard_output = path == "-" && outputs[j].path == "-";
      if (both_standard_output || (path != "-" && outputs[j].path != "-" && same_file(path, outputs[j].path))) {
        throw Error(fmt::format("{} and {} both go to {}", outputs[j].option, option, path));
      }
    }
    if (path == "-") continue;
    for (const std::string& input : inputs) {
      if (same_file(path, input) || replaces_file_in(path, input)) {
        throw Error(fmt::format("{} {}: would overwrite {}, which is read", option, path, input));
      }
    }
    require_writable(option, path);
  }
}

std::vector<OutputFile> output_files(const OutputArguments& arguments) {
  std::vector<OutputFile> outputs;
  if (arguments.json) outputs.push_back({"--json", *arguments.json});
  if (arguments.junit) outputs.push_back({"--junit", *arguments.junit});
  if (arguments.html) outputs.push_back({"--html", *arguments.html});
  if (arguments.timings) outputs.push_back({"--timings", *arguments.timings});
  return outputs;
}

void check_outputs(const OutputArguments& arguments, const std::vector<std::string>& inputs) {
  check_outputs(output_files(arguments), inputs);
}

}  // namespace bitwitness::cli
