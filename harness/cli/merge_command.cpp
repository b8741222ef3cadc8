#include "harness/cli/command.hpp"
#include "harness/cli/exit_code.hpp"
#include "harness/cli/interrupt.hpp"
#include "harness/cli/options.hpp"
#include "harness/cli/output.hpp"
#include "harness/error.hpp"
#include "harness/file_bytes.hpp"
#include "harness/merging.hpp"
#include "harness/report_reader.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

namespace bitwitness::cli {

namespace {

struct Arguments {
  std::vector<std::string> files;
  std::string out;
  std::optional<std::string> junit;
};

/// A report is a JSON object; anything else is for the reader of vector files to accept or refuse.
bool is_report(const std::string& path) {
  const FileBytes contents = FileBytes::open(path);
  const std::span<const std::byte> bytes = contents.bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  return start != std::string_view::npos && text[start] == '{';
}

/// One file that is no shard is what a run of one shard in one writes: it is the whole already.
bool is_whole(const Arguments& arguments, const std::string& shard) {
  return arguments.files.size() == 1 && shard.empty();
}

int merge_report_files(const Arguments& arguments) {
  std::vector<NamedReport> shards;
  for (const std::string& file : arguments.files) shards.push_back({file, read_report(file)});
  const std::vector<RunReport>& runs = shards.front().report.runs;
  const bool whole = std::ranges::all_of(runs, [&](const RunReport& run) { return is_whole(arguments, run.shard); });
  Report report = whole ? std::move(shards.front().report) : merge_reports(std::move(shards));
  report.image_path = report.image_name;
  write_pieces("--out", arguments.out, [&report](const TextSink& sink) { sink(to_json(report)); });
  if (arguments.junit) {
    write_pieces("--junit", *arguments.junit, [&report](const TextSink& sink) { sink(to_junit(report)); });
  }
  if (arguments.out != "-" && arguments.junit != "-") write_standard_output(to_text(report));
  return exit_code_of(report.verdict());
}

int merge_vector_files(const Arguments& arguments) {
  if (arguments.junit) throw Error("--junit: vector files have no verdict");
  std::vector<VectorFile> shards;
  std::uint64_t count = 0;
  for (const std::string& file : arguments.files) {
    shards.push_back(VectorFile::open(file));
    count += shards.back().header().count;
  }
  if (is_whole(arguments, shards.front().header().shard)) {
    const FileBytes contents = FileBytes::open(arguments.files.front());
    const std::span<const std::byte> bytes = contents.bytes();
    write_file("--out", arguments.out, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return count == 0 ? exit_nothing_checked : exit_agreed;
  }
  write_pieces("--out", arguments.out, [&shards](const TextSink& sink) {
    merge_vectors(shards, [&sink](std::span<const std::byte> bytes) {
      if (interrupt_came()) throw Error("--out: interrupted, nothing is written");
      sink({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    });
  });
  return count == 0 ? exit_nothing_checked : exit_agreed;
}

int run(const Arguments& arguments) {
  const InterruptWatch interrupts;
  std::vector<OutputFile> outputs = {{"--out", arguments.out}};
  if (arguments.junit) outputs.push_back({"--junit", *arguments.junit});
  check_outputs(outputs, arguments.files);
  const bool reports = is_report(arguments.files.front());
  const auto other =
      std::ranges::find_if(arguments.files, [&](const std::string& file) { return is_report(file) != reports; });
  if (other != arguments.files.end()) {
    throw Error(fmt::format("{}: is {}, {} is {}", *other, reports ? "no report" : "a report", arguments.files.front(),
                            reports ? "one" : "none"));
  }
  return reports ? merge_report_files(arguments) : merge_vector_files(arguments);
}

}  // namespace

Command add_merge_command(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* parser =
      program.add_subcommand("merge", "Make the whole from the reports or vector files of all shards (--shard I/N)");
  parser->add_option("files", arguments->files, "one file per shard, in any order: reports (JSON) or vector files")
      ->type_name("FILE")
      ->required();
  parser->add_option("--out", arguments->out, "where the merged report or vector file goes; - is standard output")
      ->type_name("FILE")
      ->required();
  parser->add_option("--junit", arguments->junit, "write the merged report as JUnit XML; - is standard output")
      ->type_name("FILE");
  parser->footer("Exit status: that of the run without shards; 2 for a shard that is lost, there twice or foreign.");
  return {parser, [arguments] { return run(*arguments); }};
}

}  // namespace bitwitness::cli
