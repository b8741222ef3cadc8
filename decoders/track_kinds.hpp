#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace bitwitness::decoders {

/// Whose track numbering a kind belongs to: Shaun White Skateboarding, Riders Republic, or Dunia's .mab, which has one
/// kind of key and no number for it (0 here).
enum class Game : std::uint8_t { sws, rr, mab };

/// Names a game as reports do: "sws", "rr", "mab".
std::string_view name(Game game);

/// A kind of track and the decoder of its values.
struct TrackKind {
  Game game = Game::sws;
  std::uint8_t kind = 0;
  std::string_view decoder;  ///< a name of the registry
};

/// Every kind whose width is known, by game and number. Source: seed 000, Track blocks and Shaun White Skateboarding;
/// seed 004.
std::span<const TrackKind> track_kinds();

/// Returns the row of a kind, or null.
const TrackKind* find_track_kind(Game game, unsigned kind);

}  // namespace bitwitness::decoders
