#pragma once
#include "decoders/mab.hpp"
#include "decoders/rr_animation.hpp"
#include "decoders/sws_animation.hpp"
#include "decoders/track_kinds.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>

#include <nlohmann/json.hpp>

// Reads the files of a made corpus with the readers, and counts what is in them with plain sets.

namespace bitwitness::tests {

/// Contents by path within the corpus.
using Files = std::map<std::string, std::string>;

/// Who is given each object with what it was read from. Empty functions are not called.
struct Visitor {
  std::function<void(const decoders::SwsAnimation&, std::span<const std::byte>)> sws;
  std::function<void(const decoders::SwsAnimSet&)> anim_set;
  std::function<void(const decoders::RrAnimation&, std::span<const std::byte>)> rr;
  std::function<void(const decoders::Mab&, std::span<const std::byte>)> mab;
};

/// Reads every file outside blobs/ as one object of the format its first bytes tell. A refusal fails the test.
void read_objects(const Files& files, const Visitor& visitor);

/// Scans every file of blobs/ and reads what is found. A refusal fails the test.
void scan_blobs(const Files& files, const Visitor& visitor);

/// Counts as a manifest does.
class Counter {
 public:
  /// Returns who counts what is read; it must not outlive the counter.
  Visitor visitor();

  /// Counts the files of blobs/, or those outside.
  void add_files(const Files& files, bool blobs);

  /// Returns the manifest's fields from "files" to "decoders".
  [[nodiscard]] nlohmann::json as_manifest() const;

 private:
  struct Row {
    std::uint64_t tracks = 0;
    std::uint64_t keys = 0;
    std::set<std::string> values;
  };

  template <typename Clip>
  void add_clip(decoders::Game game, const Clip& clip, std::span<const std::byte> bytes);
  void add_mab(const decoders::Mab& clip, std::span<const std::byte> bytes);

  std::uint64_t files_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t clips_ = 0;
  std::uint64_t anim_sets_ = 0;
  std::uint64_t anim_pairs_ = 0;
  std::set<std::string> distinct_;
  std::map<std::tuple<decoders::Game, std::uint8_t, unsigned>, Row> rows_;  // the last: a form of times
};

}  // namespace bitwitness::tests
