#include "harness/findings.hpp"

#include "harness/environments.hpp"

#include <utility>

namespace bitwitness {

void EnvironmentFindings::merge(EnvironmentFindings&& other) {
  tally.merge(std::move(other.tally));
  sampled.count += other.sampled.count;
  sampled.unstable += other.sampled.unstable;
  sampled.first.merge(std::move(other.sampled.first));
  facts.add(other.facts.take());
  seconds += other.seconds;
}

Findings::Findings(std::size_t environments, std::size_t limit, std::size_t word_count)
    : each(environments, EnvironmentFindings(limit, word_count)) {
  effects.changed.resize(environments);
}

void Findings::merge(Findings&& other) {
  for (std::size_t i = 0; i < each.size(); ++i) each[i].merge(std::move(other.each[i]));
  add_effects(effects, other.effects);
}

}  // namespace bitwitness
