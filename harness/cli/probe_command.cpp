#include "decoders/registry.hpp"
#include "harness/cli/command.hpp"
#include "harness/cli/exit_code.hpp"
#include "harness/cli/options.hpp"
#include "harness/cli/output.hpp"
#include "harness/cli/selection.hpp"
#include "harness/error.hpp"
#include "harness/probe/inference.hpp"
#include "harness/report_objects.hpp"
#include "harness/report_parts.hpp"
#include "harness/target.hpp"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace bitwitness::cli {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* default_target = "sws";

struct Arguments {
  ImageArguments image;
  std::optional<std::string> at;
  std::optional<std::string> target;
  std::vector<std::string> routines;
  EnvironmentArguments environment;
  std::optional<std::string> json;
};

/// A routine that is probed and what was found.
struct Probed {
  std::string name;
  std::string at;  ///< location text
  std::uint64_t address = 0;
  std::string decoder;  ///< that the target names
  Inference inference;
};

Environment only_environment(const EnvironmentArguments& arguments) {
  const std::vector<Environment> environments = parse_environments(arguments);
  if (environments.size() == 1) return environments.front();
  throw Error("--fpcw, --mxcsr: a probe runs in one environment, so each may be given once");
}

std::vector<Probed> probed_at(const Image& image, const std::string& at) {
  Probed probed;
  probed.at = at;
  probed.address = image.resolve(at);
  const bool is_named = at.starts_with("export:") || at.starts_with("symbol:");
  probed.name = is_named ? at.substr(at.find(':') + 1) : report_parts::address_text(probed.address);
  image.require_code(probed.address, "--at " + at);
  return {probed};
}

std::vector<Probed> probed_in_target(const Image& image, const Arguments& arguments) {
  const Target target = load_target(arguments.target.value_or(default_target));
  for (const std::string& name : arguments.routines) {
    if (std::ranges::find(target.routines, name, &TargetRoutine::name) == target.routines.end()) {
      throw Error(fmt::format("--routine {}: target {} has no such routine", name, target.name));
    }
  }
  std::vector<Probed> all;
  for (const TargetRoutine& routine : target.routines) {
    const bool is_chosen =
        arguments.routines.empty() || std::ranges::find(arguments.routines, routine.name) != arguments.routines.end();
    if (!is_chosen) continue;
    Probed probed;
    probed.name = routine.name;
    probed.at = routine.at;
    probed.decoder = routine.decoder;
    probed.address = image.resolve(routine.at);
    image.require_code(probed.address,
                       fmt::format("routine {} of target {} at {}", routine.name, target.name, routine.at));
    all.push_back(std::move(probed));
  }
  if (all.empty()) throw Error(fmt::format("--target {}: it names no routine", target.name));
  return all;
}

/// "0-14 31 47": runs of set bits; "none".
std::string runs_text(const std::vector<bool>& bits) {
  std::string text;
  for (std::size_t first = 0; first < bits.size(); ++first) {
    if (!bits[first]) continue;
    std::size_t last = first;
    while (last + 1 < bits.size() && bits[last + 1]) ++last;
    if (!text.empty()) text += ' ';
    text += first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
    first = last;
  }
  return text.empty() ? "none" : text;
}

/// One line for each run of output words that depend on the same bits.
std::string dependencies_text(const std::vector<std::vector<bool>>& words) {
  std::string text;
  for (std::size_t first = 0; first < words.size(); ++first) {
    std::size_t last = first;
    while (last + 1 < words.size() && words[last + 1] == words[first]) ++last;
    const std::string which =
        first == last ? fmt::format("word {}", first) : fmt::format("words {} to {}", first, last);
    text += fmt::format("  {} depend{} on bits {}\n", which, first == last ? "s" : "", runs_text(words[first]));
    first = last;
  }
  return text;
}

/// Decoders of the signature's sizes.
std::vector<std::string_view> fitting_decoders(const Signature& signature) {
  std::vector<std::string_view> names;
  for (const decoders::Decoder& decoder : decoders::registry()) {
    if (decoder.packed_size == signature.packed_size() && decoder.word_names.size() == signature.word_count()) {
      names.push_back(decoder.name);
    }
  }
  return names;
}

/// Quotes a word for a POSIX shell.
std::string shell_quoted(std::string_view word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + '\'';
}

std::string next_command(const Image& image, const Probed& probed) {
  const Signature& signature = probed.inference.candidates.front().signature;
  std::vector<std::string_view> decoders = fitting_decoders(signature);
  const auto named = std::ranges::find(decoders, probed.decoder);
  const bool named_by_target = named != decoders.end();
  if (named_by_target) decoders = {*named};
  std::string text = fmt::format("  next: bitwitness verify --image {} --at {} --signature {} --decoder {}\n",
                                 shell_quoted(report_parts::printable(image.path())), shell_quoted(probed.at),
                                 shell_quoted(to_string(signature)), named_by_target ? decoders.front() : "NAME");
  if (!named_by_target && !decoders.empty())
    text += fmt::format("  decoders of these sizes: {}\n", fmt::join(decoders, ", "));
  if (decoders.empty()) {
    text += fmt::format("  no decoder takes {} bytes and gives {} words\n", signature.packed_size(),
                        signature.word_count());
  }
  return text;
}

std::string text_of(const Image& image, const Probed& probed) {
  const Inference& inference = probed.inference;
  std::string text = fmt::format("{} at {:#x}\n", probed.name, probed.address);
  if (inference.candidates.empty()) text += "  no signature\n";
  for (const Candidate& candidate : inference.candidates) {
    text += fmt::format("  {}: {}\n", to_string(candidate.confidence), to_string(candidate.signature));
    for (const std::string& clause : candidate.support)
      text += fmt::format("    {}\n", report_parts::printable(clause));
  }
  for (const std::string& sentence : inference.seen)
    text += fmt::format("  seen: {}\n", report_parts::printable(sentence));
  if (inference.candidates.empty()) return text;
  return text + dependencies_text(inference.dependencies) + next_command(image, probed);
}

Json json_of(const Probed& probed) {
  Json candidates = Json::array();
  for (const Candidate& candidate : probed.inference.candidates) {
    candidates.push_back({{"signature", to_string(candidate.signature)},
                          {"confidence", to_string(candidate.confidence)},
                          {"support", candidate.support}});
  }
  Json dependencies = Json::array();
  for (const std::vector<bool>& word : probed.inference.dependencies) dependencies.push_back(runs_text(word));
  return {{"name", probed.name},
          {"address", report_parts::address_text(probed.address)},
          {"candidates", std::move(candidates)},
          {"seen", probed.inference.seen},
          {"dependencies", std::move(dependencies)},
          {"calls", probed.inference.calls}};
}

std::string json_text(const Image& image, const Environment& environment, const std::vector<Probed>& all) {
  Json routines = Json::array();
  for (const Probed& probed : all) routines.push_back(json_of(probed));
  const Json document = {
      {"schema", "bitwitness-probe/1"},
      {"tool", {{"version", BITWITNESS_VERSION}}},
      {"image", report_objects::image_json(image.name(), image.sha256(), image.format(), image.is_stand_in())},
      {"environment", report_objects::environment_json(environment)},
      {"routines", std::move(routines)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

ExitCode exit_code_of(const std::vector<Probed>& all) {
  const auto is_certain = [](const Probed& probed) { return probed.inference.certain() != nullptr; };
  const auto is_empty = [](const Probed& probed) { return probed.inference.candidates.empty(); };
  if (std::ranges::all_of(all, is_certain)) return exit_agreed;
  return std::ranges::all_of(all, is_empty) ? exit_nothing_checked : exit_differed;
}

int run(const Arguments& arguments) {
  const Environment environment = only_environment(arguments.environment);
  const Image image = load_image(arguments.image);
  if (arguments.json) check_outputs({{"--json", *arguments.json}}, {image.path()});
  std::vector<Probed> all = arguments.at ? probed_at(image, *arguments.at) : probed_in_target(image, arguments);
  InferenceOptions options;
  options.environment = environment;
  for (Probed& probed : all) probed.inference = infer(image, probed.address, options);
  if (arguments.json) {
    const std::string text = json_text(image, environment, all);
    *arguments.json == "-" ? write_standard_output(text) : write_file("--json", *arguments.json, text);
  }
  if (!arguments.json || *arguments.json != "-") {
    std::string text = fmt::format("{}  sha256 {}\n", report_parts::printable(image.name()), image.sha256());
    if (image.is_stand_in()) text += fmt::format("{}\n", report_parts::stand_in_warning);
    for (const Probed& probed : all) text += '\n' + text_of(image, probed);
    write_standard_output(text);
  }
  return exit_code_of(all);
}

}  // namespace

Command add_probe_command(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* parser = program.add_subcommand("probe", "Execute routines to find out what they take and give");
  add_options(*parser, arguments->image);
  CLI::Option* at =
      parser->add_option("--at", arguments->at, "0x…, rva:0x…, export:NAME or symbol:NAME")->type_name("LOCATION");
  parser->add_option("--target", arguments->target, "what is known of the executable (default: sws)")
      ->type_name("NAME|FILE")
      ->excludes(at);
  parser->add_option("--routine", arguments->routines, "only these routines of the target")
      ->type_name("NAME")
      ->excludes(at);
  add_options(*parser, arguments->environment);
  parser->add_option("--json", arguments->json, "write the result as JSON; - is standard output")->type_name("FILE");
  return {parser, [arguments] { return run(*arguments); }};
}

}  // namespace bitwitness::cli
