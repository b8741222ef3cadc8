#include "harness/cli/corpus.hpp"

#include "decoders/scan.hpp"
#include "harness/error.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
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

/// One thread's part of reading.
class Reader {
 public:
  Reader(const CorpusOptions& options, CorpusVisitor& visitor) : options_(options), visitor_(visitor) {}

  void read(std::size_t file, std::span<const std::byte> bytes) {
    const std::optional<FileFormat> format = format_of(bytes, options_.format);
    std::optional<FileRefusal> refusal;
    if (!format) {
      refusal = FileRefusal{file, 0, "format", "the first bytes open none of the formats that are read"};
    } else {
      refusal = read_as(*format, file, bytes);
    }
    if (!refusal) return;
    if (options_.scan) {
      scan(file, bytes);
    } else {
      visitor_.refuse(*std::move(refusal));
    }
  }

 private:
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
    return keep(file, bytes, decoders::read_mab(bytes));
  }

  template <typename Object>
  std::optional<FileRefusal> keep(std::size_t file, std::span<const std::byte> bytes,
                                  const decoders::Reading<Object>& reading) {
    if (!reading) return refusal_of(file, reading.refusal());
    visitor_.visit(*reading, bytes);
    return std::nullopt;
  }

  void scan(std::size_t file, std::span<const std::byte> bytes) {
    const auto wanted = [&](const auto& object) {
      constexpr bool rr = std::is_same_v<std::decay_t<decltype(object)>, decoders::RrAnimation>;
      return !options_.format || *options_.format == (rr ? Game::rr : Game::sws);
    };
    const decoders::ScanListener listener{[&](const decoders::FoundObject& found) {
                                            std::visit(
                                                [&](const auto& object) {
                                                  if (wanted(object))
                                                    visitor_.visit(object, bytes.subspan(found.offset, found.size));
                                                },
                                                found.object);
                                          },
                                          [&](const Refusal& refusal) { visitor_.refuse(refusal_of(file, refusal)); }};
    const decoders::ScanSummary summary = decoders::scan(bytes, listener);
    if (summary.stopped) visitor_.refuse(refusal_of(file, *summary.stopped));
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
    summary_.not_read = files_.size() - summary_.files - summary_.unreachable.size();
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
      std::optional<FileBytes> bytes = open(file);
      if (!bytes) continue;
      reader.read(file, bytes->bytes());
      note_read(bytes->bytes().size());
    }
    visitor->finish();
  }

  std::optional<FileBytes> open(std::size_t file) {
    try {
      return FileBytes::open(files_[file]);
    } catch (const Error& error) {
      const std::scoped_lock lock(mutex_);
      unreachable_.emplace(file, UnreachablePath{files_[file], error.what()});
      return std::nullopt;
    }
  }

  void note_read(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    ++summary_.files;
    summary_.bytes += bytes;
    const auto now = std::chrono::steady_clock::now();
    if (!options_.progress || now - last_progress_ < progress_interval) return;
    last_progress_ = now;
    options_.progress({summary_.files, files_.size(), summary_.bytes});
  }

  std::span<const std::string> files_;
  const CorpusOptions& options_;
  const std::function<std::unique_ptr<CorpusVisitor>()>& make_visitor_;
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;  // of what follows
  CorpusSummary summary_;
  std::map<std::size_t, UnreachablePath> unreachable_;
  std::exception_ptr failure_;
  std::chrono::steady_clock::time_point last_progress_{};
};

}  // namespace

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
