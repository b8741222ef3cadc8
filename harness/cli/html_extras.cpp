#include "harness/cli/html_extras.hpp"

#include "harness/disassembly.hpp"
#include "harness/error.hpp"
#include "harness/probe/trace_report.hpp"
#include "harness/report_parts.hpp"
#include "harness/values.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace bitwitness::cli {

namespace {

constexpr std::size_t most_instructions = 2000;  ///< of one routine
constexpr std::size_t most_steps = 1000;         ///< of the trace

HtmlListing disassembly_of(const Image& image, const Routine& routine) {
  const Listing listing = disassemble_routine(image, routine.address, most_instructions);
  HtmlListing out{fmt::format("{} at {}, {} instructions", routine.name, report_parts::address_text(routine.address),
                              listing.instructions.size()),
                  {}};
  std::uint64_t next = routine.address;
  for (const Instruction& instruction : listing.instructions) {
    if (instruction.address != next) out.text += '\n';
    out.text += fmt::format("{:#x}  {}\n", instruction.address, instruction.text);
    next = instruction.address + instruction.size;
  }
  for (const std::uint64_t address : listing.undecodable)
    out.text += fmt::format("{:#x}  not an instruction\n", address);
  if (!listing.complete) out.text += "There may be more: an indirect jump or the limit ended the search.\n";
  return out;
}

const SelectedRoutine* selected_for(const Selection& selection, const RunReport& run) {
  const auto found = std::ranges::find_if(selection.routines, [&run](const SelectedRoutine& selected) {
    return selected.routine.address == run.address && selected.routine.name == run.routine;
  });
  return found == selection.routines.end() ? nullptr : &*found;
}

HtmlListing trace_of(const Image& image, const Routine& routine, const Report& report, const RunReport& run,
                     const TraceOptions& options) {
  const Difference& difference = run.differences.front();
  TraceReport traced;
  traced.tool_version = report.tool_version;
  traced.engine = report.engine;
  traced.image_name = report.image_name;
  traced.image_sha256 = report.image_sha256;
  traced.image_format = report.image_format;
  traced.stand_in = report.stand_in;
  traced.trace = trace(image, routine, difference.value, run.environment, options);
  traced.subject = TraceSubject{run.decoder, run.word_names, run.word_kind, difference.subject};
  return {fmt::format("{} in {}, {}", to_hex(difference.value), run.routine,
                      report_parts::environment_text(run.environment)),
          to_text(traced)};
}

}  // namespace

HtmlExtras html_extras(const Image& image, const Selection& selection, const Report& report, std::uint64_t budget,
                       const std::stop_token& stop) {
  HtmlExtras extras;
  for (const SelectedRoutine& selected : selection.routines) {
    extras.disassemblies.push_back(disassembly_of(image, selected.routine));
  }
  const auto run =
      std::ranges::find_if(report.runs, [](const RunReport& candidate) { return !candidate.differences.empty(); });
  if (run == report.runs.end()) {
    extras.absence = "There is no trace: the report lists no difference.";
    return extras;
  }
  const SelectedRoutine* selected = selected_for(selection, *run);
  if (selected == nullptr) {
    extras.absence = "There is no trace: the routine of the first difference is not known.";
    return extras;
  }
  try {
    extras.trace =
        trace_of(image, selected->routine, report, *run, {.budget = budget, .limit = most_steps, .stop = stop});
  } catch (const Error& error) {
    extras.absence = fmt::format("There is no trace: {}", error.what());
  }
  if (stop.stop_requested()) {
    extras.trace = {};
    extras.absence = "There is no trace: the run was interrupted.";
  }
  return extras;
}

}  // namespace bitwitness::cli
