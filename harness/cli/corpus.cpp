#include "harness/cli/corpus.hpp"

#include "decoders/scan.hpp"
#include "harness/error.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace bitwitness::cli {

namespace {

using decoders::FileFormat;
using decoders::Game;
using decoders::Refusal;

constexpr std::chrono::milliseconds progress_interval{100};

Game game_of(FileFormat format) {
  switch (format) {
    case FileFormat::sws_animation:
    case FileFormat::sws_anim_set:
      return Game::sws;
    case FileFormat::rr_animation:
      return Game::rr;
    case FileFormat::mab:
      break;
  }
  return Game::mab;
}

FileFormat format_of(Game game) {
  switch (game) {
    case Game::sws:
      return FileFormat::sws_animation;
    case Game::rr:
      return FileFormat::rr_animation;
    case Game::mab:
      break;
  }
  return FileFormat::mab;
}

/// Of a format given, only whether it is an AnimSet is left to be guessed.
std::optional<FileFormat> format_of(std::span<const std::byte> bytes, std::optional<Game> given) {
  const std::optional<FileFormat> guess = decoders::guess_format(bytes);
  if (!given || (guess && game_of(*guess) == *given)) return guess;
  return format_of(*given);
}

FileRefusal refusal_of(std::size_t file, const Refusal& refusal) {
  return {file, refusal.offset, decoders::name(refusal.rule),
          fmt::format("{}; found {:#x}", decoders::reason(refusal.rule), refusal.found)};
}

/// Takes how many bytes of a file are searched, and tells whether to go on.
using KeepGoing = std::function<bool(std::size_t searched)>;

/// One thread's part of reading.
class Reader {
 public:
  Reader(const CorpusOptions& options, CorpusVisitor& visitor) : options_(options), visitor_(visitor) {}

  /// Returns false when it was not to go on to the file's end.
  bool read(std::size_t file, std::span<const std::byte> bytes, const KeepGoing& keep_going) {
    const std::optional<FileFormat> format = format_of(bytes, options_.format);
    std::optional<FileRefusal> refusal;
    if (!format) {
      refusal = FileRefusal{file, 0, "format", "the first bytes open none of the formats that are read"};
    } else {
      refusal = read_as(*format, file, bytes);
    }
    if (!refusal) return true;
    if (!options_.scan) {
      visitor_.refuse(*std::move(refusal));
      return true;
    }
    // No scan looks for .mab: what was refused as such is found by nothing else.
    const bool lost = format == FileFormat::mab;
    if (lost) visitor_.refuse(*refusal);
    const Scanned scanned = scan(file, bytes, keep_going);
    if (!lost && !scanned.told && !scanned.given_up) visitor_.refuse(*std::move(refusal));
    return !scanned.given_up;
  }

 private:
  struct Scanned {
    bool told = false;  ///< the visitor was given something
    bool given_up = false;
  };

  std::optional<FileRefusal> read_as(FileFormat format, std::size_t file, std::span<const std::byte> bytes) {
    switch (format) {
      case FileFormat::sws_animation:
        return keep(file, bytes, decoders::read_sws_animation(bytes));
      case FileFormat::sws_anim_set:
        return keep(file, bytes, decoders::read_sws_anim_set(bytes));
      case FileFormat::rr_animation:
        return keep(file, bytes, decoders::read_rr_animation(bytes));
      case FileFormat::mab:
        break;
    }
    return read_mab_chain(file, bytes);
  }

  /// Returns the first clip's refusal; one of a clip chained to it goes to the visitor.
  std::optional<FileRefusal> read_mab_chain(std::size_t file, std::span<const std::byte> bytes) {
    decoders::MabOptions options;
    decoders::WorkBudget budget = decoders::WorkBudget::of(bytes.size());
    std::size_t begin = 0;
    while (true) {
      const decoders::Reading<decoders::Mab> clip = decoders::read_mab(bytes, options);
      if (!clip) {
        FileRefusal refusal = refusal_of(file, clip.refusal());
        if (begin == 0) return refusal;
        visitor_.refuse(std::move(refusal));
        return std::nullopt;
      }
      const std::optional<std::size_t> next = decoders::following_clip(*clip);
      const std::span<const std::byte> own = bytes.subspan(begin, next ? end_of(*clip) - begin : std::dynamic_extent);
      // Bytes may be made so that each of many clips has the same ones.
      if (!budget.spend(own.size())) {
        visitor_.refuse(refusal_of(file, {begin, decoders::Rule::work, own.size()}));
        return std::nullopt;
      }
      visitor_.visit(*clip, own);
      if (!next) return std::nullopt;
      begin = *next;
      options.clip_base = *next;
    }
  }

  /// The furthest place that a clip's table names, or the end of its rotations: of a clip in a chain, where the next
  /// begins, unless sections lie in another order than public readers tell.
  static std::size_t end_of(const decoders::Mab& clip) {
    std::size_t end = clip.section_at + clip.section.size();
    for (const std::int32_t offset : clip.section_offsets) {
      end = std::max(end, clip.clip_base + static_cast<std::size_t>(offset));
    }
    return end;
  }

  template <typename Object>
  std::optional<FileRefusal> keep(std::size_t file, std::span<const std::byte> bytes,
                                  const decoders::Reading<Object>& reading) {
    if (!reading) return refusal_of(file, reading.refusal());
    visitor_.visit(*reading, bytes);
    return std::nullopt;
  }

  Scanned scan(std::size_t file, std::span<const std::byte> bytes, const KeepGoing& keep_going) {
    Scanned scanned;
    const auto wanted = [&](const auto& object) {
      constexpr bool rr = std::is_same_v<std::decay_t<decltype(object)>, decoders::RrAnimation>;
      return !options_.format || *options_.format == (rr ? Game::rr : Game::sws);
    };
    const auto refuse = [&](const Refusal& refusal) {
      scanned.told = true;
      visitor_.refuse(refusal_of(file, refusal));
    };
    decoders::ScanListener listener;
    listener.found = [&](const decoders::FoundObject& found) {
      std::visit(
          [&](const auto& object) {
            if (!wanted(object)) return;
            scanned.told = true;
            visitor_.visit(object, bytes.subspan(found.offset, found.size));
          },
          found.object);
    };
    listener.refused = refuse;
    listener.keep_going = keep_going;
    const decoders::ScanSummary summary = decoders::scan(bytes, listener);
    if (summary.stopped) refuse(*summary.stopped);
    scanned.given_up = summary.given_up;
    return scanned;
  }

  const CorpusOptions& options_;
  CorpusVisitor& visitor_;
};

class CorpusReading {
 public:
  CorpusReading(std::span<const std::string> files, const CorpusOptions& options,
                const std::function<std::unique_ptr<CorpusVisitor>()>& make_visitor)
      : files_(files), options_(options), make_visitor_(make_visitor) {}

  CorpusSummary run() {
    const std::size_t jobs = std::clamp<std::size_t>(options_.jobs, 1, std::max<std::size_t>(files_.size(), 1));
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 1; i < jobs; ++i) threads.emplace_back([this] { guarded_work(); });
      guarded_work();
    }
    if (failure_) std::rethrow_exception(failure_);
    for (auto& [file, unreachable] : unreachable_) summary_.unreachable.push_back(std::move(unreachable));
    summary_.not_read = files_.size() - summary_.files - summary_.unreachable.size() - markers_;
    summary_.made = markers_ != 0;
    return std::move(summary_);
  }

 private:
  void guarded_work() {
    try {
      work();
    } catch (...) {
      const std::scoped_lock lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      next_ = files_.size();
    }
  }

  void work() {
    const std::unique_ptr<CorpusVisitor> visitor = make_visitor_();
    Reader reader(options_, *visitor);
    while (!options_.stop.stop_requested()) {
      const std::size_t file = next_.fetch_add(1);
      if (file >= files_.size()) break;
      const std::optional<FileBytes> opened = open(file);
      if (!opened) continue;
      const std::span<const std::byte> bytes = opened->bytes();
      if (is_made_marker(bytes)) {
        ++markers_;
        continue;
      }
      std::size_t told = 0;
      const bool whole = reader.read(file, bytes, [&](std::size_t searched) {
        note_searched(searched - std::exchange(told, searched));
        return !options_.stop.stop_requested();
      });
      note_done(bytes.size(), told, whole);
    }
    visitor->finish();
  }

  std::optional<FileBytes> open(std::size_t file) {
    std::string reason;
    std::optional<FileBytes> opened = FileBytes::open(reason, files_[file]);
    if (!opened) {
      const std::scoped_lock lock(mutex_);
      unreachable_.emplace(file, UnreachablePath{files_[file], std::move(reason)});
    }
    return opened;
  }

  void note_searched(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    searched_ += bytes;
    show_progress();
  }

  void note_done(std::size_t bytes, std::size_t searched, bool whole) {
    const std::scoped_lock lock(mutex_);
    searched_ -= searched;
    if (!whole) return;
    ++summary_.files;
    summary_.bytes += bytes;
    show_progress();
  }

  // Under the lock.
  void show_progress() {
    const auto now = std::chrono::steady_clock::now();
    if (!options_.progress || now - last_progress_ < progress_interval) return;
    last_progress_ = now;
    options_.progress({summary_.files, files_.size(), summary_.bytes + searched_});
  }

  std::span<const std::string> files_;
  const CorpusOptions& options_;
  const std::function<std::unique_ptr<CorpusVisitor>()>& make_visitor_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<std::size_t> markers_ = 0;
  std::mutex mutex_;  // of what follows
  CorpusSummary summary_;
  std::uint64_t searched_ = 0;  // of files that are being scanned
  std::map<std::size_t, UnreachablePath> unreachable_;
  std::exception_ptr failure_;
  std::chrono::steady_clock::time_point last_progress_{};
};

}  // namespace

bool is_made_marker(std::span<const std::byte> bytes) {
  constexpr std::string_view opening = "bitwitness made corpus: ";
  constexpr std::size_t too_large = 4096;
  if (bytes.size() < opening.size() || bytes.size() >= too_large) return false;
  return std::memcmp(bytes.data(), opening.data(), opening.size()) == 0;
}

std::string progress_text(const CorpusProgress& progress) {
  constexpr double megabyte = 1e6;
  return fmt::format("{} of {} files, {:.0f} MB", progress.files, progress.of_files,
                     static_cast<double>(progress.bytes) / megabyte);
}

std::optional<Game> parse_format(std::string_view text) {
  if (text == "auto") return std::nullopt;
  for (const Game game : {Game::sws, Game::rr, Game::mab}) {
    if (text == decoders::name(game)) return game;
  }
  throw Error(fmt::format("--format {}: there are auto, sws, rr and mab", text));
}

CorpusSummary read_corpus(std::span<const std::string> files, const CorpusOptions& options,
                          const std::function<std::unique_ptr<CorpusVisitor>()>& make_visitor) {
  return CorpusReading(files, options, make_visitor).run();
}

}  // namespace bitwitness::cli
