#include "harness/cli/selection.hpp"

#include "harness/cli/decoder_subject.hpp"
#include "harness/cli/stand_ins.hpp"
#include "harness/error.hpp"
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

Signature parse_given(const std::string& text, std::string_view routine) {
  Signature signature = parse_signature(text);
  if (!is_open(signature)) return signature;
  throw Error(
      fmt::format("--signature {}: the convention of {} must be named; this version does not infer it", text, routine));
}

void require_fit(const SelectedRoutine& selected, const Image& image) {
  const Signature& signature = selected.routine.signature;
  require_callable(signature, image.format() == ImageFormat::pe32_plus);
  const decoders::Decoder& decoder = *selected.decoder;
  if (signature.packed_size() == decoder.packed_size && signature.word_count() == decoder.word_names.size()) return;
  throw Error(
      fmt::format("routine {}: signature {} takes {} bytes and gives {} words, decoder {} takes {} and gives {}",
                  selected.routine.name, to_string(signature), signature.packed_size(), signature.word_count(),
                  decoder.name, decoder.packed_size, decoder.word_names.size()));
}

SelectedRoutine select_at(const Image& image, const RoutineArguments& arguments) {
  const std::string& at = *arguments.at;
  if (arguments.signatures.empty()) throw Error(fmt::format("--at {} needs --signature", at));
  if (!arguments.decoder) throw Error(fmt::format("--at {} needs --decoder", at));
  const GivenSignatures given = split_signatures(arguments.signatures);
  if (!given.for_one.empty()) {
    throw Error(fmt::format("--signature {}=…: --at takes a signature without a name", given.for_one.begin()->first));
  }
  SelectedRoutine selected;
  selected.routine.address = image.resolve(at);
  const std::size_t colon = at.find(':');
  const bool named = at.starts_with("export:") || at.starts_with("symbol:");
  selected.routine.name = named ? at.substr(colon + 1) : fmt::format("{:#x}", selected.routine.address);
  selected.routine.signature = parse_given(*given.for_all, selected.routine.name);
  selected.decoder = &require_decoder(*arguments.decoder);
  image.require_code(selected.routine.address, "--at " + at);
  require_fit(selected, image);
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

Signature signature_of(const TargetRoutine& routine, const Target& target, const Image& image,
                       const GivenSignatures& given) {
  if (const auto own = given.for_one.find(routine.name); own != given.for_one.end()) {
    return parse_given(own->second, routine.name);
  }
  if (given.for_all) return parse_given(*given.for_all, routine.name);
  if (routine.signature && !is_open(*routine.signature)) return *routine.signature;
  if (const auto known = stand_in_signature(image, routine.name)) return parse_signature(*known);
  throw Error(fmt::format(
      "routine {}: target {} leaves its signature open, and the file does not tell the convention: give --signature "
      "'{}=…'",
      routine.name, target.name, routine.name));
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

Selection select_from_target(const Image& image, const RoutineArguments& arguments) {
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
    const std::uint64_t address = image.resolve(routine.at);
    image.require_code(address, fmt::format("routine {} of target {} at {}", routine.name, target.name, routine.at));
    SelectedRoutine& selected = selection.routines.emplace_back();
    selected.routine.name = routine.name;
    selected.routine.address = address;
    selected.note = routine.note;
  }
  check_target_anchors(target, image, arguments.ignore_anchors, selection.notes);
  for (std::size_t i = 0; i < routines.size(); ++i) {
    SelectedRoutine& selected = selection.routines[i];
    selected.routine.signature = signature_of(routines[i], target, image, given);
    selected.decoder = &require_decoder(arguments.decoder.value_or(routines[i].decoder));
    require_fit(selected, image);
  }
  return selection;
}

}  // namespace

Image load_image(const ImageArguments& arguments) {
  ImageOptions options;
  if (arguments.base) options.base = parse_hex_number("--base", *arguments.base, ~std::uint64_t{0});
  return Image::load(arguments.image ? std::filesystem::path(*arguments.image) : find_stand_in(), options);
}

Selection select_routines(const Image& image, const RoutineArguments& arguments) {
  if (!arguments.at) return select_from_target(image, arguments);
  Selection selection;
  selection.routines.push_back(select_at(image, arguments));
  return selection;
}

}  // namespace bitwitness::cli
