#include "harness/facts.hpp"

#include "harness/values.hpp"

#include <utility>

namespace bitwitness {

void FactSum::add(const Fact& fact) {
  const auto [known, is_new] = facts_.try_emplace(fact.what, fact);
  if (is_new) return;
  known->second.values += fact.values;
  if (is_less(fact.first_value, known->second.first_value)) known->second.first_value = fact.first_value;
}

void FactSum::add(const std::vector<Fact>& facts) {
  for (const Fact& fact : facts) add(fact);
}

std::vector<Fact> FactSum::all() const {
  std::vector<Fact> out;
  for (const auto& [what, fact] : facts_) out.push_back(fact);
  return out;
}

std::vector<Fact> FactSum::take() {
  std::vector<Fact> out;
  for (auto& [what, fact] : std::exchange(facts_, {})) out.push_back(std::move(fact));
  return out;
}

void add_isolation(Isolation& into, const Isolation& later) {
  into.sampled += later.sampled;
  if (into.unstable == 0) into.first_value = later.first_value;
  into.unstable += later.unstable;
}

}  // namespace bitwitness
