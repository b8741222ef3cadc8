#include "harness/cli/selection.hpp"

#include "harness/cli/decoder_subject.hpp"
#include "harness/cli/stand_ins.hpp"
#include "harness/cli/surroundings.hpp"
#include "harness/error.hpp"
#include "harness/probe/inference.hpp"
#include "harness/target.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace bitwitness::cli {

namespace {

constexpr const char* default_target = "sws";

/// What --signature says: for every routine, or for one by name.
struct GivenSignatures {
  std::optional<std::string> for_all;
  std::map<std::string, std::string, std::less<>> for_one;
};

/// A name stands before a "=" that comes before any "(": constants inside a signature have theirs after it.
GivenSignatures split_signatures(const std::vector<std::string>& texts) {
  GivenSignatures given;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals > text.find('(')) {
      if (given.for_all) throw Error(fmt::format("--signature {}: another one without NAME= is given", text));
      given.for_all = text;
    } else if (!given.for_one.emplace(text.substr(0, equals), text.substr(equals + 1)).second) {
      throw Error(fmt::format("--signature {}: the routine is given twice", text));
    }
  }
  return given;
}

bool is_open(const Signature& signature) {
  return signature.convention == Convention::automatic;
}

/// Says in one line why executing a routine did not settle its signature.
std::string unsettled(const Inference& inference) {
  std::vector<std::string> parts;
  for (const Candidate& candidate : inference.candidates) {
    parts.push_back(fmt::format("{} {}", to_string(candidate.confidence), to_string(candidate.signature)));
  }
  if (parts.size() == 1) {
    const std::vector<std::string>& doubts = inference.candidates.front().doubts;
    return fmt::format("executing it does not make sure of its signature: {}{}{}", parts.front(),
                       doubts.empty() ? "" : ": ", fmt::join(doubts, "; "));
  }
  if (!parts.empty()) return fmt::format("executing it leaves open which: {}", fmt::join(parts, "; "));
  return fmt::format("executing it tells no signature: {}", fmt::join(inference.seen, "; "));
}

/// Takes the signature that the routine's code shows and notes that. Throws Error unless it is certain.
void infer_signature(SelectedRoutine& selected, const Image& image, std::string_view option) {
  const Routine& routine = selected.routine;
  const Inference inference = infer(image, routine.address);
  const Candidate* found = inference.certain();
  if (found == nullptr) {
    throw Error(fmt::format("routine {} at {:#x}: {}; give --signature '{}'", routine.name, routine.address,
                            unsettled(inference), option));
  }
  selected.routine.signature = found->signature;
  selected.is_inferred = true;
  if (!selected.note.empty()) selected.note += ' ';
  selected.note += fmt::format("Signature inferred by executing the routine: {}", to_string(found->signature));
}

/// Adds what --register gives as constant arguments.
void set_registers(Signature& signature, const Image& image, const std::vector<std::string>& registers) {
  if (registers.empty()) return;
  const std::string_view type = image.format() == ImageFormat::pe32_plus ? "u64" : "u32";
  std::string text = to_string(signature);
  for (const std::string& setting : registers) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos) {
      throw Error(fmt::format("--register {}: expected NAME=VALUE, as in esi=0x402000", setting));
    }
    text.insert(text.rfind(')'),
                fmt::format(", {} = {} @ {}", type, setting.substr(equals + 1), setting.substr(0, equals)));
  }
  try {
    signature = parse_signature(text);
  } catch (const Error& error) {
    throw Error(fmt::format("--register: {}", error.what()));
  }
}

bool fits(const Signature& signature, const decoders::Decoder& decoder) {
  return signature.packed_size() == decoder.packed_size && signature.word_count() == decoder.word_names.size();
}

/// Checks that the routine can be called and that a registered decoder fits it; an external one is started to fit.
void set_decoder(SelectedRoutine& selected, const Image& image, const RoutineArguments& arguments,
                 const std::optional<std::string>& own, const std::stop_token& stop) {
  const Signature& signature = selected.routine.signature;
  require_callable(signature, image.format() == ImageFormat::pe32_plus);
  if (arguments.decoder && names_external_decoder(*arguments.decoder)) {
    selected.decoder = own ? decoders::find_decoder(*own) : nullptr;
    if (selected.decoder != nullptr && !fits(signature, *selected.decoder)) selected.decoder = nullptr;
    ExternalDecoderOptions options;
    options.timeout = parse_decoder_timeout(arguments.decoder_timeout);
    options.stop = stop;
    DecoderShape shape = selected.decoder != nullptr ? shape_of(*selected.decoder) : shape_of(signature);
    shape.owner = "routine " + selected.routine.name;
    selected.subject = subject_named(*arguments.decoder, shape, options);
    return;
  }
  const std::optional<std::string>& name = arguments.decoder ? arguments.decoder : own;
  if (!name) return;
  const decoders::Decoder& decoder = require_decoder(*name);
  selected.decoder = &decoder;
  selected.subject = subject_of(decoder);
  if (fits(signature, decoder)) return;
  throw Error(fmt::format(
      "routine {}: {}signature {} takes {} bytes and gives {} words, decoder {} takes {} and gives {}",
      selected.routine.name, selected.is_inferred ? "inferred " : "", to_string(signature), signature.packed_size(),
      signature.word_count(), decoder.name, decoder.packed_size, decoder.word_names.size()));
}

/// The name of an export or a symbol, else the address.
std::string name_of(std::string_view at, std::uint64_t address) {
  const bool named = at.starts_with("export:") || at.starts_with("symbol:");
  return named ? std::string(at.substr(at.find(':') + 1)) : fmt::format("{:#x}", address);
}

SelectedRoutine select_at(const Image& image, const RoutineArguments& arguments, DecoderUse use,
                          const std::stop_token& stop) {
  const std::string& at = *arguments.at;
  if (!arguments.decoder && use == DecoderUse::required) throw Error(fmt::format("--at {} needs --decoder", at));
  const GivenSignatures given = split_signatures(arguments.signatures);
  if (!given.for_one.empty()) {
    throw Error(fmt::format("--signature {}=…: --at takes a signature without a name", given.for_one.begin()->first));
  }
  SelectedRoutine selected;
  selected.routine.address = image.resolve(at);
  selected.routine.name = name_of(at, selected.routine.address);
  if (arguments.decoder && !names_external_decoder(*arguments.decoder)) require_decoder(*arguments.decoder);
  if (given.for_all) selected.routine.signature = parse_signature(*given.for_all);
  image.require_code(selected.routine.address, "--at " + at);
  if (!given.for_all || is_open(selected.routine.signature)) infer_signature(selected, image, "…");
  set_registers(selected.routine.signature, image, arguments.registers);
  set_decoder(selected, image, arguments, std::nullopt, stop);
  return selected;
}

std::vector<TargetRoutine> named_routines(const Target& target, const std::vector<std::string>& names) {
  if (names.empty()) return target.routines;
  std::vector<TargetRoutine> chosen;
  for (const std::string& name : names) {
    const auto same = [&name](const TargetRoutine& routine) { return routine.name == name; };
    const auto found = std::find_if(target.routines.begin(), target.routines.end(), same);
    if (found == target.routines.end()) {
      std::vector<std::string_view> known;
      for (const TargetRoutine& routine : target.routines) known.emplace_back(routine.name);
      throw Error(fmt::format("--routine {}: target {} has no such routine; it has: {}", name, target.name,
                              fmt::join(known, ", ")));
    }
    if (std::none_of(chosen.begin(), chosen.end(), same)) chosen.push_back(*found);
  }
  return chosen;
}

/// Sets what is given or what the target says; without either the signature stays open.
Signature signature_of(const TargetRoutine& routine, const GivenSignatures& given) {
  if (const auto own = given.for_one.find(routine.name); own != given.for_one.end())
    return parse_signature(own->second);
  if (given.for_all) return parse_signature(*given.for_all);
  if (routine.signature) return *routine.signature;
  Signature open;
  open.convention = Convention::automatic;
  return open;
}

void check_target_anchors(const Target& target, const Image& image, bool ignore, std::vector<std::string>& notes) {
  for (const AnchorResult& result : check_anchors(target, image)) {
    if (result.holds) {
      if (result.is_open) {
        notes.push_back(fmt::format("anchor of target {} is left open: {}; found: {}", target.name, result.anchor.says,
                                    result.found));
      }
      continue;
    }
    const std::string text =
        fmt::format("{} anchor of target {} does not hold: {}; found: {}",
                    result.anchor.required ? "required" : "expected", target.name, result.anchor.says, result.found);
    if (result.anchor.required && !ignore) {
      throw Error(fmt::format("{}: {} (--ignore-anchors goes on)", image.path(), text));
    }
    notes.push_back(result.anchor.required ? text + " (ignored as asked)" : text);
  }
}

std::uint64_t address_of(const TargetRoutine& routine, const Target& target, const Image& image) {
  const std::uint64_t address = image.resolve(routine.at);
  image.require_code(address, fmt::format("routine {} of target {} at {}", routine.name, target.name, routine.at));
  return address;
}

Selection select_from_target(const Image& image, const RoutineArguments& arguments, const std::stop_token& stop) {
  const Target target = load_target(arguments.target.value_or(default_target));
  const std::vector<TargetRoutine> routines = named_routines(target, arguments.routines);
  if (routines.empty()) throw Error(fmt::format("--target {}: it names no routine", target.name));
  const GivenSignatures given = split_signatures(arguments.signatures);
  for (const auto& [name, text] : given.for_one) {
    const auto same = [&wanted = name](const TargetRoutine& routine) { return routine.name == wanted; };
    if (std::none_of(routines.begin(), routines.end(), same)) {
      throw Error(fmt::format("--signature {}={}: no routine of that name is selected", name, text));
    }
  }
  Selection selection;
  for (const TargetRoutine& routine : routines) {
    const std::uint64_t address = address_of(routine, target, image);
    SelectedRoutine& selected = selection.routines.emplace_back();
    selected.routine.name = routine.name;
    selected.routine.address = address;
    selected.note = routine.note;
  }
  check_target_anchors(target, image, arguments.ignore_anchors, selection.notes);
  for (std::size_t i = 0; i < routines.size(); ++i) {
    SelectedRoutine& selected = selection.routines[i];
    selected.routine.signature = signature_of(routines[i], given);
    if (is_open(selected.routine.signature)) infer_signature(selected, image, routines[i].name + "=…");
    set_registers(selected.routine.signature, image, arguments.registers);
    set_decoder(selected, image, arguments, routines[i].decoder, stop);
  }
  return selection;
}

}  // namespace

Image load_image(const ImageArguments& arguments) {
  ImageOptions options;
  if (arguments.base) options.base = parse_hex_number("--base", *arguments.base, ~std::uint64_t{0});
  return with_surroundings(
      Image::load(arguments.image ? std::filesystem::path(*arguments.image) : find_stand_in(), options), arguments);
}

PlaceSelection select_places(const Image& image, const RoutineArguments& arguments) {
  PlaceSelection selection;
  if (arguments.at) {
    const std::uint64_t address = image.resolve(*arguments.at);
    image.require_code(address, "--at " + *arguments.at);
    selection.places.push_back({name_of(*arguments.at, address), address, {}});
    return selection;
  }
  const Target target = load_target(arguments.target.value_or(default_target));
  for (const TargetRoutine& routine : named_routines(target, arguments.routines)) {
    selection.places.push_back({routine.name, address_of(routine, target, image), routine.note});
  }
  check_target_anchors(target, image, arguments.ignore_anchors, selection.notes);
  return selection;
}

Selection select_routines(const Image& image, const RoutineArguments& arguments, DecoderUse use,
                          const std::stop_token& stop) {
  parse_decoder_timeout(arguments.decoder_timeout);
  if (!arguments.at) return select_from_target(image, arguments, stop);
  Selection selection;
  selection.routines.push_back(select_at(image, arguments, use, stop));
  return selection;
}

}  // namespace bitwitness::cli
