#pragma once
#include "decoders/dunia_quat48.hpp"
#include "decoders/packed_quat32.hpp"
#include "decoders/packed_quat48.hpp"
#include "decoders/packed_quat64.hpp"
#include "decoders/pose.hpp"
#include "decoders/quat_xyz.hpp"
#include "decoders/rotation_z15.hpp"
#include "decoders/translation_11_11_10.hpp"
#include "decoders/translation_f32.hpp"
#include "decoders/translation_i16.hpp"

#include <array>
#include <cstddef>

// Packed values of rotations and translations. Whatever a decoder gives, its encoder takes back to a value of the same
// words; anything else becomes the nearest code of each component, the lower one of two equally near. What lies beyond
// a component's range becomes its end, and a NaN its lowest code. Bits that a decoder ignores are written as 0. How the
// games' own tools encode is not known.
//
// A rotation of the smallest-three formats leaves out its largest component, the first of equal ones; the quaternion is
// negated where that component is negative, which is the same rotation. Only where another lane gives back the very
// words of the quaternion is that one left out.

namespace bitwitness::decoders::packed_quat32 {

/// Encodes a unit quaternion into 4 bytes.
std::array<std::byte, packed_size> encode(const Quaternion& rotation);

}  // namespace bitwitness::decoders::packed_quat32

namespace bitwitness::decoders::packed_quat48 {

/// Encodes a unit quaternion into 6 bytes.
std::array<std::byte, packed_size> encode(const Quaternion& rotation);

}  // namespace bitwitness::decoders::packed_quat48

namespace bitwitness::decoders::dunia_quat48 {

/// Encodes a unit quaternion into 6 bytes; its third word reaches below packed_quat48's range.
std::array<std::byte, packed_size> encode(const Quaternion& rotation);

}  // namespace bitwitness::decoders::dunia_quat48

namespace bitwitness::decoders::packed_quat64 {

/// Encodes a unit quaternion into 8 bytes.
std::array<std::byte, packed_size> encode(const Quaternion& rotation);

}  // namespace bitwitness::decoders::packed_quat64

namespace bitwitness::decoders::quat_xyz {

/// Encodes a unit quaternion into 12 bytes: x, y, z as they are, negated where w is negative.
std::array<std::byte, packed_size> encode(const Quaternion& rotation);

}  // namespace bitwitness::decoders::quat_xyz

namespace bitwitness::decoders::rotation_z15 {

/// Encodes the z of a unit quaternion into 2 bytes, negated where w is negative; x and y are lost.
std::array<std::byte, packed_size> encode(const Quaternion& rotation);

}  // namespace bitwitness::decoders::rotation_z15

namespace bitwitness::decoders::translation_f32 {

/// Encodes a translation into 12 bytes, bits kept.
std::array<std::byte, packed_size> encode(const Translation& translation);

}  // namespace bitwitness::decoders::translation_f32

namespace bitwitness::decoders::translation_11_11_10 {

/// Encodes a translation in metres into 4 bytes: x and y of -1.024 … 1.023, z of -0.512 … 0.511.
std::array<std::byte, packed_size> encode(const Translation& translation);

}  // namespace bitwitness::decoders::translation_11_11_10

namespace bitwitness::decoders::translation_i16 {

/// Encodes a translation in metres into 6 bytes: components of -32.768 … 32.767.
std::array<std::byte, packed_size> encode(const Translation& translation);

}  // namespace bitwitness::decoders::translation_i16
