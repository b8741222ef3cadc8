#include "harness/cli/corpus_values.hpp"

#include "harness/cli/census.hpp"
#include "harness/error.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <mutex>

#include <fmt/format.h>

namespace bitwitness::cli {

namespace {

using decoders::Game;

/// A decoder that takes two consecutive keys, and the decoder of one.
constexpr std::string_view pair_decoder = "packed_quat48_pair";
constexpr std::string_view decoder_of_one = "packed_quat48";

/// Which kinds of track hold values of a decoder, and how they are taken from a track's keys.
struct Wanted {
  std::array<std::uint64_t, 3> kinds{};  ///< one bit a kind, by game
  std::size_t step = 0;                  ///< bytes from one value to the next: 0 for side by side

  [[nodiscard]] bool has(Game game, unsigned kind) const {
    return (kinds.at(static_cast<std::size_t>(game)) >> kind & 1) != 0;
  }
};

Wanted wanted_by(std::string_view decoder) {
  const bool pairs = decoder == pair_decoder;
  Wanted wanted;
  bool any = false;
  for (const decoders::TrackKind& kind : decoders::track_kinds()) {
    if (kind.decoder != (pairs ? decoder_of_one : decoder)) continue;
    wanted.kinds.at(static_cast<std::size_t>(kind.game)) |= std::uint64_t{1} << kind.kind;
    any = true;
  }
  if (!any) throw Error(fmt::format("no kind of animation track holds values of decoder {}", decoder));
  if (pairs) wanted.step = 6;
  return wanted;
}

struct Counts {
  std::uint64_t clips = 0;
  std::uint64_t keys = 0;    ///< of the kinds wanted
  std::uint64_t values = 0;  ///< that these give, repeated ones counted
  std::uint64_t refused = 0;
  std::optional<FileRefusal> first_refusal;
};

struct Shared {
  DistinctValues& values;
  Wanted wanted;
  DistinctClips clips;
  std::mutex mutex;
  Counts counts;
};

class ValuesVisitor final : public CorpusVisitor {
 public:
  explicit ValuesVisitor(Shared& shared) : shared_(shared), feeder_(shared.values) {}

  void visit(const AnimationObject& object, std::span<const std::byte> bytes) override {
    if (std::holds_alternative<decoders::SwsAnimSet>(object)) return;
    ++counts_.clips;
    const bool is_new = shared_.clips.add(bytes);
    if (const auto* const clip = std::get_if<decoders::SwsAnimation>(&object)) add(Game::sws, clip->tracks, is_new);
    if (const auto* const clip = std::get_if<decoders::RrAnimation>(&object)) add(Game::rr, clip->tracks, is_new);
    if (const auto* const clip = std::get_if<decoders::Mab>(&object)) add(*clip, is_new);
  }

  void refuse(FileRefusal refusal) override {
    if (counts_.refused++ == 0) counts_.first_refusal = std::move(refusal);
  }

  void finish() override {
    feeder_.close();
    const std::scoped_lock lock(shared_.mutex);
    Counts& all = shared_.counts;
    all.clips += counts_.clips;
    all.keys += counts_.keys;
    all.values += counts_.values;
    all.refused += counts_.refused;
    if (!counts_.first_refusal) return;
    if (!all.first_refusal || counts_.first_refusal->file < all.first_refusal->file) {
      all.first_refusal = std::move(counts_.first_refusal);
    }
  }

 private:
  void add(Game game, const decoders::Tracks& tracks, bool is_new) {
    for (const decoders::Track& track : tracks) {
      if (!shared_.wanted.has(game, track.kind)) continue;
      counts_.keys += track.key_count;
      counts_.values += shared_.wanted.step == 0 ? track.key_count : track.key_count - 1;
      if (is_new) feeder_.add(track.values, shared_.wanted.step);
    }
  }

  void add(const decoders::Mab& clip, bool is_new) {
    if (!shared_.wanted.has(Game::mab, 0)) return;
    counts_.keys += clip.key_count;
    counts_.values += clip.key_count;
    if (!is_new) return;
    for (std::size_t index = 0; index < clip.group_count(); ++index) {
      const decoders::MabGroup group = clip.group(index);
      feeder_.add(group.first_keys);
      feeder_.add(group.later_keys);
    }
  }

  Shared& shared_;
  DistinctValues::Feeder feeder_;
  Counts counts_;
};

/// A file as reports name it: as seen from the corpus, wherever that lies.
std::string shown(const std::string& file, const std::string& corpus) {
  const std::filesystem::path path(file);
  const std::filesystem::path relative = path.lexically_relative(corpus);
  return (relative.empty() || relative == "." ? path.filename() : relative).string();
}

std::string refusals_text(const Counts& counts, const FileList& list, const std::string& corpus) {
  std::string text = fmt::format("refusals {}", counts.refused);
  if (!counts.first_refusal) return text;
  const FileRefusal& first = *counts.first_refusal;
  return text + fmt::format(", the first: {} at {:#x}: {}: {}", shown(list.files[first.file], corpus), first.offset,
                            first.rule, first.reason);
}

}  // namespace

std::vector<std::string> add_corpus_values(DistinctValues& values, const std::string& path, std::string_view decoder,
                                           const CorpusOptions& options) {
  const Wanted wanted = wanted_by(decoder);
  const FileList list = list_files(std::span(&path, 1));
  std::vector<UnreachablePath> unreachable = list.unreachable;
  // What was named is an error of the call; what turns up below it is told with the rest.
  if (!unreachable.empty() && unreachable.front().path == path) throw Error(describe(unreachable.front()));
  if (list.files.empty()) throw Error(fmt::format("{}: there is no file in it", path));
  Shared shared{values, wanted, {}, {}, {}};
  const CorpusSummary read = read_corpus(list.files, options, [&] { return std::make_unique<ValuesVisitor>(shared); });
  unreachable.insert(unreachable.end(), read.unreachable.begin(), read.unreachable.end());
  const Counts& counts = shared.counts;
  if (counts.values == 0 && read.not_read == 0) {
    throw Error(fmt::format("corpus:{}: not one value for {}: files {}, clips {}, {}", path, decoder, read.files,
                            counts.clips, refusals_text(counts, list, path)));
  }
  std::vector<std::string> notes{fmt::format("corpus: files {}, clips {}, distinct clips {}, keys of this kind {}",
                                             read.files, counts.clips, shared.clips.count(), counts.keys)};
  if (read.made) notes.insert(notes.begin(), fmt::format("corpus: {}", made_warning));
  if (read.not_read != 0) notes.push_back(fmt::format("corpus: files not read {}", read.not_read));
  if (!unreachable.empty()) {
    notes.push_back(fmt::format("corpus: not reached {}, the first: {}", unreachable.size(),
                                shown(unreachable.front().path, path)));
  }
  if (counts.refused != 0) notes.push_back("corpus: " + refusals_text(counts, list, path));
  return notes;
}

}  // namespace bitwitness::cli
