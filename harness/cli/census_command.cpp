#include "harness/cli/census.hpp"
#include "harness/cli/census_report.hpp"
#include "harness/cli/command.hpp"
#include "harness/cli/exit_code.hpp"
#include "harness/cli/interrupt.hpp"
#include "harness/cli/options.hpp"
#include "harness/cli/output.hpp"
#include "harness/cli/progress.hpp"
#include "harness/error.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

namespace bitwitness::cli {

namespace {

constexpr std::uint64_t most_listed = 1'000'000;

struct Arguments {
  std::vector<std::string> paths;
  std::string format = "auto";
  bool scan = false;
  bool evidence = false;
  std::optional<std::string> json;
  std::optional<std::string> values_out;
  std::optional<std::string> kind;
  std::optional<std::string> jobs;
  std::optional<std::string> memory;
  std::optional<std::string> limit;
};

CensusOptions options_of(const Arguments& arguments) {
  CensusOptions options;
  options.corpus.format = parse_format(arguments.format);
  options.corpus.scan = arguments.scan;
  options.corpus.jobs = parse_jobs(arguments.jobs);
  options.evidence = arguments.evidence;
  options.memory = parse_memory(arguments.memory);
  if (arguments.limit) options.limit = parse_count("--limit", *arguments.limit, 0, most_listed);
  if (arguments.values_out.has_value() != arguments.kind.has_value()) {
    throw Error("--values-out FILE and --kind K belong together: the values of that kind go to the file");
  }
  if (arguments.kind) options.values_of = parse_kind(*arguments.kind);
  return options;
}

/// What a file of values must say of a census that is not whole; nothing where it is.
std::string partial_text(const Census& census) {
  std::string text;
  const auto add = [&](std::uint64_t count, std::string_view what) {
    if (count != 0) text += fmt::format("{} {} {}", text.empty() ? "; PARTIAL:" : ",", count, what);
  };
  add(census.refused, "refused");
  add(census.read.unreachable.size(), "not reached");
  add(census.read.not_read, "not read");
  return text;
}

void write_values(const std::string& path, const std::string& kind, const Census& census) {
  constexpr std::size_t at_a_time = 4096;
  constexpr std::string_view digits = "0123456789abcdef";
  write_pieces("--values-out", path, [&](const TextSink& sink) {
    sink(fmt::format("# {} distinct values of kind {}{}\n", census.values.count, kind, partial_text(census)));
    if (census.read.made) sink(fmt::format("# {}\n", made_warning));
    std::string text;
    for (std::uint64_t value = 0; value < census.values.count; ++value) {
      const std::byte* const bytes = census.values.bytes.get() + static_cast<std::size_t>(value) * census.packed_size;
      for (std::size_t at = 0; at < census.packed_size; ++at) {
        const auto byte = std::to_integer<unsigned>(bytes[at]);
        text += digits[byte >> 4];
        text += digits[byte & 15];
      }
      text += '\n';
      if (value % at_a_time == at_a_time - 1) sink(std::exchange(text, {}));
    }
    sink(text);
  });
}

ExitCode exit_code_of(const Census& census, bool values_wanted) {
  if (!census.read.unreachable.empty()) return exit_refused;
  if (census.refused != 0 || census.read.not_read != 0) return exit_differed;
  const bool nothing = census.clips + census.anim_sets == 0 || (values_wanted && census.values.count == 0);
  return nothing ? exit_nothing_checked : exit_agreed;
}

int run(const Arguments& arguments) {
  CensusOptions options = options_of(arguments);
  std::vector<OutputFile> outputs;
  if (arguments.json) outputs.push_back({"--json", *arguments.json});
  if (arguments.values_out) outputs.push_back({"--values-out", *arguments.values_out});
  const InterruptWatch interrupts;
  FileList list = list_files(arguments.paths);
  for (const UnreachablePath& path : list.unreachable) {
    // What was named is an error of the call; what turns up below a folder is reported with the rest.
    if (std::ranges::find(arguments.paths, path.path) == arguments.paths.end()) continue;
    throw Error(describe(path));
  }
  check_outputs(outputs, arguments.paths);

  Census census;
  {
    ProgressLine line("census");
    options.corpus.stop = interrupts.token();
    options.corpus.progress = [&line](const CorpusProgress& progress) { line.show(progress_text(progress)); };
    census = take_census(list.files, options);
  }
  census.read.unreachable.insert(census.read.unreachable.begin(), list.unreachable.begin(), list.unreachable.end());
  if (arguments.values_out) write_values(*arguments.values_out, *arguments.kind, census);
  if (arguments.json) {
    const std::string text = to_json(census, list.files);
    *arguments.json == "-" ? write_standard_output(text) : write_file("--json", *arguments.json, text);
  }
  if (arguments.json.value_or("") != "-" && arguments.values_out.value_or("") != "-") {
    write_standard_output(to_text(census, list.files));
  }
  if (!census.read.unreachable.empty()) {
    complain(fmt::format("{} paths could not be read; the first: {}", census.read.unreachable.size(),
                         describe(census.read.unreachable.front())));
  }
  if (arguments.kind && census.values.count == 0) {
    complain(fmt::format("--kind {}: not one value of it in {} files", *arguments.kind, census.read.files));
  }
  return exit_code_of(census, arguments.kind.has_value());
}

}  // namespace

Command add_census_command(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* parser = program.add_subcommand("census", "Read animation files and count what is in them");
  parser->add_option("paths", arguments->paths, "files, and folders with files")->required()->type_name("PATH");
  parser->add_option("--format", arguments->format, "auto, sws, rr or mab (default: auto, by a file's first bytes)")
      ->type_name("FORMAT");
  parser->add_flag(
      "--scan", arguments->scan,
      "search files that are not exactly one object for objects; bodies of Riders Republic without a class "
      "id before them are missed where they have events or arrays");
  parser->add_flag("--evidence", arguments->evidence, "test on the files how keys are to be read");
  parser->add_option("--json", arguments->json, "write the census as JSON; - is standard output")->type_name("FILE");
  parser->add_option("--values-out", arguments->values_out, "write the distinct packed values of one kind")
      ->type_name("FILE");
  parser->add_option("--kind", arguments->kind, "that kind: a number, or GAME:NUMBER as in sws:4")->type_name("K");
  parser->add_option("--jobs", arguments->jobs, "threads (default: one per processor)")->type_name("N");
  parser->add_option("--values-memory", arguments->memory, "collect values in so much memory, the rest in files (1024)")
      ->type_name("MIB");
  parser->add_option("--limit", arguments->limit, "refusals to list (default: 1000)")->type_name("N");
  return {parser, [arguments] { return run(*arguments); }};
}

}  // namespace bitwitness::cli
