#include "harness/cli/command.hpp"
#include "harness/cli/decoder_subject.hpp"
#include "harness/cli/engine.hpp"
#include "harness/cli/exit_code.hpp"
#include "harness/cli/interrupt.hpp"
#include "harness/cli/options.hpp"
#include "harness/cli/output.hpp"
#include "harness/cli/progress.hpp"
#include "harness/cli/run_values.hpp"
#include "harness/cli/selection.hpp"
#include "harness/error.hpp"
#include "harness/recording.hpp"
#include "harness/report_parts.hpp"

#include <filesystem>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace bitwitness::cli {

namespace {

namespace fs = std::filesystem;

/// Shortest text of a value: more of them than fit are refused before they run.
constexpr std::uint64_t most_text_values = max_vector_text / 40;

struct Arguments {
  ImageArguments image;
  RoutineArguments routine;
  ValueArguments values;
  EnvironmentArguments environment;
  RunArguments run;
  std::string out;
  bool digests_only = false;
  bool text = false;
  std::vector<std::string> notes;
};

/// A routine with its values and what its words are called.
struct Work {
  const SelectedRoutine& selected;
  DecoderShape shape;
  ValueSet values;
};

/// One recording and where it goes.
struct Task {
  const Work& work;
  Environment environment;
  std::string path;
};

DecoderShape shape_of(const SelectedRoutine& selected) {
  if (selected.decoder != nullptr) return cli::shape_of(*selected.decoder);
  if (!selected.subject) return bitwitness::shape_of(selected.routine.signature);
  const Subject& subject = *selected.subject;
  return {subject.packed_size, subject.word_names, subject.fields, subject.word_kind};
}

/// "packed_quat48-027f-1f80.bwv": what the recordings of one call in a folder are told apart by.
std::string name_in_folder(const Work& work, const Environment& environment, bool text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  std::string name = work.selected.routine.name;
  for (char& c : name) {
    if (plain.find(c) == std::string_view::npos) c = '_';
  }
  name += fmt::format("-{:04x}-{:04x}", environment.fpcw, environment.mxcsr);
  if (const Shard shard = work.values.shard(); shard.count > 1) {
    name += fmt::format("-{}of{}", shard.index, shard.count);
  }
  return name + (text ? ".toml" : ".bwv");
}

std::vector<Task> tasks_of(const std::vector<Work>& works, const Arguments& arguments) {
  const std::vector<Environment> environments = parse_environments(arguments.environment);
  std::error_code error;
  const bool is_folder = arguments.out.ends_with('/') || fs::is_directory(arguments.out, error);
  const std::size_t count = works.size() * environments.size();
  if (!is_folder && count > 1) {
    throw Error(fmt::format("--out {}: {} recordings go to a folder: give one, or a name that ends with /",
                            arguments.out, count));
  }
  error.clear();  // that nothing is there yet is none
  if (is_folder) fs::create_directories(arguments.out, error);
  if (error) throw Error(fmt::format("--out {}: cannot be made: {}", arguments.out, error.message()));
  std::vector<Task> tasks;
  for (const Work& work : works) {
    for (const Environment& environment : environments) {
      const std::string name = name_in_folder(work, environment, arguments.text);
      tasks.push_back({work, environment, is_folder ? (fs::path(arguments.out) / name).string() : arguments.out});
    }
  }
  return tasks;
}

/// What the header says before anything has run.
VectorHeader header_of(const Image& image, const Selection& selection, const Task& task, const Arguments& arguments) {
  VectorHeader header;
  header.tool_version = BITWITNESS_VERSION;
  header.engine = this_engine(arguments.run.witness);
  // The emulator's words do not depend on the processor, and what is recorded elsewhere is to be the same bytes.
  if (arguments.run.witness == "unicorn") header.engine.cpu.clear();
  const Work& work = task.work;
  // A decoder outside of this program is nobody else's default: its name would say what to execute.
  if (work.selected.decoder != nullptr) header.decoder = work.selected.decoder->name;
  header.word_names = work.shape.word_names;
  header.word_kind = work.shape.word_kind;
  header.fields = work.shape.fields;
  header.notes = arguments.notes;
  header.notes.insert(header.notes.end(), image.notes().begin(), image.notes().end());
  header.notes.insert(header.notes.end(), selection.notes.begin(), selection.notes.end());
  for (std::string& note : first_notes(work.selected, work.values, task.environment, arguments.run.witness)) {
    header.notes.push_back(std::move(note));
  }
  return header;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Says in a few lines what a recording is.
std::string summary_of(const Recording& recording, const std::string& path, std::uint64_t bytes,
                       const std::string& digest) {
  const VectorHeader& header = recording.header;
  std::string text = fmt::format("{} at {}: {}\n  witness {}, {}\n  {} values, {} bytes, {}\n",
                                 report_parts::printable(header.routine), report_parts::address_text(header.address),
                                 header.signature, header.witness, report_parts::environment_text(header.environment),
                                 header.count, bytes, report_parts::printable(path));
  const Counts& counts = recording.counts;
  if (const std::uint64_t failed = counts.without_result(); failed > 0) {
    text += fmt::format("  no result: {} (faulted {}, out of budget {}, unwritten {}, disputed {})\n", failed,
                        counts.faulted, counts.out_of_budget, counts.unwritten, counts.disputed);
  }
  if (const std::string alone = report_parts::isolation_text(recording.isolation); !alone.empty()) {
    text += "  alone: " + alone + '\n';
  }
  text += "  digest " + digest + '\n';
  const std::vector<Failure>& listed = header.recorded.failures;
  for (const Failure& failure : listed) {
    text += fmt::format("  no result for {}: {}\n", to_hex(failure.value),
                        report_parts::printable(report_parts::failure_text(failure)));
  }
  if (const std::uint64_t failed = counts.without_result(); failed > listed.size()) {
    text += fmt::format("  {} more values without a result are not listed\n", failed - listed.size());
  }
  for (const std::string& note : notes_of(header)) text += "  note: " + report_parts::printable(note) + '\n';
  return text;
}

class Recorder {
 public:
  Recorder(const Image& image, const Selection& selection, const Arguments& arguments, const RunOptions& options)
      : image_(image), selection_(selection), arguments_(arguments), options_(options) {}

  /// Runs a routine on its values.
  Recording run(const Task& task, const std::string& title) const {
    ProgressLine line(title);
    RunOptions options = options_;
    options.progress = [&line](const Progress& progress) { line.show(progress); };
    return record(header_of(image_, selection_, task, arguments_), image_, task.work.selected.routine, task.environment,
                  task.work.values, options);
  }

  /// Writes the file; returns what is to be said of it.
  [[nodiscard]] std::string write(const Recording& recording, const std::string& path) const {
    std::uint64_t bytes = 0;
    std::string digest;
    write_pieces("--out", path, [&](const TextSink& sink) {
      if (arguments_.text) {
        const std::string text = text_form(recording, digest, path);
        bytes = text.size();
        return sink(text);
      }
      digest = recording.write(
          [&](std::span<const std::byte> piece) {
            bytes += piece.size();
            sink(text_of(piece));
          },
          arguments_.digests_only ? VectorDetail::digests : VectorDetail::words);
    });
    return summary_of(recording, path, bytes, digest);
  }

 private:
  static std::string text_form(const Recording& recording, std::string& digest, const std::string& path) {
    std::string binary;
    digest = recording.write([&](std::span<const std::byte> piece) { binary += text_of(piece); }, VectorDetail::words);
    return to_toml(VectorFile::parse(std::as_bytes(std::span(binary)), path));
  }

  const Image& image_;
  const Selection& selection_;
  const Arguments& arguments_;
  RunOptions options_;
};

std::vector<Work> works_of(const Selection& selection, const Arguments& arguments, const RunOptions& options) {
  std::vector<Work> works;
  for (const SelectedRoutine& selected : selection.routines) {
    DecoderShape shape = shape_of(selected);
    ValueSet values =
        build_values(selected, shape.packed_size, shape.fields, arguments.values, options.jobs, options.stop);
    if (arguments.text && values.size() > most_text_values) {
      throw Error(
          fmt::format("--text: {} values of {} are too many for the text form", values.size(), selected.routine.name));
    }
    works.push_back({selected, std::move(shape), std::move(values)});
  }
  return works;
}

int run(const Arguments& arguments) {
  const RunSettings settings = parse_run(arguments.run);
  if (arguments.values.shard) static_cast<void>(parse_shard(*arguments.values.shard));
  const Image image = load_image(arguments.image);
  const InterruptWatch interrupts;
  RunOptions options;
  options.jobs = settings.jobs;
  options.limit = settings.limit;
  options.machine.budget = settings.budget;
  options.make_machine = settings.make_machine;
  options.stop = interrupts.token();
  const Selection selection = select_routines(image, arguments.routine, DecoderUse::optional, interrupts.token());
  const std::vector<Work> works = works_of(selection, arguments, options);
  const std::vector<Task> tasks = tasks_of(works, arguments);
  std::vector<OutputFile> outputs;
  for (const Task& task : tasks) outputs.push_back({"--out", task.path});
  check_outputs(outputs, files_read(image, arguments.image, arguments.routine, arguments.values));

  const Recorder recorder(image, selection, arguments, options);
  ExitCode status = exit_agreed;
  std::string said = image.is_stand_in() ? fmt::format("{}  {}\n", report_parts::printable(image.name()),
                                                       report_parts::stand_in_warning)
                                         : report_parts::printable(image.name()) + '\n';
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const Recording recording =
        recorder.run(tasks[i], fmt::format("{} {}/{}", tasks[i].work.selected.routine.name, i + 1, tasks.size()));
    if (!recording.is_whole) {
      complain(fmt::format("interrupted: {} of {} recordings were written", i, tasks.size()));
      status = exit_differed;
      break;
    }
    said += '\n' + recorder.write(recording, tasks[i].path);
    const Counts& counts = recording.counts;
    const bool is_good = counts.without_result() + recording.isolation.unstable == 0;
    if (!is_good) status = exit_differed;
    if (counts.run == 0 && status == exit_agreed) status = exit_nothing_checked;
  }
  if (arguments.out != "-") write_standard_output(said);
  return status;
}

}  // namespace

Command add_record_command(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* parser = program.add_subcommand(
      "record",
      "Run routines on every value and write the words to a file that decoders are checked against by replay");
  add_options(*parser, arguments->image);
  add_options(*parser, arguments->routine);
  add_options(*parser, arguments->values);
  add_options(*parser, arguments->environment);
  add_options(*parser, arguments->run);
  parser
      ->add_option("--out", arguments->out,
                   "vector file, or a folder for one file per routine and environment; - is standard output")
      ->required()
      ->type_name("FILE|FOLDER");
  const auto digests =
      parser->add_flag("--digests-only", arguments->digests_only, "keep a digest of every 32 values instead of words");
  parser->add_flag("--text", arguments->text, "write TOML, for few values")->excludes(digests);
  parser->add_option("--note", arguments->notes, "a note for the file")->type_name("TEXT")->allow_extra_args(false);
  return {parser, [arguments] { return run(*arguments); }};
}

}  // namespace bitwitness::cli
