#include "decoders/registry.hpp"
#include "harness/cli/command.hpp"
#include "harness/cli/exit_code.hpp"
#include "harness/cli/output.hpp"
#include "harness/error.hpp"
#include "harness/target.hpp"

#include <memory>

#include <fmt/format.h>

namespace bitwitness::cli {

namespace {

struct Arguments {
  std::string what;
  std::optional<std::string> target;
};

std::vector<Target> chosen_targets(const Arguments& arguments) {
  if (arguments.target) return {load_target(*arguments.target)};
  std::vector<Target> targets;
  for (const std::string& name : known_targets()) targets.push_back(load_target(name));
  return targets;
}

std::string targets_text(const std::vector<Target>& targets) {
  std::string text;
  for (const Target& target : targets) {
    text += fmt::format("{}: {} routines, {} anchors\n  {}\n", target.name, target.routines.size(),
                        target.anchors.size(), target.description);
  }
  return text;
}

std::string routines_text(const std::vector<Target>& targets) {
  std::string text;
  for (const Target& target : targets) {
    for (const TargetRoutine& routine : target.routines) {
      const std::string signature = routine.signature ? to_string(*routine.signature) : "signature not known";
      text += fmt::format("{} {} at {}: {}, decoder {}\n", target.name, routine.name, routine.at, signature,
                          routine.decoder);
      if (!routine.note.empty()) text += fmt::format("  {}\n", routine.note);
    }
  }
  return text;
}

std::string_view kind_name(decoders::Word word) {
  switch (word) {
    case decoders::Word::i32:
      return "i32";
    case decoders::Word::u32:
      return "u32";
    case decoders::Word::f32:
      break;
  }
  return "f32";
}

std::string decoders_text() {
  std::string text;
  for (const decoders::Decoder& decoder : decoders::registry()) {
    text += fmt::format("{}: {} bytes to {} {} words\n  words ", decoder.name, decoder.packed_size,
                        decoder.word_names.size(), kind_name(decoder.word));
    for (const std::string_view name : decoder.word_names) text += fmt::format(" {}", name);
    text += "\n  fields";
    for (const decoders::Field& field : decoder.fields) {
      text += field.width == 1 ? fmt::format(" {}[{}]", field.name, field.offset)
                               : fmt::format(" {}[{}:{}]", field.name, field.offset + field.width - 1, field.offset);
    }
    text += fmt::format("\n  {}\n", decoder.summary);
  }
  return text;
}

int run(const Arguments& arguments) {
  const bool all = arguments.what.empty();
  std::string text;
  if (all || arguments.what == "targets") text += (all ? "targets\n" : "") + targets_text(chosen_targets(arguments));
  if (all || arguments.what == "routines")
    text += (all ? "\nroutines\n" : "") + routines_text(chosen_targets(arguments));
  if (all || arguments.what == "decoders") text += (all ? "\ndecoders\n" : "") + decoders_text();
  if (text.empty()) {
    throw Error(fmt::format("list {}: there are lists of targets, routines and decoders", arguments.what));
  }
  write_standard_output(text);
  return exit_agreed;
}

}  // namespace

Command add_list_command(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* parser = program.add_subcommand("list", "List targets, routines and decoders");
  parser->add_option("what", arguments->what, "targets, routines or decoders (default: all three)")->type_name("WHAT");
  parser->add_option("--target", arguments->target, "only this target")->type_name("NAME|FILE");
  return {parser, [arguments] { return run(*arguments); }};
}

}  // namespace bitwitness::cli
