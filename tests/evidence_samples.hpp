#pragma once
#include "decoders/evidence.hpp"
#include "decoders/pose.hpp"
#include "tests/animation_samples.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

// Clips of smooth rotations, made by the seeds' readings or by others, written, read back and added to evidence.

namespace bitwitness::tests {

/// Four cosines of a few seconds' period, made a unit quaternion: smooth, and every component leads at times.
class Curve {
 public:
  explicit Curve(Random& random);

  decoders::Quaternion at(double frame) const;

 private:
  struct Wave {
    double rate = 0;
    double start = 0;
  };
  std::array<Wave, 4> waves_{};
};

/// By which readings clips are made; the default ones are the seeds'.
struct Reading {
  decoders::IndexOrder order = decoders::IndexOrder::word_0_low;
  decoders::TranslationSplit split = decoders::TranslationSplit::x11_y11_z10;
  decoders::Quat64Layout layout = decoders::Quat64Layout::ring;
};

/// How a .mab is made.
struct MabReading {
  decoders::PresenceOrder order = decoders::PresenceOrder::low_bit_first;
  bool falling = false;     ///< later keys stored last frame first
  bool whole_group = true;  ///< the last group has all its eight frames, so that no bit can lie past the end
};

/// Appends the low `size` bytes of a number.
void append(Bytes& values, std::uint64_t bits, std::size_t size);

/// Makes the values of one track along a curve of its own. Rotation kinds, and kind 8 of Shaun White Skateboarding.
Bytes values_of(Random& random, decoders::Game game, unsigned kind, std::size_t keys, const Reading& reading = {});

/// Makes a track of u8 times, one tick a key.
decoders::Track track_of(Store& store, unsigned kind, unsigned width, Bytes values);

/// Makes the head of a clip of so many keys, a tick apart.
decoders::SwsAnimation sws_head(std::size_t keys);
decoders::RrAnimation rr_head(std::size_t keys);

/// Writes a clip, reads it and adds it. Tags and size words are set.
void add_sws(decoders::Evidence& evidence, const decoders::SwsAnimation& head, std::vector<decoders::Track> tracks);
void add_rr(decoders::Evidence& evidence, const decoders::RrAnimation& head, std::vector<decoders::Track> tracks,
            std::uint32_t size_distance = 0);

/// Adds a clip with so many tracks of each rotation kind of a game, and of kind 8 of Shaun White Skateboarding.
void add_clip(decoders::Evidence& evidence, Random& random, decoders::Game game, const Reading& reading,
              std::size_t tracks, std::size_t keys);

/// Writes the groups of a .mab whose track count and last frame are set, reads them and adds them.
void add_groups(decoders::Evidence& evidence, MabSample& made);

/// Adds a .mab, each later frame having a key or not by chance.
void add_mab(decoders::Evidence& evidence, Random& random, const MabReading& reading, std::size_t tracks,
             std::size_t groups);

/// Finds a result's row; fails the test where there is none.
const decoders::RotationEvidence& row_of(const decoders::EvidenceResult& result, decoders::Game game, unsigned kind);
const decoders::BitsEvidence& bits_of(const decoders::EvidenceResult& result, std::string_view name);

}  // namespace bitwitness::tests
