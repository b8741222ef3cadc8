#include "harness/cli/command.hpp"
#include "harness/cli/decoder_subject.hpp"
#include "harness/cli/exit_code.hpp"
#include "harness/cli/interrupt.hpp"
#include "harness/cli/location_report.hpp"
#include "harness/cli/options.hpp"
#include "harness/cli/output.hpp"
#include "harness/cli/selection.hpp"
#include "harness/error.hpp"
#include "harness/probe/location.hpp"
#include "harness/target.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace bitwitness::cli {

namespace {

constexpr const char* default_target = "sws";
constexpr std::uint64_t most_listed = 10'000;

struct Arguments {
  ImageArguments image;
  std::string target = default_target;
  std::vector<std::string> routines;
  std::optional<std::string> like;
  std::optional<std::string> at;
  std::optional<std::string> limit;
  std::optional<std::string> json;
  std::optional<std::string> out;
};

/// Constants that code of smallest-three quaternions has beside its scale: 1/sqrt(2) as f32, the f32 above it that the
/// usual literal rounds to, and the former widened to a double. Each is common in other code too.
constexpr std::array<KnownConstant, 3> common_constants{{
    {ConstantKind::f32, 0x3f3504f3, false},
    {ConstantKind::f32, 0x3f3504f4, false},
    {ConstantKind::f64, 0x3fe6a09e60000000, false},
}};

/// Narrowest field whose mask is no everyday number.
constexpr unsigned narrowest_mask = 10;

void add_constant(std::vector<KnownConstant>& constants, const KnownConstant& constant) {
  const auto same = [&](const KnownConstant& known) {
    return known.kind == constant.kind && known.bits == constant.bits;
  };
  if (std::ranges::none_of(constants, same)) constants.push_back(constant);
}

/// Masks and shifts that take a decoder's fields out of 16-bit words: 0x7fff for a field of 15 bits; 0x8000 and a shift
/// by 15 for the bit above it.
void add_field_constants(std::vector<KnownConstant>& constants, const Subject& subject) {
  for (const BitField& field : subject.fields) {
    if (field.width >= narrowest_mask && field.width < 32 && field.width % 8 != 0) {
      add_constant(constants, {ConstantKind::mask, (std::uint64_t{1} << field.width) - 1, false});
    }
    const unsigned bit = field.offset % 16;
    if (field.width == 1 && bit >= narrowest_mask) {
      add_constant(constants, {ConstantKind::mask, std::uint64_t{1} << bit, false});
      add_constant(constants, {ConstantKind::shift, bit, false});
    }
  }
}

std::vector<KnownConstant> constants_of(const Target& target, const std::vector<WantedRoutine>& wanted) {
  std::vector<KnownConstant> constants;
  for (const Anchor& anchor : target.anchors) {
    for (const std::string& digits : anchor.bits) {
      std::uint64_t bits = 0;
      std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
      add_constant(constants, {digits.size() == 16 ? ConstantKind::f64 : ConstantKind::f32, bits, true});
    }
  }
  for (const WantedRoutine& routine : wanted) add_field_constants(constants, routine.subject);
  for (const KnownConstant& constant : common_constants) add_constant(constants, constant);
  return constants;
}

Target chosen_target(const Arguments& arguments) {
  Target target = load_target(arguments.target);
  const auto is_chosen = [&](const TargetRoutine& routine) {
    const auto& names = arguments.routines;
    return names.empty() || std::ranges::find(names, routine.name) != names.end();
  };
  for (const std::string& name : arguments.routines) {
    if (std::ranges::find(target.routines, name, &TargetRoutine::name) != target.routines.end()) continue;
    std::vector<std::string> known;
    for (const TargetRoutine& routine : target.routines) known.push_back(routine.name);
    throw Error(fmt::format("--routine {}: target {} has no such routine; it has: {}", name, target.name,
                            fmt::join(known, ", ")));
  }
  std::erase_if(target.routines, [&](const TargetRoutine& routine) { return !is_chosen(routine); });
  if (target.routines.empty()) throw Error(fmt::format("--target {}: it names no routine", target.name));
  return target;
}

std::vector<WantedRoutine> wanted_routines(const Target& target, const Arguments& arguments, const Image* like) {
  if (arguments.at && target.routines.size() != 1) {
    throw Error(fmt::format("--at {}: needs one --routine, {} are selected", *arguments.at, target.routines.size()));
  }
  std::vector<WantedRoutine> wanted;
  for (const TargetRoutine& routine : target.routines) {
    WantedRoutine each;
    each.name = routine.name;
    each.subject = subject_of(require_decoder(routine.decoder));
    if (like != nullptr) {
      const std::uint64_t address = like->resolve(arguments.at.value_or(routine.at));
      like->require_code(address, fmt::format("--like for routine {}", routine.name));
      each.like = LikeRoutine{like, address};
    }
    if (routine.signature) {
      each.signatures.emplace_back(
          [signature = *routine.signature](const Image&, std::uint64_t) { return std::vector<Signature>{signature}; });
    }
    each.signatures.push_back(usual_signatures(each.subject));
    each.signatures.push_back(register_signatures(each.subject));
    wanted.push_back(std::move(each));
  }
  return wanted;
}

ExitCode exit_code_of(const Location& location) {
  const auto is = [&](auto... standings) {
    return [=](const RoutineLocation& routine) { return ((routine.standing == standings) || ...); };
  };
  if (location.interrupted) return exit_differed;
  if (std::ranges::all_of(location.routines, is(Standing::clear))) return exit_agreed;
  const bool is_nothing = std::ranges::all_of(location.routines, is(Standing::nothing, Standing::unconfirmed));
  return is_nothing ? exit_nothing_checked : exit_differed;
}

void check_places(const Arguments& arguments) {
  std::vector<OutputFile> outputs;
  if (arguments.json) outputs.push_back({"--json", *arguments.json});
  if (arguments.out) outputs.push_back({"--out", *arguments.out});
  std::vector<std::string> inputs;
  if (arguments.image.image) inputs.push_back(*arguments.image.image);
  if (arguments.like) inputs.push_back(*arguments.like);
  inputs.push_back(arguments.target);
  check_outputs(outputs, inputs);
}

int run(const Arguments& arguments) {
  if (arguments.at && !arguments.like) {
    throw Error(fmt::format("--at {}: says where in --like, which is missing", *arguments.at));
  }
  const std::size_t limit = arguments.limit ? parse_count("--limit", *arguments.limit, 1, most_listed) : 5;
  const Target target = chosen_target(arguments);
  const Image image = load_image(arguments.image);
  std::optional<Image> like;
  if (arguments.like) like.emplace(Image::load(*arguments.like));
  const std::vector<WantedRoutine> wanted = wanted_routines(target, arguments, like ? &*like : nullptr);
  check_places(arguments);

  const InterruptWatch interrupts;
  LocateOptions options;
  options.stop = interrupts.token();
  const std::vector<KnownConstant> constants = constants_of(target, wanted);
  const Location location = locate(image, wanted, constants, options);
  const LocationReport report{image, target, constants, location, locate_calls(image, target, location), limit};
  const std::string located = arguments.out ? located_target(report, arguments.image.base.has_value()) : "";

  const auto write = [](std::string_view option, const std::string& path, const std::string& text) {
    path == "-" ? write_standard_output(text) : write_file(option, path, text);
  };
  if (arguments.json != "-" && arguments.out != "-") write_standard_output(location_text(report));
  if (arguments.json) write("--json", *arguments.json, location_json(report));
  if (arguments.out && !located.empty()) write("--out", *arguments.out, located);
  if (arguments.out && located.empty()) {
    complain(fmt::format("--out {}: nothing is clear, nothing is written", *arguments.out));
  }
  return exit_code_of(location);
}

}  // namespace

Command add_locate_command(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* parser = program.add_subcommand(
      "locate", "Find a target's routines in another build: by constants, instructions and what they do when run");
  add_options(*parser, arguments->image);
  parser->add_option("--target", arguments->target, "what is known of the executable (default: sws)")
      ->type_name("NAME|FILE");
  parser->add_option("--routine", arguments->routines, "routines of the target (default: all)")->type_name("NAME");
  parser->add_option("--like", arguments->like, "also search for the instructions of the routines in this executable")
      ->type_name("FILE");
  parser->add_option("--at", arguments->at, "where in --like the one routine lies, when not where the target says")
      ->type_name("LOCATION");
  parser->add_option("--limit", arguments->limit, "candidates and calls to list for each routine (default: 5)")
      ->type_name("N");
  parser->add_option("--json", arguments->json, "write what was found as JSON; - is standard output")
      ->type_name("FILE");
  parser->add_option("--out", arguments->out, "write a target file of what is clear; - is standard output")
      ->type_name("FILE.toml");
  return {parser, [arguments] { return run(*arguments); }};
}

}  // namespace bitwitness::cli
