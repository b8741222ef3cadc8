#include "tests/corpus_files.hpp"

#include "decoders/scan.hpp"
#include "tests/catch.hpp"

#include <array>
#include <optional>

namespace bitwitness::tests {

using namespace decoders;
using nlohmann::json;

namespace {

constexpr unsigned presence = 3;
constexpr std::array<const char*, 4> time_forms{"u8", "u16", "mask", "presence"};

std::span<const std::byte> bytes_of(const std::string& file) {
  return std::as_bytes(std::span(file));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool in_blobs(const std::string& path) {
  return path.starts_with("blobs/");
}

template <typename Visit, typename... Arguments>
void call(const Visit& visit, const Arguments&... arguments) {
  if (visit) visit(arguments...);
}

void read_object(std::span<const std::byte> bytes, const Visitor& visitor) {
  const std::optional<FileFormat> format = guess_format(bytes);
  REQUIRE(format);
  switch (*format) {
    case FileFormat::sws_animation:
      return call(visitor.sws, *read_sws_animation(bytes), bytes);
    case FileFormat::sws_anim_set:
      return call(visitor.anim_set, *read_sws_anim_set(bytes));
    case FileFormat::rr_animation:
      return call(visitor.rr, *read_rr_animation(bytes), bytes);
    case FileFormat::mab:
      return call(visitor.mab, *read_mab(bytes), bytes);
  }
}

}  // namespace

void read_objects(const Files& files, const Visitor& visitor) {
  for (const auto& [path, contents] : files) {
    INFO(path);
    if (!in_blobs(path)) read_object(bytes_of(contents), visitor);
  }
}

void scan_blobs(const Files& files, const Visitor& visitor) {
  for (const auto& [path, contents] : files) {
    if (!in_blobs(path)) continue;
    INFO(path);
    const std::span<const std::byte> blob = bytes_of(contents);
    CHECK_FALSE(guess_format(blob));
    ScanListener listener;
    listener.found = [&](const FoundObject& found) { read_object(blob.subspan(found.offset, found.size), visitor); };
    const ScanSummary summary = scan(blob, listener);
    CHECK(summary.refusals == 0);
    CHECK_FALSE(summary.stopped);
  }
}

Visitor Counter::visitor() {
  return {[this](const SwsAnimation& clip, std::span<const std::byte> bytes) { add_clip(Game::sws, clip, bytes); },
          [this](const SwsAnimSet& set) {
            ++anim_sets_;
            anim_pairs_ += set.pair_count();
          },
          [this](const RrAnimation& clip, std::span<const std::byte> bytes) { add_clip(Game::rr, clip, bytes); },
          [this](const Mab& clip, std::span<const std::byte> bytes) { add_mab(clip, bytes); }};
}

void Counter::add_files(const Files& files, bool blobs) {
  for (const auto& [path, contents] : files) {
    if (in_blobs(path) != blobs) continue;
    ++files_;
    bytes_ += contents.size();
  }
}

template <typename Clip>
void Counter::add_clip(Game game, const Clip& clip, std::span<const std::byte> bytes) {
  ++clips_;
  distinct_.insert(text_of(bytes));
  for (const Track& track : clip.tracks) {
    Row& row = rows_[{game, track.kind, static_cast<unsigned>(track.time_form)}];
    ++row.tracks;
    row.keys += track.key_count;
    for (std::size_t key = 0; key < track.key_count; ++key) {
      row.values.insert(text_of(track.values.subspan(key * track.width, track.width)));
    }
  }
}

void Counter::add_mab(const Mab& clip, std::span<const std::byte> bytes) {
  ++clips_;
  distinct_.insert(text_of(bytes));
  Row& row = rows_[{Game::mab, 0, presence}];
  row.tracks += clip.track_count;
  row.keys += clip.key_count;
  for_each_key(clip, PresenceOrder::low_bit_first,
               [&](std::uint32_t, std::uint32_t, std::span<const std::byte> key) { row.values.insert(text_of(key)); });
}

json Counter::as_manifest() const {
  json kinds = json::array();
  std::map<std::string, std::set<std::string>> by_decoder;
  std::map<std::pair<Game, std::uint8_t>, std::set<std::string>> by_kind;
  std::uint64_t tracks = 0;
  std::uint64_t keys = 0;
  for (const auto& [key, row] : rows_) {
    const auto& [game, kind, form] = key;
    kinds.push_back({{"game", name(game)},
                     {"kind", kind},
                     {"time_form", time_forms.at(form)},
                     {"tracks", row.tracks},
                     {"keys", row.keys},
                     {"distinct", row.values.size()}});
    tracks += row.tracks;
    keys += row.keys;
    by_decoder[std::string(find_track_kind(game, kind)->decoder)].insert(row.values.begin(), row.values.end());
    by_kind[{game, kind}].insert(row.values.begin(), row.values.end());
  }
  json distinct_by_kind = json::array();
  for (const auto& [key, values] : by_kind) {
    distinct_by_kind.push_back({{"game", name(key.first)}, {"kind", key.second}, {"distinct", values.size()}});
  }
  json decoders = json::array();
  for (const auto& [decoder, values] : by_decoder) {
    decoders.push_back({{"decoder", decoder}, {"distinct", values.size()}});
  }
  return {{"files", files_},         {"bytes", bytes_},
          {"clips", clips_},         {"distinct_clips", distinct_.size()},
          {"tracks", tracks},        {"keys", keys},
          {"anim_sets", anim_sets_}, {"anim_pairs", anim_pairs_},
          {"kinds", kinds},          {"distinct_by_kind", distinct_by_kind},
          {"decoders", decoders}};
}

}  // namespace bitwitness::tests
