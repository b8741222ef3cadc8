#include "decoders/track_kinds.hpp"

#include <algorithm>
#include <array>

namespace bitwitness::decoders {
namespace {

constexpr std::array<TrackKind, 22> kinds{{
    {Game::sws, 4, "packed_quat48"},
    {Game::sws, 5, "packed_quat64"},
    {Game::sws, 6, "quat_xyz"},
    {Game::sws, 7, "raw_sws_7"},
    {Game::sws, 8, "translation_11_11_10"},
    {Game::sws, 9, "translation_i16"},
    {Game::sws, 10, "raw_sws_10"},
    {Game::sws, 11, "raw_sws_11"},
    {Game::sws, 17, "raw_sws_17"},
    {Game::rr, 3, "packed_quat32"},
    {Game::rr, 4, "packed_quat48"},
    {Game::rr, 5, "packed_quat64"},
    {Game::rr, 7, "rotation_z15"},
    {Game::rr, 8, "quat_xyz"},
    {Game::rr, 9, "translation_f32"},
    {Game::rr, 16, "raw_rr_16"},
    {Game::rr, 17, "raw_rr_17"},
    {Game::rr, 18, "raw_rr_18"},
    {Game::rr, 21, "raw_rr_21"},
    {Game::rr, 22, "raw_rr_22"},
    {Game::rr, 25, "raw_rr_25"},
    {Game::mab, 0, "dunia_quat48"},
}};

}  // namespace

std::string_view name(Game game) {
  switch (game) {
    case Game::sws:
      return "sws";
    case Game::rr:
      return "rr";
    case Game::mab:
      break;
  }
  return "mab";
}

std::span<const TrackKind> track_kinds() {
  return kinds;
}

const TrackKind* find_track_kind(Game game, unsigned kind) {
  const auto found =
      std::ranges::find_if(kinds, [&](const TrackKind& row) { return row.game == game && row.kind == kind; });
  return found == kinds.end() ? nullptr : &*found;
}

}  // namespace bitwitness::decoders
