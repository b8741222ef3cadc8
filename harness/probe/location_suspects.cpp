#include "harness/probe/location_suspects.hpp"

#include "harness/disassembly.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace bitwitness::location {
namespace {

// Bounds on what is disassembled, far above what one routine of one executable gives.
constexpr std::size_t most_decisive = 512;
constexpr std::size_t most_callers_of_one = 64;
constexpr std::size_t most_callers = 256;
constexpr std::size_t most_groups = 32;
constexpr std::size_t most_tries = 8;

// Code that decodes one value holds its constants this close together.
constexpr std::uint64_t group_span = 512;
constexpr std::size_t least_kinds = 2;
constexpr std::size_t least_references = 4;

constexpr std::size_t most_instructions = 512;

bool holds_word(const Image& image, std::uint64_t address, std::uint64_t bits, std::size_t size) {
  const Segment* segment = image.find(address);
  if (segment == nullptr || segment->bytes.size() - (address - segment->address) < size) return false;
  const auto bytes = segment->bytes.subspan(static_cast<std::size_t>(address - segment->address), size);
  if (word_at(bytes, 0) != static_cast<std::uint32_t>(bits)) return false;
  return size == 4 || word_at(bytes, 4) == static_cast<std::uint32_t>(bits >> 32);
}

bool is_float(ConstantKind kind) {
  return kind == ConstantKind::f32 || kind == ConstantKind::f64;
}

bool is_shift(const Instruction& instruction) {
  for (const std::string_view name : {"shr ", "sar ", "shl "}) {
    if (instruction.text.starts_with(name)) return true;
  }
  return false;
}

/// Tells whether an instruction has a constant as an operand or names memory that holds it.
bool has_constant(const Image& image, const Instruction& instruction, const KnownConstant& constant) {
  const auto& immediates = instruction.immediates;
  const bool is_immediate = std::ranges::find(immediates, constant.bits) != immediates.end();
  if (constant.kind == ConstantKind::shift) return is_immediate && is_shift(instruction);
  if (is_immediate) return true;
  if (!is_float(constant.kind)) return false;
  const std::size_t size = constant.kind == ConstantKind::f64 ? 8 : 4;
  return std::ranges::any_of(instruction.memory_references,
                             [&](std::uint64_t address) { return holds_word(image, address, constant.bits, size); });
}

std::string described(const Instruction& instruction) {
  return fmt::format("{} at {:#x}", instruction.text, instruction.address);
}

}  // namespace

void Suspects::add(const Suspect& suspect) {
  const auto [row, is_new] = rows_.try_emplace(suspect.address, suspect);
  if (is_new) return;
  Suspect& known = row->second;
  known.lead = std::min(known.lead, suspect.lead);
  known.weight = std::max(known.weight, suspect.weight);
  if (suspect.alike) known.alike = std::max(known.alike.value_or(0), *suspect.alike);
  for (const std::string& reason : suspect.reasons) {
    if (std::ranges::find(known.reasons, reason) == known.reasons.end()) known.reasons.push_back(reason);
  }
}

std::vector<Suspect> Suspects::in_order() const {
  std::vector<Suspect> rows;
  rows.reserve(rows_.size());
  for (const auto& [address, suspect] : rows_) rows.push_back(suspect);
  std::ranges::stable_sort(rows, [](const Suspect& a, const Suspect& b) {
    return a.lead != b.lead ? a.lead < b.lead : a.weight > b.weight;
  });
  return rows;
}

SuspectSearch::SuspectSearch(const CodeMap& map, std::span<const KnownConstant> constants)
    : map_(map), constants_(constants), references_(find_references(map.image(), constants)) {
  if (map.is_cut()) notes_.emplace_back("there are more calls and pointers than are looked at");
  if (references_.size() == most_references) notes_.emplace_back("there are more references than are looked at");
  collect_decisive();
  collect_callers();
  collect_together();
}

std::optional<std::string> SuspectSearch::named_by(const Instruction& instruction, const Reference& reference) const {
  const KnownConstant& constant = constants_[reference.constant];
  if (!reference.stored_at) {
    const auto& immediates = instruction.immediates;
    const auto holds = [&](std::uint64_t bits) { return std::ranges::find(immediates, bits) != immediates.end(); };
    const bool is_half = constant.kind == ConstantKind::f64 && holds(constant.bits >> 32);
    if (!holds(constant.bits) && !is_half) return std::nullopt;
    return fmt::format("holds {}{} in {}", to_string(constant), is_half ? " in halves, the high one" : "",
                       described(instruction));
  }
  const std::uint64_t stored_at = *reference.stored_at;
  for (const std::uint64_t named : instruction.memory_references) {
    const bool is_vector = instruction.text.find("xmmword") != std::string::npos;
    if (named != stored_at && !(is_vector && named < stored_at && stored_at - named < 16)) continue;
    return fmt::format("refers to {} at {:#x}, in {}", to_string(constant), stored_at, described(instruction));
  }
  if (std::ranges::find(instruction.immediates, stored_at) == instruction.immediates.end()) return std::nullopt;
  return fmt::format("passes on the address {:#x} of {}, in {}", stored_at, to_string(constant),
                     described(instruction));
}

void SuspectSearch::collect_decisive() {
  std::set<std::pair<std::uint64_t, std::size_t>> reasoned;
  std::size_t looked_at = 0;
  for (const Reference& reference : references_) {
    if (!constants_[reference.constant].is_decisive) continue;
    if (looked_at == most_decisive) {
      notes_.push_back(fmt::format("more than {} places may refer to the constants; those from {:#x} on are left out",
                                   most_decisive, reference.position));
      break;
    }
    ++looked_at;
    const auto reached = find_starts(map_, reference.position,
                                     [&](const Instruction& instruction) { return named_by(instruction, reference); });
    if (!reached.empty()) ++decisive_references_;
    for (std::size_t i = 0; i < reached.size(); ++i) {
      const ReachedFrom& from = reached[i];
      Suspect suspect{from.start.address, i == 0 ? Lead::decisive : Lead::another_start, from.start.weight, {}, {}};
      // Once for each constant: a component after the other reads it.
      if (reasoned.emplace(from.start.address, reference.constant).second) suspect.reasons.push_back(from.what);
      suspects_.add(suspect);
    }
  }
}

void SuspectSearch::collect_callers() {
  std::size_t added = 0;
  for (const Suspect& callee : suspects_.in_order()) {
    if (callee.lead != Lead::decisive) continue;
    std::size_t of_this = 0;
    for (const DirectJump& jump : calls_of(map_, callee.address)) {
      if (of_this++ == most_callers_of_one || added == most_callers) {
        notes_.push_back(fmt::format("{:#x} has more callers than are looked at", callee.address));
        break;
      }
      const std::uint64_t site = map_.image().base() + jump.site;
      const auto reached = find_starts(map_, site, [&](const Instruction& instruction) -> std::optional<std::string> {
        if (instruction.address != site) return std::nullopt;
        return fmt::format("calls {:#x}, which refers to a constant, at {:#x}", callee.address, site);
      });
      if (reached.empty()) continue;
      ++added;
      suspects_.add({reached[0].start.address, Lead::caller, reached[0].start.weight, {reached[0].what}, {}});
    }
  }
}

void SuspectSearch::collect_together() {
  struct Group {
    std::size_t first = 0;
    std::size_t kinds = 0;
    std::size_t references = 0;
  };
  std::vector<Group> groups;
  for (std::size_t i = 0; i < references_.size();) {
    std::set<std::size_t> kinds;
    std::size_t next = i;
    for (; next < references_.size() && references_[next].position - references_[i].position < group_span; ++next) {
      kinds.insert(references_[next].constant);
    }
    if (kinds.size() >= least_kinds && next - i >= least_references) groups.push_back({i, kinds.size(), next - i});
    i = next;
  }
  std::ranges::stable_sort(groups, [](const Group& a, const Group& b) {
    return a.kinds != b.kinds ? a.kinds > b.kinds : a.references > b.references;
  });
  if (groups.size() > most_groups) groups.resize(most_groups);
  for (const Group& group : groups) {
    // Bytes that only look like a reference do not hide the ones behind them.
    for (std::size_t i = group.first; i < group.first + std::min(group.references, most_tries); ++i) {
      const Reference& reference = references_[i];
      const auto reached = find_starts(map_, reference.position, [&](const Instruction& instruction) {
        const bool found = has_constant(map_.image(), instruction, constants_[reference.constant]);
        return found ? std::optional<std::string>("has constants of the routine together") : std::nullopt;
      });
      if (reached.empty()) continue;
      suspects_.add({reached[0].start.address, Lead::constants_together, reached[0].start.weight, {}, {}});
      break;
    }
  }
}

std::vector<std::string> SuspectSearch::constants_in(std::uint64_t address) const {
  const Listing listing = disassemble_routine(map_.image(), address, most_instructions);
  std::vector<std::string> sentences;
  for (const KnownConstant& constant : constants_) {
    const auto count = std::ranges::count_if(listing.instructions, [&](const Instruction& instruction) {
      return has_constant(map_.image(), instruction, constant);
    });
    if (count == 0) continue;
    const char* const verb = is_float(constant.kind) ? "uses " : "has ";
    sentences.push_back(
        fmt::format("{}{}{}", verb, to_string(constant), count == 1 ? std::string() : fmt::format(" {} times", count)));
  }
  return sentences;
}

std::vector<DirectJump> calls_of(const CodeMap& map, std::uint64_t address, std::vector<std::uint64_t>* thunks) {
  std::vector<DirectJump> calls;
  for (const DirectJump& jump : map.jumps_to(address, address)) {
    if (jump.is_call) {
      calls.push_back(jump);
      continue;
    }
    const std::uint64_t site = map.image().base() + jump.site;
    const auto through = map.jumps_to(site, site);
    if (through.empty() || thunk_target(map.image(), site) != address) {
      calls.push_back(jump);
      continue;
    }
    if (thunks != nullptr) thunks->push_back(site);
    for (const DirectJump& call : through) {
      if (call.is_call) calls.push_back(call);
    }
  }
  std::ranges::sort(calls, {}, &DirectJump::site);
  return calls;
}

}  // namespace bitwitness::location
