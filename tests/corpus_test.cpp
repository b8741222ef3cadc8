#include "tests/fixtures/corpus/corpus.hpp"

#include "decoders/mab.hpp"
#include "decoders/packed_quat48.hpp"
#include "decoders/track_kinds.hpp"
#include "tests/catch.hpp"
#include "tests/corpus_files.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

// A small corpus, read with the readers and counted here once more. BITWITNESS_MAKE_CORPUS, the program, comes from
// CMake.

namespace bitwitness::tests {
namespace {

using namespace decoders;
namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t clips = 60;

/// A folder of its own that is removed with what is in it.
struct Folder {
  fs::path path;
  Folder() {
    static int number = 0;
    path = fs::temp_directory_path() /
           ("bitwitness-corpus-" + std::to_string(::getpid()) + "-" + std::to_string(number++));
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
};

/// The files of a folder without the markers, which are no part of what is counted.
Files files_of(const fs::path& folder) {
  Files files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().filename() == corpus::marker_name) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[fs::relative(entry.path(), folder).generic_string()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

struct Made {
  Files files;
  std::string manifest;
};

Made make(std::uint64_t seed) {
  const Folder folder;
  const corpus::Manifest manifest = corpus::make_corpus(folder.path, {.seed = seed, .clips = clips});
  std::ostringstream text;
  write_json(text, manifest);
  return {files_of(folder.path), text.str()};
}

const Made& first_seed() {
  static const Made made = make(1);
  return made;
}

json first_manifest() {
  return json::parse(first_seed().manifest);
}

struct Rotation {
  unsigned lane = 0;
  std::array<std::uint32_t, 4> words{};
};

Rotation rotation_of(const Track& track, std::size_t key) {
  const std::span<const std::byte> packed = track.values.subspan(key * track.width, track.width);
  Rotation rotation;
  rotation.lane = packed_quat48::omitted_lane(load_u16(packed, 0), load_u16(packed, 2));
  packed_quat48::decode(packed, rotation.words);
  return rotation;
}

// Neighbouring keys, and how many of them are alike.
struct Pairs {
  std::size_t count = 0;
  std::size_t near = 0;

  void add(const Rotation& before, const Rotation& after, double least_dot) {
    double dot = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      dot += double{std::bit_cast<float>(before.words[i])} * double{std::bit_cast<float>(after.words[i])};
    }
    ++count;
    if (std::abs(dot) > least_dot) ++near;
  }
};

// FNV-1a over paths and contents.
std::uint64_t digest(const Files& files) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const auto& [path, contents] : files) {
    for (const std::string* text : {&path, &contents}) {
      for (const char c : *text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
  }
  return hash;
}

}  // namespace

TEST_CASE("what the readers count in the files is what the manifest says") {
  json wanted = first_manifest();
  const json blobs = wanted.at("blobs");
  CHECK(wanted.at("distinct_clips") == clips);
  CHECK(wanted.at("clips") > clips);
  CHECK(blobs.at("clips") > blobs.at("distinct_clips"));
  wanted.erase("schema");
  wanted.erase("seed");
  wanted.erase("blobs");

  Counter objects;
  objects.add_files(first_seed().files, false);
  read_objects(first_seed().files, objects.visitor());
  CHECK(objects.as_manifest() == wanted);

  Counter found;
  found.add_files(first_seed().files, true);
  scan_blobs(first_seed().files, found.visitor());
  CHECK(found.as_manifest() == blobs);
}

TEST_CASE("the first clips have a track of every kind, form of times, flag and marker") {
  std::set<std::tuple<Game, unsigned, unsigned>> seen;  // the last: a tag's low bits, or form of times and marker
  Visitor visitor;
  visitor.sws = [&](const SwsAnimation& clip, std::span<const std::byte>) {
    for (const Track& track : clip.tracks) seen.insert({Game::sws, track.kind, track.tag & 3U});
  };
  visitor.rr = [&](const RrAnimation& clip, std::span<const std::byte>) {
    for (const Track& track : clip.tracks) {
      seen.insert({Game::rr, track.kind, static_cast<unsigned>(track.time_form) | (track.mask_marker & 0xC0U)});
    }
  };
  Files first;
  for (const std::string path : {"sws/0000.anim", "rr/0000.anim"}) first[path] = first_seed().files.at(path);
  read_objects(first, visitor);

  for (const TrackKind& row : track_kinds()) {
    const bool rr = row.game == Game::rr;
    if (row.game == Game::mab) continue;
    for (const unsigned form : rr ? std::vector{0U, 1U, 0x42U, 0x82U, 0xC2U} : std::vector{0U, 1U, 2U, 3U}) {
      INFO(name(row.game) << " kind " << unsigned{row.kind} << ", form " << form);
      CHECK(seen.contains({row.game, row.kind, form}));
    }
  }
}

TEST_CASE("clips are with and without what they may have, and AnimSets name clips that exist") {
  std::set<std::uint32_t> ids;
  std::set<std::uint32_t> named;
  std::set<bool> sws_events;
  std::set<bool> rr_events;
  std::set<bool> ecl;
  std::uint64_t stray = 0;
  Visitor visitor;
  visitor.sws = [&](const SwsAnimation& clip, std::span<const std::byte>) {
    ids.insert(clip.id);
    sws_events.insert(clip.event_count != 0);
    stray += clip.stray_last_keys;
    for (std::size_t i = 1; i < clip.mapping_count(); ++i) {
      if (clip.mapping(i - 1).bone_crc > clip.mapping(i).bone_crc) FAIL("mappings are not sorted");
    }
  };
  visitor.anim_set = [&](const SwsAnimSet& set) {
    for (std::size_t i = 0; i < set.pair_count(); ++i) named.insert({set.pair(i).first, set.pair(i).second});
  };
  visitor.rr = [&](const RrAnimation& clip, std::span<const std::byte>) {
    rr_events.insert(clip.event_count != 0);
    ecl.insert(clip.ecl.present);
    CHECK(clip.late_last_keys == 0);
    CHECK(clip.far_size_words == 0);
  };
  read_objects(first_seed().files, visitor);
  CHECK(sws_events.size() == 2);
  CHECK(rr_events.size() == 2);
  CHECK(ecl.size() == 2);
  CHECK(stray == 1);
  CHECK(named.size() > 10);
  CHECK(std::ranges::includes(ids, named));
}

TEST_CASE(".mab files have both versions and both habits of counting groups") {
  std::set<std::pair<unsigned, bool>> seen;
  Visitor visitor;
  visitor.mab = [&](const Mab& clip, std::span<const std::byte> bytes) {
    const bool by_last_frame = bool(read_mab(bytes, {.group_count = MabOptions::GroupCount::by_last_frame}));
    seen.insert({clip.version, by_last_frame});
    if (by_last_frame) CHECK(keys_past_end(clip, PresenceOrder::low_bit_first) == 0);
  };
  read_objects(first_seed().files, visitor);
  CHECK(seen == std::set<std::pair<unsigned, bool>>{{0x4C, true}, {0x4C, false}, {0x61, true}, {0x61, false}});
}

TEST_CASE("rotations turn slowly, through all twelve changes of the omitted component") {
  std::map<std::pair<unsigned, unsigned>, Pairs> changes;
  Pairs all;
  Visitor visitor;
  visitor.sws = [&](const SwsAnimation& clip, std::span<const std::byte>) {
    for (const Track& track : clip.tracks) {
      if (track.kind != 4) continue;
      for (std::size_t key = 1; key < track.key_count; ++key) {
        const Rotation before = rotation_of(track, key - 1);
        const Rotation after = rotation_of(track, key);
        all.add(before, after, 0.99);
        if (before.lane != after.lane) changes[{before.lane, after.lane}].add(before, after, 0.9);
      }
    }
  };
  read_objects(first_seed().files, visitor);
  CHECK(all.near * 100 > all.count * 98);
  CHECK(changes.size() == 12);
  for (const auto& [lanes, pairs] : changes) {
    INFO(lanes.first << " to " << lanes.second << ": " << pairs.near << " of " << pairs.count);
    CHECK(pairs.count >= 20);
    CHECK(pairs.near * 100 >= pairs.count * 85);
  }
}

TEST_CASE("bits that are 0 on every key of the install are 0 here") {
  std::uint64_t keys = 0;
  std::uint64_t set = 0;
  Visitor visitor;
  visitor.sws = [&](const SwsAnimation& clip, std::span<const std::byte>) {
    for (const Track& track : clip.tracks) {
      if (track.kind != 4 && track.kind != 5) continue;
      for (std::size_t at = 0; at < track.values.size(); at += track.width) {
        ++keys;
        const bool clear = track.kind == 4 ? (load_u16(track.values, at + 4) & 0x8000U) == 0
                                           : (load_u32(track.values, at) & 0x30000000U) == 0;
        if (!clear) ++set;
      }
    }
  };
  read_objects(first_seed().files, visitor);
  CHECK(keys > 1000);
  CHECK(set == 0);
}

TEST_CASE("equal seeds give equal bytes, from the program too and on every machine; another seed gives others") {
  // Changes only where the maker is meant to write something else.
  CHECK(digest(first_seed().files) == 0x7504f2818af10f64);

  const Made other = make(2);
  CHECK(json::parse(other.manifest).at("distinct_clips") == clips);
  for (const auto& [path, contents] : other.files) {
    INFO(path);
    const auto same = first_seed().files.find(path);
    CHECK((same == first_seed().files.end() || same->second != contents));
  }

  const Folder folder;
  const fs::path files = folder.path / "files";
  const fs::path manifest = folder.path / "manifest.json";
  const std::string command = std::string("'") + BITWITNESS_MAKE_CORPUS + "' --clips " + std::to_string(clips) + " '" +
                              files.string() + "' '" + manifest.string() + "' --seed 2 ";
  REQUIRE(std::system((command + ">" + (folder.path / "out").string()).c_str()) == 0);
  CHECK(files_of(files) == other.files);
  CHECK(files_of(folder.path).at("manifest.json") == other.manifest);
  CHECK(std::system((command + "2>" + (folder.path / "err").string()).c_str()) != 0);
  CHECK_THAT(files_of(folder.path).at("err"), contains_text("is not empty"));
}

TEST_CASE("each folder has a file that says what the others are") {
  const Folder folder;
  (void)corpus::make_corpus(folder.path, {.seed = 7, .clips = corpus::fewest_clips});
  for (const char* const name : {"", "sws", "rr", "mab", "blobs"}) {
    std::ifstream file(folder.path / name / corpus::marker_name, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    INFO(name << ": " << text);
    CHECK(text.starts_with(corpus::marker_opening));
    CHECK_THAT(text, contains_text("--seed 7 --clips 12\n"));
    CHECK(text.size() < 4096);
  }
}

TEST_CASE("a corpus has at least as many clips as it has shapes") {
  const Folder folder;
  CHECK_THROWS_WITH(corpus::make_corpus(folder.path, {.clips = corpus::fewest_clips - 1}),
                    contains_text("at least 12 clips"));
  CHECK_NOTHROW(corpus::make_corpus(folder.path, {.clips = corpus::fewest_clips}));
}

}  // namespace bitwitness::tests
