#include "harness/cli/audit_report.hpp"
#include "harness/cli/command.hpp"
#include "harness/cli/engine.hpp"
#include "harness/cli/exit_code.hpp"
#include "harness/cli/options.hpp"
#include "harness/cli/output.hpp"
#include "harness/cli/report_head.hpp"
#include "harness/cli/run_values.hpp"
#include "harness/cli/selection.hpp"

#include <algorithm>
#include <memory>

namespace bitwitness::cli {

namespace {

struct Arguments {
  ImageArguments image;
  RoutineArguments routine;  // places only
  std::optional<std::string> json;
};

AuditReport make_report(const Image& image, PlaceSelection selection) {
  AuditReport report;
  set_head(report, image, this_engine());
  report.notes.insert(report.notes.end(), selection.notes.begin(), selection.notes.end());
  for (SelectedPlace& place : selection.places) {
    report.routines.push_back({std::move(place.name), std::move(place.note), audit(image, place.address)});
  }
  return report;
}

ExitCode exit_code_of(const AuditReport& report) {
  const auto is_empty = [](const AuditedRoutine& routine) { return routine.audit.instructions == 0; };
  if (std::ranges::all_of(report.routines, is_empty)) return exit_nothing_checked;
  const auto is_trusted = [](const AuditedRoutine& routine) { return routine.audit.is_trusted(); };
  return std::ranges::all_of(report.routines, is_trusted) ? exit_agreed : exit_differed;
}

int run(const Arguments& arguments) {
  const Image image = load_image(arguments.image);
  PlaceSelection selection = select_places(image, arguments.routine);
  if (arguments.json) {
    check_outputs({{"--json", *arguments.json}}, files_read(image, arguments.image, arguments.routine, {}));
  }
  const AuditReport report = make_report(image, std::move(selection));
  if (arguments.json) {
    write_pieces("--json", *arguments.json, [&report](const TextSink& sink) { sink(to_json(report)); });
  }
  if (!arguments.json || *arguments.json != "-") write_standard_output(to_text(report));
  return exit_code_of(report);
}

}  // namespace

Command add_audit_command(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* parser = program.add_subcommand(
      "audit", "Say which of a routine's instructions the emulator executes as a processor does, and which not");
  add_options(*parser, arguments->image);
  add_place_options(*parser, arguments->routine);
  parser->add_option("--json", arguments->json, "write the audit as JSON; - is standard output")->type_name("FILE");
  return {parser, [arguments] { return run(*arguments); }};
}

}  // namespace bitwitness::cli
