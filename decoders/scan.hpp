#pragma once
#include "decoders/animation.hpp"
#include "decoders/rr_animation.hpp"
#include "decoders/sws_animation.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <variant>

namespace bitwitness::decoders {

/// An object proven inside a larger blob. Spans of the object point into the blob; the offsets of its tracks and
/// refusals count from the object's own start.
struct FoundObject {
  std::size_t offset = 0;  ///< of the object's first byte in the blob
  std::size_t size = 0;
  std::variant<SwsAnimation, SwsAnimSet, RrAnimation> object;
};

/// Who is told of what a scan meets, in rising order of offset. Empty functions are not called.
struct ScanListener {
  std::function<void(const FoundObject&)> found{};

  /// Bytes that open an Animation or AnimSet, their class id included, but break a rule later. Offsets are the blob's.
  std::function<void(const Refusal&)> refused{};

  /// Asked every scan_window bytes at the latest, a single object's reading apart, whether to go on. It is given how
  /// many bytes of the blob are searched, the mean over the class ids looked for: never falling, at most the size.
  std::function<bool(std::size_t searched)> keep_going{};
};

/// Bytes that are searched for one class id before a scan asks whether to go on.
inline constexpr std::size_t scan_window = std::size_t{4} << 20;

/// What a scan saw.
struct ScanSummary {
  std::uint64_t objects = 0;
  std::uint64_t refusals = 0;
  std::uint64_t class_ids = 0;     ///< places that hold a class id looked for and were tried as an object of their own
  std::optional<Refusal> stopped;  ///< Rule::work at the offset from which the blob has not been looked at
  bool given_up = false;           ///< the listener did not want to go on; what it was told so far stands
};

/// Finds the Animations of both games and AnimSets in an uncompressed blob, at any offset. Each is found by a class id
/// and given only when its grammar holds to its last field; found objects do not overlap. Linear in the size: work is
/// bounded, and a blob made to exceed the bound stops the scan. Allocates nothing.
///
/// Shaun White Skateboarding's objects are found by their class id and the table, or managed byte, before it. A Riders
/// Republic body has no class id of its own: it is looked for right behind an Animation's class id (assumed: that is
/// how the resource's header ends), or, with empty arrays and no events, at its fixed distance before AnimTrackData's.
/// AnimTrackData is looked for up to the next place that opens an Animation.
///
/// Missed without a word: a bare Riders Republic body, no class id before it, that has events or elements in its two
/// arrays. Not looked for: AnimComponent, whose layout any bytes fit, and .mab files, which carry no class id.
ScanSummary scan(std::span<const std::byte> blob, const ScanListener& listener);

/// The formats a file may be exactly one object of.
enum class FileFormat : std::uint8_t { sws_animation, sws_anim_set, rr_animation, mab };

/// Guesses a file's format from its opening bytes: the table, the managed byte with or without AnimSet's class, the
/// version byte. Says nothing about the rest.
std::optional<FileFormat> guess_format(std::span<const std::byte> bytes);

}  // namespace bitwitness::decoders
