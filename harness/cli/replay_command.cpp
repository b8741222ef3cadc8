#include "harness/cli/command.hpp"
#include "harness/cli/decoder_subject.hpp"
#include "harness/cli/exit_code.hpp"
#include "harness/cli/interrupt.hpp"
#include "harness/cli/options.hpp"
#include "harness/cli/output.hpp"
#include "harness/cli/progress.hpp"
#include "harness/cli/report_output.hpp"
#include "harness/error.hpp"
#include "harness/file_bytes.hpp"
#include "harness/known_differences.hpp"
#include "harness/replaying.hpp"
#include "harness/sha256.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bitwitness::cli {

namespace {

struct Arguments {
  std::vector<std::string> files;
  std::vector<std::string> decoders;
  std::optional<std::string> decoder_timeout;
  std::vector<std::string> values;
  std::vector<std::string> known;
  std::optional<std::string> jobs;
  std::optional<std::string> limit;
  OutputArguments output;
};

constexpr std::uint64_t most_listed = 1'000'000;

/// An open vector file.
struct Input {
  explicit Input(const std::string& path)
      : bytes(FileBytes::open(path)), file(VectorFile::parse(bytes.bytes(), path)) {}

  FileBytes bytes;
  VectorFile file;
};

bool is_text(const Input& input) {
  constexpr auto first_of_binary = std::byte{0x89};
  return input.bytes.bytes().front() != first_of_binary;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<Input> open_inputs(const std::vector<std::string>& paths) {
  std::vector<Input> inputs;
  inputs.reserve(paths.size());
  for (const std::string& path : paths) inputs.emplace_back(path);
  return inputs;
}

KnownDifferences read_known(const Arguments& arguments, const std::vector<Input>& inputs) {
  std::vector<KnownDifference> all;
  const auto add = [&all](std::vector<KnownDifference> more) {
    std::move(more.begin(), more.end(), std::back_inserter(all));
  };
  for (const std::string& path : arguments.known) {
    const FileBytes bytes = FileBytes::open(path);
    add(parse_known_differences(text_of(bytes.bytes()), path, true));
  }
  for (const Input& input : inputs) {
    if (!is_text(input)) continue;
    std::vector<KnownDifference> own = parse_known_differences(text_of(input.bytes.bytes()), input.file.name(), false);
    for (KnownDifference& known : own) {
      if (known.file.empty()) known.file = file_name_of(input.file.name());
    }
    add(std::move(own));
  }
  return KnownDifferences(std::move(all));
}

std::vector<std::vector<std::byte>> parse_values(const std::vector<std::string>& sources) {
  constexpr std::string_view kind = "hex:";
  std::vector<std::vector<std::byte>> values;
  for (const std::string& source : sources) {
    if (!source.starts_with(kind))
      throw Error(fmt::format("--values {}: a replay takes single values, as hex:BYTES", source));
    try {
      values.push_back(parse_hex(std::string_view(source).substr(kind.size())));
    } catch (const Error& error) {
      throw Error(fmt::format("--values {}: {}", source, error.what()));
    }
  }
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

bool same_engine(const Engine& a, const Engine& b) {
  return a.unicorn == b.unicorn && a.capstone == b.capstone && a.lief == b.lief && a.cpu == b.cpu &&
         a.self_test == b.self_test;
}

RunImage image_of(const VectorHeader& header) {
  return {header.image_name, header.image_sha256, header.image_format, header.stand_in};
}

bool same_image(const VectorHeader& a, const VectorHeader& b) {
  return a.image_name == b.image_name && a.image_sha256 == b.image_sha256 && a.stand_in == b.stand_in &&
         a.image_format == b.image_format;
}

/// A report about the images that the files were recorded from. What they do not have in common is left to the runs.
Report report_about(const std::vector<Input>& inputs) {
  Report report;
  report.tool_version = BITWITNESS_VERSION;
  const VectorHeader& first = inputs.front().file.header();
  const auto all = [&](auto same) {
    return std::ranges::all_of(inputs, [&](const Input& input) { return same(input.file.header()); });
  };
  if (all([&](const VectorHeader& header) { return same_engine(header.engine, first.engine); })) {
    report.engine = first.engine;
  }
  report.stand_in = first.stand_in;
  if (all([&](const VectorHeader& header) { return same_image(header, first); })) {
    report.image_name = first.image_name;
    report.image_sha256 = first.image_sha256;
    report.image_format = first.image_format;
    return report;
  }
  report.image_name = fmt::format("images of {} vector files", inputs.size());
  for (const Input& input : inputs) report.stand_in = report.stand_in || input.file.header().stand_in;
  return report;
}

/// Replays every file with every decoder, in that order.
class Replayer {
 public:
  Replayer(const Arguments& arguments, const std::vector<Input>& inputs, const InterruptWatch& interrupts)
      : arguments_(arguments), inputs_(inputs), known_(read_known(arguments, inputs)), interrupts_(interrupts) {
    options_.jobs = parse_jobs(arguments.jobs);
    if (arguments.limit) options_.limit = parse_count("--limit", *arguments.limit, 0, most_listed);
    options_.only = parse_values(arguments.values);
    options_.stop = interrupts_.token();
  }

  Report run() {
    Report report = report_about(inputs_);
    const bool same = std::ranges::all_of(
        inputs_, [&](const Input& input) { return same_image(input.file.header(), inputs_.front().file.header()); });
    // Each file meets its decoders before one is replayed: a decoder that does not fit is refused at once.
    std::vector<std::pair<const Input*, Subject>> runs;
    for (const Input& input : inputs_) {
      for (const std::string& decoder : decoders_of(input)) runs.emplace_back(&input, subject_of_run(input, decoder));
    }
    for (const auto& [input, subject] : runs) {
      report.runs.push_back(run_one(
          *input, subject, fmt::format("{} {}/{}", input->file.header().routine, report.runs.size() + 1, runs.size())));
      if (!same) report.runs.back().image = image_of(input->file.header());
    }
    if (!interrupted() && options_.only.empty()) report.notes = known_.finish(report.runs);
    return report;
  }

  [[nodiscard]] bool interrupted() const { return interrupts_.interrupted(); }

 private:
  [[nodiscard]] std::vector<std::string> decoders_of(const Input& input) const {
    if (!arguments_.decoders.empty()) return arguments_.decoders;
    const std::string& decoder = input.file.header().decoder;
    if (decoder.empty()) {
      throw Error(fmt::format("{}: it was recorded for no decoder: give --decoder", input.file.name()));
    }
    try {
      return {std::string(require_decoder(decoder).name)};
    } catch (const Error& error) {
      throw Error(
          fmt::format("{}: it was recorded for another decoder: {}; give --decoder", input.file.name(), error.what()));
    }
  }

  [[nodiscard]] ExternalDecoderOptions decoder_options() const {
    ExternalDecoderOptions options;
    options.timeout = parse_decoder_timeout(arguments_.decoder_timeout);
    options.stop = interrupts_.token();
    return options;
  }

  [[nodiscard]] Subject subject_of_run(const Input& input, const std::string& decoder) {
    const VectorHeader& header = input.file.header();
    Subject subject = names_external_decoder(decoder)
                          ? external_.subject(decoder, {header.packed_size, header.word_names, header.fields,
                                                        header.word_kind, file_name_of(input.file.name())})
                          : subject_of(require_decoder(decoder));
    if (subject.packed_size != header.packed_size || subject.word_names.size() != header.word_count) {
      throw Error(fmt::format("--decoder {}: it takes {} bytes and gives {} words, the values of {} have {} and {}",
                              decoder, subject.packed_size, subject.word_names.size(), input.file.name(),
                              header.packed_size, header.word_count));
    }
    return subject;
  }

  RunReport run_one(const Input& input, const Subject& subject, const std::string& title) {
    const VectorHeader& header = input.file.header();
    ProgressLine line(title);
    ReplayOptions options = options_;
    options.progress = [&line](const Progress& progress) { line.show(progress); };
    const auto indices = known_.concerning(subject.name, file_name_of(input.file.name()), header.packed_size);
    for (const std::size_t index : indices) options.known.push_back(known_[index].value);
    // Beside the replay, which would wait for it otherwise.
    std::future<std::string> sha256 =
        std::async(std::launch::async, [&input] { return sha256_hex(input.bytes.bytes()); });
    Replay result = replay(input.file, subject, options);
    RunReport& report = result.report;
    report.vector_sha256 = sha256.get();
    if (header.image_sha256.empty()) {
      report.notes.insert(report.notes.begin(), "no executable bears witness here: the words were written by hand");
    }
    report.notes.insert(report.notes.begin(),
                        fmt::format("replayed from {} (sha256 {}), recorded by bitwitness {}",
                                    file_name_of(input.file.name()), report.vector_sha256, header.tool_version));
    if (report.counts.not_run == 0) known_.add(report, indices, result.known);
    return std::move(report);
  }

  const Arguments& arguments_;
  const std::vector<Input>& inputs_;
  KnownDifferences known_;
  const InterruptWatch& interrupts_;
  ExternalDecoders external_{decoder_options()};
  ReplayOptions options_;
};

/// A file that is given twice would count twice.
void require_distinct(const std::vector<std::string>& files) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (same_file(files[i], files[j])) throw Error(fmt::format("{}: is given twice", files[i]));
    }
  }
}

std::string timings_json(const Report& report, double seconds) {
  std::uint64_t values = 0;
  for (const RunReport& run : report.runs) values += run.counts.run;
  const nlohmann::ordered_json document = {
      {"schema", "bitwitness-timings/1"}, {"values", values}, {"seconds", seconds}};
  return document.dump(2) + '\n';
}

int run(const Arguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::string> read = arguments.files;
  read.insert(read.end(), arguments.known.begin(), arguments.known.end());
  for (const std::string& decoder : arguments.decoders) {
    for (std::string& file : decoder_files(decoder)) read.push_back(std::move(file));
  }
  require_distinct(arguments.files);
  const InterruptWatch interrupts;
  const std::vector<Input> inputs = open_inputs(arguments.files);
  Replayer replayer(arguments, inputs, interrupts);
  check_outputs(arguments.output, read);
  const Report report = replayer.run();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  HtmlExtras extras;
  extras.absence = "A replay has no executable: there is neither disassembly nor trace.";
  write_report(arguments.output, report, timings_json(report, seconds), extras);
  const Verdict verdict = report.verdict();
  return replayer.interrupted() && verdict != Verdict::agree ? exit_differed : exit_code_of(verdict);
}

}  // namespace

Command add_replay_command(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* parser = program.add_subcommand("replay", "Check decoders against vector files, without an executable");
  parser->add_option("files", arguments->files, "vector files that record wrote, or text ones")
      ->required()
      ->type_name("FILE");
  parser
      ->add_option(
          "--decoder", arguments->decoders,
          "registered decoder (default: what a file was recorded for), C function of a shared library, or exec: and "
          "a command")
      ->type_name("NAME|LIBRARY.so:SYMBOL|exec:COMMAND")
      ->allow_extra_args(false);
  parser
      ->add_option("--decoder-timeout", arguments->decoder_timeout,
                   "seconds without progress after which a library or a command is ended (default: 10)")
      ->type_name("N");
  parser->add_option("--values", arguments->values, "check these values only")
      ->type_name("hex:BYTES")
      ->allow_extra_args(false);
  parser->add_option("--known", arguments->known, "known differences with their reasons, as TOML")
      ->type_name("FILE")
      ->allow_extra_args(false);
  parser->add_option("--jobs", arguments->jobs, "threads (default: one per processor)")->type_name("N");
  parser->add_option("--limit", arguments->limit, "differences and failures to list (default: 20)")->type_name("N");
  add_options(*parser, arguments->output);
  return {parser, [arguments] { return run(*arguments); }};
}

}  // namespace bitwitness::cli
