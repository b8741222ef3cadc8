#include "decoders/sampling.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>

namespace bitwitness::decoders {
namespace {

using WideQuaternion = std::array<double, 4>;

// Where a time lies: `weight` of the way from key `first` to the one after it. 0 is the key itself.
struct Place {
  std::size_t first = 0;
  double weight = 0.0;
};

template <class Value>
Place place_of(const Keys<Value>& keys, double ticks) {
  if (keys.values.empty()) throw std::invalid_argument("sample: a track without keys");
  if (keys.times.size() != keys.values.size()) {
    throw std::invalid_argument("sample: the counts of key times and values differ");
  }
  const double time = keys.unit == TimeUnit::mask_frame ? ticks / 2.0 : ticks;
  const std::size_t last = keys.times.size() - 1;
  if (!(time > keys.times.front())) return {0, 0.0};
  if (time >= keys.times[last]) return {last, 0.0};
  const auto after = std::ranges::upper_bound(keys.times, time);
  // Between the ends of rising times both lie within 1 … last; of other times they are made to, so that nothing is read
  // beyond the keys.
  const auto next = std::clamp<std::size_t>(static_cast<std::size_t>(after - keys.times.begin()), 1, last);
  const double start = keys.times[next - 1];
  const double step = keys.times[next] - start;
  return {next - 1, step > 0.0 ? std::clamp((time - start) / step, 0.0, 1.0) : 0.0};
}

WideQuaternion widen(const Quaternion& rotation) {
  return {rotation[0], rotation[1], rotation[2], rotation[3]};
}

double dot(const WideQuaternion& a, const WideQuaternion& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
}

}  // namespace

Quaternion sample(const RotationKeys& keys, double ticks, RotationBlend blend) {
  const auto [first, weight] = place_of(keys, ticks);
  if (weight == 0.0) return keys.values[first];
  const WideQuaternion from = widen(keys.values[first]);
  const WideQuaternion to = widen(keys.values[first + 1]);
  const double cosine = dot(from, to);
  double from_share = 1.0 - weight;
  double to_share = weight;
  if (blend == RotationBlend::nlerp_or_slerp && std::abs(cosine) < double{nlerp_dot}) {
    const double angle = std::acos(std::abs(cosine));
    from_share = std::sin(from_share * angle);
    to_share = std::sin(to_share * angle);
  }
  if (cosine < 0.0) to_share = -to_share;
  WideQuaternion sum{};
  for (std::size_t i = 0; i < 4; ++i) sum[i] = from_share * from[i] + to_share * to[i];
  const double length = std::sqrt(dot(sum, sum));
  if (!(length > 0.0)) return keys.values[first];
  Quaternion rotation{};
  for (std::size_t i = 0; i < 4; ++i) rotation[i] = static_cast<float>(sum[i] / length);
  return rotation;
}

Translation sample(const TranslationKeys& keys, double ticks) {
  const auto [first, weight] = place_of(keys, ticks);
  if (weight == 0.0) return keys.values[first];
  Translation translation{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double from = keys.values[first][i];
    const double to = keys.values[first + 1][i];
    translation[i] = static_cast<float>(from + weight * (to - from));
  }
  return translation;
}

std::int32_t nearest_tick(float seconds) {
  const float ticks = seconds * 60.0f + 0.5f;
  constexpr auto highest = std::numeric_limits<std::int32_t>::max();
  if (!(ticks > 0.0f)) return 0;
  return ticks >= 0x1p31f ? highest : static_cast<std::int32_t>(ticks);
}

}  // namespace bitwitness::decoders
