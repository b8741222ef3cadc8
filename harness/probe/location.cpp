#include "harness/probe/location.hpp"

#include "harness/disassembly.hpp"
#include "harness/error.hpp"
#include "harness/probe/location_behaviour.hpp"
#include "harness/probe/location_bytes.hpp"
#include "harness/probe/location_suspects.hpp"

#include <algorithm>
#include <chrono>
#include <set>

#include <fmt/format.h>

namespace bitwitness {
namespace {

using location::Behaviour;
using location::CodeMap;
using location::Lead;
using location::Suspect;
using location::Suspects;
using location::SuspectSearch;

constexpr std::size_t most_alike = 32;
constexpr std::size_t most_instructions = 1024;

// Calls whose function is looked for.
constexpr std::size_t most_functions = 256;

/// A suspect that has been run.
struct Run {
  Suspect suspect;
  FoundCode found;
};

bool is_full(const Run& run) {
  return run.found.trial && run.found.trial->is_full();
}

bool is_same(const Run& run) {
  return run.found.alike == 1.0;
}

double agreed_share(const FoundCode& found) {
  if (!found.trial || found.trial->tried == 0) return 0;
  return static_cast<double>(found.trial->agreed) / static_cast<double>(found.trial->tried);
}

bool is_better(const Run& a, const Run& b) {
  if (is_full(a) != is_full(b)) return is_full(a);
  if (is_full(a) && is_same(a) != is_same(b)) return is_same(a);
  if (const double x = agreed_share(a.found), y = agreed_share(b.found); x != y) return x > y;
  if (const double x = a.found.alike.value_or(0), y = b.found.alike.value_or(0); x != y) return x > y;
  if (a.suspect.lead != b.suspect.lead) return a.suspect.lead < b.suspect.lead;
  return a.suspect.weight > b.suspect.weight;
}

class RoutineSearch {
 public:
  RoutineSearch(const CodeMap& map, const SuspectSearch& common, const WantedRoutine& wanted,
                const LocateOptions& options, std::chrono::steady_clock::time_point end)
      : map_(map),
        common_(common),
        wanted_(wanted),
        options_(options),
        behaviour_(map.image(), wanted, options),
        end_(end) {}

  RoutineLocation run() {
    RoutineLocation out;
    out.name = wanted_.name;
    const std::vector<Suspect> suspects = collect();
    for (std::size_t i = 0; i < wanted_.signatures.size(); ++i) {
      if (std::ranges::any_of(runs_, is_full) || options_.stop.stop_requested()) break;
      run_suspects(suspects, i);
    }
    std::ranges::stable_sort(runs_, is_better);
    drop_second_names();
    out.standing = standing();
    for (Run& run : runs_) out.candidates.push_back(std::move(run.found));
    if (out.standing == Standing::clear) add_calls(out);
    out.notes = std::move(notes_);
    return out;
  }

 private:
  const Image& image() const { return map_.image(); }

  std::vector<Suspect> collect() {
    Suspects suspects = common_.suspects();
    if (wanted_.like) {
      const auto code = location::mask_routine(*wanted_.like->image, wanted_.like->address);
      for (const location::AlikeCode& alike : location::find_alike(image(), code, most_alike)) {
        const bool is_exact = alike.share == 1.0;
        Suspect suspect{alike.address, is_exact ? Lead::same_bytes : Lead::alike, 0, {}, alike.share};
        suspect.weight = location::judge_start(map_, alike.address).weight;
        suspect.reasons.push_back(
            fmt::format("{} {} at {:#x}",
                        is_exact ? "same instructions as" : fmt::format("{:.0f} % of the bytes of", alike.share * 100),
                        wanted_.like->image->name(), wanted_.like->address));
        suspects.add(suspect);
      }
    }
    std::vector<Suspect> all = suspects.in_order();
    if (all.size() > options_.most_run) {
      notes_.push_back(fmt::format("{} of {} candidates were run", options_.most_run, all.size()));
      all.resize(options_.most_run);
    }
    return all;
  }

  void run_suspects(const std::vector<Suspect>& suspects, std::size_t proposer) {
    for (const Suspect& suspect : suspects) {
      if (options_.stop.stop_requested()) return;
      if (std::chrono::steady_clock::now() > end_) {
        notes_.push_back(fmt::format("stopped after {} s; not every candidate was run", options_.seconds));
        return;
      }
      // What only has common constants is run while nothing better is known, and not in every rare way.
      const bool is_weak = suspect.lead == Lead::constants_together;
      const bool is_last = proposer > 0 && proposer + 1 == wanted_.signatures.size();
      if (is_weak && (is_last || std::ranges::any_of(runs_, is_full))) return;
      const auto known = std::ranges::find(runs_, suspect.address, [](const Run& run) { return run.found.address; });
      Run& run = known != runs_.end() ? *known : runs_.emplace_back(first_look(suspect));
      const auto trial = behaviour_.best_of(suspect.address, wanted_.signatures[proposer]);
      if (!trial) continue;
      TriedSignature& best = run.found.trial ? *run.found.trial : run.found.trial.emplace(*trial);
      if (trial->agreed * best.tried > best.agreed * trial->tried) best = *trial;
    }
  }

  [[nodiscard]] Run first_look(const Suspect& suspect) const {
    Run run{suspect, {}};
    run.found.address = suspect.address;
    run.found.reasons = suspect.reasons;
    run.found.alike = suspect.alike;
    for (std::string& sentence : common_.constants_in(suspect.address)) {
      run.found.reasons.push_back(std::move(sentence));
    }
    const auto start = location::judge_start(map_, suspect.address);
    if (!start.reason.empty()) run.found.reasons.push_back("starts a function: " + start.reason);
    return run;
  }

  /// Of those that agree, leaves out jumps to another, other starts of one body and routines that only call another.
  void drop_second_names() {
    std::set<std::uint64_t> dropped;
    for (const Run& run : runs_) {
      if (!is_full(run)) continue;
      const Listing listing = disassemble_routine(image(), run.found.address, most_instructions);
      for (Run& other : runs_) {
        if (&other == &run || !is_full(other) || dropped.contains(other.found.address)) continue;
        if (leads_to(listing, run.found.address, other)) dropped.insert(run.found.address);
      }
    }
    std::erase_if(runs_, [&](const Run& run) { return dropped.contains(run.found.address); });
    for (Run& run : runs_) {
      if (!is_full(run)) continue;
      location::calls_of(map_, run.found.address, &run.found.thunks);
    }
  }

  bool leads_to(const Listing& listing, std::uint64_t from, const Run& to) {
    const std::uint64_t address = to.found.address;
    if (location::thunk_target(image(), from) == address) return true;
    for (const Instruction& instruction : listing.instructions) {
      if (instruction.flow == Flow::call && passed_thunk(*instruction.target) == address) {
        notes_.push_back(fmt::format("{:#x} agrees too: it calls {:#x}", from, address));
        return true;
      }
      // A start in the middle of the other's code, or before it with nothing but padding between.
      if (instruction.address == address && from != address) {
        const unsigned own = location::judge_start(map_, from).weight;
        if (to.suspect.weight > own || (to.suspect.weight == own && address < from)) return true;
      }
    }
    const Listing around = disassemble_routine(image(), address, most_instructions);
    const bool is_inside = std::ranges::any_of(
        around.instructions, [from](const Instruction& instruction) { return instruction.address == from; });
    return is_inside && location::judge_start(map_, from).weight < to.suspect.weight;
  }

  std::uint64_t passed_thunk(std::uint64_t address) const {
    return location::thunk_target(image(), address).value_or(address);
  }

  [[nodiscard]] Standing standing() const {
    if (runs_.empty()) return Standing::nothing;
    const auto full = std::ranges::count_if(runs_, is_full);
    if (full == 1) return Standing::clear;
    if (full == 0) return agreed_share(runs_[0].found) > 0 ? Standing::partial : Standing::unconfirmed;
    const auto same = std::ranges::count_if(runs_, [](const Run& run) { return is_full(run) && is_same(run); });
    return same == 1 ? Standing::clear : Standing::several;
  }

  void add_calls(RoutineLocation& out) const {
    const std::uint64_t address = out.candidates[0].address;
    for (const location::DirectJump& jump : location::calls_of(map_, address)) {
      const std::uint64_t site = image().base() + jump.site;
      const auto instruction = disassemble_one(image(), site);
      if (!instruction || !instruction->target) continue;
      CallSite call{site, site + instruction->size, 0, {}};
      const std::uint64_t target = *instruction->target;
      call.reasons.push_back(target == address ? fmt::format("calls {:#x}", address)
                                               : fmt::format("calls {:#x}, a jump to {:#x}", target, address));
      std::vector<location::ReachedFrom> reached;
      if (out.calls.size() < most_functions) {
        reached = location::find_starts(map_, site, [site](const Instruction& each) -> std::optional<std::string> {
          return each.address == site ? std::optional<std::string>("") : std::nullopt;
        });
      }
      if (reached.empty()) {
        call.reasons.push_back("the function around it was not found");
      } else {
        call.function = reached[0].start.address;
        call.reasons.push_back(fmt::format("in the function at {:#x}", call.function));
      }
      out.calls.push_back(std::move(call));
    }
    // Bytes in no function that anything refers to may be no code at all.
    std::stable_partition(out.calls.begin(), out.calls.end(), [](const CallSite& call) { return call.function != 0; });
  }

  const CodeMap& map_;
  const SuspectSearch& common_;
  const WantedRoutine& wanted_;
  const LocateOptions& options_;
  Behaviour behaviour_;
  std::chrono::steady_clock::time_point end_;
  std::vector<Run> runs_;
  std::vector<std::string> notes_;
};

}  // namespace

std::string to_string(const KnownConstant& constant) {
  switch (constant.kind) {
    case ConstantKind::f32:
      return fmt::format("f32 {:08x}", constant.bits);
    case ConstantKind::f64:
      return fmt::format("f64 {:016x}", constant.bits);
    case ConstantKind::mask:
      return fmt::format("mask {:#x}", constant.bits);
    case ConstantKind::shift:
      return fmt::format("shift by {}", constant.bits);
  }
  return "";
}

std::string_view to_string(Standing standing) {
  switch (standing) {
    case Standing::clear:
      return "clear";
    case Standing::several:
      return "several";
    case Standing::partial:
      return "partial";
    case Standing::unconfirmed:
      return "unconfirmed";
    case Standing::nothing:
      return "nothing";
  }
  return "";
}

Location locate(const Image& image, std::span<const WantedRoutine> wanted, std::span<const KnownConstant> constants,
                const LocateOptions& options) {
  const CodeMap map(image);
  const SuspectSearch common(map, constants);
  Location out;
  out.code_bytes = map.code_bytes();
  out.references = common.decisive_references();
  using std::chrono::steady_clock;
  const auto end = steady_clock::now() +
                   std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(options.seconds));
  for (const WantedRoutine& routine : wanted) {
    out.routines.push_back(RoutineSearch(map, common, routine, options, end).run());
    auto& notes = out.routines.back().notes;
    notes.insert(notes.begin(), common.notes().begin(), common.notes().end());
  }
  out.interrupted = options.stop.stop_requested();
  return out;
}

}  // namespace bitwitness
