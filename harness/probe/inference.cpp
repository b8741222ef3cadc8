#include "harness/probe/inference.hpp"

#include "harness/disassembly.hpp"
#include "harness/error.hpp"
#include "harness/probe/call_evidence.hpp"
#include "harness/probe/call_sites.hpp"
#include "harness/probe/drafting.hpp"
#include "harness/probe/exploration.hpp"
#include "harness/probe/trial.hpp"
#include "harness/probe/usage.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace bitwitness {
namespace {

/// Explains why no call returned.
void explain(Inference& inference, const Usage& usage) {
  for (const std::string& trouble : usage.troubles) inference.seen.push_back(fmt::format("it {}", trouble));
  if (usage.troubles.empty()) inference.seen.emplace_back("no call of it returned");
}

/// Puts the best first and calls nothing certain that has an equal beside it.
void rank(std::vector<Candidate>& candidates) {
  std::ranges::stable_sort(candidates, {}, &Candidate::confidence);
  const bool is_open = candidates.size() > 1 && candidates[1].confidence == Confidence::certain;
  for (Candidate& candidate : candidates) {
    if (is_open && candidate.confidence == Confidence::certain) candidate.confidence = Confidence::likely;
  }
}

/// Holds the candidates against the calls of the routine that the image holds.
void ask_callers(Inference& inference, const Image& image, std::uint64_t address, const Usage& usage,
                 std::span<const Place> places) {
  const DirectCalls calls = find_call_sites(image, address);
  const CallEvidence evidence{calls, usage, places, image.format() == ImageFormat::pe32_plus};
  settle_constants(inference.candidates, evidence);
  order_results(inference.candidates, evidence);
  weigh_calls(inference, evidence);
}

}  // namespace

std::string_view to_string(Confidence confidence) {
  switch (confidence) {
    case Confidence::certain:
      return "certain";
    case Confidence::likely:
      return "likely";
    case Confidence::possible:
      break;
  }
  return "possible";
}

const Candidate* Inference::certain() const {
  return !candidates.empty() && candidates.front().confidence == Confidence::certain ? &candidates.front() : nullptr;
}

Inference infer(const Image& image, std::uint64_t address, const InferenceOptions& options) {
  const bool is_64_bit = image.format() == ImageFormat::pe32_plus;
  const Segment* segment = image.find(address);
  if (segment == nullptr || !segment->executable) {
    throw Error(fmt::format("{}: {:#x} is not in executable memory", image.path(), address));
  }
  Inference inference;
  Exploration exploration(image, address, {options.environment, options.budget});
  const Usage usage = Study(exploration, image, options.seed).run();
  inference.calls = exploration.calls();
  if (exploration.uses_thread_block()) {
    inference.seen.push_back(fmt::format("it uses {}:[…], for which scratch memory stood", is_64_bit ? "gs" : "fs"));
  }
  if (exploration.writes_code()) {
    inference.seen.emplace_back("it writes to code");
    return inference;
  }
  const auto see_path = [&inference](const std::vector<std::string>& clauses) {
    for (const std::string& clause : clauses) inference.seen.push_back("it " + clause);
  };
  if (usage.returned == 0) {
    explain(inference, usage);
    see_path(exploration.path(exploration.blank()));
    return inference;
  }
  if (usage.is_erratic) {
    inference.seen.emplace_back("it gives other results when it is called again with the same");
    return inference;
  }
  Drafts drafts = draft(usage, exploration.places(), is_64_bit);
  inference.candidates = std::move(drafts.candidates);
  inference.seen.insert(inference.seen.end(), drafts.seen.begin(), drafts.seen.end());
  if (!inference.candidates.empty()) ask_callers(inference, image, address, usage, exploration.places());
  for (Candidate& candidate : inference.candidates) try_out(candidate, image, address, options);
  rank(inference.candidates);
  const bool has_candidate = !inference.candidates.empty();
  see_path(has_candidate ? path_of(inference.candidates.front().signature, image, address, options)
                         : exploration.path(exploration.blank()));
  if (!has_candidate) {
    for (std::string& clause : describe(usage, exploration.places(), is_64_bit))
      inference.seen.push_back(std::move(clause));
  } else if (inference.candidates.front().confidence != Confidence::possible) {
    inference.dependencies = dependencies_of(inference.candidates.front().signature, image, address, options,
                                             exploration.executed() / exploration.calls());
  }
  return inference;
}

}  // namespace bitwitness
