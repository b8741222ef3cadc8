#include "decoders/sampling.hpp"

#include "tests/catch.hpp"
#include "tests/decoder_support.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

using namespace bitwitness::decoders;
using namespace bitwitness::testing;

namespace {

constexpr double pi = 3.14159265358979323846;

// A turn by an angle about z.
Quaternion about_z(double angle) {
  return {0, 0, static_cast<float>(std::sin(angle / 2)), static_cast<float>(std::cos(angle / 2))};
}

double angle_about_z(const Quaternion& rotation) {
  return 2 * std::atan2(double{rotation[2]}, double{rotation[3]});
}

Quaternion negated(const Quaternion& rotation) {
  return {-rotation[0], -rotation[1], -rotation[2], -rotation[3]};
}

double length(const Quaternion& rotation) {
  double square = 0;
  for (const float component : rotation) square += double{component} * double{component};
  return std::sqrt(square);
}

template <class Action>
std::string refusal(Action action) {
  try {
    action();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("sample goes linearly between translation keys and stays at the ends", "[decoders]") {
  const std::vector<std::uint16_t> times{0, 4, 5, 65'535};
  const std::vector<Translation> values{{1, 2, 3}, {5, 0, 3}, {5, 1, -3}, {0, 0, 0}};
  const TranslationKeys keys{times, values};
  CHECK(sample(keys, -1) == values[0]);
  CHECK(sample(keys, 0) == values[0]);
  CHECK(sample(keys, 1) == Translation{2, 1.5f, 3});
  CHECK(sample(keys, 3) == Translation{4, 0.5f, 3});
  CHECK(sample(keys, 4) == values[1]);
  CHECK(sample(keys, 4.25) == Translation{5, 0.25f, 1.5f});
  CHECK(sample(keys, 5) == values[2]);
  CHECK(sample(keys, 32'770) == Translation{2.5f, 0.5f, -1.5f});
  CHECK(sample(keys, 65'535) == values[3]);
  CHECK(sample(keys, 1e300) == values[3]);
  CHECK(sample(keys, std::numeric_limits<double>::infinity()) == values[3]);
  CHECK(sample(keys, -std::numeric_limits<double>::infinity()) == values[0]);
  CHECK(sample(keys, std::numeric_limits<double>::quiet_NaN()) == values[0]);
}

TEST_CASE("sample takes mask frames as two ticks each", "[decoders]") {
  const std::vector<std::uint16_t> times{1, 3, 63};
  const std::vector<Translation> values{{0, 0, 0}, {4, 0, 0}, {8, 0, 0}};
  const TranslationKeys keys{times, values, TimeUnit::mask_frame};
  CHECK(sample(keys, 2)[0] == 0);
  CHECK(sample(keys, 3)[0] == 1);
  CHECK(sample(keys, 4)[0] == 2);
  CHECK(sample(keys, 6)[0] == 4);
  CHECK(sample(keys, 66)[0] == 6);
  CHECK(sample(keys, 126)[0] == 8);
  CHECK(ticks_of(0.5) == 30.0);
}

TEST_CASE("sample returns the words of a single key at every time", "[decoders]") {
  const std::vector<std::uint16_t> times{7};
  const std::vector<Quaternion> values{{0.1f, 0.2f, 0.3f, 0.4f}};
  for (const double ticks : {-1.0, 0.0, 7.0, 8.0}) CHECK(sample(RotationKeys{times, values}, ticks) == values[0]);
}

TEST_CASE("sample normalises what lies between rotation keys, and only that", "[decoders]") {
  const std::vector<std::uint16_t> times{0, 10};
  const std::vector<Quaternion> values{about_z(0.0), about_z(1.5)};
  const RotationKeys keys{times, values};
  for (int tick = 1; tick < 10; ++tick) {
    const Quaternion rotation = sample(keys, tick);
    const double weight = tick / 10.0;
    const double z = weight * std::sin(0.75);
    const double w = 1 - weight + weight * std::cos(0.75);
    INFO("tick " << tick);
    CHECK(rotation[0] == 0);
    CHECK(std::abs(double{rotation[2]} - z / std::hypot(z, w)) < 1e-7);
    CHECK(std::abs(double{rotation[3]} - w / std::hypot(z, w)) < 1e-7);
    CHECK(std::abs(length(rotation) - 1) < 1e-7);
  }
  const std::vector<Quaternion> long_ones{{0, 0, 0, 2}, {0, 0, 2, 0}};
  CHECK(sample(RotationKeys{times, long_ones}, 0) == long_ones[0]);
  CHECK(sample(RotationKeys{times, long_ones}, 10) == long_ones[1]);
  CHECK(std::abs(length(sample(RotationKeys{times, long_ones}, 3)) - 1) < 1e-7);
}

TEST_CASE("sample takes the shorter arc between a key and a negated one, near the earlier key", "[decoders]") {
  const std::vector<std::uint16_t> times{0, 8};
  for (const RotationBlend blend : {RotationBlend::nlerp, RotationBlend::nlerp_or_slerp}) {
    for (const double turn : {0.1, 1.0, 2.5}) {
      const std::vector<Quaternion> plain{about_z(0.3), about_z(0.3 + turn)};
      const std::vector<Quaternion> flipped{plain[0], negated(plain[1])};
      const std::vector<Quaternion> flipped_first{negated(plain[0]), plain[1]};
      for (int tick = 1; tick < 8; ++tick) {
        const Quaternion rotation = sample(RotationKeys{times, plain}, tick, blend);
        const Quaternion other = sample(RotationKeys{times, flipped}, tick, blend);
        INFO("turn " << turn << " tick " << tick);
        CHECK(other == rotation);
        CHECK(sample(RotationKeys{times, flipped_first}, tick, blend) == negated(rotation));
        CHECK(angle_about_z(rotation) > 0.3);
        CHECK(angle_about_z(rotation) < 0.3 + turn);
      }
    }
  }
}

TEST_CASE("sample by nlerp_or_slerp turns evenly below its threshold and linearly from it on", "[decoders]") {
  const std::vector<std::uint16_t> times{0, 4};
  const double threshold = 2 * std::acos(double{nlerp_dot});
  CHECK(bits_of(nlerp_dot) == 0x3F7D466B);
  for (const double turn : {threshold + 1e-3, 1.0, 2.0, pi - 1e-3}) {
    const std::vector<Quaternion> values{about_z(0.2), about_z(0.2 + turn)};
    const RotationKeys keys{times, values};
    INFO("turn " << turn);
    for (int tick = 1; tick < 4; ++tick) {
      const double even = 0.2 + turn * tick / 4;
      CHECK(std::abs(angle_about_z(sample(keys, tick, RotationBlend::nlerp_or_slerp)) - even) < 1e-6);
    }
    CHECK(std::abs(angle_about_z(sample(keys, 1)) - (0.2 + turn / 4)) > 1e-5);
  }
  const std::vector<Quaternion> values{about_z(0.2), about_z(0.2 + threshold - 1e-3)};
  const RotationKeys keys{times, values};
  for (const double ticks : {0.5, 1.0, 3.0}) {
    CHECK(sample(keys, ticks, RotationBlend::nlerp_or_slerp) == sample(keys, ticks, RotationBlend::nlerp));
  }
}

TEST_CASE("sample gives the earlier key where opposite rotations or empty ones leave no length", "[decoders]") {
  const std::vector<std::uint16_t> times{0, 2};
  const std::vector<Quaternion> empty{{0, 0, 0, 0}, {0, 0, 0, 0}};
  CHECK(sample(RotationKeys{times, empty}, 1) == empty[0]);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Quaternion> unknown{{0, 0, 0, 1}, {nan, 0, 0, 1}};
  CHECK(sample(RotationKeys{times, unknown}, 1) == unknown[0]);
}

TEST_CASE("sample reads no key that is not there, whatever the times", "[decoders]") {
  Draws draws(99);
  for (int round = 0; round < 5'000; ++round) {
    std::vector<std::uint16_t> times(1 + draws.below(6));
    for (std::uint16_t& time : times) time = static_cast<std::uint16_t>(draws.below(5));
    const std::vector<Translation> values(times.size(), Translation{1, 1, 1});
    for (double ticks = -0.5; ticks < 6; ticks += 0.5) REQUIRE(sample({times, values}, ticks) == values[0]);
  }
}

TEST_CASE("sample refuses tracks without keys or with unequal counts", "[decoders]") {
  const std::vector<std::uint16_t> times{0, 1};
  const std::vector<Quaternion> values{about_z(0)};
  CHECK(refusal([] { sample(TranslationKeys{}, 0); }).find("without keys") != std::string::npos);
  CHECK(refusal([&] { sample(RotationKeys{times, values}, 0); }).find("counts") != std::string::npos);
  CHECK(refusal([&] { sample(RotationKeys{times, {}}, 0); }).find("without keys") != std::string::npos);
}

TEST_CASE("nearest_tick rounds seconds to whole ticks", "[decoders]") {
  CHECK(nearest_tick(0.0f) == 0);
  CHECK(nearest_tick(0.49f / 60) == 0);
  CHECK(nearest_tick(0.51f / 60) == 1);
  CHECK(nearest_tick(1.0f) == 60);
  CHECK(nearest_tick(-5.0f) == 0);
  CHECK(nearest_tick(std::numeric_limits<float>::quiet_NaN()) == 0);
  CHECK(nearest_tick(1e30f) == 0x7FFFFFFF);
}
