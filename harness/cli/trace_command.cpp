#include "harness/cli/command.hpp"
#include "harness/cli/decoder_subject.hpp"
#include "harness/cli/engine.hpp"
#include "harness/cli/exit_code.hpp"
#include "harness/cli/interrupt.hpp"
#include "harness/cli/options.hpp"
#include "harness/cli/output.hpp"
#include "harness/cli/report_difference.hpp"
#include "harness/cli/report_head.hpp"
#include "harness/cli/selection.hpp"
#include "harness/error.hpp"
#include "harness/probe/trace_report.hpp"
#include "harness/values.hpp"

#include <limits>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace bitwitness::cli {

namespace {

constexpr std::uint64_t most_steps = 1'000'000;  // some 500 bytes each

struct Arguments {
  ImageArguments image;
  RoutineArguments routine;
  std::vector<std::string> values;
  std::optional<std::string> from_difference;
  EnvironmentArguments environment;
  std::optional<std::string> limit;
  std::optional<std::string> budget;
  std::optional<std::string> json;
};

/// What is to be traced, and against what.
struct Task {
  Routine routine;
  std::optional<Subject> subject;
  Environment environment;
  std::vector<std::byte> value;
  std::vector<std::string> notes;
};

std::vector<std::byte> only_value(const std::vector<std::string>& sources) {
  constexpr std::string_view kind = "hex:";
  if (sources.size() != 1 || !sources.front().starts_with(kind)) {
    throw Error(fmt::format("--values {}: a trace takes exactly one value, as hex:BYTES", fmt::join(sources, " ")));
  }
  try {
    return parse_hex(std::string_view(sources.front()).substr(kind.size()));
  } catch (const Error& error) {
    throw Error(fmt::format("--values {}: {}", sources.front(), error.what()));
  }
}

Environment only_environment(const EnvironmentArguments& arguments) {
  const std::vector<Environment> environments = parse_environments(arguments);
  if (environments.size() == 1) return environments.front();
  throw Error("--fpcw, --mxcsr: a trace runs in one environment, so each may be given once");
}

Task selected_task(const Image& image, const RoutineArguments& arguments, const std::stop_token& stop) {
  Selection selection = select_routines(image, arguments, DecoderUse::optional, stop);
  if (selection.routines.size() != 1) {
    std::vector<std::string_view> names;
    for (const SelectedRoutine& selected : selection.routines) names.emplace_back(selected.routine.name);
    throw Error(fmt::format("a trace takes one routine: give --routine with one of {}", fmt::join(names, ", ")));
  }
  Task task;
  SelectedRoutine& selected = selection.routines.front();
  task.routine = std::move(selected.routine);
  task.subject = std::move(selected.subject);
  task.notes = std::move(selection.notes);
  if (!selected.note.empty()) task.notes.push_back(std::move(selected.note));
  return task;
}

Task task_of(const Image& image, const Arguments& arguments, const std::stop_token& stop) {
  Task task = selected_task(image, arguments.routine, stop);
  task.environment = only_environment(arguments.environment);
  task.value = only_value(arguments.values);
  if (task.value.size() != task.routine.signature.packed_size()) {
    throw Error(fmt::format("--values {}: {} bytes, and routine {} takes {}", arguments.values.front(),
                            task.value.size(), task.routine.name, task.routine.signature.packed_size()));
  }
  return task;
}

Task task_of(const Image& image, const ReportedDifference& difference, const Arguments& arguments,
             const std::stop_token& stop) {
  const std::string option = "--from-difference " + *arguments.from_difference;
  Task task;
  task.routine = difference.routine;
  task.environment = difference.environment;
  task.value = difference.value;
  image.require_code(task.routine.address, option);
  require_callable(task.routine.signature, image.format() == ImageFormat::pe32_plus);
  ExternalDecoderOptions decoder;
  decoder.timeout = parse_decoder_timeout(arguments.routine.decoder_timeout);
  decoder.stop = stop;
  // What the report names may not be executed: it is a file that anybody wrote.
  task.subject = arguments.routine.decoder
                     ? subject_named(*arguments.routine.decoder, shape_of(task.routine.signature), decoder)
                     : subject_of(require_decoder(difference.decoder));
  if (task.subject->packed_size != task.value.size() ||
      task.subject->word_names.size() != task.routine.signature.word_count()) {
    throw Error(fmt::format("{}: decoder {} takes {} bytes and gives {} words, the routine {} and {}", option,
                            task.subject->name, task.subject->packed_size, task.subject->word_names.size(),
                            task.value.size(), task.routine.signature.word_count()));
  }
  return task;
}

/// Nothing when it was stopped.
std::optional<TraceSubject> decode(const Subject& decoder, std::span<const std::byte> value,
                                   const std::stop_token& stop) {
  TraceSubject subject = {decoder.name, decoder.word_names, decoder.word_kind, {}};
  subject.words.resize(decoder.word_names.size());
  if (!decoder.decode_batch) {
    decoder.decode(value, subject.words);
    return subject;
  }
  if (!decoder.decode_batch(value, subject.words, stop)) return std::nullopt;
  if (decoder.finish) decoder.finish();
  return subject;
}

/// Says where today's words are not those of the report.
void compare_with_report(TraceReport& report, const ReportedDifference& difference) {
  const Trace& trace = report.trace;
  if (trace.outcome == OutcomeKind::returned && trace.words != difference.reference) {
    report.notes.push_back(
        fmt::format("the report has other words of the routine: {:08x}", fmt::join(difference.reference, " ")));
  }
  if (report.subject && report.subject->decoder == difference.decoder && report.subject->words != difference.subject) {
    report.notes.push_back(
        fmt::format("the report has other words of the decoder: {:08x}", fmt::join(difference.subject, " ")));
  }
}

TraceReport make_report(const Image& image, Task task, const TraceOptions& options) {
  TraceReport report;
  set_head(report, image, this_engine());
  report.notes.insert(report.notes.end(), task.notes.begin(), task.notes.end());
  for (std::string& note : environment_notes(task.environment)) report.notes.push_back(std::move(note));
  report.trace = trace(image, task.routine, task.value, task.environment, options);
  if (task.subject) {
    report.subject = decode(*task.subject, task.value, options.stop);
    report.notes.insert(report.notes.end(), task.subject->notes.begin(), task.subject->notes.end());
  }
  return report;
}

void write_outputs(const TraceReport& report, const std::optional<std::string>& json) {
  if (json) write_pieces("--json", *json, [&report](const TextSink& sink) { write_json(report, sink); });
  if (!json || *json != "-") write_standard_output(to_text(report));
}

int report_interruption() {
  complain("interrupted: the trace is not complete, nothing is written");
  return exit_differed;
}

ExitCode exit_code_of(TraceVerdict verdict) {
  return verdict == TraceVerdict::agree || verdict == TraceVerdict::executed ? exit_agreed : exit_differed;
}

TraceOptions parse_options(const Arguments& arguments) {
  TraceOptions options;
  if (arguments.limit) options.limit = parse_count("--limit", *arguments.limit, 0, most_steps);
  if (arguments.budget) {
    options.budget = parse_count("--budget", *arguments.budget, 1, std::numeric_limits<std::int64_t>::max());
  }
  return options;
}

void check_places(const Arguments& arguments, const Image& image) {
  if (!arguments.json) return;
  std::vector<std::string> inputs = {image.path()};
  if (arguments.from_difference) inputs.push_back(*arguments.from_difference);
  if (arguments.routine.decoder) {
    for (std::string& file : decoder_files(*arguments.routine.decoder)) inputs.push_back(std::move(file));
  }
  const auto& target = arguments.routine.target;
  if (target && (target->find('/') != std::string::npos || target->ends_with(".toml"))) inputs.push_back(*target);
  check_outputs({{"--json", *arguments.json}}, inputs);
}

int run_from_difference(const Arguments& arguments, const TraceOptions& options) {
  const std::string& path = *arguments.from_difference;
  const DifferenceSearch search = find_difference(path);
  if (!search.first) {
    complain(search.differed == 0
                 ? fmt::format("--from-difference {}: the report has no difference", path)
                 : fmt::format("--from-difference {}: the report lists none of its {} differences (verify --limit)",
                               path, search.differed));
    return exit_nothing_checked;
  }
  const Image image = load_image(arguments.image);
  if (image.sha256() != search.image_sha256) {
    throw Error(fmt::format("--from-difference {}: the report is about {} with SHA-256 {}, and {} has {}", path,
                            search.image_name, search.image_sha256, image.path(), image.sha256()));
  }
  check_places(arguments, image);
  TraceReport report = make_report(image, task_of(image, *search.first, arguments, options.stop), options);
  if (options.stop.stop_requested()) return report_interruption();
  compare_with_report(report, *search.first);
  write_outputs(report, arguments.json);
  return exit_code_of(report.verdict());
}

int run(const Arguments& arguments) {
  const InterruptWatch interrupts;
  TraceOptions options = parse_options(arguments);
  options.stop = interrupts.token();
  if (arguments.from_difference) return run_from_difference(arguments, options);
  const Image image = load_image(arguments.image);
  Task task = task_of(image, arguments, options.stop);
  check_places(arguments, image);
  const TraceReport report = make_report(image, std::move(task), options);
  if (options.stop.stop_requested()) return report_interruption();
  write_outputs(report, arguments.json);
  return exit_code_of(report.verdict());
}

}  // namespace

Command add_trace_command(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* parser =
      program.add_subcommand("trace", "Run a routine on one value and show every instruction that it executes");
  add_options(*parser, arguments->image);
  add_options(*parser, arguments->routine);
  parser->add_option("--values", arguments->values, "the value: hex:BYTES")->type_name("SOURCE");
  add_options(*parser, arguments->environment);
  CLI::Option* from = parser->add_option("--from-difference", arguments->from_difference,
                                         "take routine, environment and value from the first difference of a report");
  from->type_name("REPORT.json");
  for (const char* other :
       {"--at", "--target", "--routine", "--signature", "--values", "--fpcw", "--mxcsr", "--ignore-anchors"}) {
    from->excludes(parser->get_option(other));
  }
  parser->add_option("--limit", arguments->limit, "instructions to list (default: 10000)")->type_name("N");
  parser->add_option("--budget", arguments->budget, "instructions that it may execute (default: 1000000)")
      ->type_name("N");
  parser->add_option("--json", arguments->json, "write the trace as JSON; - is standard output")->type_name("FILE");
  return {parser, [arguments] { return run(*arguments); }};
}

}  // namespace bitwitness::cli
