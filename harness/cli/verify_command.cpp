#include "harness/cli/command.hpp"
#include "harness/cli/engine.hpp"
#include "harness/cli/exit_code.hpp"
#include "harness/cli/html_extras.hpp"
#include "harness/cli/interrupt.hpp"
#include "harness/cli/options.hpp"
#include "harness/cli/output.hpp"
#include "harness/cli/progress.hpp"
#include "harness/cli/report_head.hpp"
#include "harness/cli/report_output.hpp"
#include "harness/cli/resume.hpp"
#include "harness/cli/run_values.hpp"
#include "harness/cli/selection.hpp"
#include "harness/cli/surroundings.hpp"
#include "harness/error.hpp"
#include "harness/probe/instruction_audit.hpp"
#include "harness/verification.hpp"

#include <chrono>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bitwitness::cli {

namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  ImageArguments image;
  RoutineArguments routine;
  ValueArguments values;
  EnvironmentArguments environment;
  RunArguments run;
  OutputArguments output;
  std::optional<std::string> resume;
};

struct Timing {
  double values_seconds = 0;  ///< building the set of values; 0 when an earlier run built it
  double seconds = 0;         ///< the environment's share of what all of them took together
  std::uint64_t values = 0;   ///< that were run in this time
};

/// The arguments beyond routine, environment and value that repeating a value needs.
std::vector<std::string> repeat_options(const Arguments& arguments, const Image& image, const RunSettings& settings) {
  std::vector<std::string> options;
  if (arguments.image.base) options.insert(options.end(), {"--base", fmt::format("{:#x}", image.base())});
  for (std::string& option : surrounding_options(arguments.image)) options.push_back(std::move(option));
  if (arguments.run.budget) options.insert(options.end(), {"--budget", std::to_string(settings.budget)});
  if (settings.witness != "unicorn") options.insert(options.end(), {"--witness", settings.witness});
  return options;
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string timings_json(const Report& report, const std::vector<Timing>& timings, double total) {
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < timings.size(); ++i) {
    const RunReport& run = report.runs[i];
    runs.push_back({{"routine", run.routine},
                    {"fpcw", fmt::format("{:04x}", run.environment.fpcw)},
                    {"mxcsr", fmt::format("{:04x}", run.environment.mxcsr)},
                    {"values", timings[i].values},
                    {"values_seconds", timings[i].values_seconds},
                    {"seconds", timings[i].seconds}});
  }
  const nlohmann::ordered_json document = {
      {"schema", "bitwitness-timings/1"}, {"runs", std::move(runs)}, {"seconds", total}};
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

void show_timing(const RunReport& run, const Timing& timing) {
  if (!standard_error_is_terminal()) return;
  fmt::print(stderr, "{}: {} values in {:.2f} s, {:.0f} values/s\n", run.routine, timing.values, timing.seconds,
             timing.seconds > 0 ? static_cast<double>(timing.values) / timing.seconds : 0.0);
}

/// Runs every routine, in all environments at once. After an interruption the rest is reported as not run.
class Runner {
 public:
  Runner(const Image& image, const Arguments& arguments, const RunSettings& settings)
      : image_(image),
        arguments_(arguments),
        settings_(settings),
        environments_(parse_environments(arguments.environment)) {
    // Before an image is executed for hours of inference.
    if (arguments.values.shard) static_cast<void>(parse_shard(*arguments.values.shard));
    static_cast<void>(parse_memory(arguments.values.memory));
    options_.jobs = settings.jobs;
    options_.limit = settings.limit;
    options_.machine.budget = settings.budget;
    options_.make_machine = settings.make_machine;
    options_.stop = interrupts_.token();
  }

  /// With a resumption, goes on with what it has, and keeps there what is found.
  void run(Report& report, std::vector<Timing>& timings, const Selection& selection, Resumption* resumption) {
    // All sets first: a source that does not suit one routine is refused before another has run for an hour.
    std::vector<Work> works;
    for (const SelectedRoutine& selected : selection.routines) works.push_back(prepare(selected));
    if (resumption != nullptr) begin(*resumption, works);
    const std::size_t total = works.size() * environments_.size();
    for (std::size_t index = 0; index < works.size(); ++index) {
      const Work& work = works[index];
      options_.keeping = resumption == nullptr ? nullptr : &resumption->keeping(index);
      const std::uint64_t done_before = resumption == nullptr ? 0 : resumption->done_before(index);
      const auto start = Clock::now();
      const std::size_t first = report.runs.size();
      const std::string numbers = environments_.size() == 1
                                      ? std::to_string(first + 1)
                                      : fmt::format("{}-{}", first + 1, first + environments_.size());
      EnvironmentReports done = run_one(work, fmt::format("{} {}/{}", work.selected.routine.name, numbers, total));
      const double seconds = seconds_since(start);
      for (std::size_t i = 0; i < done.runs.size(); ++i) {
        report.runs.push_back(std::move(done.runs[i]));
        timings.push_back(
            {i == 0 ? work.values_seconds : 0, seconds * done.shares[i], report.runs.back().counts.run - done_before});
        show_timing(report.runs.back(), timings.back());
      }
      done.effects.first_run = first;
      if (environments_.size() > 1) report.environments.push_back(std::move(done.effects));
    }
  }

  [[nodiscard]] bool interrupted() const { return interrupts_.interrupted(); }
  [[nodiscard]] std::stop_token stop() const { return interrupts_.token(); }

 private:
  struct Work {
    const SelectedRoutine& selected;
    Subject subject;
    ValueSet values;
    double values_seconds = 0;
    std::vector<std::string> audit_notes;  // of a run that the emulator alone did
  };

  Work prepare(const SelectedRoutine& selected) {
    const auto start = Clock::now();
    Subject subject = *selected.subject;
    ValueSet values = build_values(selected, subject.packed_size, subject.fields, arguments_.values, options_.jobs,
                                   interrupts_.token());
    const double seconds = seconds_since(start);
    std::vector<std::string> notes;
    if (settings_.witness == "unicorn") notes = audit_notes(audit(image_, selected.routine.address));
    return {selected, std::move(subject), std::move(values), seconds, std::move(notes)};
  }

  void begin(Resumption& resumption, const std::vector<Work>& works) {
    std::vector<ResumedRoutine> routines;
    for (const Work& work : works) routines.push_back({work.selected.routine, work.subject, work.values});
    resumption.begin(fingerprint_of(image_, arguments_.image, settings_, environments_, routines), routines,
                     environments_.size(), settings_.limit);
  }

  EnvironmentReports run_one(const Work& work, const std::string& title) {
    ProgressLine line(title);
    VerifyOptions options = options_;
    options.progress = [&line](const Progress& progress) { line.show(progress); };
    EnvironmentReports done =
        verify_environments(image_, work.selected.routine, work.subject, environments_, work.values, options);
    for (RunReport& report : done.runs) {
      auto notes = first_notes(work.selected, work.values, report.environment, report.witness);
      notes.insert(notes.end(), work.audit_notes.begin(), work.audit_notes.end());
      report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
    }
    return done;
  }

  const Image& image_;
  const Arguments& arguments_;
  const RunSettings& settings_;
  std::vector<Environment> environments_;
  InterruptWatch interrupts_;
  VerifyOptions options_;
};

/// Opens the file of --resume, which is an output as the others are. Returns null when there is none.
std::unique_ptr<Resumption> open_resumption(const Arguments& arguments, const Image& image) {
  const std::vector<std::string> inputs = files_read(image, arguments.image, arguments.routine, arguments.values);
  std::vector<OutputFile> outputs = output_files(arguments.output);
  if (!arguments.resume) {
    check_outputs(outputs, inputs);
    return nullptr;
  }
  if (arguments.resume->empty() || *arguments.resume == "-") throw Error("--resume needs the name of a file");
  outputs.push_back({"--resume", *arguments.resume});
  check_outputs(outputs, inputs);
  return std::make_unique<Resumption>(*arguments.resume);
}

int run(const Arguments& arguments) {
  const auto start = Clock::now();
  const RunSettings settings = parse_run(arguments.run);
  const Image image = load_image(arguments.image);
  Runner runner(image, arguments, settings);
  const Selection selection = select_routines(image, arguments.routine, DecoderUse::required, runner.stop());
  const std::unique_ptr<Resumption> resumption = open_resumption(arguments, image);

  Report report;
  set_head(report, image, this_engine(settings.witness));
  report.image_path = image.path();
  report.repeat_options = repeat_options(arguments, image, settings);
  report.notes.insert(report.notes.end(), selection.notes.begin(), selection.notes.end());
  std::vector<Timing> timings;
  runner.run(report, timings, selection, resumption.get());
  const std::string timings_text = timings_json(report, timings, seconds_since(start));
  const HtmlExtras extras =
      arguments.output.html ? html_extras(image, selection, report, settings.budget, runner.stop()) : HtmlExtras();
  write_report(arguments.output, report, timings_text, extras);
  if (resumption != nullptr) resumption->end();

  const Verdict verdict = report.verdict();
  return runner.interrupted() && verdict != Verdict::agree ? exit_differed : exit_code_of(verdict);
}

}  // namespace

Command add_verify_command(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* parser =
      program.add_subcommand("verify", "Run routines and decoders on every value and compare their bits");
  add_options(*parser, arguments->image);
  add_options(*parser, arguments->routine);
  add_options(*parser, arguments->values);
  add_options(*parser, arguments->environment);
  add_options(*parser, arguments->run);
  add_options(*parser, arguments->output);
  parser
      ->add_option("--resume", arguments->resume,
                   "keep what is done in this file, about every 30 s and when interrupted, and go on with what it has; "
                   "the report is that of a run without interruption, and the file stays")
      ->type_name("FILE");
  return {parser, [arguments] { return run(*arguments); }};
}

}  // namespace bitwitness::cli
