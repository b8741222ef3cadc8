#include "harness/cli/audit_report.hpp"

#include "harness/report_objects.hpp"
#include "harness/report_parts.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bitwitness::cli {
namespace {

using report_parts::address_text;
using report_parts::printable;
using Json = nlohmann::ordered_json;

constexpr std::size_t shown_addresses = 4;

constexpr std::array<Exactness, 6> classes = {Exactness::exact, Exactness::finite,  Exactness::approximate,
                                              Exactness::wrong, Exactness::refused, Exactness::unknown};

std::size_t count_of(const Audit& audit, Exactness exactness) {
  std::size_t count = 0;
  for (const AuditedRow& audited : audit.rows) {
    if (audited.row.exactness == exactness) count += audited.addresses.size();
  }
  return count;
}

std::string addresses_text(const AuditedRow& audited) {
  std::string text;
  for (std::size_t i = 0; i < std::min(audited.addresses.size(), shown_addresses); ++i) {
    text += (i == 0 ? "" : ", ") + address_text(audited.addresses[i]);
  }
  if (audited.addresses.size() > shown_addresses) {
    text += fmt::format(" and {} more", audited.addresses.size() - shown_addresses);
  }
  return text;
}

std::string summary_text(const Audit& audit) {
  if (audit.instructions == 0) return "no code";
  std::string text = fmt::format("{} instructions", audit.instructions);
  for (const Exactness exactness : classes) {
    if (const std::size_t count = count_of(audit, exactness); count != 0) {
      text += fmt::format(", {} {}", count, to_string(exactness));
    }
  }
  return text;
}

std::string verdict_text(const AuditReport& report) {
  const auto trusted =
      std::ranges::count_if(report.routines, [](const AuditedRoutine& routine) { return routine.audit.is_trusted(); });
  return fmt::format("the emulator stands for a processor in {} of {} routines, where everything is a number\n",
                     trusted, report.routines.size());
}

void add_routine(std::string& text, const AuditedRoutine& routine) {
  const Audit& audit = routine.audit;
  text += fmt::format("\n{} at {}: {}\n", printable(routine.name), address_text(audit.address), summary_text(audit));
  if (!routine.note.empty()) text += fmt::format("  note: {}\n", printable(routine.note));
  for (const AuditedRow& audited : audit.rows) {
    text += fmt::format("  {:<11} {:<9} {:>4}  at {}{}{}\n", to_string(audited.row.exactness), audited.mnemonic,
                        audited.addresses.size(), addresses_text(audited), audited.row.reason.empty() ? "" : ": it ",
                        audited.row.reason);
  }
  for (const Unfollowed& left : audit.unfollowed) {
    text += fmt::format("  not followed: {} {}{}{}\n", address_text(left.address), left.text,
                        left.text.empty() ? "" : ": ", printable(left.reason));
  }
  if (audit.is_cut) text += "  not followed: it has more instructions than are audited\n";
}

Json routine_json(const AuditedRoutine& routine) {
  const Audit& audit = routine.audit;
  Json counts = Json::object();
  for (const Exactness exactness : classes) counts[std::string(to_string(exactness))] = count_of(audit, exactness);
  Json rows = Json::array();
  for (const AuditedRow& audited : audit.rows) {
    Json addresses = Json::array();
    for (const std::uint64_t address : audited.addresses) addresses.push_back(address_text(address));
    rows.push_back({{"mnemonic", audited.mnemonic},
                    {"class", to_string(audited.row.exactness)},
                    {"reason", audited.row.reason},
                    {"count", audited.addresses.size()},
                    {"first", audited.first_text},
                    {"addresses", std::move(addresses)}});
  }
  Json not_followed = Json::array();
  for (const Unfollowed& left : audit.unfollowed) {
    not_followed.push_back({{"address", address_text(left.address)},
                            {"instruction", left.text.empty() ? Json(nullptr) : Json(left.text)},
                            {"reason", left.reason}});
  }
  Json out = {{"name", routine.name}, {"address", address_text(audit.address)}};
  if (!routine.note.empty()) out["note"] = routine.note;
  out["instructions"] = audit.instructions;
  out["cut"] = audit.is_cut;
  out["trusted"] = audit.is_trusted();
  out["counts"] = std::move(counts);
  out["rows"] = std::move(rows);
  out["not_followed"] = std::move(not_followed);
  return out;
}

}  // namespace

std::string to_text(const AuditReport& report) {
  std::string text = fmt::format("{} ({}, SHA-256 {})\n", printable(report.image_name), to_string(report.image_format),
                                 report.image_sha256);
  if (report.stand_in) text += fmt::format("{}\n", report_parts::stand_in_warning);
  for (const std::string& note : report.notes) text += fmt::format("note: {}\n", printable(note));
  for (const AuditedRoutine& routine : report.routines) add_routine(text, routine);
  return text + '\n' + verdict_text(report);
}

std::string to_json(const AuditReport& report) {
  Json routines = Json::array();
  for (const AuditedRoutine& routine : report.routines) routines.push_back(routine_json(routine));
  const Json document = {{"schema", "bitwitness-audit/1"},
                         {"tool", {{"version", report.tool_version}}},
                         {"engine", report_objects::engine_json(report.engine)},
                         {"image", report_objects::image_json(report.image_name, report.image_sha256,
                                                              report.image_format, report.stand_in)},
                         {"notes", report.notes},
                         {"routines", std::move(routines)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace bitwitness::cli
