#include "harness/cli/command.hpp"
#include "harness/cli/exit_code.hpp"
#include "harness/cli/interrupt.hpp"
#include "harness/cli/options.hpp"
#include "harness/cli/output.hpp"
#include "harness/comparison.hpp"
#include "harness/error.hpp"
#include "harness/report_reader.hpp"

#include <memory>

#include <fmt/format.h>

namespace bitwitness::cli {

namespace {

constexpr std::uint64_t most_shown = 1'000'000;

struct Arguments {
  std::string before;
  std::string after;
  std::optional<std::string> json;
  std::optional<std::string> markdown;
  std::optional<std::string> limit;
};

ExitCode exit_code_of(ComparisonVerdict verdict) {
  switch (verdict) {
    case ComparisonVerdict::same:
    case ComparisonVerdict::better:
      return exit_agreed;
    case ComparisonVerdict::worse:
      return exit_differed;
    case ComparisonVerdict::not_comparable:
      break;
  }
  return exit_refused;
}

int run(const Arguments& arguments) {
  const std::size_t limit = arguments.limit ? parse_count("--limit", *arguments.limit, 0, most_shown) : 20;
  const InterruptWatch interrupts;
  std::vector<OutputFile> outputs;
  if (arguments.json) outputs.push_back({"--json", *arguments.json});
  if (arguments.markdown) outputs.push_back({"--markdown", *arguments.markdown});
  check_outputs(outputs, {arguments.before, arguments.after});

  Comparison comparison =
      compare(read_report(arguments.before), arguments.before, read_report(arguments.after), arguments.after);
  comparison.tool_version = BITWITNESS_VERSION;
  const bool is_comparable = comparison.incomparable.empty();
  bool to_standard_output = false;
  for (const auto& [option, path] : outputs) {
    to_standard_output = to_standard_output || path == "-";
    const std::string text = option == "--json" ? to_json(comparison) : to_markdown(comparison, limit);
    write_pieces(option, path, [&text](const TextSink& sink) { sink(text); });
  }
  if (!to_standard_output && is_comparable) write_standard_output(to_text(comparison, limit));
  if (!is_comparable) {
    complain(fmt::format("{} and {} are not comparable: {}", arguments.before, arguments.after,
                         comparison.incomparable.front()));
  }
  return exit_code_of(comparison.verdict());
}

}  // namespace

Command add_compare_command(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* parser =
      program.add_subcommand("compare", "Say what a new report has that an old one has not: new, worse, fixed, gone");
  parser->add_option("before", arguments->before, "the old report (--json of verify, replay or merge)")
      ->type_name("A")
      ->required();
  parser->add_option("after", arguments->after, "the new report")->type_name("B")->required();
  parser->add_option("--json", arguments->json, "write the comparison as JSON; - is standard output")
      ->type_name("FILE");
  parser->add_option("--markdown", arguments->markdown, "write it for a pull request's comment; - is standard output")
      ->type_name("FILE");
  parser->add_option("--limit", arguments->limit, "values to show of each run (default: 20); JSON has all")
      ->type_name("N");
  parser->footer("Exit status: 0 the same or better; 1 worse; 2 not comparable, with the reason.");
  return {parser, [arguments] { return run(*arguments); }};
}

}  // namespace bitwitness::cli
