#include "harness/report.hpp"

#include <algorithm>
#include <limits>

namespace bitwitness {

namespace {

constexpr std::uint32_t sign_bit = 0x8000'0000;

bool is_nan(std::uint32_t bits) {
  return (bits & ~sign_bit) > 0x7f80'0000;
}

/// Places a float on a line of integers where neighbours are one apart: … -2 = -denormal, -1 = -0, 0 = +0, …
std::int64_t rank_of(std::uint32_t bits) {
  const auto magnitude = static_cast<std::int64_t>(bits & ~sign_bit);
  return (bits & sign_bit) != 0 ? -1 - magnitude : magnitude;
}

std::uint64_t apart(std::int64_t a, std::int64_t b) {
  return static_cast<std::uint64_t>(a < b ? b - a : a - b);
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::agree:
      return "agree";
    case Verdict::differ:
      return "differ";
    case Verdict::incomplete:
      return "incomplete";
    case Verdict::vacuous:
      break;
  }
  return "vacuous";
}

Verdict RunReport::verdict() const {
  if (counts.run == 0) return Verdict::vacuous;
  if (counts.agreed + counts.known != counts.run || isolation.unstable > 0 || !broken.empty()) return Verdict::differ;
  if (counts.not_run > 0) return Verdict::incomplete;
  return Verdict::agree;
}

Verdict Report::verdict() const {
  const auto any = [this](auto predicate) { return std::any_of(runs.begin(), runs.end(), predicate); };
  if (any([](const RunReport& run) { return run.verdict() == Verdict::differ; })) return Verdict::differ;
  const bool something_ran = any([](const RunReport& run) { return run.counts.run > 0; });
  if (something_ran && any([](const RunReport& run) { return run.counts.not_run > 0; })) return Verdict::incomplete;
  if (runs.empty() || any([](const RunReport& run) { return run.counts.run == 0; })) return Verdict::vacuous;
  return Verdict::agree;
}

std::uint64_t ulp_distance(std::uint32_t a, std::uint32_t b, WordKind kind) {
  if (a == b) return 0;
  switch (kind) {
    case WordKind::i32:
      return apart(static_cast<std::int32_t>(a), static_cast<std::int32_t>(b));
    case WordKind::u32:
      return apart(a, b);
    case WordKind::f32:
      break;
  }
  if (is_nan(a) || is_nan(b)) return std::numeric_limits<std::uint64_t>::max();
  return apart(rank_of(a), rank_of(b));
}

}  // namespace bitwitness
