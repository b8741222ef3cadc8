#include "harness/cli/census.hpp"

#include "decoders/evidence.hpp"
#include "decoders/registry.hpp"
#include "harness/error.hpp"
#include "harness/sha256.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <type_traits>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

namespace bitwitness::cli {

namespace {

using decoders::Game;
using decoders::Mab;
using decoders::RrAnimation;
using decoders::SwsAnimation;
using decoders::SwsAnimSet;
using decoders::Track;

constexpr std::size_t games = 3;
constexpr std::size_t kinds_a_game = 64;  // SWS tags have six bits for it, RR's fewer
constexpr std::size_t forms = 4;

KeyForm form_of(decoders::TimeForm form) {
  switch (form) {
    case decoders::TimeForm::u8_ticks:
      return KeyForm::u8;
    case decoders::TimeForm::u16_ticks:
      return KeyForm::u16;
    case decoders::TimeForm::mask:
      break;
  }
  return KeyForm::mask;
}

std::size_t packed_size_of(Game game, unsigned kind) {
  return decoders::find_decoder(decoders::find_track_kind(game, kind)->decoder)->packed_size;
}

/// Where threads bring their counts, and the sets of values that they feed.
class Shared {
 public:
  explicit Shared(const CensusOptions& options) : options_(options), budget_(options.memory) {}

  /// The set of a row, made when it is first asked for.
  DistinctValues& values(std::size_t row, std::size_t packed_size) {
    const std::scoped_lock lock(mutex_);
    std::unique_ptr<DistinctValues>& values = values_.at(row);
    if (!values) values = std::make_unique<DistinctValues>(packed_size, budget_);
    return *values;
  }

  /// The set of the kind wanted.
  DistinctValues& wanted(std::size_t packed_size) {
    const std::scoped_lock lock(mutex_);
    if (!wanted_) wanted_ = std::make_unique<DistinctValues>(packed_size, budget_);
    return *wanted_;
  }

  Census take(CorpusSummary read) {
    Census census = std::move(total_);
    census.read = std::move(read);
    census.distinct_clips = clips.count();
    for (std::size_t first = 0; first < rows_.size(); first += forms) take_kind(census, first);
    if (wanted_) {
      census.packed_size = wanted_->packed_size();
      census.values = wanted_->finish();
    }
    std::ranges::sort(census.refusals, {}, [](const FileRefusal& refusal) {
      return std::tuple(refusal.file, refusal.offset, refusal.rule);
    });
    if (census.refusals.size() > options_.limit) census.refusals.resize(options_.limit);
    if (options_.evidence) census.evidence = evidence_.result();
    return census;
  }

  /// Adds one thread's counts.
  void add(Census&& counts, std::span<const KindCount> rows, const decoders::Evidence& evidence) {
    const std::scoped_lock lock(mutex_);
    total_.clips += counts.clips;
    total_.tracks += counts.tracks;
    total_.keys += counts.keys;
    total_.anim_sets += counts.anim_sets;
    total_.anim_pairs += counts.anim_pairs;
    total_.refused += counts.refused;
    std::ranges::move(counts.refusals, std::back_inserter(total_.refusals));
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if (rows[row].tracks == 0) continue;
      rows_[row].game = rows[row].game;
      rows_[row].kind = rows[row].kind;
      rows_[row].form = rows[row].form;
      rows_[row].tracks += rows[row].tracks;
      rows_[row].keys += rows[row].keys;
    }
    evidence_.merge(evidence);
  }

  [[nodiscard]] const CensusOptions& options() const { return options_; }

  DistinctClips clips;

  static constexpr std::size_t row_count = games * kinds_a_game * forms;

 private:
  /// Takes the rows of one kind, which begin at `first`.
  void take_kind(Census& census, std::size_t first) {
    std::vector<PackedValues> of_forms;
    std::size_t packed_size = 0;
    for (std::size_t row = first; row < first + forms; ++row) {
      if (rows_[row].tracks == 0) continue;
      KindCount count = rows_[row];
      if (values_[row]) {
        const std::unique_ptr<DistinctValues> values = std::move(values_[row]);
        packed_size = values->packed_size();
        count.distinct = of_forms.emplace_back(values->finish()).count;
      }
      census.kinds.push_back(count);
    }
    if (of_forms.empty()) return;
    const KindCount& last = census.kinds.back();
    census.distinct_by_kind.push_back({last.game, last.kind, count_distinct(of_forms, packed_size)});
  }

  const CensusOptions& options_;
  MemoryBudget budget_;
  std::mutex mutex_;  // of what follows
  std::array<std::unique_ptr<DistinctValues>, row_count> values_;
  std::unique_ptr<DistinctValues> wanted_;
  std::array<KindCount, row_count> rows_;
  Census total_;
  decoders::Evidence evidence_;
};

class CensusVisitor final : public CorpusVisitor {
 public:
  explicit CensusVisitor(Shared& shared) : shared_(shared) {}

  void visit(const AnimationObject& object, std::span<const std::byte> bytes) override {
    std::visit([&](const auto& of_kind) { count(of_kind, bytes); }, object);
  }

  void refuse(FileRefusal refusal) override {
    ++counts_.refused;
    // Files come in the list's order, so that the first ones of all are among the first ones of each thread.
    if (counts_.refusals.size() < shared_.options().limit) counts_.refusals.push_back(std::move(refusal));
  }

  void finish() override {
    for (const auto& feeder : feeders_) {
      if (feeder) feeder->close();
    }
    if (wanted_) wanted_->close();
    shared_.add(std::move(counts_), rows_, evidence_);
  }

 private:
  void count(const SwsAnimSet& set, std::span<const std::byte>) {
    ++counts_.anim_sets;
    counts_.anim_pairs += set.pair_count();
  }

  void count(const SwsAnimation& clip, std::span<const std::byte> bytes) { count_clip(Game::sws, clip, bytes); }
  void count(const RrAnimation& clip, std::span<const std::byte> bytes) { count_clip(Game::rr, clip, bytes); }

  template <typename Clip>
  void count_clip(Game game, const Clip& clip, std::span<const std::byte> bytes) {
    const bool is_new = begin_clip(clip, bytes);
    for (const Track& track : clip.tracks) {
      const std::size_t row = count_keys(game, track.kind, form_of(track.time_form), 1, track.key_count);
      if (is_new) feed(row, track.values);
    }
  }

  void count(const Mab& clip, std::span<const std::byte> bytes) {
    const bool is_new = begin_clip(clip, bytes);
    if (!clip.has_rotations) return;
    const std::size_t row = count_keys(Game::mab, 0, KeyForm::presence, clip.track_count, clip.key_count);
    if (!is_new) return;
    for (std::size_t index = 0; index < clip.group_count(); ++index) {
      const decoders::MabGroup group = clip.group(index);
      feed(row, group.first_keys);
      feed(row, group.later_keys);
    }
  }

  template <typename Clip>
  bool begin_clip(const Clip& clip, std::span<const std::byte> bytes) {
    ++counts_.clips;
    const bool is_new = shared_.clips.add(bytes);
    if (is_new && shared_.options().evidence) evidence_.add(clip);
    return is_new;
  }

  std::size_t count_keys(Game game, unsigned kind, KeyForm form, std::uint64_t tracks, std::uint64_t keys) {
    const std::size_t row =
        (static_cast<std::size_t>(game) * kinds_a_game + kind) * forms + static_cast<std::size_t>(form);
    KindCount& count = rows_[row];
    count.game = game;
    count.kind = kind;
    count.form = form;
    count.tracks += tracks;
    count.keys += keys;
    counts_.tracks += tracks;
    counts_.keys += keys;
    return row;
  }

  void feed(std::size_t row, std::span<const std::byte> values) {
    const Game game = rows_[row].game;
    const unsigned kind = rows_[row].kind;
    if (!feeders_[row]) {
      feeders_[row] = std::make_unique<DistinctValues::Feeder>(shared_.values(row, packed_size_of(game, kind)));
    }
    feeders_[row]->add(values);
    const std::optional<KindChoice>& choice = shared_.options().values_of;
    if (!choice || choice->kind != kind || choice->game.value_or(game) != game) return;
    if (!wanted_) wanted_ = std::make_unique<DistinctValues::Feeder>(shared_.wanted(packed_size_of(game, kind)));
    wanted_->add(values);
  }

  Shared& shared_;
  Census counts_;
  std::array<KindCount, Shared::row_count> rows_;
  std::array<std::unique_ptr<DistinctValues::Feeder>, Shared::row_count> feeders_;
  std::unique_ptr<DistinctValues::Feeder> wanted_;
  decoders::Evidence evidence_;
};

}  // namespace

struct DistinctClips::Impl {
  mutable std::mutex mutex;
  std::unordered_set<std::string> digests;
};

DistinctClips::DistinctClips() : impl_(std::make_unique<Impl>()) {}
DistinctClips::~DistinctClips() = default;

bool DistinctClips::add(std::span<const std::byte> bytes) {
  std::string digest = sha256_hex(bytes);
  const std::scoped_lock lock(impl_->mutex);
  return impl_->digests.insert(std::move(digest)).second;
}

std::uint64_t DistinctClips::count() const {
  const std::scoped_lock lock(impl_->mutex);
  return impl_->digests.size();
}

std::string_view name(KeyForm form) {
  switch (form) {
    case KeyForm::u8:
      return "u8";
    case KeyForm::u16:
      return "u16";
    case KeyForm::mask:
      return "mask";
    case KeyForm::presence:
      break;
  }
  return "presence";
}

KindChoice parse_kind(std::string_view text) {
  KindChoice choice;
  std::string_view number = text;
  if (const std::size_t colon = text.find(':'); colon != text.npos) {
    for (const Game game : {Game::sws, Game::rr, Game::mab}) {
      if (text.substr(0, colon) == decoders::name(game)) choice.game = game;
    }
    if (!choice.game) throw Error(fmt::format("--kind {}: the games are sws, rr and mab, as in sws:4", text));
    number = text.substr(colon + 1);
  }
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), choice.kind);
  if (error != std::errc{} || end != number.data() + number.size()) {
    throw Error(fmt::format("--kind {}: expected a kind's number, as in 4 or sws:4", text));
  }
  std::set<std::string_view> names;
  for (const decoders::TrackKind& kind : decoders::track_kinds()) {
    if (kind.kind == choice.kind && choice.game.value_or(kind.game) == kind.game) names.insert(kind.decoder);
  }
  if (names.empty()) throw Error(fmt::format("--kind {}: no such kind has values of a known width", text));
  if (names.size() > 1) {
    throw Error(fmt::format("--kind {}: games mean different things by it; name one, as in sws:{}", text, number));
  }
  return choice;
}

Census take_census(std::span<const std::string> files, const CensusOptions& options) {
  const auto shared = std::make_unique<Shared>(options);
  CorpusSummary read = read_corpus(files, options.corpus, [&] { return std::make_unique<CensusVisitor>(*shared); });
  return shared->take(std::move(read));
}

}  // namespace bitwitness::cli
