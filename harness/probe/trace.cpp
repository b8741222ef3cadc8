#include "harness/probe/trace.hpp"

#include "harness/error.hpp"
#include "harness/probe/trace_call.hpp"
#include "harness/values.hpp"

#include <utility>

#include <fmt/format.h>

namespace bitwitness {
namespace {

std::string words_text(std::span<const std::uint32_t> words) {
  std::string text;
  for (const std::uint32_t word : words) text += fmt::format("{}{:08x}", text.empty() ? "" : " ", word);
  return text;
}

/// What the traced call and the machine's differ in; empty when in nothing.
std::string disagreement(const Trace& trace, const TracedCall& call) {
  if (trace.outcome == OutcomeKind::returned) {
    if (!call.came_back()) {
      return fmt::format("the traced call ended at {:#x}, the machine's returned", call.last_instruction());
    }
    if (call.words() == trace.words) return {};
    return fmt::format("the traced call gave the words {}, the machine's {}", words_text(call.words()),
                       words_text(trace.words));
  }
  if (call.last_instruction() == trace.incident.address) return {};
  return fmt::format("the traced call ended at {:#x}, the machine's at {:#x}", call.last_instruction(),
                     trace.incident.address);
}

/// Runs the value in the machine: alone for how it ends, and as a value of a batch for what is observed there.
void run_machine(Trace& trace, const Image& image, const TraceOptions& given) {
  MachineOptions options;
  options.budget = given.budget;
  options.stop = given.stop;
  const std::unique_ptr<Machine> machine = make_unicorn_machine(image, trace.routine, options);
  Batch batch;
  machine->run_alone(batch, trace.packed, trace.environment);
  if (batch.unfinished) return;
  trace.outcome = batch.outcomes.at(0);
  if (trace.outcome == OutcomeKind::returned) {
    trace.words = batch.words;
  } else {
    trace.incident = batch.incidents.at(0);
  }
  for (const std::string& clause : machine->path(trace.packed, trace.environment)) {
    trace.notes.push_back("it " + clause);
  }
  machine->run(batch, trace.packed, trace.environment);
  if (batch.unfinished) return;
  for (const auto& [sentence, observation] : machine->observations()) trace.notes.push_back("it " + sentence);
  if (trace.outcome != OutcomeKind::returned || batch.outcomes.at(0) != OutcomeKind::returned) return;
  if (batch.words == trace.words) return;
  trace.notes.push_back(
      fmt::format("in a batch it gives the words {}: they depend on more than the value", words_text(batch.words)));
}

}  // namespace

Trace trace(const Image& image, const Routine& routine, std::span<const std::byte> packed,
            const Environment& environment, const TraceOptions& options) {
  Trace trace;
  trace.routine = routine;
  trace.is_64_bit = image.format() == ImageFormat::pe32_plus;
  trace.environment = environment;
  trace.packed.assign(packed.begin(), packed.end());
  trace.limit = options.limit;
  if (packed.size() != routine.signature.packed_size()) {
    throw Error(fmt::format("value {}: {} bytes, and {} takes {}", to_hex(packed), packed.size(),
                            to_string(routine.signature), routine.signature.packed_size()));
  }
  run_machine(trace, image, options);
  if (options.stop.stop_requested()) return trace;
  TracedCall call(image, routine, options);
  call.run(trace, packed, environment);
  trace.disagreement = disagreement(trace, call);
  return trace;
}

}  // namespace bitwitness
