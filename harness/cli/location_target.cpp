#include "harness/cli/location_report.hpp"
#include "harness/error.hpp"
#include "harness/report_parts.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace bitwitness::cli {

namespace {

constexpr std::size_t most_name = 64;
constexpr std::string_view suffix = "-located";

/// A TOML basic string.
std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.append("\\").push_back(c);
    } else if (byte < 0x20 || byte >= 0x7f) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out.push_back(c);
    }
  }
  return out + "\"";
}

/// A sentence of the target that is read: valid UTF-8 without control characters, as its reader has checked.
std::string toml_sentence(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out + "\"";
}

std::string_view to_string(AnchorKind kind) {
  switch (kind) {
    case AnchorKind::code:
      return "code";
    case AnchorKind::call:
      return "call";
    case AnchorKind::constant:
      return "constant";
  }
  return "";
}

class TargetWriter {
 public:
  TargetWriter(const LocationReport& report, bool with_rva) : report_(report), with_rva_(with_rva) {}

  std::string write() {
    for (std::size_t i = 0; i < report_.target.routines.size(); ++i) add_routine(i);
    if (target_.routines.empty()) return {};
    target_.name = report_.target.name.substr(0, most_name - suffix.size()) + std::string(suffix);
    for (const Anchor& anchor : report_.target.anchors) add_anchor(anchor);
    drop_what_does_not_hold();
    const std::string text = print();
    prove(text);
    return text;
  }

 private:
  std::string location(std::uint64_t address) const {
    return with_rva_ ? fmt::format("rva:{:#x}", address - report_.image.base()) : fmt::format("{:#x}", address);
  }

  void add_routine(std::size_t index) {
    const RoutineLocation& found = report_.location.routines[index];
    TargetRoutine routine = report_.target.routines[index];
    if (found.standing != Standing::clear) {
      left_out_.push_back(fmt::format("routine {}: {}", routine.name, bitwitness::to_string(found.standing)));
      return;
    }
    const FoundCode& code = found.candidates[0];
    routine.at = location(code.address);
    routine.signature = code.trial->signature;
    routine.note = fmt::format("Located by what its code does: it agreed with {} on {} of {} values.", routine.decoder,
                               code.trial->agreed, code.trial->tried);
    target_.routines.push_back(std::move(routine));
  }

  /// Where a location of the target lies in this image, when it is that of a routine found.
  std::optional<std::string> moved(const std::string& old) const {
    for (const TargetRoutine& routine : report_.target.routines) {
      if (routine.at != old) continue;
      const auto same = [&](const TargetRoutine& each) { return each.name == routine.name; };
      const auto found = std::ranges::find_if(target_.routines, same);
      if (found != target_.routines.end()) return found->at;
    }
    return std::nullopt;
  }

  void add_anchor(Anchor anchor) {
    const std::string old = anchor.says.empty() ? anchor.at : anchor.says;
    if (anchor.kind == AnchorKind::call) {
      const auto same = [&](const LocatedCall& call) { return call.anchor.at == anchor.at && call.is_clear; };
      const auto call = std::ranges::find_if(report_.calls, same);
      const auto to = moved(anchor.to);
      if (call == report_.calls.end() || !to) {
        left_out_.push_back(fmt::format("call anchor: {}", old));
        return;
      }
      anchor.at = location(call->sites[0].address);
      anchor.to = *to;
    } else {
      const auto at = moved(anchor.at);
      if (!at) {
        left_out_.push_back(fmt::format("{} anchor: {}", to_string(anchor.kind), old));
        return;
      }
      anchor.at = *at;
    }
    anchor.says = says_of(anchor);
    target_.anchors.push_back(std::move(anchor));
  }

  static std::string says_of(const Anchor& anchor) {
    switch (anchor.kind) {
      case AnchorKind::code:
        return fmt::format("a routine was located at {}", anchor.at);
      case AnchorKind::call:
        return fmt::format("a call of {} was located at {}", anchor.to, anchor.at);
      case AnchorKind::constant:
        break;
    }
    return fmt::format("the routine located at {} names a constant of the target", anchor.at);
  }

  void drop_what_does_not_hold() {
    const std::vector<AnchorResult> results = check_anchors(target_, report_.image);
    std::vector<Anchor> kept;
    for (const AnchorResult& result : results) {
      if (result.holds) {
        kept.push_back(result.anchor);
      } else {
        left_out_.push_back(
            fmt::format("{} anchor at {}: {}", to_string(result.anchor.kind), result.anchor.at, result.found));
      }
    }
    target_.anchors = std::move(kept);
  }

  std::string print() const {
    std::string text = fmt::format("# Written by locate from target {} and an executable with sha256\n# {}.\n",
                                   report_.target.name, report_.image.sha256());
    if (report_.image.is_stand_in()) text += fmt::format("# {}\n", report_parts::stand_in_warning);
    for (const std::string& line : left_out_) text += "# Left out: " + one_line(line) + "\n";
    text += fmt::format("name = {}\ndescription = {}\n", toml_string(target_.name),
                        toml_string(fmt::format("Routines of target {} where they lie in {}", report_.target.name,
                                                report_.image.name())));
    for (const TargetRoutine& routine : target_.routines) {
      text += fmt::format("\n[[routine]]\nname = {}\nat = {}\ndecoder = {}\nsignature = {}\nnote = {}\n",
                          toml_string(routine.name), toml_string(routine.at), toml_string(routine.decoder),
                          toml_string(bitwitness::to_string(*routine.signature)), toml_string(routine.note));
    }
    for (const Anchor& anchor : target_.anchors) {
      text += fmt::format("\n[[anchor]]\nkind = {}\nlevel = {}\nat = {}\n", toml_string(to_string(anchor.kind)),
                          toml_string(anchor.required ? "required" : "expected"), toml_string(anchor.at));
      if (anchor.kind == AnchorKind::call) text += fmt::format("to = {}\n", toml_string(anchor.to));
      if (anchor.kind == AnchorKind::constant) {
        text += fmt::format("bits = [\"{}\"]\n", fmt::join(anchor.bits, "\", \""));
      }
      text += fmt::format("says = {}\n", toml_sentence(anchor.says));
    }
    return text;
  }

  static std::string one_line(std::string text) {
    std::ranges::replace_if(
        text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
    return text;
  }

  void prove(const std::string& text) const {
    const Target read = parse_target(text, "the located target");
    const auto same = [](const TargetRoutine& a, const TargetRoutine& b) {
      return a.name == b.name && a.at == b.at && a.signature == b.signature;
    };
    if (!std::ranges::equal(read.routines, target_.routines, same) || read.anchors.size() != target_.anchors.size()) {
      throw Error("the located target reads back as another one");
    }
  }

  const LocationReport& report_;
  bool with_rva_;
  Target target_;
  std::vector<std::string> left_out_;
};

}  // namespace

std::string located_target(const LocationReport& report, bool with_rva) {
  return TargetWriter(report, with_rva).write();
}

}  // namespace bitwitness::cli
