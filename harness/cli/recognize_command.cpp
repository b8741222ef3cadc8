#include "harness/cli/command.hpp"
#include "harness/cli/exit_code.hpp"
#include "harness/cli/options.hpp"
#include "harness/cli/output.hpp"
#include "harness/cli/recognition_report.hpp"
#include "harness/cli/rule_sets.hpp"
#include "harness/cli/selection.hpp"
#include "harness/error.hpp"

#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace bitwitness::cli {

namespace {

/// Instructions one value may execute: an unpack takes a hundred, and thousands of values that never end should not
/// take minutes.
constexpr std::uint64_t budget = 100'000;

struct Arguments {
  ImageArguments image;
  RoutineArguments routine;
  EnvironmentArguments environment;
  std::optional<std::string> json;
};

ExitCode exit_code_of(const RecognitionReport& report) {
  bool nothing = report.runs.empty();
  for (const RecognitionRun& run : report.runs) {
    const RecognitionVerdict verdict = run.found.verdict;
    if (verdict == RecognitionVerdict::none) return exit_differed;
    if (verdict == RecognitionVerdict::nothing) {
      nothing = true;
    } else if (run.found.failed != 0) {
      return exit_differed;
    }
  }
  return nothing ? exit_nothing_checked : exit_agreed;
}

int run(const Arguments& arguments) {
  const std::vector<Environment> environments = parse_environments(arguments.environment);
  const Image image = load_image(arguments.image);
  Selection selection = select_routines(image, arguments.routine, DecoderUse::optional);
  std::vector<OutputFile> outputs;
  if (arguments.json) outputs.push_back({"--json", *arguments.json});
  check_outputs(outputs, {image.path()});

  RecognitionReport report;
  report.image = &image;
  report.notes.assign(image.notes().begin(), image.notes().end());
  report.notes.insert(report.notes.end(), selection.notes.begin(), selection.notes.end());
  std::map<std::pair<std::size_t, std::size_t>, KnownRules> by_sizes;
  for (SelectedRoutine& selected : selection.routines) {
    const Signature& signature = selected.routine.signature;
    const std::pair sizes(signature.packed_size(), signature.word_count());
    if (!by_sizes.contains(sizes)) by_sizes.emplace(sizes, known_rules(signature));
    const KnownRules& known = by_sizes.at(sizes);
    for (const Environment& environment : environments) {
      RecognitionRun& run = report.runs.emplace_back();
      run.routine = selected.routine;
      run.environment = environment;
      run.notes = environment_notes(environment);
      if (!selected.note.empty()) run.notes.insert(run.notes.begin(), selected.note);
      if (!known.rules) continue;
      run.rules = known.rules.get();
      if (!known.options.any_bits) run.notes.emplace_back("only finite numbers were tried, no infinity and no NaN");
      MachineOptions machine;
      machine.budget = budget;
      run.found = recognize(image, run.routine, environment, *known.rules, known.options, machine);
    }
  }
  const bool to_standard_output = arguments.json && *arguments.json == "-";
  if (arguments.json && !to_standard_output) write_file("--json", *arguments.json, to_json(report));
  write_standard_output(to_standard_output ? to_json(report) : to_text(report));
  return exit_code_of(report);
}

}  // namespace

Command add_recognize_command(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* parser = program.add_subcommand("recognize", "Tell which known rule a routine follows");
  add_options(*parser, arguments->image);
  add_options(*parser, arguments->routine);
  parser->remove_option(parser->get_option("--decoder"));
  add_options(*parser, arguments->environment);
  parser->add_option("--json", arguments->json, "write what was found as JSON; - is standard output")
      ->type_name("FILE");
  return {parser, [arguments] { return run(*arguments); }};
}

}  // namespace bitwitness::cli
