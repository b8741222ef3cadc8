#include "harness/cli/location_report.hpp"

#include "harness/error.hpp"
#include "harness/report_objects.hpp"
#include "harness/report_parts.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bitwitness::cli {

namespace {

using report_parts::address_text;
using report_parts::printable;

std::string rva_text(const Image& image, std::uint64_t address) {
  return fmt::format("rva:{:#x}", address - image.base());
}

std::string behaviour_text(const FoundCode& code, const TargetRoutine& routine) {
  if (!code.trial) return "not run: no signature could be called";
  const TriedSignature& trial = *code.trial;
  if (trial.agreed == 0) {
    return fmt::format("does not behave as {}: agrees on none of {} values with any signature tried", routine.decoder,
                       trial.tried);
  }
  return fmt::format("agrees with {} on {} of {} values as {}", routine.decoder, trial.agreed, trial.tried,
                     to_string(trial.signature));
}

std::string heading(const RoutineLocation& found, const Image& image, bool interrupted) {
  if (interrupted && found.standing != Standing::clear) return "not searched to the end";
  switch (found.standing) {
    case Standing::clear:
      return fmt::format("found at {} ({})", address_text(found.candidates[0].address),
                         rva_text(image, found.candidates[0].address));
    case Standing::several:
      return "not clear: several routines agree on every value, and nothing tells which is meant";
    case Standing::partial:
      return "not found: no candidate agrees on every value";
    case Standing::unconfirmed:
      return "not found: no candidate behaves like it; these only refer to its constants or look alike";
    case Standing::nothing:
      return "not found: no code refers to its constants, and none looks alike";
  }
  return "";
}

std::string code_text(const FoundCode& code, std::size_t place, const TargetRoutine& routine, const Image& image) {
  std::string text = fmt::format("  {}. {} ({})\n     {}\n", place, address_text(code.address),
                                 rva_text(image, code.address), behaviour_text(code, routine));
  for (const std::string& reason : code.reasons) text += fmt::format("     {}\n", printable(reason));
  for (const std::uint64_t thunk : code.thunks) {
    text += fmt::format("     a jump at {} leads to it\n", address_text(thunk));
  }
  return text;
}

std::string call_line(const CallSite& site) {
  return fmt::format("{}, returns to {}", address_text(site.address), address_text(site.returns));
}

std::string call_text(const LocatedCall& call, std::size_t limit) {
  const char* const heading = call.sites.empty() ? "no call of it found"
                              : call.is_clear    ? "call"
                                                 : "not clear which call";
  std::string text = fmt::format("  {} ({})\n", heading, call.anchor.says);
  for (std::size_t i = 0; i < std::min(limit, call.sites.size()); ++i) {
    text += fmt::format("    {}\n", call_line(call.sites[i]));
    for (const std::string& reason : call.sites[i].reasons) text += fmt::format("      {}\n", printable(reason));
  }
  if (call.sites.size() > limit) text += fmt::format("    … and {} more\n", call.sites.size() - limit);
  return text;
}

std::optional<std::uint64_t> resolved(const Image& image, const std::string& location) {
  try {
    return image.resolve(location);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Puts first the site that is as far from its callee as in the target, when there is only one.
bool prefer_same_distance(LocatedCall& call, std::uint64_t distance, std::uint64_t callee) {
  const auto is_same = [&](const CallSite& site) {
    return site.address - callee == distance || site.returns - callee == distance;
  };
  if (std::ranges::count_if(call.sites, is_same) != 1) return false;
  std::stable_partition(call.sites.begin(), call.sites.end(), is_same);
  call.sites[0].reasons.emplace_back("as far from the routine as the target says");
  return true;
}

}  // namespace

std::vector<LocatedCall> locate_calls(const Image& image, const Target& target, const Location& location) {
  std::vector<LocatedCall> calls;
  for (const Anchor& anchor : target.anchors) {
    if (anchor.kind != AnchorKind::call) continue;
    const auto to = resolved(image, anchor.to);
    const auto at = resolved(image, anchor.at);
    for (std::size_t i = 0; i < target.routines.size(); ++i) {
      const auto named = resolved(image, target.routines[i].at);
      if (anchor.to != target.routines[i].at && !(to && named == to)) continue;
      LocatedCall call{anchor, i, location.routines[i].calls, false};
      const auto known = [](const CallSite& site) { return site.function != 0; };
      call.is_clear = call.sites.size() == 1 || std::ranges::count_if(call.sites, known) == 1;
      if (!call.is_clear && !call.sites.empty() && at && to) {
        call.is_clear = prefer_same_distance(call, *at - *to, location.routines[i].candidates[0].address);
      }
      calls.push_back(std::move(call));
      break;
    }
  }
  return calls;
}

std::string location_text(const LocationReport& report) {
  const Image& image = report.image;
  std::string text =
      fmt::format("image {} ({}), sha256 {}\n", printable(image.name()), to_string(image.format()), image.sha256());
  if (image.is_stand_in()) text += fmt::format("{}\n", report_parts::stand_in_warning);
  for (const std::string& note : image.notes()) text += fmt::format("note: {}\n", printable(note));
  text += fmt::format("searched {} bytes of code for routines of target {}; {} references to {}\n",
                      report.location.code_bytes, report.target.name, report.location.references, [&] {
                        std::string names;
                        for (const KnownConstant& constant : report.constants) {
                          if (constant.is_decisive) names += (names.empty() ? "" : ", ") + to_string(constant);
                        }
                        return names.empty() ? std::string("no constant") : names;
                      }());
  if (report.location.interrupted) text += "interrupted: not everything was searched\n";
  for (std::size_t i = 0; i < report.location.routines.size(); ++i) {
    const RoutineLocation& found = report.location.routines[i];
    const TargetRoutine& routine = report.target.routines[i];
    text += fmt::format("\n{}: {}\n", found.name, heading(found, image, report.location.interrupted));
    const std::size_t listed = std::min(report.limit, found.candidates.size());
    for (std::size_t place = 0; place < listed; ++place) {
      text += code_text(found.candidates[place], place + 1, routine, image);
    }
    if (found.candidates.size() > listed) text += fmt::format("  … and {} more\n", found.candidates.size() - listed);
    for (const std::string& note : found.notes) text += fmt::format("  note: {}\n", printable(note));
    if (found.standing != Standing::clear) continue;
    for (const LocatedCall& call : report.calls) {
      if (call.routine == i) text += call_text(call, report.limit);
    }
  }
  return text;
}

namespace {

using Json = nlohmann::ordered_json;

Json code_json(const FoundCode& code, const Image& image) {
  Json row = {{"address", address_text(code.address)}, {"rva", fmt::format("{:#x}", code.address - image.base())}};
  row["tried"] = code.trial ? code.trial->tried : 0;
  row["agreed"] = code.trial ? code.trial->agreed : 0;
  row["signature"] = code.trial && code.trial->agreed > 0 ? Json(to_string(code.trial->signature)) : Json(nullptr);
  row["alike"] = code.alike ? Json(*code.alike) : Json(nullptr);
  row["reasons"] = code.reasons;
  Json thunks = Json::array();
  for (const std::uint64_t thunk : code.thunks) thunks.push_back(address_text(thunk));
  row["thunks"] = std::move(thunks);
  return row;
}

Json call_json(const LocatedCall& call, std::size_t limit) {
  Json sites = Json::array();
  for (std::size_t i = 0; i < std::min(limit, call.sites.size()); ++i) {
    const CallSite& site = call.sites[i];
    sites.push_back({{"address", address_text(site.address)},
                     {"returns", address_text(site.returns)},
                     {"function", site.function == 0 ? Json(nullptr) : Json(address_text(site.function))},
                     {"reasons", site.reasons}});
  }
  return {{"says", call.anchor.says}, {"clear", call.is_clear}, {"count", call.sites.size()}, {"sites", sites}};
}

}  // namespace

std::string location_json(const LocationReport& report) {
  const Image& image = report.image;
  Json constants = Json::array();
  for (const KnownConstant& constant : report.constants) {
    constants.push_back({{"constant", to_string(constant)}, {"decisive", constant.is_decisive}});
  }
  Json routines = Json::array();
  for (std::size_t i = 0; i < report.location.routines.size(); ++i) {
    const RoutineLocation& found = report.location.routines[i];
    Json candidates = Json::array();
    for (std::size_t place = 0; place < std::min(report.limit, found.candidates.size()); ++place) {
      candidates.push_back(code_json(found.candidates[place], image));
    }
    Json calls = Json::array();
    for (const LocatedCall& call : report.calls) {
      if (call.routine == i) calls.push_back(call_json(call, report.limit));
    }
    routines.push_back({{"name", found.name},
                        {"decoder", report.target.routines[i].decoder},
                        {"standing", to_string(found.standing)},
                        {"count", found.candidates.size()},
                        {"candidates", std::move(candidates)},
                        {"calls", std::move(calls)},
                        {"notes", found.notes}});
  }
  const Json document = {
      {"schema", "bitwitness-location/1"},
      {"tool", {{"version", BITWITNESS_VERSION}}},
      {"image", report_objects::image_json(image.name(), image.sha256(), image.format(), image.is_stand_in())},
      {"target", report.target.name},
      {"constants", std::move(constants)},
      {"code_bytes", report.location.code_bytes},
      {"references", report.location.references},
      {"interrupted", report.location.interrupted},
      {"routines", std::move(routines)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace bitwitness::cli
