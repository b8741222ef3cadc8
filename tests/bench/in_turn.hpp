#pragma once
#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

// What the benchmarks share: medians of works that take turns, so that a change of the machine's speed meets all alike.

namespace bitwitness::bench {

inline double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double median(std::vector<double> all) {
  std::ranges::sort(all);
  return all[all.size() / 2];
}

/// Runs several things in turn, round after round, and returns each one's median of seconds. A first round warms up.
inline std::vector<double> in_turn(const std::vector<std::function<void()>>& works, int rounds = 5) {
  std::vector<std::vector<double>> times(works.size());
  for (int round = 0; round <= rounds; ++round) {
    for (std::size_t i = 0; i < works.size(); ++i) {
      const double time = seconds(works[i]);
      if (round != 0) times[i].push_back(time);
    }
  }
  std::vector<double> medians;
  for (auto& one : times) medians.push_back(median(one));
  return medians;
}

}  // namespace bitwitness::bench
